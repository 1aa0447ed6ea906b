"""All heads as one picture: a row for each layer, a small map for each head."""

from __future__ import annotations

import numpy as np

from clearhead.explain.pictures import Gallery
from clearhead.views.svg.parts import ACCENT, MARGIN, QUIET, Drawing, colours_at, draw_notes

GAP = 3  # pixels between maps
SIDE = 44.0  # of a map in the picture
MARKED = 5  # heads that are framed


def draw_gallery(gallery: Gallery) -> str:
    """The whole picture."""
    drawing = Drawing()
    layers, heads, size, _ = gallery.maps.shape
    step = SIDE * (size + GAP) / size
    left, above = MARGIN + 44, MARGIN + 54
    for layer in range(layers):
        name = gallery.names[layer][0].split("H")[0] if gallery.names[layer] else ""
        y = above + layer * step + SIDE / 2 + 4
        drawing.text(left - 8, y, name, size=12, anchor="end", fill=QUIET)
    for head in range(heads):
        x = left + head * step + SIDE / 2
        drawing.text(x, above - 8, f"H{head}", size=12, anchor="middle", fill=QUIET)
    drawing.pixels(left, above, step * heads, step * layers, _mosaic(gallery))
    for layer, head in _most_salient(gallery):
        x, y = left + head * step, above + layer * step
        drawing.frame(x - 1.5, y - 1.5, SIDE + 3, SIDE + 3, ACCENT, 3)
    width = max(left + step * heads + MARGIN, 480.0)
    drawing.text(MARGIN, MARGIN + 14, f"All {_count(gallery)} heads", size=18, bold=True)
    notes = (
        "Each map has its own colour scale. The most salient heads have a frame.",
        *gallery.notes,
    )
    below = above + step * layers + 18
    below = draw_notes(drawing, notes, MARGIN, below, width - 2 * MARGIN)
    return drawing.svg(width, below + 8, f"All {_count(gallery)} heads")


def _count(gallery: Gallery) -> int:
    return sum(len(names) for names in gallery.names)


def _mosaic(gallery: Gallery) -> np.ndarray:
    layers, heads, size, columns = gallery.maps.shape
    largest = np.maximum(gallery.maps.max(axis=(2, 3), keepdims=True), 1e-9)
    bright = np.sqrt(gallery.maps / largest).astype(np.float32)
    down, right = size + GAP, columns + GAP
    image = np.full((layers * down, heads * right, 3), 255, dtype=np.uint8)
    for layer in range(layers):
        for head in range(len(gallery.names[layer])):
            part = colours_at(bright[layer, head])
            image[layer * down :, head * right :][:size, :columns] = part
    return image


def _most_salient(gallery: Gallery) -> list[tuple[int, int]]:
    scores = [
        (score, layer, head)
        for layer, row in enumerate(gallery.salience)
        for head, score in enumerate(row)
        if score > 0
    ]
    return [(layer, head) for _, layer, head in sorted(scores, reverse=True)[:MARKED]]
