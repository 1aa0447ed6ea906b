"""Vectors of float32 as base64 of their deflated bytes: all first bytes, then all second ones …"""

from __future__ import annotations

import base64
import zlib
from collections.abc import Sequence

import numpy as np
from jaxtyping import Float32
from torch import Tensor

BYTES = 4  # of a float32


def packed(*numbers: Tensor) -> str:
    """All numbers of some tensors, one after the other.

    >>> import torch
    >>> unpacked(packed(torch.tensor([0.5, -2.0]), torch.tensor([[1.0]]))).tolist()
    [0.5, -2.0, 1.0]
    """
    whole = np.concatenate([one.detach().float().cpu().numpy().ravel() for one in numbers])
    planes = np.ascontiguousarray(whole.astype("<f4")).view(np.uint8).reshape(-1, BYTES).T
    return base64.b64encode(zlib.compress(planes.tobytes(), 9)).decode("ascii")


def unpacked(text: str) -> Float32[np.ndarray, " number"]:
    """The numbers of :func:`packed`."""
    planes = np.frombuffer(zlib.decompress(base64.b64decode(text)), dtype=np.uint8)
    return np.ascontiguousarray(planes.reshape(BYTES, -1).T).view("<f4")[:, 0]


def rounded(numbers: Sequence[float] | Tensor, decimals: int = 6) -> list[float]:
    """Plain numbers with so many decimals."""
    values = numbers.tolist() if isinstance(numbers, Tensor) else numbers
    return [round(float(one), decimals) for one in values]
