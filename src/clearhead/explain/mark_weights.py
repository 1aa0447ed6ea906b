"""Attention weights between marks (words, or tokens), computed on request.

Attention into a word is the sum over its tokens, out of a word the mean over them. ``weight·‖v‖``
measures how much of a word's value enters the output, not only its weight (Kobayashi et al. 2020,
"Attention is not only a weight"); each row is divided by its sum.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from clearhead.errors import InputError
from clearhead.explain.finite import require_finite
from clearhead.explain.pictures import Mark, Measure
from clearhead.trace.cost import LIMIT, Limit
from clearhead.trace.head_view import HeadView


def weights_between(
    view: HeadView,
    rows: Sequence[Mark],
    columns: Sequence[Mark],
    measure: Measure = "weight",
    *,
    limit: Limit | None = LIMIT,
) -> Float[Tensor, "head query key"]:
    """Return the weights from rows to columns (all, or the first), in every head of the view."""
    keys = sum(len(mark.tokens) for mark in columns)
    weights = view.weights(_places(rows), range(keys), limit=limit)
    weights = weights[None] if view.single else weights
    weights = weights.float().cpu()
    require_finite(weights, view.record.facts.name, "weights")
    if measure == "weight·‖v‖":
        weights = _by_value(view, weights)
    return _rows_merged(_columns_merged(weights, columns), rows)


def visible_between(
    view: HeadView, rows: Sequence[Mark], columns: Sequence[Mark]
) -> Bool[np.ndarray, "query key"]:
    """Return which rows may attend to which columns, in any of the view's heads."""
    record, lengths = view.record, (view.rows.length, view.columns.length)
    seen = record.visible(view.batch, range(lengths[0]), range(lengths[1]))
    if seen is None:
        return np.ones((len(rows), len(columns)), dtype=bool)
    cells = (seen[list(view.places)].any(dim=0) if seen.shape[0] > 1 else seen[0]).cpu()
    places = torch.tensor([place for mark in rows for place in mark.tokens], dtype=torch.long)
    counted = _columns_merged(cells[places][None].float(), columns)
    return np.asarray(_rows_merged(counted, rows)[0].numpy() > 0)


def keeps_values(view: HeadView) -> bool:
    """Return whether values were kept, so that weight·‖v‖ can be computed."""
    return view.record.value is not None


def _places(rows: Sequence[Mark]) -> list[int] | range:
    """The tokens of some marks; as a range if they are consecutive, which is faster."""
    places = [place for mark in rows for place in mark.tokens]
    run = range(places[0], places[0] + len(places)) if places else range(0)
    return run if places == list(run) else places


def _by_value(
    view: HeadView, weights: Float[Tensor, "head query key"]
) -> Float[Tensor, "head query key"]:
    value = view.record.value
    if value is None:
        raise InputError(
            "weight·‖v‖ needs the values, and this trace was made without them.",
            hint="watch(model, values=True) keeps them; ch.look(model, text) does so by itself.",
        )
    group = view.record.query.shape[1] // value.shape[1]
    shared = torch.tensor([place // group for place in view.places])
    lengths = torch.linalg.vector_norm(value[view.batch].float(), dim=-1).cpu()[shared]
    taken = weights * lengths[:, None, : weights.shape[-1]]  # lengths: (head, key)
    total: Tensor = taken.sum(dim=-1, keepdim=True).clamp(min=1e-30)
    return torch.div(taken, total)


def _columns_merged(
    weights: Float[Tensor, "head query token"], columns: Sequence[Mark]
) -> Float[Tensor, "head query key"]:
    if len(columns) == weights.shape[-1]:
        return weights
    owners = [0] * weights.shape[-1]
    for number, mark in enumerate(columns):
        for token in mark.tokens:
            owners[token] = number
    merged = weights.new_zeros(*weights.shape[:-1], len(columns))
    return merged.index_add_(-1, torch.tensor(owners), weights)


def _rows_merged(
    weights: Float[Tensor, "head token key"], rows: Sequence[Mark]
) -> Float[Tensor, "head query key"]:
    counts = torch.tensor([len(mark.tokens) for mark in rows])
    if int(counts.sum()) == len(rows):
        return weights
    owners = torch.repeat_interleave(torch.arange(len(rows)), counts)
    merged = weights.new_zeros(weights.shape[0], len(rows), weights.shape[2])
    return merged.index_add_(1, owners, weights) / counts[:, None]
