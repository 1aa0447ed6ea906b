"""Where one word looks, in one head or in several put together."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from clearhead.explain.layer_group import LayerGroup
from clearhead.explain.notes import notes_of
from clearhead.explain.pictures import Aids, WordPicture, shown_number, shown_numbers
from clearhead.explain.sources import head_names, pooled, sources_of
from clearhead.explain.tiles import tile
from clearhead.trace.head_view import HeadView


def word_picture(
    views: Sequence[HeadView],
    group: LayerGroup,
    row: int,
    aids: Aids,
    *,
    name: str,
    warnings: tuple[str, ...] = (),
) -> WordPicture:
    """Row ``row`` of the heads of ``views``; ``name`` is what they are together."""
    mark, hidden = group.rows[row], group.hidden(aids)
    names = [head for view in views for head in head_names(view)]
    rows = [tile(view, [mark], group.columns, aids.measure, limit=None)[:, 0] for view in views]
    weights = torch.cat(rows)
    together, _ = pooled(iter([weights[:, None]]), aids.pool)
    strengths = shown_numbers(together[0].numpy())
    return WordPicture(
        row=row,
        mark=mark,
        marks=group.columns,
        strengths=strengths,
        sources=sources_of(views, weights, strengths, group.columns, hidden, mark),
        head=names[0] if len(names) == 1 else None,
        hidden=hidden,
        hidden_mass=shown_number(float(weights[:, list(hidden)].sum(dim=1).mean())),
        aids=aids,
        notes=notes_of(aids, group, pooled=name if len(names) > 1 else "", more=warnings),
    )
