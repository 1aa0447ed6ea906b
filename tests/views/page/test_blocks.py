from __future__ import annotations

import base64
import zlib

import numpy as np
import torch

from clearhead.views.page.blocks import Blocks, planes, row_bytes, wide_planes
from clearhead.views.page.strongest import strongest

ROWS = torch.tensor([[0.5, 0.25, 0.25, 0.0], [0.00004, 0.99991, 0.00005001, 0.0]])


def test_blocks_hold_counts_steps_and_units_in_planes() -> None:
    block = row_bytes(strongest(ROWS, hidden=(0,)))
    header = np.frombuffer(block[:12], "<u4").tolist()
    assert header == [2, 5, 0]
    assert list(block[12:16]) == [3, 2, 0, 0]
    assert list(block[16:18]) == [0, 0]  # nothing of either row is left out
    rest = block[18:]
    assert rest[:4] == planes(np.array([5000, 0]))
    assert rest[4:8] == planes(np.array([0, 0]))
    assert rest[8:18] == planes(np.array([0, 1, 1, 1, 1]))  # the second row begins anew
    assert rest[18:] == planes(np.array([5000, 2500, 2500, 9999, 1]))


def test_large_and_unrounded_numbers_need_four_bytes() -> None:
    large = row_bytes(strongest(ROWS * 20, hidden=()))
    assert np.frombuffer(large[8:12], "<u4").tolist() == [2]
    assert wide_planes(np.array([100_000, 50_000, 50_000])) == (
        bytes([160, 80, 80]) + bytes([134, 195, 195]) + bytes([1, 0, 0]) + bytes(3)
    )
    exact = row_bytes(strongest(ROWS, hidden=(), exact=True))
    assert np.frombuffer(exact[8:12], "<u4").tolist() == [4]


def test_blocks_are_base64_of_deflate() -> None:
    blocks = Blocks()
    blocks.add_all({"a": lambda: b"x" * 1000, "b": lambda: b"y"})
    assert set(blocks.by_name) == {"a", "b"}
    assert zlib.decompress(base64.b64decode(blocks.by_name["a"].text)) == b"x" * 1000
    assert blocks.size < 100
