"""The property index: a number for every property that has occurred, with its level and kind."""

from __future__ import annotations

from dataclasses import dataclass, field

from clearhead.errors import InputError
from clearhead.explain.roles.properties import AnyProperty, Kind, Level


@dataclass(frozen=True, slots=True)
class Entry:
    """The entry of one property."""

    name: str
    level: Level
    kind: Kind


@dataclass
class PropertyIndex:
    """Properties in the order in which they occurred, and word kinds likewise."""

    entries: list[Entry] = field(default_factory=list)
    numbers: dict[str, int] = field(default_factory=dict)
    word_kinds: dict[str, int] = field(default_factory=dict)

    def number(self, name: str, owner: AnyProperty) -> int:
        """Return the number of a property; a new one if it has not occurred yet."""
        known = self.numbers.get(name)
        if known is None:
            return self.enter(Entry(name, owner.level, owner.kind))
        entry = self.entries[known]
        if (entry.level, entry.kind) != (owner.level, owner.kind):
            raise InputError(f"two properties are called {name!r}.")
        return known

    def enter(self, entry: Entry) -> int:
        """Return the number of an entry, and add it if it is new."""
        if entry.name not in self.numbers:
            self.numbers[entry.name] = len(self.entries)
            self.entries.append(entry)
        return self.numbers[entry.name]

    def word_kind(self, kind: str) -> int:
        """Return the number of a word kind; a new one if it has not occurred yet."""
        return self.word_kinds.setdefault(kind, len(self.word_kinds))
