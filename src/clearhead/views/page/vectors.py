"""The exact q, k and v that a page computes step tables from, as far as its budget goes.

The unit is a key/value head with the query heads that share it; those of the chosen head come
first, then the rest of its layer, then other layers. ``page/steps.js`` is the reader.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from clearhead.trace.head_name import parse_name
from clearhead.trace.head_view import HeadView
from clearhead.trace.record import LayerRecord
from clearhead.views.page.axes import Band, token_band
from clearhead.views.page.blocks import Blocks

BUDGET = 5_000_000  # characters of base64
BASE64 = 4 / 3  # characters for each byte


def add_vectors(
    blocks: Blocks, views: list[HeadView], chosen: str, budget: int = BUDGET
) -> dict[str, dict[str, Any]]:
    """The place of each head's vectors in the blocks; heads without any are missing."""
    found: dict[str, dict[str, Any]] = {}
    left = float(budget)
    for view in _nearest_first(views, chosen):
        record, band = view.record, None
        for group in _groups_nearest_first(record, chosen):
            size = _numbers(record) * 4 * BASE64
            if size > left or not _reproducible(record):
                break
            band = band or token_band(view)
            if band is None:
                break
            left -= size
            found |= _add_group(blocks, view, group, band)
    return found


def _nearest_first(views: list[HeadView], chosen: str) -> list[HeadView]:
    layer = parse_name(chosen)[0] if chosen else ""
    return sorted(views, key=lambda view: view.record.facts.name != layer)


def _groups_nearest_first(record: LayerRecord, chosen: str) -> list[int]:
    groups = list(range(record.key.shape[1]))
    layer, head = parse_name(chosen) if chosen else ("", None)
    if layer == record.facts.name and isinstance(head, int) and head in record.head_numbers:
        own = record.head_numbers.index(head) // _group_size(record)
        groups.sort(key=lambda group: group != own)
    return groups


def _group_size(record: LayerRecord) -> int:
    return int(record.query.shape[1] // record.key.shape[1])


def _numbers(record: LayerRecord) -> int:
    _, _, queries, width = record.query.shape
    keys, value_width = record.key.shape[2], record.facts.value_dim
    heads = _group_size(record)
    return heads * queries * (width + 1) + keys * (width + value_width) + 2 * queries


def _reproducible(record: LayerRecord) -> bool:
    """True if the page's formula, exp(scaled q·k − logsum), is the layer's."""
    return record.value is not None and all(piece.bias is None for piece in record.pieces)


def _add_group(blocks: Blocks, view: HeadView, group: int, band: Band) -> dict[str, dict[str, Any]]:
    record, size = view.record, _group_size(view.record)
    assert record.value is not None
    name = f"vectors-{record.facts.name}-{group}"
    blocks.add_later(name, partial(_vector_bytes, view, group, band))
    return {
        f"{record.facts.name}H{record.head_numbers[group * size + place]}": {
            "block": name,
            "place": place,
            "heads": size,
            "queries": record.query.shape[2],
            "keys": record.key.shape[2],
            "width": record.query.shape[3],
            "valueWidth": record.value.shape[3],
        }
        for place in range(size)
    }


def _vector_bytes(view: HeadView, group: int, band: Band) -> bytes:
    record, batch, size = view.record, view.batch, _group_size(view.record)
    heads = slice(group * size, (group + 1) * size)
    assert record.value is not None
    parts = [
        record.query[batch, heads], record.key[batch, group], record.value[batch, group],
        record.logsum[batch, heads],
    ]  # fmt: skip
    arrays = [part.detach().float().cpu().numpy().ravel() for part in parts]
    arrays += [np.asarray(side, dtype=np.float32) for side in band]
    return np.concatenate(arrays).astype("<f4").tobytes()
