"""The whole picture of a head, or of several heads put together."""

from __future__ import annotations

from collections.abc import Sequence

from clearhead.explain.layer_group import LayerGroup
from clearhead.explain.notes import notes_of
from clearhead.explain.pictures import Aids, HeadPicture, shown_numbers
from clearhead.explain.sources import head_names, pooled
from clearhead.explain.tiles import tile, visible_tile
from clearhead.trace.head_view import HeadView


def head_picture(
    views: Sequence[HeadView],
    group: LayerGroup,
    aids: Aids,
    *,
    name: str,
    warnings: tuple[str, ...] = (),
) -> HeadPicture:
    """The heads of ``views`` as one; ``name`` is what they are together: "L16", "all 270 heads"."""
    parts = (tile(view, group.rows, group.columns, aids.measure) for view in views)
    weights, count = pooled(parts, aids.pool)
    together = f"{aids.pool} of {name}" if count > 1 else ""
    hidden = group.hidden(aids)
    return HeadPicture(
        head=together or head_names(views[0])[0],
        kind=group.kind,
        causal=group.causal,
        rows=group.rows,
        columns=group.columns,
        weights=shown_numbers(weights.numpy()),
        visible=visible_tile(views[0], group.rows, group.columns),
        hidden=hidden,
        hidden_mass=shown_numbers(weights[:, list(hidden)].sum(dim=1).numpy()),
        aids=aids,
        notes=notes_of(aids, group, pooled=together, more=warnings),
    )
