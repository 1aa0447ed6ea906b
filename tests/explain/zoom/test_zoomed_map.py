"""A map streamed tile by tile: memory linear in tokens, numbers those of all other pictures."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from clearhead.explain.long_map import long_map
from clearhead.explain.make_look import make_look
from clearhead.explain.zoom import zoomed_map
from clearhead.explain.zoom.zoomed_map import ZoomedMap
from clearhead.trace.zoom import grid
from tests.shared.explain_models import decoder
from tests.trace.zoom.zoomed import plain_cells

TEXT = "the students opened their books and their minds " * 5


@pytest.fixture(autouse=True)
def small_tiles(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (grid, zoomed_map):
        monkeypatch.setattr(module, "TILE", 8)


def test_every_tile_comes_once_with_its_numbers() -> None:
    look = make_look(decoder(), TEXT)
    zoom = long_map(look, "L1H2").zoom
    assert isinstance(zoom, ZoomedMap)
    told: list[tuple[int, int]] = []
    tiles = list(zoom.tiles(lambda done, total: told.append((done, total))))
    places = [(tile.level, tile.row, tile.column) for tile in tiles]
    levels = [(level, *zoom.grid.tiles(level)) for level in range(zoom.grid.levels)]
    wanted = [(n, r, c) for n, down, across in levels for r in range(down) for c in range(across)]
    assert sorted(places) == sorted(wanted) and len(levels) == 4
    weights = look.seen["L1H2"].weights().double().numpy()[None]
    visible = np.tril(np.ones(weights.shape, dtype=bool))
    for tile in tiles:
        cells = plain_cells(weights, visible, 1 << tile.level, "max", zoom.hidden)
        part = cells[tile.row * 8 : tile.row * 8 + 8, tile.column * 8 : tile.column * 8 + 8]
        assert np.abs(tile.numbers.double().numpy() - part).max() < 1e-6
    assert told == [(done, 46) for done in (8, 16, 24, 32, 40, 46)]
    assert np.allclose(zoom.hidden_mass, weights[0, :, 0], atol=1e-6)


def test_the_strongest_are_single_weights_outside_hidden_columns() -> None:
    look = make_look(decoder(), TEXT)
    zoom = long_map(look, "L1H2").zoom
    assert isinstance(zoom, ZoomedMap)
    list(zoom.tiles())
    weights = look.seen["L1H2"].weights()
    weights[:, 0] = 0
    values, order = weights.flatten().sort(descending=True)
    assert [one.weight for one in zoom.strongest] == pytest.approx(values[:20].tolist(), abs=6e-5)
    assert divmod(int(order[0]), 46) == (zoom.strongest[0].row, zoom.strongest[0].column)


def test_no_more_than_a_few_rows_of_tiles_wait() -> None:
    levels = zoomed_map._Levels(grid.Grid(512, 512), "max")
    for _ in range(512 // 8):
        list(levels.add(torch.rand(8, 512)))
        held = sum(part.numel() for waiting in levels._waiting for part in waiting)
        assert held <= 2 * 8 * 512
