"""Numbers as base64: every bit comes back."""

from __future__ import annotations

import torch

from clearhead.explain.course.packed import packed, rounded, unpacked


def test_every_bit_comes_back() -> None:
    first, second = torch.randn(7, 5), torch.tensor([0.0, -0.0, 1e-40, 3.4e38])
    found = torch.from_numpy(unpacked(packed(first, second)).copy())
    assert torch.equal(found, torch.cat([first.flatten(), second]))


def test_plain_numbers_are_rounded() -> None:
    assert rounded(torch.tensor([0.1234567, 2.0]), 3) == [0.123, 2.0]
    assert rounded([1 / 3]) == [0.333333]
