"""Sources of a word: the words that it attends to, the strongest first; and pooling of heads."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from clearhead.explain.mark_weights import keeps_values, weights_between
from clearhead.explain.pictures import Mark, Source, shown_number, shown_numbers
from clearhead.trace.head_view import HeadView


def head_names(view: HeadView) -> list[str]:
    """Return the names of a view's heads."""
    return [f"{view.record.facts.name}H{number}" for number in view.heads]


def sources_of(
    views: Sequence[HeadView],
    weights: Float[Tensor, "head key"],
    columns: Sequence[Mark],
    hidden: Sequence[int],
    mark: Mark,
    pool: str,
) -> tuple[tuple[Source, ...], tuple[float, ...]]:
    """Return the columns with a weight above 0, the strongest first, and what is beyond each."""
    names = [name for view in views for name in head_names(view)]
    together = _pooled_row(weights, pool)
    best = weights.argmax(dim=0)
    values = _values(views, columns, mark, best, pool)
    shown = shown_numbers(together.numpy())
    order = [
        place
        for place in np.argsort(-shown, kind="stable").tolist()
        if place not in hidden and float(together[place]) > 0
    ]
    sources = tuple(
        Source(
            column=place,
            mark=columns[place],
            weight=float(shown[place]),
            value_weight=None if values is None else shown_number(float(values[place])),
            head=names[int(best[place])],
        )
        for place in order
    )
    tails = together.double().numpy()[order][::-1].cumsum()[::-1]
    return sources, (*shown_numbers(tails).tolist(), 0.0)


def _pooled_row(weights: Float[Tensor, "head key"], pool: str) -> Float[Tensor, " key"]:
    return pooled(iter([weights[:, None]]), pool)[0][0]


def _values(
    views: Sequence[HeadView], columns: Sequence[Mark], mark: Mark, best: Tensor, pool: str
) -> Float[Tensor, " key"] | None:
    """weight·‖v‖ in the head of the largest weight, or pooled as weights are; None without v."""
    if not all(map(keeps_values, views)):
        return None
    parts = [weights_between(view, [mark], columns, "weight·‖v‖", limit=None) for view in views]
    values = torch.cat(parts)[:, 0]
    return values.gather(0, best[None])[0] if pool == "max" else _pooled_row(values, pool)


def pooled(parts: Iterator[Tensor], pool: str) -> tuple[Tensor, int]:
    """Pool heads layer by layer; return the result and the number of heads."""
    total: Tensor | None = None
    count = 0
    for part in parts:
        count += part.shape[0]
        one = part.amax(dim=0) if pool == "max" else part.sum(dim=0)
        if total is None:
            total = one
        else:
            total = torch.maximum(total, one) if pool == "max" else total + one
    assert total is not None
    return (total.double() / count if pool == "mean" else total), count
