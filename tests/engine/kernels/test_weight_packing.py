"""Weights packed into tiles: where each byte is, and when 4 bits are not enough."""

from __future__ import annotations

import ctypes

import pytest
import torch
from torch import Tensor

from clearhead.engine.compiled import pack_function
from clearhead.engine.engine import engine_runs_here
from clearhead.engine.kernels.structures import Pack

pytestmark = pytest.mark.skipif(not engine_runs_here(), reason="no OpenMP or half precision here")


def packed(weight: Tensor, bits: int) -> tuple[Tensor, bool]:
    """The bytes of one tile of one group, and whether packing failed."""
    weight = weight.contiguous()
    target = torch.zeros(16 * {4: 20, 8: 34}[bits], dtype=torch.uint8)
    scratch, failures = torch.zeros(128, dtype=torch.uint8), torch.zeros(1, dtype=torch.int64)
    task = Pack(
        weight.data_ptr(), target.data_ptr(), 1, 1, bits, scratch.data_ptr(), failures.data_ptr()
    )
    ctypes.CFUNCTYPE(None, ctypes.c_void_p)(pack_function())(ctypes.byref(task))
    return target, bool(failures.any())


def test_8_bits() -> None:
    weight = torch.zeros(16, 32)
    weight[3, 22], weight[3, 9], weight[5, 0] = -127 / 64, 7 / 64, 2.0
    tile, failed = packed(weight, 8)
    assert not failed
    scales = tile[:32].view(torch.float16)
    assert (float(scales[3]), float(scales[0])) == (1 / 64, 0.0)
    assert float(scales[5]) == pytest.approx(2 / 127, rel=1e-3)
    numbers = tile[32:].view(8, 16, 4)  # column // 4, row, column % 4
    assert numbers[22 // 4, 3, 22 % 4] == 128 - 127
    assert numbers[9 // 4, 3, 9 % 4] == 128 + 7
    assert numbers[0, 5, 0] == 128 + 127
    assert int((numbers != 128).sum()) == 3


def test_4_bits() -> None:
    levels = torch.arange(16).repeat(2).expand(16, 32).clone()
    levels[7] = levels[7].flip(0)
    tile, failed = packed(levels / 8 - 0.5, 4)
    assert not failed
    scales, minima = tile[:32].view(torch.float16), tile[32:64].view(torch.float16)
    assert scales.tolist() == [0.125] * 16 and minima.tolist() == [-0.5] * 16
    numbers = tile[64:].view(4, 16, 4)
    for row, column in ((0, 0), (2, 13), (7, 3)):
        byte = int(numbers[column // 4, row, column % 4])
        assert (byte & 15, byte >> 4) == (int(levels[row, column]), int(levels[row, 16 + column]))


def test_what_does_not_fit_into_4_bits() -> None:
    levels = torch.arange(16).repeat(2).expand(16, 32) / 8 - 0.5
    for changed in (levels + 0.01 * (torch.arange(32) == 9), levels * torch.nan):
        assert packed(changed, 4)[1]
