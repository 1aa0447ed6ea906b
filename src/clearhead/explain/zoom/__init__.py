"""A long text's map at every level of a deep zoom: ``zoomed_map``, streamed tile by tile.

Any single tile, at any length: ``clearhead.trace.zoom``. The page: ``clearhead.views.page.zoom``.
"""

from clearhead.explain.zoom.zoomed_map import LevelTile, ZoomedMap

__all__ = ["LevelTile", "ZoomedMap"]
