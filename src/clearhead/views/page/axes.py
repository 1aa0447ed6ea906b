"""The axes of a page: words with the gaps between them, their tokens, and their masks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from jaxtyping import Int

from clearhead.explain.marks import marks_of
from clearhead.explain.pictures import Mark
from clearhead.trace.head_view import HeadView
from clearhead.trace.passage import Passage
from clearhead.trace.row_rules import RowRules

NO_GAP, SPACE, BREAK = 0, 1, 2
NEWLINE_SIGN = "⏎"
BLOCK = 512  # rows whose dense mask is made at once

Band = tuple[Int[np.ndarray, " row"], Int[np.ndarray, " row"]]


class Axes:
    """The different axes of a page, each once."""

    def __init__(self) -> None:
        self.listed: list[dict[str, Any]] = []
        self._known: dict[tuple[Mark, ...], int] = {}

    def number(
        self,
        marks: Sequence[Mark],
        label: str,
        text: str,
        tokens: Callable[[], list[str]] = list,
    ) -> int:
        """The axis with these marks, added if there is none yet; ``tokens`` is called only then."""
        marks = tuple(marks)
        if marks not in self._known:
            self._known[marks] = len(self.listed)
            self.listed.append(_axis(marks, label, text, tokens()))
        return self._known[marks]


def _axis(marks: Sequence[Mark], label: str, text: str, tokens: Sequence[str]) -> dict[str, Any]:
    return {
        "label": label,
        "words": [mark.text for mark in marks],
        "gaps": [_gap(marks, place, text) for place in range(len(marks))],
        "special": [place for place, mark in enumerate(marks) if mark.special],
        "tokens": [list(mark.tokens) for mark in marks],
        "token_texts": list(tokens),
    }


def _gap(marks: Sequence[Mark], place: int, text: str) -> int:
    """The gap before a mark: nothing, a space, or the end of a line."""
    mark, before = marks[place], marks[place - 1] if place else None
    if before is None:
        return NO_GAP
    if NEWLINE_SIGN in before.text and not before.text.strip(NEWLINE_SIGN + "␣"):
        return BREAK
    between = text[before.end : mark.start]
    if "\n" in between:
        return BREAK
    unknown = mark.start == mark.end or before.start == before.end
    return SPACE if between or unknown else NO_GAP


def token_texts(passage: Passage | None, length: int) -> list[str]:
    """The tokens of an axis as a person reads them."""
    return [mark.text for mark in marks_of(passage, length, words=False)]


def token_band(view: HeadView) -> Band | None:
    """For each query the run of keys that it sees; None where that is no run, or differs by head.

    A query that sees nothing has an empty run.
    """
    parts: list[Band] = []
    first = 0
    for piece in view.record.pieces:
        part = _band_of_rule(piece, view.batch)
        if part is None:
            part = _band_of_mask(view, range(first, first + piece.rows))
        if part is None:
            return None
        parts.append(part)
        first += piece.rows
    return np.concatenate([low for low, _ in parts]), np.concatenate([high for _, high in parts])


def _band_of_rule(piece: RowRules, batch: int) -> Band | None:
    """The rule itself, where it is a run without holes."""
    mask = piece.mask
    if mask is None:
        return np.zeros(piece.rows, dtype=np.int64), np.full(piece.rows, piece.keys)
    if mask.dense is not None or mask.real is not None or mask.whole is not None:
        return None
    low, high = (
        side[batch if side.shape[0] > 1 else 0].cpu().numpy().clip(0, piece.keys)
        for side in (mask.low, mask.high)
    )
    return low.astype(np.int64), np.maximum(low, high).astype(np.int64)


def _band_of_mask(view: HeadView, rows: range) -> Band | None:
    """The run of each query, found in its dense mask."""
    keys, lows, highs = view.columns.length, [], []
    for start in range(rows.start, rows.stop, BLOCK):
        run = range(start, min(rows.stop, start + BLOCK))
        seen = view.record.visible(view.batch, run, range(keys))
        if seen is None:
            seen = torch.ones(1, len(run), keys, dtype=torch.bool)
        if seen.shape[0] > 1:
            return None
        cells = seen[0].cpu()
        counts = cells.sum(dim=1)
        first = cells.to(torch.uint8).argmax(dim=1)
        last = keys - cells.flip(1).to(torch.uint8).argmax(dim=1)
        if not bool(((last - first == counts) | (counts == 0)).all()):
            return None
        lows.append(first.numpy())
        highs.append(torch.where(counts > 0, last, first).numpy())
    return np.concatenate(lows), np.concatenate(highs)


def mark_band(band: Band, rows: Sequence[Mark], columns: Sequence[Mark]) -> dict[str, list[int]]:
    """The same for marks: a mark sees another if some token of it sees one of the other."""
    owners = np.zeros(sum(len(mark.tokens) for mark in columns) + 1, dtype=np.int64)
    for number, mark in enumerate(columns):
        owners[list(mark.tokens)] = number
    lows, highs = [], []
    for mark in rows:
        places = list(mark.tokens)
        low, high = int(band[0][places].min()), int(band[1][places].max())
        lows.append(int(owners[low]))
        highs.append(int(owners[high - 1]) + 1 if high > low else int(owners[low]))
    return {"low": lows, "high": highs}
