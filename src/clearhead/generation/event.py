"""Events that generation yields: a token was generated, or a text has ended."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Literal, TypeAlias

FinishReason: TypeAlias = Literal["stop-token", "stop-string", "max-tokens", "context"]


@dataclass(frozen=True, slots=True)
class Alternative:
    """One of the most likely tokens at a position, with the model's probability."""

    token: int
    text: str
    probability: float


@dataclass(frozen=True, slots=True, repr=False)
class Event:
    """One token of one text, or (``finish``) its end. All ``text`` fields joined are the text.

    ``text`` may be empty: half a character, or the start of a possible stop string. It then comes
    with a later event. ``probability`` is the model's own, before penalties, temperature and
    filters. ``row`` is the index of the prompt in the batch, ``sample`` the index of the text
    among those of one prompt.

    >>> Event(" books", token=7, probability=0.25)
    Event(' books', token=7, probability=0.25)
    >>> Event("", finish="max-tokens", row=1)
    Event('', row=1, finish='max-tokens')
    """

    text: str
    token: int | None = None
    probability: float | None = None
    alternatives: tuple[Alternative, ...] = ()
    row: int = 0
    sample: int = 0
    finish: FinishReason | None = None

    def __repr__(self) -> str:
        """The text, and those fields that differ from their defaults."""
        values = [(field.name, getattr(self, field.name), field.default) for field in fields(self)]
        named = [f"{name}={value!r}" for name, value, default in values[1:] if value != default]
        return f"Event({', '.join([repr(self.text), *named])})"
