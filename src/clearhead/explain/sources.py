"""Sources of a word: the words that it attends to, the strongest first; and pooling of heads."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from clearhead.explain.mark_weights import keeps_values, weights_between
from clearhead.explain.pictures import Mark, Source, shown_number
from clearhead.trace.head_view import HeadView


def head_names(view: HeadView) -> list[str]:
    """Return the names of a view's heads."""
    return [f"{view.record.facts.name}H{number}" for number in view.heads]


def sources_of(
    views: Sequence[HeadView],
    weights: Float[Tensor, "head key"],
    strengths: Float[np.ndarray, " key"],
    columns: Sequence[Mark],
    hidden: Sequence[int],
    mark: Mark,
) -> tuple[Source, ...]:
    """Return the columns with a weight above 0, the strongest first, each in its strongest head."""
    names = [name for view in views for name in head_names(view)]
    values = None
    if all(map(keeps_values, views)):
        parts = [weights_between(view, [mark], columns, "weight·‖v‖", limit=None) for view in views]
        values = torch.cat(parts)[:, 0]
    best = weights.argmax(dim=0).tolist()
    order = np.argsort(-strengths, kind="stable").tolist()
    return tuple(
        Source(
            column=place,
            mark=columns[place],
            weight=shown_number(float(weights[best[place], place])),
            value_weight=None
            if values is None
            else shown_number(float(values[best[place], place])),
            head=names[best[place]],
        )
        for place in order
        if place not in hidden and strengths[place] > 0
    )


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
    return (total / count if pool == "mean" else total), count
