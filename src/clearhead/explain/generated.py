"""What moved while a text was written: each new token, and what was looked at to write it."""

from __future__ import annotations

from dataclasses import dataclass

from clearhead.explain.pictures import Mark, Source, shown_number
from clearhead.explain.telling import Field, TileOf, agreement
from clearhead.trace.passage import Passage

SHOWN = 3  # sources of a token
WEAKEST = 0.005  # a source that would be shown as 0.00 is none


@dataclass(frozen=True)
class WrittenText:
    """A text with everything that was written; the last token was never read again."""

    passage: Passage
    prompt: int  # tokens that were there before
    probabilities: tuple[float | None, ...]  # of each written token


@dataclass(frozen=True)
class Written:
    """One written token. The query that wrote it stands at the token before it."""

    text: str
    position: int  # of the token in the text
    probability: float | None
    sources: tuple[Source, ...]  # the most telling first (explain/telling.py)


def written_tokens(
    written: WrittenText, marks: tuple[Mark, ...], field: Field, layers: list[str], tile_of: TileOf
) -> tuple[Written, ...]:
    """Every written token; ``marks`` are those of the text's tokens, ``field`` has a row for each
    token that was read."""
    count = len(written.passage.tokens)
    rows = [place - 1 for place in range(written.prompt, count)]
    if not rows:
        return ()
    found = agreement(field, layers, tile_of, rows)
    told = []
    for number, place in enumerate(range(written.prompt, count)):
        sources = tuple(
            Source(column, field.columns[column], shown_number(weight), None, head)
            for column, weight, head in found.sources(number, SHOWN)
            if weight >= WEAKEST
        )
        told.append(Written(marks[place].text, place, written.probabilities[number], sources))
    return tuple(told)
