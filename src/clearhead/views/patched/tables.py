"""A patch map as CSV: one line for each run."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from clearhead.explain.patched.patch_map import PatchMap
from clearhead.views.patched.text import TITLES


def patch_rows(found: PatchMap) -> Iterator[list[Any]]:
    """Every share of every word and layer, then of every head; the two answers at the end."""
    yield ["part", "layer", "head", "column", "word", "donor_word", "share"]
    for part in TITLES:
        for layer, row in zip(found.layers, found.of(part), strict=True):
            for column, share in enumerate(row):
                word, other = found.columns[column].text, found.others[column]
                yield [part, layer, "", column, word, other, round(float(share), 6)]
    for layer, row in zip(found.layers, found.heads, strict=True):
        for head, share in enumerate(row):
            yield ["head", layer, f"{layer}H{head}", "", "", "", round(float(share), 6)]
    yield ["all words", found.layers[0], "", "", "", "", round(found.whole, 6)]
