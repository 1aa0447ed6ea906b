"""The engine's KV cache: where a key is, growing, reordering."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from clearhead.engine.cache import EngineCache, LayerCaches
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
    assert cache.capacity == 384  # in whole chunks of 128
    check(cache, key, value, [0, 1, 2], TOKENS)
    cache.grow(1300, 40)
    assert cache.capacity == 1408
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


def test_layers_with_a_window_have_caches_of_their_own() -> None:
    caches = LayerCaches([0, 7, 0, 7, 7], BATCH, HEADS, 300, (32, 64))
    assert [(cache.capacity, number) for cache, number in caches.layers] == [
        (384, 0), (384, 0), (384, 1), (384, 1), (384, 2),
    ]  # fmt: skip
    key = torch.randn(BATCH, TOKENS, HEADS, KEY).half().float()
    value = torch.randn(BATCH, TOKENS, HEADS, VALUE).half().float()
    caches.fill(3, key, value)
    caches.grow(401, TOKENS)
    assert caches.capacity == 768
    rooms = [cache.capacity for cache, _ in caches.layers]
    assert rooms == [768, 384, 768, 384, 384]  # 7 + 64 + 256 in whole chunks
    assert caches.nbytes == 2 * BATCH * HEADS * (32 + 64) * (2 * 768 + 3 * 384)
    caches.reorder([2, 1], TOKENS)
    cache, number = caches.layers[3]
    keys, values = cache.read(number, range(3, TOKENS), KEY, VALUE)
    assert torch.equal(keys, key[[2, 1], 3:].transpose(1, 2))
    assert torch.equal(values, value[[2, 1], 3:].transpose(1, 2))
    assert caches.keeps(17, 400) and caches.keeps(16, 400) and not caches.keeps(15, 400)
    assert LayerCaches([0], 1, 1, 3, (32, 32)).keeps(0, 10**6)


def test_reading_goes_round() -> None:
    cache, key, value = filled()  # 256 places
    keys, values = cache.read(1, range(256, 256 + 37), KEY, VALUE)
    assert torch.equal(keys, key[:, :37].transpose(1, 2))
    assert torch.equal(values, value[:, :37].transpose(1, 2))
