"""Maps of every kind with their plainly computed weights, and cells computed without any tile."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from clearhead.trace.head_view import HeadView
from clearhead.trace.seen import Seen
from tests.shared.synthetic import Options, Synthetic, synthetic

KINDS = {
    "causal": Options(queries=67, keys=67, causal=True),
    "bidirectional": Options(queries=61, keys=61),
    "window": Options(queries=67, keys=67, causal=True, window=13),
    "cross": Options(queries=37, keys=71, kind="cross"),
    "grouped": Options(queries=41, keys=53, causal=True, kv_heads=2, group=3),
    "sinks": Options(queries=43, keys=43, causal=True, sinks=True),
    "dense mask": Options(queries=31, keys=47, dense=True, group=2),
    "bias": Options(queries=59, keys=59, causal=True, bias="distance", group=2),
    "softcap": Options(queries=59, keys=59, softcap=3.0),
    "blind row": Options(queries=35, keys=35, causal=True, blind=True),
    "padding": Options(queries=35, keys=35, padded=True),
    "large scores": Options(queries=47, keys=47, causal=True, spread=60.0),
    "double": Options(queries=47, keys=47, causal=True, dtype=torch.float64),
}


def made(kind: str) -> Synthetic:
    return synthetic(KINDS[kind])


def view_of(synthetic: Synthetic, name: str = "L0") -> HeadView:
    return Seen([synthetic.record])[name]


def visible_of(synthetic: Synthetic) -> np.ndarray:
    """(head, query, key)."""
    heads, queries, keys = synthetic.weights.shape[1:]
    seen = synthetic.record.visible(0, range(queries), range(keys))
    seen = torch.ones(1, queries, keys, dtype=torch.bool) if seen is None else seen
    return seen.expand(heads, -1, -1).numpy()


def plain_cells(
    weights: np.ndarray, visible: np.ndarray, side: int, pool: str, hidden: tuple[int, ...] = ()
) -> np.ndarray:
    """Cell by cell, from weights (head, query, key); −1 where nothing is visible."""
    weights = weights.copy()
    if side > 1:
        weights[:, :, list(hidden)] = 0.0
    down, across = (range(0, size, side) for size in weights.shape[1:])
    counts = np.add.reduceat(np.add.reduceat(visible.astype(int).sum(0), down, 0), across, 1)
    join: Any = np.maximum if pool == "max" else np.add
    cells = join.reduceat(join.reduceat(join.reduce(weights, 0), down, 0), across, 1)
    if pool == "mean":
        ones = np.ones(weights.shape[1:])
        cells = cells / np.add.reduceat(np.add.reduceat(ones, down, 0), across, 1) / len(weights)
    return np.where(counts > 0, cells, -1.0)


def value_weights(synthetic: Synthetic) -> np.ndarray:
    """weight·‖v‖, each row divided by its sum."""
    value = synthetic.record.value
    assert value is not None
    heads = synthetic.weights.shape[1]
    lengths: Tensor = value[0].double().norm(dim=-1).repeat_interleave(heads // value.shape[1], 0)
    taken = synthetic.weights[0] * lengths[:, None]
    return (taken / taken.sum(dim=-1, keepdim=True).clamp(min=1e-30)).numpy()
