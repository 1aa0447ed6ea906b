"""What goes into a file within its budget; the numbers are read back in test_in_chromium."""

from __future__ import annotations

import base64

import pytest

from clearhead.explain.long_map import long_map
from clearhead.explain.zoom import zoomed_map
from clearhead.explain.zoom.zoomed_map import ZoomedMap
from clearhead.trace.zoom import grid
from clearhead.views.page.blocks import Blocks
from clearhead.views.page.zoom import tile_file
from clearhead.views.page.zoom.tile_file import add_tiles
from tests.shared.told_looks import told_look


@pytest.fixture(autouse=True)
def small_tiles(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (grid, zoomed_map, tile_file):
        monkeypatch.setattr(module, "TILE", 16)
    monkeypatch.setattr(tile_file, "BLOCK", 1_000)


@pytest.mark.parametrize("budget", [500, 3_000, 10**9])
def test_the_budget_is_kept_and_the_strongest_stay(budget: int) -> None:
    zoom = long_map(told_look("causal", 6).look, "L1H1").zoom
    assert isinstance(zoom, ZoomedMap)
    blocks = Blocks()
    found = add_tiles(blocks, zoom, budget=budget)
    used = {
        name: base64.b64decode(block.text)
        for name, block in blocks.by_name.items()
        if name.startswith("tiles")
    }
    assert sum(map(len, used.values())) <= budget
    kept = [len(level) for level in found.info["tiles"]]
    every = [len(level) for level in found.info["masked"]]
    counts = [zoom.grid.tiles(n)[0] * zoom.grid.tiles(n)[1] for n in range(zoom.grid.levels)]
    complete = [a + b == c for a, b, c in zip(kept, every, counts, strict=True)]
    assert complete == sorted(complete)  # from the whole map down
    assert ("Every single weight" in found.note) == complete[0] == (budget > 3_000)
    for level in found.info["tiles"]:
        for _, _, block, start, length in level:
            assert start + length <= len(used[block])


def test_left_out_tiles_are_weaker_than_those_that_stay() -> None:
    told = told_look("causal", 6)
    zoom = long_map(told.look, "L1H1").zoom
    assert isinstance(zoom, ZoomedMap)
    found = add_tiles(Blocks(), zoom, budget=4_000)
    weights = told.weights["L1"][1].copy()
    weights[:, 0] = 0
    kept = {(row, column) for row, column, *_ in found.info["tiles"][0]}
    largest = {
        (row, column): weights[row * 16 : row * 16 + 16, column * 16 : column * 16 + 16].max()
        for row in range(5)
        for column in range(row + 1)
    }
    assert kept and len(kept) < len(largest)
    strongest_left = max(number for place, number in largest.items() if place not in kept)
    assert min(largest[place] for place in kept) >= strongest_left - 1e-6
