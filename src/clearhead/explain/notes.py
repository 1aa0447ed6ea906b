"""What a picture says about itself: the reading aids that are on, and what to be careful about."""

from __future__ import annotations

from clearhead.explain.pictures import HEADLINE, Aids

POOLED = {"max": "the largest", "mean": "the mean", "sum": "the sum"}


def notes_of(
    aids: Aids, *, merged: bool, hidden: str, pooled: str, written: bool, more: tuple[str, ...] = ()
) -> tuple[str, ...]:
    """The notes as sentences.

    ``merged``: some word has several tokens. ``hidden``: what is hidden, in words, or "".
    ``pooled``: over what heads are put together, or "". ``written``: rows are what was written.
    """
    said = [
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
        if written
        else "",
        *more,
        HEADLINE,
    ]
    return tuple(note for note in said if note)


def hidden_name(first: bool, special: bool) -> str:
    """What is hidden, in words; "" if nothing is."""
    parts = ["the first token"] * first + ["special tokens"] * special
    return " and ".join(parts)
