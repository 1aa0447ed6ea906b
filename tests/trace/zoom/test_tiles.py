"""Tiles of every level against the plainly computed weights, for every kind of map."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from clearhead.errors import InputError
from clearhead.trace.zoom import MASKED, PENDING, Tiles, grid, pyramid
from clearhead.trace.zoom import tiles as tiles_module
from tests.trace.zoom.zoomed import (
    KINDS,
    made,
    plain_cells,
    value_weights,
    view_of,
    visible_of,
)


@pytest.fixture(autouse=True)
def small_tiles(monkeypatch: pytest.MonkeyPatch) -> None:
    """Several levels of several tiles, with a pyramid, in a map of a few dozen tokens."""
    monkeypatch.setattr(grid, "TILE", 16)
    monkeypatch.setattr(pyramid, "QUICK", 0)
    monkeypatch.setattr(pyramid, "STEP_WEIGHTS", 1024)
    monkeypatch.setattr(tiles_module, "SORTED_ROWS", 4)


def whole_level(tiles: Tiles, level: int) -> np.ndarray:
    down, across = tiles.grid.tiles(level)
    parts = [[tiles.tile(level, row, column) for column in range(across)] for row in range(down)]
    assert all(part.complete for line in parts for part in line)
    return np.block([[part.numbers.double().numpy() for part in line] for line in parts])


CASES: tuple[Any, ...] = (  # heads, pool, hidden columns, weight·‖v‖
    ("L0H0", "max", (0, 9), False),
    ("L0", "max", (), False),
    ("L0", "mean", (0, 9), False),
    ("L0", "sum", (0,), True),
)


@pytest.mark.parametrize("kind", KINDS)
def test_tiles_of_every_level_are_exact(kind: str) -> None:
    built = made(kind)
    for name, pool, hidden, by_value in CASES:
        heads = slice(0, 1) if name == "L0H0" else slice(None)
        weights = (value_weights(built) if by_value else built.weights[0].numpy())[heads]
        tiles = Tiles(view_of(built, name), pool, hidden=hidden, by_value=by_value)
        steps = list(tiles.build())
        assert steps[-1].done == steps[-1].total and tiles.complete
        for level in range(tiles.levels):
            found = whole_level(tiles, level)
            wanted = plain_cells(weights, visible_of(built)[heads], 1 << level, pool, hidden)
            context = (name, pool, level)
            assert found.shape == wanted.shape, context
            assert ((found == MASKED) == (wanted == -1)).all(), context
            limit = 3e-6 * max(1.0, float(wanted.max()))
            assert np.abs(found - wanted).max() < limit, context


def test_tiles_are_incomplete_until_the_pyramid_is_built() -> None:
    built = made("bidirectional")
    tiles = Tiles(view_of(built, "L0H0"))
    top = tiles.levels - 1
    assert not tiles.complete and (tiles.tile(top, 0, 0).numbers == PENDING).all()
    build = tiles.build()
    next(build)
    some = tiles.tile(top, 0, 0)
    wanted = plain_cells(built.weights[0].numpy(), visible_of(built), 1 << top, "max")
    known = (some.numbers >= 0).numpy()
    assert known.any() and not known.all() and not some.complete
    assert (some.numbers.numpy()[known] <= wanted[known] + 3e-6).all()
    build.close()  # cancelled
    done = tiles.pyramid.progress.done
    assert 0 < done < tiles.pyramid.progress.total
    rest = list(tiles.build())  # goes on where the other stopped
    assert rest[0].done > done and tiles.tile(top, 0, 0).complete
    assert np.abs(tiles.tile(top, 0, 0).numbers.numpy() - wanted).max() < 3e-6


@pytest.mark.parametrize("kind", ["causal", "cross", "window", "grouped"])
def test_the_strongest_weights_are_found(kind: str) -> None:
    built = made(kind)
    tiles = Tiles(view_of(built, "L0H0"), hidden=[0])
    list(tiles.build())
    weights = built.weights[0, 0].clone()
    weights[:, 0] = 0
    order = weights.flatten().argsort(descending=True)[:9]
    wanted = [divmod(int(place), weights.shape[1]) for place in order]
    found = tiles.strongest(9)
    assert [(one.row, one.column) for one in found] == wanted
    assert all(abs(one.weight - float(weights[one.row, one.column])) < 3e-6 for one in found)


def test_the_cache_stays_within_its_room() -> None:
    tiles = Tiles(view_of(made("causal"), "L0H0"), cache_bytes=3 * 16 * 16 * 4)
    first = tiles.tile(0, 2, 0)
    assert tiles.tile(0, 2, 0) is first
    for column in range(4):
        tiles.tile(0, 3, column)
    assert 0 < tiles.cached_bytes <= 3 * 16 * 16 * 4
    again = tiles.tile(0, 2, 0)
    assert again is not first and torch.equal(again.numbers, first.numbers)


def test_what_is_not_there_is_refused() -> None:
    tiles = Tiles(view_of(made("causal"), "L0H0"), "sum")
    with pytest.raises(InputError, match="level must be a whole number from 0 to 3"):
        tiles.tile(4, 0, 0)
    with pytest.raises(InputError, match=r"row .of tiles of level 0. must be"):
        tiles.tile(0, 9, 0)
    with pytest.raises(InputError, match='pool="max"'):
        tiles.strongest()
