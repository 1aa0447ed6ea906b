"""Rotary positions, and where keys and values are in the cache."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from clearhead.engine.engine import engine_runs_here
from tests.shared.engine_steps import PreparedStep, call, decoder

pytestmark = pytest.mark.skipif(not engine_runs_here(), reason="no OpenMP or half precision here")

HEADS, KV_HEADS, KEY, VALUE = 6, 2, 10, 37
KEY_WIDTH, VALUE_WIDTH = 32, 64  # padded


def rotated(vector: Tensor, position: int) -> Tensor:
    """By complex numbers: pair (i, i + 5) is turned by position · 10000^(−i/5)."""
    pairs = torch.complex(vector[:5], vector[5:10]).to(torch.complex128)
    angles = position * 10000.0 ** (-torch.arange(5, dtype=torch.float64) / 5)
    turned = pairs * torch.polar(torch.ones_like(angles), angles)
    return torch.cat([turned.real, turned.imag])


@pytest.mark.parametrize("normalised", [False, True])
def test_queries_keys_and_values(normalised: bool) -> None:
    model = decoder(attention_norm=normalised)
    prepared = PreparedStep(model, [[3, 4], [5]], [130, 33])
    before = prepared.fill("projected")
    heads = HEADS + KV_HEADS
    call("rotate_and_store", prepared.address, prepared.attention, 0, 2 * heads)
    call("rotate_and_store", prepared.address, prepared.attention, 2 * heads, 3 * heads)
    assert prepared.runner._cache is not None
    cache, _ = prepared.runner._cache.layers[0]
    attention = model.stack.blocks[0].attention
    for token, (row, position) in enumerate([(0, 130), (0, 131), (1, 33)]):
        numbers, after = before[token], prepared.memory("projected")[token]
        for head in range(heads):
            start = head * KEY_WIDTH
            vector = numbers[start : start + KEY]
            norm = attention.query_norm if head < HEADS else attention.key_norm  # type: ignore[union-attr]
            if normalised:
                vector = norm(vector)  # type: ignore[operator]
            wanted = rotated(vector, position).float()
            torch.testing.assert_close(after[start : start + KEY], wanted, rtol=0, atol=2e-5)
            if head >= HEADS:
                block, lane = position // 32, position % 32
                stored = cache.keys[0, row, head - HEADS, block, :KEY, lane].float()
                torch.testing.assert_close(stored, wanted, rtol=1e-3, atol=1e-3)
        values = numbers[heads * KEY_WIDTH :].view(KV_HEADS, 2, 32)
        chunk, place = position // 128, position % 128
        stored = cache.values[0, row, :, chunk, :, place]
        assert torch.equal(stored, values.half())
    assert not cache.keys[1:].any() and not cache.values[1:].any()
