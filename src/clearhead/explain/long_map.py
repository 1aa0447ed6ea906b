"""The map of one head over a long text: neighbouring tokens share a cell, every weight counts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from clearhead.arguments import whole_number
from clearhead.explain.finite import require_finite
from clearhead.explain.look import Look
from clearhead.explain.marks import hidden_columns, marks_of, readable
from clearhead.explain.notes import hidden_name
from clearhead.explain.pictures import HEADLINE, HeadPicture, Mark, Pool, shown_numbers
from clearhead.explain.sources import pooled as pooled_heads
from clearhead.explain.zoom.zoomed_map import Counted, ZoomedMap, seen_weights
from clearhead.trace.head_view import HeadView
from clearhead.trace.passage import Passage
from clearhead.trace.pooled_map import Cells

TILE = 4_000_000  # weights that are computed at once


def long_map(
    look: Look, head: str | None = None, *, size: int = 512, progress: Counted | None = None
) -> HeadPicture:
    """Return the map of one head, or of several as one, in at most size × size cells.

    A cell holds the largest weight, the mean or the sum, as the reading aid ``pool`` says. Rows
    and columns are named by their texts. Hidden columns count as 0, and their mass is shown.
    ``progress`` hears of rows done and rows in all.
    """
    size = whole_number("size", size, least=1)
    view = look.seen[look.chosen_head if head is None else head].of(look.batch)
    rows = marks_of(view.rows.passage, view.rows.length, words=False)
    columns = marks_of(view.columns.passage, view.columns.length, words=False)
    causal = view.record.facts.causal and view.record.facts.kind == "self"
    hidden = hidden_columns(columns, look.aids, causal=causal)
    if len(hidden) == len(columns):
        hidden = ()
    down = Cells.of(range(len(rows)), size).edges
    across = Cells.of(range(len(columns)), size).edges
    cells, mass = _cells(look, view, (rows, columns), hidden, (down, across), progress)
    single = len(view.heads) == 1
    return HeadPicture(
        head=_name(view) if single else f"{look.aids.pool} of {_name(view)}",
        kind=view.record.facts.kind,
        causal=view.record.facts.causal,
        rows=_cell_marks(rows, down, view.rows.passage),
        columns=_cell_marks(columns, across, view.columns.passage),
        weights=shown_numbers(cells.numpy()),
        visible=_visible(view, down, across),
        hidden=_hidden_cells(hidden, across),
        hidden_mass=shown_numbers(mass.numpy()),
        aids=look.aids,
        notes=_notes(look, view, (down, across), [columns[place] for place in hidden]),
        pooled=None if single else look.aids.pool,
        per_cell=max(_longest(down), _longest(across)),
        text=look.text,
        model=look.name,
        zoom=ZoomedMap(view, rows, columns, hidden, look.aids),
    )


def _name(view: HeadView) -> str:
    """A head, a layer with all of its heads, or some heads of one."""
    layer = view.record.facts
    if len(view.heads) == 1:
        return f"{layer.name}H{view.heads[0]}"
    return layer.name if len(view.heads) == layer.heads else view.name


def _cells(
    look: Look,
    view: HeadView,
    axes: tuple[Sequence[Mark], Sequence[Mark]],
    hidden: Sequence[int],
    edges: tuple[list[int], list[int]],
    progress: Counted | None = None,
) -> tuple[Float[Tensor, "row column"], Float[Tensor, " row"]]:
    """The cells, and the mass on hidden columns: the mean over the rows of a cell and all heads."""
    cells, masses = [], []
    pool, place = look.aids.pool, list(hidden)
    for run in _runs(edges[0], len(axes[1]) * len(view.heads)):
        tokens = slice(edges[0][run.start], edges[0][run.stop])
        weights = seen_weights(view, axes, tokens, look.aids)
        inside = [edge - tokens.start for edge in edges[0][run.start : run.stop + 1]]
        mass = weights[:, :, place].sum(dim=2).mean(dim=0)
        masses.append(_along(mass[:, None], inside, "mean")[:, 0])
        weights[:, :, place] = 0.0
        heads, _ = pooled_heads(iter([weights]), pool)
        narrow = _along(heads.T.contiguous(), edges[1], pool).T.contiguous()
        cells.append(_along(narrow, inside, pool))
        if progress is not None:
            progress(tokens.stop, edges[0][-1])
    found = torch.cat(cells)
    require_finite(found, view.record.facts.name, "weights")
    return found, torch.cat(masses)


def _runs(edges: list[int], keys: int) -> Iterator[range]:
    """Runs of cells whose weights fit into memory."""
    step = max(1, TILE // max(1, keys * _longest(edges)))
    for start in range(0, len(edges) - 1, step):
        yield range(start, min(len(edges) - 1, start + step))


def _along(
    numbers: Float[Tensor, "token other"], edges: Sequence[int], pool: Pool
) -> Float[Tensor, "cell other"]:
    """Pool runs of rows."""
    lengths = torch.tensor([stop - start for start, stop in pairwise(edges)])
    if int(lengths.max()) == 1:
        return numbers
    return torch.segment_reduce(numbers, pool, lengths=lengths, axis=0)


def _longest(edges: Sequence[int]) -> int:
    return max((stop - start for start, stop in pairwise(edges)), default=1)


def _cell_marks(
    marks: Sequence[Mark], edges: Sequence[int], passage: Passage | None
) -> tuple[Mark, ...]:
    """Each cell with the text that it stands for."""
    found = []
    for start, stop in pairwise(edges):
        first, last = marks[start], marks[stop - 1]
        named = first.text
        if passage is not None and stop - start > 1:
            named = passage.text[first.start : last.end]
        special = all(mark.special for mark in marks[start:stop])
        name = readable(" ".join(named.split())) or first.text
        found.append(Mark(name, first.start, last.end, special, tuple(range(start, stop))))
    return tuple(found)


def _hidden_cells(hidden: Sequence[int], edges: Sequence[int]) -> tuple[int, ...]:
    """The cells that hold nothing but hidden columns."""
    known = set(hidden)
    return tuple(
        cell
        for cell, (start, stop) in enumerate(pairwise(edges))
        if known.issuperset(range(start, stop))
    )


def _visible(
    view: HeadView, down: Sequence[int], across: Sequence[int]
) -> Bool[np.ndarray, "row column"]:
    """False for cells of which no token may see another."""
    found = np.zeros((len(down) - 1, len(across) - 1), dtype=bool)
    for number, (start, stop) in enumerate(pairwise(down)):
        seen = view.record.visible(view.batch, range(start, stop), range(across[-1]))
        if seen is None:
            found[number] = True
            continue
        heads = seen[list(view.places)] if seen.shape[0] > 1 else seen
        columns = heads.any(dim=0).any(dim=0).cpu().numpy()
        found[number] = np.logical_or.reduceat(columns, across[:-1])
    return found


def _notes(
    look: Look,
    view: HeadView,
    edges: tuple[list[int], list[int]],
    hidden: Sequence[Mark],
) -> tuple[str, ...]:
    aids, per_cell = look.aids, max(map(_longest, edges))
    number = "weight" if aids.measure == "weight" else "weight·‖v‖"
    kinds = {"max": f"the largest {number}", "mean": "the mean", "sum": "the sum"}
    notes = [f"{view.rows.length} × {view.columns.length} tokens."]
    if per_cell > 1:
        notes.append(f"A cell holds up to {per_cell} tokens a side: {kinds[aids.pool]} is shown.")
    if aids.measure != "weight":
        notes.append("Numbers are weight·‖v‖, each row divided by its sum.")
    if hidden:
        notes.append(f"Hidden, with its mass shown: attention to {hidden_name(hidden)}.")
    if aids.colour == "log":
        notes.append("Colours are logarithmic.")
    if look.seen.missed:
        notes.append(look.seen.missed)
    return (*notes, HEADLINE)
