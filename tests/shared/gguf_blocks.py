"""Random blocks of every GGUF kind, whose numbers are of a moderate size."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from clearhead.checkpoints.gguf.kinds import kind_named

# Bytes of a block at which half-precision scales (and minima) are stored.
SCALES = {
    "Q4_0": (0,), "Q4_1": (0, 2), "Q5_0": (0,), "Q5_1": (0, 2), "Q8_0": (0,), "IQ4_NL": (0,),
    "IQ4_XS": (0,), "Q2_K": (80, 82), "Q3_K": (108,), "Q4_K": (0, 2), "Q5_K": (0, 2),
    "Q6_K": (208,),
}  # fmt: skip
PLAIN = {"F32": np.float32, "F16": np.float16}


def random_blocks(kind: str, rows: int, columns: int, seed: int = 0, size: float = 1.0) -> Tensor:
    """Rows of blocks as bytes; every byte is random except the scales."""
    generator = np.random.default_rng(seed)
    if kind in PLAIN:
        numbers = (size * generator.normal(size=(rows, columns))).astype(PLAIN[kind])
        return torch.from_numpy(numbers).view(torch.uint8)
    if kind == "BF16":
        floats = torch.from_numpy(size * generator.normal(size=(rows, columns)))
        return floats.bfloat16().view(torch.uint8)
    stored = kind_named(kind)
    count = columns // stored.block_length
    blocks = generator.integers(0, 256, (rows, count, stored.block_bytes), dtype=np.uint8)
    for place in SCALES[kind]:
        scales = size * generator.uniform(0.5, 1.0, (rows, count)) / SPREAD[kind]
        scales = scales.astype(np.float16)
        if place in (2, 82) and kind in ("Q4_1", "Q5_1"):
            scales = -8 * scales
        blocks[..., place : place + 2] = scales[..., None].view(np.uint8)
    return torch.from_numpy(blocks.reshape(rows, -1))


# The standard deviation of the numbers of a block whose scale is 1, roughly.
SPREAD = {
    "Q4_0": 5, "Q4_1": 5, "Q5_0": 10, "Q5_1": 10, "Q8_0": 74, "IQ4_NL": 70, "IQ4_XS": 1300,
    "Q2_K": 12, "Q3_K": 42, "Q4_K": 280, "Q5_K": 560, "Q6_K": 1400,
}  # fmt: skip
