"""Blocks unpacked by compiled functions: the bits of the ``gguf`` package."""

from __future__ import annotations

import ctypes

import gguf
import numpy as np
import pytest
import torch

from clearhead.checkpoints.gguf.dequantise import dequantise
from clearhead.checkpoints.gguf.kinds import KINDS, kind_named, stored
from clearhead.checkpoints.gguf.unpack_rows import UNPACKED, Rows

unpacking = pytest.importorskip("clearhead.checkpoints.gguf.kernels.unpacking")


@pytest.mark.parametrize("kind", UNPACKED)
def test_any_bytes_give_the_bits_of_the_package(kind: str) -> None:
    length, size = stored(kind)
    blocks = np.random.default_rng(5).integers(0, 256, (97, size), dtype=np.uint8)
    found = np.zeros((97, length), np.float32)
    function = ctypes.CFUNCTYPE(None, *[ctypes.c_int64] * 3)(unpacking.unpack_function(kind))
    function(blocks.ctypes.data, 97, found.ctypes.data)
    with np.errstate(all="ignore"):
        wanted = gguf.quants.dequantize(blocks, gguf.GGMLQuantizationType[kind])
    assert np.array_equal(found, wanted.reshape(found.shape), equal_nan=True)


def test_every_kind_but_one_is_compiled() -> None:
    blocks = {kind.name for kind in KINDS.values() if kind.block_length > 1}
    assert blocks - set(UNPACKED) == {"IQ4_XS"}


def test_rows_in_another_order() -> None:
    stored = np.random.default_rng(1).integers(0, 60, (5, 3, 34), dtype=np.uint8)
    order, target = np.array([4, 0, 0]), torch.zeros(3, 100)  # rows of 96 numbers, 100 apart
    task = Rows(
        stored.ctypes.data, 3 * 34, 3, order.ctypes.data, 3, target.data_ptr(), 400,
        unpacking.unpack_function("Q8_0"),
    )  # fmt: skip
    ctypes.CFUNCTYPE(None, ctypes.c_void_p)(unpacking.rows_function())(ctypes.byref(task))
    wanted = np.zeros((3, 3, 32), np.float32)
    dequantise(stored[order].reshape(-1, 34), kind_named("Q8_0"), wanted.reshape(-1, 32))
    assert np.array_equal(target[:, :96].numpy(), wanted.reshape(3, 96))
    assert not target[:, 96:].any()
