"""Deep zoom: a head's map as tiles, from the whole text down to single weights; in reading order.

==============  ====================================================================================
``grid``        levels, cells and tiles, as plain numbers
``pooling``     cells as larger cells: the largest, the sum, the mean
``heads``       the numbers of any block, computed again from q, k and log-sum-exp
``pyramid``     the cells too large to wait for, computed once, step by step
``tiles``       ``Tiles``: a tile on demand, kept as long as there is room; the strongest weights
``small_maps``  all heads as small maps of the same text, computed progressively
==============  ====================================================================================
"""

from clearhead.trace.zoom.grid import Grid
from clearhead.trace.zoom.pooling import MASKED, PENDING
from clearhead.trace.zoom.pyramid import Progress
from clearhead.trace.zoom.small_maps import SmallMap, small_maps
from clearhead.trace.zoom.tiles import Strongest, Tile, Tiles

__all__ = [
    "MASKED", "PENDING", "Grid", "Progress", "SmallMap", "Strongest", "Tile", "Tiles", "small_maps",
]  # fmt: skip
