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

    def add_all(self, makers: Mapping[str, Callable[[], bytes]]) -> None:
        """Make and pack several blocks, on as many threads as torch has: deflate takes its time."""
        with ThreadPoolExecutor(max(1, torch.get_num_threads())) as pool:
            list(pool.map(lambda name: self.add(name, makers[name]()), makers))


def row_bytes(rows: Strongest) -> bytes:
    """Rows of weights, as SparseRows of ``page/data.js`` reads them."""
    kept = rows.kept
    counts = kept.sum(axis=1).astype(np.uint8)
    columns = rows.columns[kept].astype(np.int32)
    steps = np.diff(columns, prepend=0)
    starts = (np.cumsum(counts, dtype=np.int64) - counts)[counts > 0]
    steps[starts] = columns[starts]
    header = np.array([len(counts), len(columns), rows.heads is not None], dtype="<u4")
    left_out = np.clip(np.rint(rows.left_out * UNITS), 0, 65535)
    parts = [
        header.tobytes(), counts.tobytes(), planes(rows.hidden), planes(left_out), planes(steps),
        planes(rows.units[kept]),
    ]  # fmt: skip
    if rows.heads is not None:
        parts.append(planes(rows.heads[kept]))
    return b"".join(parts)


def planes(numbers: Shaped[np.ndarray, "*shape"]) -> bytes:
    """All low bytes, then all high bytes."""
    small = numbers.astype(np.uint16).ravel()
    return (small & 255).astype(np.uint8).tobytes() + (small >> 8).astype(np.uint8).tobytes()
