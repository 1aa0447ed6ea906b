"""The engine's KV cache: where a key is, growing, reordering."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from clearhead.engine.cache import EngineCache
from clearhead.errors import InputError

LAYERS, BATCH, HEADS, KEY, VALUE, TOKENS = 2, 3, 5, 7, 33, 131


def filled() -> tuple[EngineCache, Tensor, Tensor]:
    cache = EngineCache.empty(LAYERS, BATCH, HEADS, TOKENS, 32, 64)
    torch.manual_seed(3)
    key = torch.randn(BATCH, TOKENS, HEADS, KEY).half().float()
    value = torch.randn(BATCH, TOKENS, HEADS, VALUE).half().float()
    cache.fill(1, key, value)
    return cache, key, value


def stored(cache: EngineCache, row: int, position: int, head: int) -> tuple[Tensor, Tensor]:
    """A key and a value of layer 1, read back."""
    key = cache.keys[1, row, head, position // 32, :, position % 32]
    value = cache.values[1, row, head, position // 128, :, position % 128].flatten()
    return key.float(), value.float()


def check(cache: EngineCache, key: Tensor, value: Tensor, rows: list[int], tokens: int) -> None:
    for row, old in enumerate(rows):
        for position in {0, 31, 32, tokens - 1}:
            for head in range(HEADS):
                found, mixed = stored(cache, row, position, head)
                assert torch.equal(found[:KEY], key[old, position, head])
                assert torch.equal(mixed[:VALUE], value[old, position, head])
                assert not found[KEY:].any() and not mixed[VALUE:].any()


def test_keys_and_values_are_where_the_kernels_read_them() -> None:
    cache, key, value = filled()
    assert (cache.batch, cache.capacity) == (BATCH, 256)
    check(cache, key, value, [0, 1, 2], TOKENS)
    assert not cache.keys[0].any() and not cache.values[0].any()


def test_growing_keeps_what_is_used() -> None:
    cache, key, value = filled()
    cache.grow(257, TOKENS)
    assert cache.capacity == 512  # doubled
    check(cache, key, value, [0, 1, 2], TOKENS)
    cache.grow(1300, 40)
    assert cache.capacity == 1408  # as needed, in whole chunks of 128
    check(cache, key, value, [0, 1, 2], 40)


def test_reordering() -> None:
    cache, key, value = filled()
    cache.reorder([2, 0, 0, 1], TOKENS)
    assert (cache.batch, cache.capacity) == (4, 256)
    check(cache, key, value, [2, 0, 0, 1], TOKENS)


def test_strides_are_in_bytes() -> None:
    cache, _, _ = filled()
    key_row, key_head, value_row, value_head = cache.strides()
    assert (key_head, value_head) == (2 * 256 * 32, 2 * 256 * 64)
    assert (key_row, value_row) == (HEADS * key_head, HEADS * value_head)
    assert cache.keys[0, 1].data_ptr() - cache.keys[0, 0].data_ptr() == key_row


def test_more_memory_than_there_is() -> None:
    with pytest.raises(InputError, match=r"of 10000000 texts of up to 256 tokens need .* GB, and"):
        EngineCache.empty(LAYERS, 10**7, HEADS, 255, 32, 64)


def test_keys_that_do_not_fit_make_their_value_nan() -> None:
    cache = EngineCache.empty(LAYERS, BATCH, HEADS, TOKENS, 32, 64)
    key, value = torch.zeros(BATCH, TOKENS, HEADS, KEY), torch.ones(BATCH, TOKENS, HEADS, VALUE)
    key[1, 3, 2, 5] = 7e4
    cache.fill(1, key, value)
    assert stored(cache, 1, 3, 2)[1].isnan().sum() == VALUE
    assert int(cache.values.isnan().sum()) == VALUE
