"""The text of an axis for a deep zoom: token by token, such that the pieces joined are the text."""

from __future__ import annotations

from typing import Any

from clearhead.explain.marks import marks_of
from clearhead.trace.passage import Passage


def axis_json(passage: Passage | None, length: int, label: str) -> dict[str, Any]:
    """``pieces`` of real text, and ``names`` where a token's own text is none: special tokens.

    >>> axis_json(None, 2, "Text")
    {'label': 'Text', 'pieces': ['', ''], 'names': {'0': '0', '1': '1'}}
    """
    pieces = [""] * length if passage is None else pieces_of(passage)
    marks = marks_of(passage, length, words=False)
    names = {
        str(place): mark.text
        for place, (mark, piece) in enumerate(zip(marks, pieces, strict=True))
        if mark.text != piece.strip()
    }
    return {"label": label, "pieces": pieces, "names": names}


def pieces_of(passage: Passage) -> list[str]:
    """The text cut where tokens begin; what comes before the first belongs to it."""
    starts = [0]
    for token in passage.tokens[1:]:
        starts.append(max(starts[-1], token.start))
    ends = [*starts[1:], len(passage.text)]
    return [passage.text[start:end] for start, end in zip(starts, ends, strict=True)]
