"""A tile as bytes, for a file or for a server to send; ``assets/zoom/tiles.js`` is the reader.

Three numbers of four bytes: rows, columns, kind. Then the cells, row by row: in ten-thousandths,
rounded as every picture rounds (two bytes, or four if a sum is large), or as float32.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Float
from torch import Tensor

from clearhead.trace.zoom.pooling import MASKED
from clearhead.views.page.blocks import planes, wide_planes

UNITS = 10_000
UNITS_16, UNITS_32, FLOATS = 0, 1, 2
MASKED_16, MASKED_32 = 0xFFFF, 0xFFFFFFFF


def rounded_bytes(numbers: Float[Tensor, "row column"]) -> bytes:
    """Cells in ten-thousandths: small, as most of them are 0."""
    exact = numbers.double().numpy()
    masked = exact == MASKED
    units = np.rint(np.where(masked, 0.0, exact) * UNITS)
    wide = units.max(initial=0) >= MASKED_16
    sign = MASKED_32 if wide else MASKED_16
    cells = np.where(masked, sign, units).astype(np.uint32 if wide else np.uint16)
    packed = wide_planes(cells) if wide else planes(cells)
    return _header(numbers, UNITS_32 if wide else UNITS_16) + packed


def exact_bytes(numbers: Float[Tensor, "row column"]) -> bytes:
    """Cells as float32, signs included."""
    cells = numbers.float().numpy().astype("<f4")
    return _header(numbers, FLOATS) + cells.tobytes()


def _header(numbers: Tensor, kind: int) -> bytes:
    rows, columns = numbers.shape
    return np.array([rows, columns, kind], dtype="<u4").tobytes()
