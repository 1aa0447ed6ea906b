"""Makes pictures from the layers of a look: a head, a word, all heads as small maps."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.nn import functional

from clearhead.explain.finite import require_finite
from clearhead.explain.layer_group import LayerGroup
from clearhead.explain.mark_weights import visible_between, weights_between
from clearhead.explain.notes import notes_of
from clearhead.explain.pictures import Aids, HeadPicture, WordPicture, shown_number, shown_numbers
from clearhead.explain.sources import head_names, pooled, sources_of
from clearhead.trace.head_view import HeadView


def head_picture(
    views: Sequence[HeadView],
    group: LayerGroup,
    aids: Aids,
    *,
    name: str,
    warnings: tuple[str, ...] = (),
) -> HeadPicture:
    """Pool the heads of ``views`` to one picture; ``name`` is theirs: "L16", "all 270 heads"."""
    hidden, masses = group.hidden(aids), []

    def parts() -> Iterator[Tensor]:
        for view in views:
            weights = weights_between(view, group.rows, group.columns, aids.measure)
            masses.append(weights[:, :, list(hidden)].sum(dim=2))
            yield weights

    weights, count = pooled(parts(), aids.pool)
    together = f"{aids.pool} of {name}" if count > 1 else ""
    return HeadPicture(
        head=together or head_names(views[0])[0],
        kind=group.kind,
        causal=group.causal,
        rows=group.rows,
        columns=group.columns,
        weights=shown_numbers(weights.numpy()),
        visible=_visible(views, group),
        hidden=hidden,
        hidden_mass=shown_numbers(torch.cat(masses).mean(dim=0).numpy()),
        aids=aids,
        notes=notes_of(aids, group, pooled=name if together else "", more=warnings),
        pooled=aids.pool if together else None,
    )


def _visible(views: Sequence[HeadView], group: LayerGroup) -> Bool[np.ndarray, "query key"]:
    """True where some head may attend: layers of one model can have different masks."""
    seen = [visible_between(view, group.rows, group.columns) for view in views]
    return np.asarray(np.logical_or.reduce(seen))


def word_picture(
    views: Sequence[HeadView],
    group: LayerGroup,
    row: int,
    aids: Aids,
    *,
    name: str,
    warnings: tuple[str, ...] = (),
) -> WordPicture:
    """Make the picture of one row in the heads of ``views``; ``name`` is that of all of them."""
    mark, hidden = group.rows[row], group.hidden(aids)
    names = [head for view in views for head in head_names(view)]
    rows = [
        weights_between(view, [mark], group.columns, aids.measure, limit=None)[:, 0]
        for view in views
    ]
    weights = torch.cat(rows)
    together, _ = pooled(iter([weights[:, None]]), aids.pool)
    sources, beyond = sources_of(views, weights, group.columns, hidden, mark, aids.pool)
    named = f"{aids.pool} of {name}" if len(names) > 1 else ""
    own = None if group.own is None or group.own[row] < 0 else group.own[row]
    return WordPicture(
        row=row,
        mark=mark,
        marks=group.columns,
        strengths=shown_numbers(together[0].numpy()),
        sources=sources,
        beyond=beyond,
        head=names[0] if len(names) == 1 else None,
        own=own,
        hidden=hidden,
        hidden_mass=shown_number(float(weights[:, list(hidden)].sum(dim=1).mean())),
        aids=aids,
        notes=notes_of(aids, group, pooled=name if named else "", more=warnings),
        pooled=named,
    )


SPELLED = 600  # tokens up to which words are merged first; beyond, tokens are pooled block by block


def small_maps(
    views: Sequence[HeadView], group: LayerGroup, aids: Aids, size: int
) -> Float[np.ndarray, "layer head row column"]:
    """Return at most size × size cells for each head, the largest weight in each.

    Hidden columns are 0. Layers with fewer heads than others are padded with empty maps.
    """
    pooled_maps = _from_words if len(group.columns) <= SPELLED else _from_tokens
    layers = [pooled_maps(view, group, aids, size) for view in views]
    heads = max(len(layer) for layer in layers)
    padded = [functional.pad(layer, (0, 0, 0, 0, 0, heads - len(layer))) for layer in layers]
    return np.asarray(torch.stack(padded).numpy())


def _from_words(
    view: HeadView, group: LayerGroup, aids: Aids, size: int
) -> Float[Tensor, "head row column"]:
    weights = weights_between(view, group.rows, group.columns, aids.measure, limit=None).clone()
    weights[:, :, list(group.hidden(aids))] = 0.0
    cells = (min(size, weights.shape[1]), min(size, weights.shape[2]))
    return functional.adaptive_max_pool2d(weights, cells)


def _from_tokens(
    view: HeadView, group: LayerGroup, aids: Aids, size: int
) -> Float[Tensor, "head row column"]:
    """Pool tokens block by block; only hidden columns at the ends can be left out."""
    hidden = set(group.hidden(aids))
    first, last = 0, len(group.columns)
    while first in hidden:
        first += 1
    while last - 1 in hidden and last > first + 1:
        last -= 1
    start = group.columns[first].tokens[0]
    stop = group.columns[last - 1].tokens[-1] + 1
    cells = view.map(size, "max", columns=slice(start, stop), limit=None).cells
    require_finite(cells, view.record.facts.name, "weights")
    return (cells[None] if view.single else cells).float().cpu()
