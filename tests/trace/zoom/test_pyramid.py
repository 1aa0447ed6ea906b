from __future__ import annotations

from itertools import pairwise

import pytest

from clearhead.trace.zoom import pyramid
from clearhead.trace.zoom.grid import Grid
from clearhead.trace.zoom.heads import ZoomHeads
from clearhead.trace.zoom.pyramid import Pyramid, spread
from tests.trace.zoom.zoomed import made, view_of


@pytest.mark.parametrize(
    ("tokens", "base", "needed"),
    [
        (2_048, 4, False),
        (2_049, 4, True),
        (65_536, 4, True),
        (131_072, 5, True),
        (524_288, 7, True),
    ],
)
def test_memory_does_not_grow_with_the_text(tokens: int, base: int, needed: bool) -> None:
    heads = ZoomHeads(view_of(made("causal"), "L0H0"), "max")
    grid = Grid(tokens, tokens)
    found = Pyramid(heads, grid)
    assert (found.base, found.needed) == (base, needed)
    assert found.complete == (not needed)
    assert max(grid.cells(found.base)) <= pyramid.MOST_CELLS


@pytest.mark.parametrize("count", [1, 2, 7, 64, 100])
def test_steps_are_spread_over_the_map(count: int) -> None:
    order = spread(count)
    assert sorted(order) == list(range(count))
    gaps = sorted([*order[: count // 2 + 1], count])
    widest = max((b - a for a, b in pairwise(gaps)), default=1)
    assert widest <= 4
