"""Every head as a small map: for the gallery of all layers × heads."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional

from clearhead.explain.layer_group import LayerGroup
from clearhead.explain.pictures import Aids
from clearhead.explain.tiles import tile
from clearhead.trace.head_view import HeadView

SPELLED = 600  # tokens up to which words are merged first; beyond, tokens are pooled block by block


def small_maps(
    views: Sequence[HeadView], group: LayerGroup, aids: Aids, size: int
) -> Float[np.ndarray, "layer head row column"]:
    """At most size × size cells for each head, the largest weight in each; hidden columns are 0.

    Layers with fewer heads than others are filled up with empty maps.
    """
    one = _from_words if len(group.columns) <= SPELLED else _from_tokens
    layers = [one(view, group, aids, size) for view in views]
    heads = max(len(layer) for layer in layers)
    padded = [functional.pad(layer, (0, 0, 0, 0, 0, heads - len(layer))) for layer in layers]
    return np.asarray(torch.stack(padded).numpy())


def _from_words(
    view: HeadView, group: LayerGroup, aids: Aids, size: int
) -> Float[Tensor, "head row column"]:
    weights = tile(view, group.rows, group.columns, aids.measure, limit=None).clone()
    weights[:, :, list(group.hidden(aids))] = 0.0
    cells = (min(size, weights.shape[1]), min(size, weights.shape[2]))
    return functional.adaptive_max_pool2d(weights, cells)


def _from_tokens(
    view: HeadView, group: LayerGroup, aids: Aids, size: int
) -> Float[Tensor, "head row column"]:
    """Hidden columns at the ends are left out; those in between cannot be, block by block."""
    hidden = set(group.hidden(aids))
    first, last = 0, len(group.columns)
    while first in hidden:
        first += 1
    while last - 1 in hidden and last > first + 1:
        last -= 1
    start = group.columns[first].tokens[0]
    stop = group.columns[last - 1].tokens[-1] + 1
    cells = view.map(size, "max", columns=slice(start, stop), limit=None).cells
    return (cells[None] if view.single else cells).float().cpu()
