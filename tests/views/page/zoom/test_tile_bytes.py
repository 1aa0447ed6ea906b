from __future__ import annotations

import numpy as np
import pytest
import torch

from clearhead.trace.zoom.pooling import MASKED, PENDING
from clearhead.views.page.zoom.tile_bytes import exact_bytes, rounded_bytes


def header(data: bytes) -> list[int]:
    return [int(part) for part in np.frombuffer(data[:12], "<u4")]


@pytest.mark.parametrize("largest", [0.99996, 6.5533, 6.5534, 6.5536, 400.0])
def test_units_are_as_wide_as_they_must_be(largest: float) -> None:
    numbers = torch.tensor([[0.25, MASKED, 0.00005], [largest, 0.0, 0.12345]])
    data = rounded_bytes(numbers)
    width = 2 if round(largest * 10_000) < 65_535 else 4
    assert header(data) == [2, 3, 0 if width == 2 else 1]
    planes = np.frombuffer(data[12:], np.uint8).reshape(width, 6)
    units = (planes.astype(np.int64) << (8 * np.arange(width))[:, None]).sum(axis=0)
    masked = 256**width - 1
    assert units.tolist()[:2] == [2500, masked] and units[3] == round(largest * 10_000)
    assert units[5] in (1234, 1235) and units[4] == 0


def test_exact_bytes_keep_float32_and_signs() -> None:
    numbers = torch.tensor([[0.1234567, MASKED], [PENDING, 1e-9]])
    data = exact_bytes(numbers)
    assert header(data) == [2, 2, 2]
    assert np.array_equal(np.frombuffer(data[12:], "<f4"), numbers.flatten().numpy())
