"""Queries, keys, masks and weights of a trail with the axes (batch, head, row, …)."""

from __future__ import annotations

import math
from itertools import chain
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from clearhead.trace.watching.axis_digits import Dim, Label, arranged, label_of, split_by
from clearhead.trace.watching.observed_call import ObservedCall

if TYPE_CHECKING:
    from clearhead.trace.watching.doors.unfused.trail import Trail

LARGE = 16.0  # a score whose last digit in float32 is a millionth
UNFOLLOWED = "its axes cannot be followed"


def scored_call(
    trail: Trail, weights: Tensor, label: Label, axes: tuple[Dim, Dim, Dim]
) -> ObservedCall | str:
    """Queries, keys, masks and weights with axes (batch, head, row, …); no values yet."""
    batch, heads, rows = axes
    columns = label_of("m", (trail.key.shape[1],))[0]
    fine = (*label, columns)
    sizes = trail.query.shape
    deep = label_of("w", (sizes[2],))
    first = label_of("zn", (sizes[0], sizes[1]))
    if trail.talking:
        count = math.prod(digit.size for digit in heads)
        key = _keys_of_one_head(trail.key, (first[0], columns, *deep), fine, batch, count)
        query = (
            None
            if key is None
            else key.new_zeros(()).expand(
                key.shape[0], count, math.prod(digit.size for digit in rows), key.shape[3]
            )
        )
    else:
        query = four(trail.query, (*first, *deep), fine, (batch, heads, rows, *deep))
        key = four(trail.key, (first[0], columns, *deep), fine, (batch, heads, columns, *deep))
    own = four(weights, label, fine, (batch, heads, rows, columns))
    groups = ((), (), ()) if trail.opaque else (trail.added, trail.factors, trail.hidden)
    parts = [
        [four(part.tensor, part.label, fine, (batch, heads, rows, columns)) for part in group]
        for group in groups
    ]
    if any(part is None for part in (query, key, own, *chain(*parts))):
        return UNFOLLOWED
    assert query is not None and key is not None
    added, factors, hidden = ([part for part in group if part is not None] for group in parts)
    if factors:
        query, key = _with_factors(query, key, factors, trail.scale)
    mask = None
    for part in hidden:
        mask = ~part if mask is None else mask & ~part
    return ObservedCall(
        query,
        key,
        None,
        scale=trail.scale * (trail.capped or 1.0),
        softcap=trail.capped,
        output=None,
        mask=mask,
        fill=trail.fill if hidden else None,
        bias=sum(added[1:], added[0]) if added else None,
        sinks=_sinks(trail, query.shape[1], query.device),
        dropout=trail.dropout,
        dtype=narrowest(trail.query, weights),
        weights=own,
        after_dropout=True,
        undropped=_undropped(trail, fine, (batch, heads, rows, columns)),
        opaque=trail.opaque,
    )


def _with_factors(
    query: Tensor, key: Tensor, factors: list[Tensor], scale: float
) -> tuple[Tensor, Tensor]:
    """The queries times the numbers of their rows. Where scores may be large, rounding them would
    show in the weights: then both are kept in float64."""
    for factor in factors:
        query = query.double() * factor.double()
    largest = abs(scale) * float(query.norm(dim=-1).max()) * float(key.norm(dim=-1).max())
    if key.dtype == torch.float64 or largest > LARGE:
        return query, key.double()
    return query.to(key.dtype), key


def _undropped(trail: Trail, fine: Label, axes: tuple[Dim, ...]) -> Tensor | None:
    """The weights before dropout, as long as nobody has written over them."""
    if not trail.dropout or not trail.before or not trail.before[0].whole:
        return None
    source = trail.before[0]
    return four(source.weights, source.trail.label, fine, axes)


def _keys_of_one_head(key: Tensor, of: Label, fine: Label, batch: Dim, count: int) -> Tensor | None:
    """Heads were mixed, so that none has keys of its own: these tell which call goes on."""
    split = split_by(of, fine)
    if split is None:
        return None
    heads = tuple(digit for digit in split[0] if digit not in batch)
    four = arranged(key, split, (batch, heads, *split[1:]))
    return None if four is None else four[:, :1].expand(-1, count, -1, -1)


def four(tensor: Tensor, of: Label, fine: Label, wanted: tuple[Dim, ...]) -> Tensor | None:
    """A tensor with its axes in the wanted order, cut as finely as ``fine``."""
    split = split_by(of, fine)
    return None if split is None else arranged(tensor, split, wanted)


def _sinks(trail: Trail, heads: int, device: torch.device) -> Tensor | None:
    """A number beside the sum of exponentials is the share of a sink."""
    if not trail.rest:
        return None
    return torch.full((heads,), math.log(trail.rest), dtype=torch.float64, device=device)


def narrowest(*tensors: Tensor) -> torch.dtype:
    """The precision that the model computed in: autocast mixes several."""
    first = tensors[0].dtype
    if all(tensor.dtype == first for tensor in tensors):
        return first
    return min((tensor.dtype for tensor in tensors), key=lambda dtype: (dtype.itemsize, str(dtype)))
