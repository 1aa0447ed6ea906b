"""Blocks of a page, read as page/assets/data.js reads them."""

from __future__ import annotations

import base64
import zlib

import numpy as np

from clearhead.views.page.blocks import Block


def unpacked(block: Block) -> bytes:
    data = base64.b64decode(block.text)
    return zlib.decompress(data) if block.packed == "deflate" else data


def dense(block: Block, columns: int) -> np.ndarray:
    """The rows of a block as page/assets/data.js reads them: (row, column) in units."""
    data = unpacked(block)
    rows, entries, _ = np.frombuffer(data[:12], "<u4").tolist()
    counts = np.frombuffer(data[12 : 12 + rows], np.uint8)
    at = 12 + rows + 4 * rows

    def read(start: int) -> np.ndarray:
        part = np.frombuffer(data[start : start + 2 * entries], np.uint8).astype(int)
        return np.asarray(part[:entries] + 256 * part[entries:])

    steps, units = read(at), read(at + 2 * entries)
    found = np.zeros((rows, columns), dtype=int)
    place = 0
    for row, count in enumerate(counts.tolist()):
        found[row, np.cumsum(steps[place : place + count])] = units[place : place + count]
        place += count
    return found
