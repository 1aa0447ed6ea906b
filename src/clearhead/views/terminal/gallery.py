"""All heads at once: a grid of their saliences, and a small map of each head."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch
from rich.console import RenderableType
from rich.text import Text

from clearhead.explain.pictures import Gallery
from clearhead.views.terminal.parts import ACCENT, QUIET, ink, level, shade

TALL = 3  # lines of a small map
NARROWEST, WIDEST = 4, 8  # cells of one


def salience_grid(
    names: Sequence[Sequence[str]],
    salience: Sequence[Sequence[float]],
    chosen: str | None,
    width: int,
) -> Iterator[RenderableType]:
    """Layers from left to right, heads from top to bottom; ◆ is the head that is shown."""
    heads = max(len(layer) for layer in names)
    largest = max((max(layer) for layer in salience if layer), default=0.0)
    wide = 2 if len(names) * 2 <= width - 12 else 1
    for start in range(0, len(names), (width - 12) // wide):
        part = range(start, min(len(names), start + (width - 12) // wide))
        letter = names[start][0][0]
        yield Text(f"    {letter}{start} … {letter}{part[-1]}", style=QUIET)
        for head in range(heads):
            line = Text("    ")
            line.append(f"H{head:<3}", style=QUIET)
            for layer in part:
                if head >= len(names[layer]):
                    line.append(" " * wide)
                elif names[layer][head] == chosen:
                    line.append("◆" + " " * (wide - 1), style=ACCENT)
                else:
                    height = level(salience[layer][head], largest)
                    sign = shade(height) if height >= 0.05 else "·"
                    line.append(sign * wide if sign != "·" else "·" + " " * (wide - 1),
                                style=ink(height) if height else QUIET)  # fmt: skip
            yield line


def small_maps(gallery: Gallery, width: int) -> Iterator[RenderableType]:
    """A line of small maps for each layer; each cell shows the largest of its weights."""
    heads = max(len(layer) for layer in gallery.names)
    wide = max(NARROWEST, min(WIDEST, (width - 8) // max(heads, 1) - 1))
    together = max(1, (width - 8) // (wide + 1))
    for number, layer in enumerate(gallery.names):
        maps = torch.from_numpy(gallery.maps[number])[None]
        size = (min(TALL, maps.shape[2]), min(wide, maps.shape[3]))
        cells = torch.nn.functional.adaptive_max_pool2d(maps, size)[0].tolist()
        for start in range(0, len(layer), together):
            part = range(start, min(len(layer), start + together))
            title = Text("    ")
            for head in part:
                title.append(f"{layer[head]:<{wide + 1}}", style=QUIET)
            title.rstrip()
            yield title
            yield from _map_lines([cells[head] for head in part], wide, gallery)


def _map_lines(
    maps: list[list[list[float]]], wide: int, gallery: Gallery
) -> Iterator[RenderableType]:
    for row in range(len(maps[0])):
        line = Text("    ")
        for one in maps:
            for cell in one[row]:
                height = level(cell, 1.0, gallery.aids.colour)
                line.append(shade(height), style=ink(height))
            line.append(" " * (wide + 1 - len(one[row])))
        line.rstrip()
        yield line
