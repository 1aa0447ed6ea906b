"""Notes below a picture: the reading aids that are on, and caveats."""

from __future__ import annotations

from collections.abc import Sequence

from clearhead.explain.layer_group import LayerGroup
from clearhead.explain.pictures import HEADLINE, Aids, Mark

POOLED = {"max": "the largest", "mean": "the mean", "sum": "the sum"}


def notes_of(
    aids: Aids, group: LayerGroup, *, pooled: str = "", more: tuple[str, ...] = ()
) -> tuple[str, ...]:
    """Return the notes as sentences; ``pooled`` names the heads that were pooled, or is ""."""
    merged = any(len(mark.tokens) > 1 for mark in (*group.rows, *group.columns))
    hidden = hidden_name([group.columns[place] for place in group.hidden(aids)])
    notes = [
        "Subwords are merged: attention into a word is summed, out of it averaged."
        if aids.words and merged
        else "",
        f"Hidden, with its mass shown: attention to {hidden}." if hidden else "",
        f"Over {pooled}: {POOLED[aids.pool]} is shown." if pooled else "",
        "Numbers are weight·‖v‖, each row divided by its sum."
        if aids.measure == "weight·‖v‖"
        else "",
        "Colours are logarithmic." if aids.colour == "log" else "",
        "A row is the query that wrote the word; it had read the words before it."
        if group.kind == "cross"
        else "",
        *more,
        HEADLINE,
    ]
    return tuple(note for note in notes if note)


def hidden_name(hidden: Sequence[Mark]) -> str:
    """The hidden columns in words; "" if none is hidden."""
    first = ["the first token"] * any(not mark.special for mark in hidden)
    special = ["special tokens"] * any(mark.special for mark in hidden)
    return " and ".join(first + special)
