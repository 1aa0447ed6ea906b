"""What a watch missed, in words: every view of an incomplete watch says it."""

from __future__ import annotations

from collections.abc import Sequence

_WATCHED = "attention modules watched"
SHOWN = 3  # reasons


def told_missed(seen: int, ran: int, reasons: Sequence[str]) -> str:
    """How many modules were watched, and why the others were not.

    >>> told_missed(23, 24, ["`x.y` computes attention by itself"])
    '23 of 24 attention modules watched; `x.y` computes attention by itself'
    """
    more = [f"and {len(reasons) - SHOWN} more"] if len(reasons) > SHOWN else []
    return f"{seen} of {ran} {_WATCHED}; " + "; ".join([*reasons[:SHOWN], *more])


def tells_missed(note: str) -> bool:
    """True if a note of some view is, or contains, such a sentence."""
    return f" {_WATCHED}; " in note
