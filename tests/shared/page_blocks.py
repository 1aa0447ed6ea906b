"""Blocks of a page, read as page/assets/data.js reads them."""

from __future__ import annotations

import base64
import zlib

import numpy as np

from clearhead.views.page.blocks import EXACT, WIDE, Block
from clearhead.views.page.strongest import UNITS


def unpacked(block: Block) -> bytes:
    data = base64.b64decode(block.text)
    return zlib.decompress(data) if block.packed == "deflate" else data


def dense(block: Block, columns: int) -> np.ndarray:
    """The rows of a block as page/assets/data.js reads them: (row, column), in units."""
    data = unpacked(block)
    rows, entries, flags = np.frombuffer(data[:12], "<u4").tolist()
    wide, exact = bool(flags & WIDE), bool(flags & EXACT)
    low, high = (np.frombuffer(data[12 + n * rows : 12 + (n + 1) * rows], np.uint8) for n in (0, 1))
    counts = low + 256 * high.astype(int)
    at = 12 + 3 * rows + (6 if wide else 4) * rows

    def read(start: int, size: int) -> np.ndarray:
        part = np.frombuffer(data[start : start + size * entries], np.uint8).reshape(size, entries)
        return np.asarray((part.astype(np.int64).T * 256 ** np.arange(size)).sum(axis=1))

    steps, units = read(at, 2), read(at + 2 * entries, 4 if wide or exact else 2)
    if exact:
        units = units.astype("<u4").view("<f4").astype(np.float64) * UNITS
    found = np.zeros((rows, columns), dtype=units.dtype)
    place = 0
    for row, count in enumerate(counts.tolist()):
        found[row, np.cumsum(steps[place : place + count])] = units[place : place + count]
        place += count
    return found
