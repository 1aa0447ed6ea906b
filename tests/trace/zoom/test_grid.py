from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clearhead.trace.zoom.grid import TILE, Grid


@pytest.mark.parametrize(
    ("longest", "levels"), [(1, 1), (256, 1), (257, 2), (512, 2), (513, 3), (131_072, 10)]
)
def test_the_last_level_is_one_tile(longest: int, levels: int) -> None:
    grid = Grid(longest, 5)
    assert grid.levels == levels == Grid(5, longest).levels
    assert grid.tiles(levels - 1) == (1, 1)


@given(st.integers(1, 3000), st.integers(1, 3000), st.data())
def test_tiles_cover_the_map_once(rows: int, columns: int, data: st.DataObject) -> None:
    grid = Grid(rows, columns)
    level = data.draw(st.integers(0, grid.levels - 1))
    down, across = grid.tiles(level)
    spans = [grid.span(level, row, across - 1)[0] for row in range(down)]
    assert [place for span in spans for place in span] == list(range(rows))
    assert grid.span(level, 0, across - 1)[1].stop == columns
    assert all(-(-len(span) // (1 << level)) <= TILE for span in spans)
