"""The page of a long text's map, and what a server of the same map needs; in reading order.

==============  ====================================================================================
``page``        ``map_fragment``: the page; start here
``tile_file``   the tiles that go into the file, within a budget
``tile_bytes``  a tile as bytes, for the file and for a server
``axis``        the text of rows and columns
==============  ====================================================================================

The browser's part is in ``assets/zoom/``. One widget serves the file and the studio; only the
source of its tiles differs: ``tiles.js`` (both sources, axes), ``geometry.js`` (what is shown),
``edges.js`` (text and positions), ``canvas.js`` (``DeepZoom``), ``input.js`` (wheel, drag, pinch,
keys), ``panel.js`` (under the pointer, search, the strongest), ``saving.js`` (SVG), ``gallery.js``
(small maps of all heads), ``page.js`` (the map page).
"""

from clearhead.views.page.zoom.page import map_fragment

__all__ = ["map_fragment"]
