"""Rules for the fields of a description: each is read, known to be harmless, or refused by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from clearhead.errors import CheckpointError

Fields: TypeAlias = Mapping[str, Any]  # a config.json, or the metadata of one GGUF architecture
REQUIRED: Any = object()  # in place of a default: the description must have this field
OFF = (None, False, 0)


@dataclass(frozen=True)
class Refusal:
    """Why a field is refused, and the values with which it says nothing."""

    why: str
    harmless: tuple[Any, ...] = OFF
    hint: str | None = None


@dataclass(frozen=True)
class FieldRules:
    """What becomes of each field of one kind of description.

    ``read`` holds the fields that make the config, each with the value that counts where it is
    absent (the default of the package that the format comes from) or ``REQUIRED``. ``harmless``
    are fields that change no number that a model computes, with the reason. ``refused`` are those
    that would change numbers and are not understood. ``aliases`` are other names of fields; an
    alias wins over the name, as in transformers. ``inside`` finds unknown fields of nested
    objects. Any other field is unread: ``load`` warns of it.

    >>> rules = FieldRules({"size": REQUIRED, "bias": False}, {"author": "a remark"},
    ...                    {"experts": Refusal("a mixture of experts is not known")})
    >>> rules.completed({"size": 7, "experts": 0})
    {'size': 7, 'bias': False, 'experts': 0}
    >>> rules.unread({"size": 7, "author": "me", "colour": "red"})
    ('colour',)
    >>> rules.completed({"size": 7, "experts": 2})
    Traceback (most recent call last):
    clearhead.errors.CheckpointError: config.json: experts is 2: a mixture of experts is not known.
    """

    read: Mapping[str, Any]
    harmless: Mapping[str, str] = field(default_factory=dict)
    refused: Mapping[str, Refusal] = field(default_factory=dict)
    aliases: Mapping[str, str] = field(default_factory=dict)
    inside: Callable[[Fields], tuple[str, ...]] | None = None

    def __or__(self, other: FieldRules) -> FieldRules:
        """These rules and the other ones, which win where both know a field."""
        known = {*other.read, *other.harmless, *other.refused}

        def joined(mine: Mapping[str, Any], theirs: Mapping[str, Any]) -> dict[str, Any]:
            return {name: rule for name, rule in mine.items() if name not in known} | dict(theirs)

        return FieldRules(
            joined(self.read, other.read),
            joined(self.harmless, other.harmless),
            joined(self.refused, other.refused),
            {**self.aliases, **other.aliases},
            other.inside or self.inside,
        )

    def completed(
        self, fields: Fields, *, where: str = "config.json", prefix: str = ""
    ) -> dict[str, Any]:
        """The fields under their own names, with the defaults of those that are absent.

        ``prefix`` is what stands before each name in the description.

        Raises:
            CheckpointError: a field is refused, or required fields are missing; it names them.
        """
        named = {name: value for name, value in fields.items() if name not in self.aliases}
        named |= {self.aliases[name]: fields[name] for name in fields if name in self.aliases}
        for name in named:
            if name in self.refused:
                _refuse(prefix + name, named[name], self.refused[name], where)
        missing = [
            prefix + name
            for name, default in self.read.items()
            if default is REQUIRED and named.get(name) is None
        ]
        if missing:
            raise CheckpointError(
                f"{where} lacks {', '.join(missing)}.", hint="is it the description of this model?"
            )
        return {**self.read, **named}

    def unread(self, fields: Fields) -> tuple[str, ...]:
        """The fields that nobody knows, in the order of the description."""
        known = (self.read, self.harmless, self.refused, self.aliases)
        unknown = tuple(name for name in fields if not any(name in rules for rules in known))
        return unknown if self.inside is None else (*unknown, *self.inside(fields))


def _refuse(name: str, value: Any, rule: Refusal, where: str) -> None:
    if any(type(value) in (type(none), int, float) and value == none for none in rule.harmless):
        return
    shown = str(value) if len(str(value)) <= 60 else f"{str(value)[:60]}…"
    raise CheckpointError(f"{where}: {name} is {shown}: {rule.why}.", hint=rule.hint)
