"""The map of one head over a long text: neighbouring tokens share a cell, every weight counts."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from clearhead.explain.finite import require_finite
from clearhead.explain.look import Look
from clearhead.explain.marks import marks_of
from clearhead.explain.pictures import HEADLINE, HeadPicture, Mark, shown_numbers
from clearhead.trace.head_view import HeadView
from clearhead.trace.pooled_map import PooledMap


def long_map(look: Look, head: str | None = None, *, size: int = 512) -> HeadPicture:
    """Return the map of one head in at most size × size cells.

    A cell holds the largest weight, the mean or the sum, as the reading aid ``pool`` says. Rows
    and columns are named by their first tokens.
    """
    view = look.seen[look.chosen_head if head is None else head].of(look.batch)
    first = _first(look, view)
    pooled = view.map(size, look.aids.pool, columns=slice(first, None), limit=None)
    require_finite(pooled.cells, view.record.facts.name, "weights")
    cells = pooled.cells if view.single else pooled.cells.amax(dim=0)
    numbers = shown_numbers(cells.float().cpu().numpy())
    rows = _cell_marks(view, pooled.row_edges, rows=True)
    columns = _cell_marks(view, pooled.column_edges, rows=False)
    return HeadPicture(
        head=view.name if view.single else f"max of {view.name}",
        kind=view.record.facts.kind,
        causal=view.record.facts.causal,
        rows=rows,
        columns=columns,
        weights=numbers,
        visible=_visible(view, pooled),
        hidden=(),
        hidden_mass=shown_numbers(np.zeros(len(rows), dtype=np.float32)),
        aids=look.aids,
        notes=_notes(look, view, pooled, first),
    )


def _first(look: Look, view: HeadView) -> int:
    """The first column to show: in a causal head, the weight on token 0 hides all the others."""
    causal = view.record.facts.causal and view.record.facts.kind == "self"
    return int(causal and look.aids.hide == "first and special" and view.columns.length > 1)


def _cell_marks(view: HeadView, edges: Sequence[int], *, rows: bool) -> tuple[Mark, ...]:
    axis = view.rows if rows else view.columns
    marks = marks_of(axis.passage, axis.length, words=False)
    return tuple(
        Mark(
            marks[start].text, marks[start].start, marks[stop - 1].end, marks[start].special,
            tuple(range(start, stop)),
        )
        for start, stop in pairwise(edges)
    )  # fmt: skip


def _visible(view: HeadView, pooled: PooledMap) -> np.ndarray:
    """False for the cells of a causal head that lie wholly in the future."""
    shape = (len(pooled.row_edges) - 1, len(pooled.column_edges) - 1)
    if not view.record.facts.causal:
        return np.ones(shape, dtype=bool)
    shift = view.columns.length - view.rows.length
    last = np.array(pooled.row_edges[1:]) - 1 + shift
    return np.asarray(np.array(pooled.column_edges[:-1])[None] <= last[:, None])


def _notes(look: Look, view: HeadView, pooled: PooledMap, first: int) -> tuple[str, ...]:
    per_cell = -(-view.rows.length // max(1, len(pooled.row_edges) - 1))
    kinds = {"max": "the largest weight", "mean": "the mean", "sum": "the sum"}
    notes = [f"{view.rows.length} × {view.columns.length} tokens."]
    if per_cell > 1:
        notes.append(f"A cell holds up to {per_cell} tokens a side: {kinds[pooled.pool]} is shown.")
    if first:
        notes.append("Attention to the first token is left out.")
    if look.aids.colour == "log":
        notes.append("Colours are logarithmic.")
    if look.seen.missed:
        notes.append(look.seen.missed)
    return (*notes, HEADLINE)
