"""The grid of a deep zoom: levels, cells and tiles of an attention map, as plain numbers.

A cell of level 0 is one weight. A cell of level n holds 2ⁿ queries × 2ⁿ keys; at the edges of the
map it holds what is left. A tile has at most 256 × 256 cells, and the last level is one tile.
"""

from __future__ import annotations

from dataclasses import dataclass

from clearhead.arguments import whole_number

TILE = 256  # cells on a side of a tile


@dataclass(frozen=True)
class Grid:
    """Levels and tiles over a map of ``rows`` queries × ``columns`` keys.

    >>> grid = Grid(131_072, 131_072)
    >>> grid.levels, grid.cells(3), grid.tiles(3)
    (10, (16384, 16384), (64, 64))
    """

    rows: int
    columns: int

    @property
    def levels(self) -> int:
        """How many levels there are."""
        longest = max(self.rows, self.columns, 1)
        return (-(-longest // TILE) - 1).bit_length() + 1

    def cells(self, level: int) -> tuple[int, int]:
        """Cells down and across."""
        side = 1 << level
        return -(-self.rows // side), -(-self.columns // side)

    def tiles(self, level: int) -> tuple[int, int]:
        """Tiles down and across."""
        down, across = self.cells(level)
        return -(-down // TILE), -(-across // TILE)

    def span(self, level: int, row: int, column: int) -> tuple[range, range]:
        """The queries and the keys of a tile."""
        self.check(level, row, column)
        side = TILE << level
        return (
            range(row * side, min(self.rows, (row + 1) * side)),
            range(column * side, min(self.columns, (column + 1) * side)),
        )

    def check(self, level: int, row: int, column: int) -> None:
        """Refuse a tile that is not there."""
        level = whole_number("level", level, least=0, most=self.levels - 1)
        down, across = self.tiles(level)
        whole_number(f"row (of tiles of level {level})", row, least=0, most=down - 1)
        whole_number(f"column (of tiles of level {level})", column, least=0, most=across - 1)
