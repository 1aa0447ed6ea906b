"""The tiles of a map that go into a file: all of them, or within a budget the strongest.

Every level gets its tiles as long as they fit, from the whole map down. Of a level that does not
fit the tiles with the largest weights are kept, and the page says what is left out.
"""

from __future__ import annotations

import heapq
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from clearhead.explain.zoom.zoomed_map import Counted, LevelTile, ZoomedMap
from clearhead.trace.zoom.grid import TILE
from clearhead.trace.zoom.pooling import divided
from clearhead.views.page.blocks import LEVEL, Blocks, planes
from clearhead.views.page.zoom.tile_bytes import UNITS, rounded_bytes

BUDGET = 9_000_000  # bytes of all tiles: 12 MB of base64
BLOCK = 1_000_000  # bytes that a page decodes together


@dataclass(frozen=True, order=True)
class Packed:
    """A tile as deflated bytes; the larger one has the larger weight."""

    strength: float
    place: tuple[int, int]
    data: bytes = field(compare=False)


@dataclass
class LevelFile:
    """The tiles of one level that may go into the file: at most as many as fit alone."""

    budget: int
    tiles: list[Packed] = field(default_factory=list)
    size: int = 0
    masked: list[tuple[int, int]] = field(default_factory=list)  # tiles without any number
    count: int = 0  # of the other tiles in all
    most: float = 0.0  # the largest number outside hidden columns

    def add(self, tile: LevelTile, strength: float) -> None:
        """Keep a tile if there is room, or if it is stronger than others."""
        if float(tile.numbers.max()) < 0:
            self.masked.append((tile.row, tile.column))
            return
        self.count += 1
        self.most = max(self.most, strength)
        if self.size >= self.budget and strength <= self.tiles[0].strength:
            return
        data = zlib.compress(rounded_bytes(tile.numbers), LEVEL)
        heapq.heappush(self.tiles, Packed(strength, (tile.row, tile.column), data))
        self.size += len(data)
        while self.size > self.budget and len(self.tiles) > 1:
            self.size -= len(heapq.heappop(self.tiles).data)

    def chosen(self, room: int) -> list[Packed]:
        """The strongest that fit into what room is left."""
        found: list[Packed] = []
        for tile in sorted(self.tiles, reverse=True):
            room -= len(tile.data)
            if room < 0:
                break
            found.append(tile)
        return found


@dataclass(frozen=True)
class TileFile:
    """What a page's tiles are: JSON about them, and a sentence about what is left out."""

    info: dict[str, Any]
    note: str


def add_tiles(
    blocks: Blocks, zoom: ZoomedMap, *, budget: int = BUDGET, progress: Counted | None = None
) -> TileFile:
    """Add the tiles to a page's blocks."""
    grid = zoom.grid
    levels = [LevelFile(budget) for _ in range(grid.levels)]
    for tile in zoom.tiles(progress):
        levels[tile.level].add(tile, _strength(tile, zoom))
    chosen = _within(levels, budget)
    writer = _Writer(blocks)
    info = {
        "rows": grid.rows,
        "columns": grid.columns,
        "levels": grid.levels,
        "tile": TILE,
        "pool": zoom.pool,
        "most": [level.most for level in levels],
        "hidden": list(zoom.hidden),
        "tiles": [
            [[*tile.place, *writer.add(tile.data)] for tile in sorted(part, key=_by_place)]
            for part in chosen
        ],
        "masked": [level.masked for level in levels],
        "strongest": list(_strongest(zoom)),
    }
    writer.finish()
    units = np.rint(np.array(zoom.hidden_mass) * UNITS)
    blocks.add("hidden-mass", planes(units))
    return TileFile(info, _note(levels, chosen))


def _strength(tile: LevelTile, zoom: ZoomedMap) -> float:
    """The largest number outside hidden columns."""
    numbers = tile.numbers
    if tile.level == 0:
        first = tile.column * TILE
        inside = [place - first for place in zoom.hidden if first <= place < first + TILE]
        if inside:
            numbers = numbers.clone()
            numbers[:, inside] = 0.0
    elif zoom.pool == "mean":
        rows, columns = zoom.grid.span(tile.level, tile.row, tile.column)
        numbers = divided(numbers, rows, columns, 1 << tile.level)
    return max(0.0, float(numbers.max()))


def _within(levels: list[LevelFile], budget: int) -> list[list[Packed]]:
    """From the whole map down: half of what is left for a level that does not fit."""
    chosen: list[list[Packed]] = [[] for _ in levels]
    for level in range(len(levels) - 1, -1, -1):
        whole = len(levels[level].tiles) == levels[level].count and levels[level].size <= budget
        chosen[level] = levels[level].chosen(budget if whole or level == 0 else budget // 2)
        budget -= sum(len(tile.data) for tile in chosen[level])
    return chosen


class _Writer:
    """Tiles one after the other in blocks; the same bytes only once, as most masked tiles are."""

    def __init__(self, blocks: Blocks) -> None:
        self._blocks, self._block = blocks, bytearray()
        self._number = 0
        self._known: dict[bytes, tuple[str, int, int]] = {}

    def add(self, data: bytes) -> tuple[str, int, int]:
        if data not in self._known:
            if self._block and len(self._block) + len(data) > BLOCK:
                self.finish()
            self._known[data] = (self._name, len(self._block), len(data))
            self._block += data
        return self._known[data]

    def finish(self) -> None:
        if self._block:
            self._blocks.add(self._name, bytes(self._block), deflated=False)
            self._block = bytearray()
            self._number += 1

    @property
    def _name(self) -> str:
        return f"tiles-{self._number}"


def _by_place(tile: Packed) -> tuple[int, int]:
    return tile.place


def _strongest(zoom: ZoomedMap) -> Iterator[dict[str, Any]]:
    same = zoom.view.record.facts.kind == "self"
    for one in zoom.strongest:
        yield {
            "row": one.row,
            "column": one.column,
            "weight": one.weight,
            "query": zoom.rows[one.row].text,
            "key": zoom.columns[one.column].text,
            "itself": same and one.column == one.row + len(zoom.columns) - len(zoom.rows),
        }


def _note(levels: list[LevelFile], chosen: list[list[Packed]]) -> str:
    """What of the single weights is in the file."""
    left = levels[0].count - len(chosen[0])
    if left == 0:
        return "Every single weight is in this file, rounded to four decimals."
    whole = next((n for n, part in enumerate(chosen) if len(part) == levels[n].count), 0)
    least = min((tile.strength for tile in chosen[0]), default=0.0)
    side = 1 << whole
    return (
        f"Single weights are in this file for {len(chosen[0]):,} of {levels[0].count:,} tiles of "
        f"{TILE} × {TILE}, those with the largest weights (from {least:.4f} on); cells of "
        f"{side} × {side} tokens and more are complete. clearhead studio shows every weight."
    )
