"""Numbers of a page as bytes: planes, deflated, in base64. ``page/data.js`` is the reader.

Rows of weights are counts, then the distances between their columns, then their units; each number
is split into its low and its high byte, and all low bytes stand together, as deflate likes it.
"""

from __future__ import annotations

import base64
import zlib
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import torch
from jaxtyping import Shaped

from clearhead.views.page.strongest import UNITS, Strongest

LEVEL = 5  # of deflate: beyond, seconds go and hardly a byte with them


@dataclass(frozen=True)
class Block:
    """One piece of a page's data, as base64."""

    text: str
    packed: Literal["deflate", "raw"]


@dataclass
class Blocks:
    """The pieces of a page by their names."""

    by_name: dict[str, Block] = field(default_factory=dict)

    @property
    def size(self) -> int:
        """Characters of all blocks."""
        return sum(len(block.text) for block in self.by_name.values())

    def add(self, name: str, data: bytes, *, deflated: bool = True) -> str:
        """Pack a block and return its name."""
        packed = zlib.compress(data, LEVEL) if deflated else data
        text = base64.b64encode(packed).decode("ascii")
        self.by_name[name] = Block(text, "deflate" if deflated else "raw")
        return name

    def add_later(self, name: str, make: Callable[[], bytes]) -> str:
        """A block that deflate does not make smaller; a live page makes it when asked."""
        return self.add(name, make(), deflated=False)

    def add_all(self, makers: Mapping[str, Callable[[], bytes]]) -> None:
        """Make and pack several blocks, on as many threads as torch has: deflate takes its time."""
        with ThreadPoolExecutor(max(1, torch.get_num_threads())) as pool:
            list(pool.map(lambda name: self.add(name, makers[name]()), makers))


WITH_HEADS, WIDE, EXACT = 1, 2, 4  # what a block of rows holds besides, or in other widths


def row_bytes(rows: Strongest) -> bytes:
    """Rows of weights, as SparseRows of ``page/data.js`` reads them."""
    kept = rows.kept
    counts = kept.sum(axis=1)
    columns = rows.columns[kept].astype(np.int32)
    steps = np.diff(columns, prepend=0)
    starts = (np.cumsum(counts, dtype=np.int64) - counts)[counts > 0]
    steps[starts] = columns[starts]
    left_out = np.rint(rows.left_out * UNITS).astype(np.uint32)
    wide = max(left_out.max(initial=0), rows.units.max(initial=0)) > 65535
    flags = WITH_HEADS * (rows.heads is not None) + WIDE * bool(wide)
    flags += EXACT * (rows.exact is not None)
    header = np.array([len(counts), len(columns), flags], dtype="<u4")
    numbers = wide_planes if wide else planes
    parts = [
        header.tobytes(), planes(counts), rows.incomplete.astype(np.uint8).tobytes(),
        planes(rows.hidden), numbers(left_out), planes(steps),
    ]  # fmt: skip
    if rows.exact is None:
        parts.append(numbers(rows.units[kept]))
    else:
        parts.append(wide_planes(rows.exact[kept].astype("<f4").view("<u4")))
    if rows.heads is not None:
        parts.append(planes(rows.heads[kept]))
    return b"".join(parts)


def planes(numbers: Shaped[np.ndarray, "*shape"]) -> bytes:
    """All low bytes, then all high bytes."""
    small = numbers.astype(np.uint16).ravel()
    return (small & 255).astype(np.uint8).tobytes() + (small >> 8).astype(np.uint8).tobytes()


def wide_planes(numbers: Shaped[np.ndarray, "*shape"]) -> bytes:
    """Numbers of four bytes: all lowest bytes first."""
    whole = numbers.astype("<u4").ravel()
    return np.ascontiguousarray(whole.view(np.uint8).reshape(-1, 4).T).tobytes()
