"""Layouts of tiles: every byte of a block belongs to one field, and a tile has no byte more."""

from __future__ import annotations

import pytest

from clearhead.checkpoints.gguf.kinds import KINDS
from clearhead.engine.kernels.layouts import FIELDS, Layout


@pytest.mark.parametrize("kind", FIELDS)
def test_fields_cover_a_block(kind: str) -> None:
    layout, place = Layout.of(kind), 0
    for field in layout.fields:
        assert field.start == place and field.size in (2, 4)
        place += field.size * field.pieces
    assert place == layout.bytes
    stored = next(each for each in KINDS.values() if each.name == kind)
    assert layout.bytes * stored.block_length == stored.block_bytes * layout.length


def test_sizes_of_a_tile() -> None:
    layout = Layout.of("Q4_K")
    assert layout.blocks(16) == 2
    assert layout.tile_bytes(16) == 16 * 2 * 144
    assert Layout.of("F16").tile_bytes(3) == 16 * 3 * 32 * 2
    assert list(Layout.of("Q5_0").table()) == [3, 0, 2, 1, 0, 2, 4, 1, 2, 6, 4, 4, 0]
