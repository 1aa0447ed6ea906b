"""The page of a long text's map: the whole map first, and a zoom down to single weights."""

from __future__ import annotations

import json

from clearhead.explain.pictures import HEADLINE, HeadPicture
from clearhead.explain.zoom.zoomed_map import Counted, ZoomedMap
from clearhead.views.escape import markup_text, script_json
from clearhead.views.numbers import measure_text
from clearhead.views.page.blocks import Blocks
from clearhead.views.page.data import model_name
from clearhead.views.page.files import style
from clearhead.views.page.html import block_elements, program
from clearhead.views.page.zoom.axis import axis_json
from clearhead.views.page.zoom.tile_file import BUDGET, add_tiles

SCRIPTS = (
    "parts.js", "data.js", "saving.js", "zoom/tiles.js", "zoom/geometry.js", "zoom/edges.js",
    "zoom/canvas.js", "zoom/input.js", "zoom/panel.js", "zoom/saving.js", "zoom/gallery.js",
)  # fmt: skip
PAGE = (*SCRIPTS, "zoom/page.js")


def map_fragment(
    picture: HeadPicture, zoom: ZoomedMap, *, budget: int = BUDGET, progress: Counted | None = None
) -> str:
    """The page as one element."""
    blocks = Blocks()
    tiles = add_tiles(blocks, zoom, budget=budget, progress=progress)
    names = {"head": picture.head, "measure": measure_text(picture.aids.measure)}
    meta = {
        "model": model_name(picture.model),
        "kind": picture.kind,
        "pooled": picture.pooled is not None,
        "reason": _reason(zoom),
        "notes": [*_notes(picture), tiles.note],
        "aids": {"colour": picture.aids.colour},
        "tiles": tiles.info | names | {"axes": _axes(blocks, zoom)},
    }
    return (
        f"<style>{style('view.css')}\n{style('zoom/zoom.css', colours=False)}</style>\n"
        '<div class="clearhead" data-map>\n'
        f'<p class="plain-text" dir="auto">{markup_text(picture.text)}</p>\n'
        f'<script type="application/json" data-meta>{script_json(meta)}</script>\n'
        f"{block_elements(blocks)}\n</div>\n<script>{program(PAGE)}</script>"
    )


def _axes(blocks: Blocks, zoom: ZoomedMap) -> dict[str, str]:
    found: dict[str, str] = {}
    texts: dict[str, str] = {}
    for name, axis in (("rows", zoom.view.rows), ("columns", zoom.view.columns)):
        text = json.dumps(axis_json(axis.passage, axis.length, name), ensure_ascii=False)
        known = text.replace('"label": "columns"', '"label": "rows"', 1)
        if known not in texts:
            texts[known] = blocks.add(f"axis-{name}", text.encode())
        found[name] = texts[known]
    return found


def _reason(zoom: ZoomedMap) -> str:
    rows, columns = len(zoom.rows), len(zoom.columns)
    return (
        f"The strongest single number of {rows:,} queries × {columns:,} keys. Rows are queries "
        "(tokens that look), columns are keys (tokens they look at)."
    )


def _notes(picture: HeadPicture) -> list[str]:
    """Its notes, without those about the cells of the still picture."""
    cells = ("A cell holds", HEADLINE)
    return [note for note in picture.notes if not note.startswith(cells)] + [HEADLINE]
