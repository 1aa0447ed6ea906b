"""A head's attention map in block characters: rows are queries, columns are keys."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch
from rich.cells import cell_len
from rich.console import RenderableType
from rich.text import Text

from clearhead.explain.pictures import LOG_DECADES, HeadPicture
from clearhead.views.numbers import measure_text, weight_text
from clearhead.views.terminal.parts import QUIET, cut, indented, ink, level, padded, shade

LABEL = 12  # cells of a row's word
ROWS = 40  # lines at most; more words share one


def heatmap(picture: HeadPicture, width: int) -> Iterator[RenderableType]:
    """The map with its legend."""
    cells = np.array(picture.weights, copy=True)
    cells[:, list(picture.hidden)] = 0.0
    largest = float(cells.max()) if cells.size else 0.0
    label = min(LABEL, max([cell_len(mark.text) for mark in picture.rows] + [1]))
    room = width - label - 10
    if len(picture.columns) * 2 <= room and len(picture.rows) <= ROWS:
        yield from _words(picture, cells, largest, label)
    else:
        yield from _pooled(picture, cells, largest, label, room)
    yield _legend(picture, largest)


def _words(
    picture: HeadPicture, cells: np.ndarray, largest: float, label: int
) -> Iterator[RenderableType]:
    """A cell of two signs for each word, columns numbered like the rows."""
    same = [mark.text for mark in picture.rows] == [mark.text for mark in picture.columns]
    if not same:
        names = " ".join(f"{place}:{cut(m.text, LABEL)}" for place, m in enumerate(picture.columns))
        yield indented(f"  columns {names}")
    numbers = "".join(f"{place:<10}" for place in range(0, len(picture.columns), 5))
    yield Text(f"    {padded('', label)}     {numbers}".rstrip(), style=QUIET)
    for row, mark in enumerate(picture.rows):
        line = Text("    ")
        line.append(f"{row:>3} " if same else "    ", style=QUIET)
        line.append(padded(mark.text, label) + " ")
        for column in range(len(picture.columns)):
            height = level(float(cells[row, column]), largest, picture.aids.colour)
            sign = shade(height) if picture.visible[row, column] else "·"
            line.append(sign * 2 if sign != "·" else "· ", style=ink(height) if height else QUIET)
        line.rstrip()
        yield line


def _pooled(
    picture: HeadPicture, cells: np.ndarray, largest: float, label: int, room: int
) -> Iterator[RenderableType]:
    """Several words in a cell: the largest weight among them; lines named by their first word."""
    rows, columns = min(ROWS, len(cells)), min(room, cells.shape[1])
    small = torch.nn.functional.adaptive_max_pool2d(torch.from_numpy(cells)[None], (rows, columns))[
        0
    ].tolist()
    for row, line_cells in enumerate(small):
        first = row * len(picture.rows) // rows
        line = Text("    ")
        line.append(f"{first:>4} ", style=QUIET)
        line.append(padded(picture.rows[first].text, label) + " ")
        for number in line_cells:
            height = level(number, largest, picture.aids.colour)
            line.append(shade(height), style=ink(height))
        line.rstrip()
        yield line


def _legend(picture: HeadPicture, largest: float) -> Text:
    """The largest weight of each shade."""
    legend = Text("    ", style=QUIET)
    for number, sign in enumerate("░▒▓█", 1):
        share = number / 4
        top = share if picture.aids.colour == "linear" else 10 ** ((share - 1) * LOG_DECADES)
        shown = weight_text(top * largest) if share == top else f"{top * largest:.1g}"
        legend.append(f"{sign} ≤ {shown}  ")
    if not picture.visible.all():
        legend.append("· masked  ")
    if picture.aids.measure != "weight":
        legend.append(measure_text(picture.aids.measure))
    return legend
