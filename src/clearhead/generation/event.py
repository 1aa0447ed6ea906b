"""What generation tells: a token was written, or a text has ended."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

FinishReason: TypeAlias = Literal["stop-token", "stop-string", "max-tokens", "context"]


@dataclass(frozen=True, slots=True)
class Alternative:
    """A token that could have been written, and how likely the model found it."""

    token: int
    text: str
    probability: float


@dataclass(frozen=True, slots=True)
class Event:
    """One token of one text, or (``finish``) its end; the ``text`` of all events is the text.

    ``text`` may be empty (half a character, the start of a stop string) and come with a later
    event. ``probability`` is the model's own, before penalties, temperature and filters.
    ``row`` counts the prompts of a batch, ``sample`` the texts for one prompt.
    """

    text: str
    token: int | None = None
    probability: float | None = None
    alternatives: tuple[Alternative, ...] = ()
    row: int = 0
    sample: int = 0
    finish: FinishReason | None = None
