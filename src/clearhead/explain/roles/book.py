"""The book of names: every property that has occurred, and what kind it is of."""

from __future__ import annotations

from dataclasses import dataclass, field

from clearhead.errors import InputError
from clearhead.explain.roles.properties import AnyProperty, Kind, Level


@dataclass(frozen=True, slots=True)
class Entry:
    """A property as it is written down."""

    name: str
    level: Level
    kind: Kind


@dataclass
class Book:
    """Properties in the order in which they occurred, and kinds of words in theirs."""

    entries: list[Entry] = field(default_factory=list)
    numbers: dict[str, int] = field(default_factory=dict)
    word_kinds: dict[str, int] = field(default_factory=dict)

    def number(self, name: str, owner: AnyProperty) -> int:
        """The number of a property, which is new if it never occurred."""
        known = self.numbers.get(name)
        if known is None:
            return self.enter(Entry(name, owner.level, owner.kind))
        entry = self.entries[known]
        if (entry.level, entry.kind) != (owner.level, owner.kind):
            raise InputError(f"two properties are called {name!r}.")
        return known

    def enter(self, entry: Entry) -> int:
        """Write a property down, or find it."""
        if entry.name not in self.numbers:
            self.numbers[entry.name] = len(self.entries)
            self.entries.append(entry)
        return self.numbers[entry.name]

    def word_kind(self, kind: str) -> int:
        """The number of a kind of word."""
        return self.word_kinds.setdefault(kind, len(self.word_kinds))
