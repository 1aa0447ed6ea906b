"""Attention over the cache, chunk by chunk, against a softmax over all keys."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from clearhead.engine.engine import engine_runs_here
from tests.shared.engine_steps import PreparedStep, call, decoder

pytestmark = pytest.mark.skipif(not engine_runs_here(), reason="no OpenMP or half precision here")

LENGTHS = [300, 0, 127]  # three chunks, one key, the border of a chunk
ROWS = [[3, 4, 5], [6], [7, 8]]
HEADS, KV_HEADS, KEY, VALUE = 6, 2, 10, 37


def attended(**changes: Any) -> tuple[PreparedStep, torch.Tensor]:
    """A step whose cache and queries are random, and the wanted outputs: token, head, value."""
    prepared = PreparedStep(decoder(**changes), ROWS, LENGTHS)
    queries = prepared.fill("projected")
    cache = prepared.runner._cache
    assert cache is not None
    heads = changes.get("kv_heads", KV_HEADS)
    key = torch.randn(3, cache.capacity, heads, KEY).half().float()
    value = torch.randn(3, cache.capacity, heads, VALUE).half().float()
    cache.fill(0, key, value)
    tokens = [(row, LENGTHS[row] + i) for row, ids in enumerate(ROWS) for i in range(len(ids))]
    wanted = torch.zeros(len(tokens), HEADS, VALUE)
    for token, (row, position) in enumerate(tokens):
        window = changes.get("window") or position + 1
        seen = slice(max(0, position + 1 - window), position + 1)
        for head in range(HEADS):
            group = head // (HEADS // heads)
            query = queries[token, 32 * head : 32 * head + KEY]
            scores = key[row, seen, group] @ query * KEY**-0.5
            wanted[token, head] = scores.softmax(-1) @ value[row, seen, group]
    queries = prepared.memory("projected")
    queries[:, : 32 * HEADS].view(-1, HEADS, 32)[..., KEY:] = 0  # padding
    return prepared, wanted


@pytest.mark.parametrize(
    "changes",
    [{}, {"window": 131}, {"window": 7}, {"kv_heads": 6}, {"kv_heads": 1}],
    ids=["all", "window", "narrow", "multi-head", "multi-query"],
)
def test_attention_is_softmax_over_all_keys(changes: dict[str, Any]) -> None:
    prepared, wanted = attended(**changes)
    scratch = torch.zeros(4 * 128)
    units = call("attention_units", prepared.address, prepared.attention)
    for unit in reversed(range(units)):  # in any order
        call("attend", prepared.address, prepared.attention, unit, scratch.data_ptr())
    for token in range(6):
        mixed = prepared.memory("mixed")[token]
        arguments = (token, mixed.data_ptr(), prepared.fields.inputs)
        call("merge_token", prepared.address, prepared.attention, *arguments)
    mixed = prepared.memory("mixed")[:6]
    width = HEADS * VALUE  # heads side by side, without their padding
    torch.testing.assert_close(mixed[:, :width], wanted.flatten(1), rtol=0, atol=3e-6)
    assert not mixed[:, width:224].any()
    stored = prepared.vectors("inputs", 7, 6)
    torch.testing.assert_close(stored.float(), mixed[:, :224], rtol=0, atol=1e-3)


def test_units_are_chunks_of_segments_and_heads() -> None:
    prepared, _ = attended()
    assert call("attention_units", prepared.address, prepared.attention) == (3 + 1 + 2) * KV_HEADS
    prepared, _ = attended(window=7)
    assert call("attention_units", prepared.address, prepared.attention) == (1 + 1 + 2) * KV_HEADS
