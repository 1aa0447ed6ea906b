"""The compiled functions for blocks: one for each kind, the same as the kernels' own."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest

from clearhead.checkpoints.gguf.kinds import stored
from clearhead.checkpoints.gguf.unpack_rows import UNPACKED, unpack_function
from clearhead.kernels.threads import torch_threads

unpacking = pytest.importorskip("clearhead.checkpoints.gguf.kernels.unpacking")
pytestmark = pytest.mark.skipif(torch_threads() is None, reason="no OpenMP here")


def test_the_kinds_are_those_of_the_kernels() -> None:
    assert set(UNPACKED) == {*unpacking.RUNS, "IQ4_NL"}


@pytest.mark.parametrize("kind", ["Q4_K", "IQ4_NL", "BF16"])
def test_a_kept_function_gives_the_same_bits(kind: str) -> None:
    length, size = stored(kind)
    blocks = np.random.default_rng(3).integers(0, 60, (5, size), dtype=np.uint8)
    found = []
    unpack_function.__wrapped__(kind)  # kept from now on
    for address in (unpack_function.__wrapped__(kind), unpacking.unpack_function(kind)):
        target = np.zeros((5, length), np.float32)
        ctypes.CFUNCTYPE(None, *[ctypes.c_int64] * 3)(address)(
            blocks.ctypes.data, 5, target.ctypes.data
        )
        found.append(target)
    assert np.array_equal(found[0], found[1], equal_nan=True)
    assert found[0].any()
