from __future__ import annotations

import itertools
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

import clearhead as ch
from clearhead.attention import masks
from clearhead.attention.cache import KVCache, SlidingKVCache
from clearhead.errors import InputError, ShapeError

BATCH, HEADS, KV_HEADS, KEY_DIM, VALUE_DIM = 2, 6, 3, 7, 5


def keys_and_values(tokens: int, batch: int = BATCH, seed: int = 0) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    return (
        torch.randn(batch, KV_HEADS, tokens, KEY_DIM, generator=generator),
        torch.randn(batch, KV_HEADS, tokens, VALUE_DIM, generator=generator),
    )


def queries(tokens: int, batch: int = BATCH) -> Tensor:
    generator = torch.Generator().manual_seed(99)
    return torch.randn(batch, HEADS, tokens, KEY_DIM, generator=generator)


def chunks(tensor: Tensor, split: list[int]) -> tuple[Tensor, ...]:
    return torch.split(tensor, split, dim=2)


def test_append_returns_all_so_far() -> None:
    key, value = keys_and_values(11)
    cache = KVCache()
    assert len(cache) == cache.length == 0 and cache.capacity == 0 and not cache.ragged
    assert cache.lengths.tolist() == []
    for end, (more_keys, more_values) in zip(
        (4, 5, 11),
        zip(chunks(key, [4, 1, 6]), chunks(value, [4, 1, 6]), strict=True),
        strict=True,
    ):
        all_keys, all_values = cache.append(more_keys, more_values)
        assert all_keys.equal(key[:, :, :end]) and all_values.equal(value[:, :, :end])
        assert all_keys.equal(cache.keys) and all_values.equal(cache.values)
        assert len(cache) == cache.length == cache.held == end
        assert cache.lengths.tolist() == [end, end]


def test_memory_doubles_and_keeps_what_it_holds() -> None:
    key, value = keys_and_values(40)
    cache = KVCache()
    rooms = []
    for token in range(40):
        cache.append(key[:, :, token : token + 1], value[:, :, token : token + 1])
        rooms.append(cache.capacity)
    assert rooms[:9] == [1, 2, 4, 4, 8, 8, 8, 8, 16]
    assert len(set(rooms)) == 7  # 1, 2, 4 … 64: growing is rare
    assert cache.keys.equal(key)


def test_a_preallocated_cache_never_moves() -> None:
    key, value = keys_and_values(11)
    cache = KVCache(capacity=13)
    assert cache.capacity == 13
    first = cache.append(key[:, :, :3], value[:, :, :3])[0].data_ptr()
    last = cache.append(key[:, :, 3:], value[:, :, 3:])[0].data_ptr()
    assert first == last and cache.capacity == 13
    cache.append(key[:, :, :3], value[:, :, :3])  # one too many: it grows after all
    assert cache.capacity == 26
    assert cache.keys[:, :, :11].equal(key)


def test_nothing_carries_a_gradient() -> None:
    key, value = (part.requires_grad_() for part in keys_and_values(3))
    cache = KVCache()
    for counts in (None, torch.tensor([3, 1])):
        all_keys, all_values = cache.append(key, value, counts)
        assert not all_keys.requires_grad and not all_values.requires_grad


def test_crop_forgets_the_end() -> None:
    key, value = keys_and_values(11)
    cache = KVCache(capacity=11)
    cache.append(key, value)
    cache.crop(4)
    assert cache.length == 4 and cache.keys.equal(key[:, :, :4])
    assert cache.positions(2).tolist() == [[4, 5]]
    cache.append(key[:, :, 4:6], value[:, :, 4:6])
    assert cache.keys.equal(key[:, :, :6])
    cache.crop(0)
    assert cache.length == 0 and cache.keys.shape[2] == 0
    for length in (-1, 1):
        with pytest.raises(InputError, match=rf"length .* from 0 to 0; got {length}"):
            cache.crop(length)


def test_crop_of_rows_that_differ() -> None:
    key, value = keys_and_values(5)
    cache = KVCache()
    cache.append(key, value, torch.tensor([5, 2]))
    cache.crop(3)
    assert cache.lengths.tolist() == [3, 2] and cache.length == 3
    assert not cache.keys[1, :, 2:].any()


def test_reorder_is_for_beams() -> None:
    key, value = keys_and_values(4, batch=3)
    cache = KVCache()
    cache.append(key, value)
    cache.reorder(torch.tensor([2, 0, 2]))
    assert cache.keys.equal(key[[2, 0, 2]]) and cache.values.equal(value[[2, 0, 2]])
    cache.append(key[:, :, :1], value[:, :, :1])  # beams that split go their own ways
    assert cache.keys[:, :, 4].equal(key[:, :, 0])
    cache.reorder(torch.tensor([1]))
    assert cache.keys.shape[0] == 1


def test_reorder_of_rows_that_differ() -> None:
    key, value = keys_and_values(4, batch=3)
    cache = KVCache()
    cache.append(key, value, torch.tensor([4, 1, 2]))
    cache.reorder(torch.tensor([2, 1, 1]))
    assert cache.lengths.tolist() == [2, 1, 1]
    assert cache.length == 2 and cache.keys.shape[2] == 2  # the longest row is gone
    cache.append(key[:, :, :1], value[:, :, :1])
    assert cache.lengths.tolist() == [3, 2, 2]
    assert cache.keys[0, :, 2].equal(key[0, :, 0]) and cache.keys[1, :, 1].equal(key[1, :, 0])


def test_reset_keeps_the_memory() -> None:
    key, value = keys_and_values(5)
    cache = KVCache()
    cache.append(key, value, torch.tensor([5, 2]))
    cache.reset()
    assert cache.length == 0 and cache.capacity == 5 and not cache.ragged
    assert cache.append(key[:, :, :2], value[:, :, :2])[0].equal(key[:, :, :2])


def test_rows_stay_packed_at_the_front() -> None:
    key, value = keys_and_values(4, batch=3)
    cache = KVCache()
    cache.append(key, value, torch.tensor([4, 1, 0]))
    assert cache.ragged and cache.lengths.tolist() == [4, 1, 0]
    assert cache.positions(2).tolist() == [[4, 5], [1, 2], [0, 1]]
    cache.append(key, value, torch.tensor([1, 4, 2]))
    assert cache.lengths.tolist() == [5, 5, 2] and cache.length == 5
    assert cache.keys[1].equal(torch.cat([key[1, :, :1], key[1]], dim=1))
    assert cache.values[2, :, :2].equal(value[2, :, :2])
    assert not cache.keys[2, :, 2:].any()
    cache.append(key[:, :, :1], value[:, :, :1])  # without counts: one for each
    assert cache.lengths.tolist() == [6, 6, 3]


SPLITS = [[11], [1] * 11, [4, 1, 6], [1, 9, 1], [10, 1]]
OPTIONS: list[dict[str, Any]] = [
    {},
    {"window": 3},
    {"softcap": 2.0},
    {"sinks": torch.linspace(-1, 1, HEADS)},
]


@pytest.mark.parametrize("split", SPLITS, ids=str)
@pytest.mark.parametrize("options", OPTIONS, ids=lambda options: "+".join(options) or "plain")
def test_a_cached_step_equals_the_full_forward(split: list[int], options: dict[str, Any]) -> None:
    query, (key, value) = queries(11), keys_and_values(11)
    full = ch.attention(query, key, value, causal=True, **options)
    cache = KVCache()
    steps = []
    for q, k, v in zip(*(chunks(part, split) for part in (query, key, value)), strict=True):
        steps.append(ch.attention(q, *cache.append(k, v), causal=True, **options))
    torch.testing.assert_close(torch.cat(steps, dim=2), full, atol=1e-6, rtol=0)


@pytest.mark.parametrize("split", SPLITS, ids=str)
def test_the_mask_says_the_same_as_causal(split: list[int]) -> None:
    query, (key, value) = queries(11), keys_and_values(11)
    for cache, window in ((KVCache(), None), (KVCache(), 3), (SlidingKVCache(3), 3)):
        for q, k, v in zip(*(chunks(part, split) for part in (query, key, value)), strict=True):
            mask = cache.mask(window)
            keys, values = cache.append(k, v)
            found = ch.attention(q, keys, values, mask=mask)
            wanted = ch.attention(q, keys, values, causal=True, window=window)
            torch.testing.assert_close(found, wanted, atol=1e-6, rtol=0)


@given(st.lists(st.tuples(*[st.integers(0, 4)] * 3), min_size=1, max_size=5), st.booleans())
def test_each_row_of_a_ragged_batch_gets_what_it_gets_alone(
    rounds: list[tuple[int, ...]], near: bool
) -> None:
    rounds = [counts for counts in rounds if max(counts)]
    window = 3 if near else None
    totals = [sum(counts[row] for counts in rounds) for row in range(3)]
    rows = [(queries(n, 1), *keys_and_values(n, 1, seed=row)) for row, n in enumerate(totals)]
    cache, done = KVCache(), [0, 0, 0]
    for counts in rounds:
        new = [torch.zeros(3, HEADS, max(counts), KEY_DIM)]
        new += [torch.zeros(3, KV_HEADS, max(counts), width) for width in (KEY_DIM, VALUE_DIM)]
        for row, part in itertools.product(range(3), range(3)):
            start, count = done[row], counts[row]
            new[part][row, :, :count] = rows[row][part][0, :, start : start + count]
        mask = cache.mask(window)
        keys, values = cache.append(new[1], new[2], torch.tensor(counts))
        found = ch.attention(new[0], keys, values, mask=mask)
        for row, count in enumerate(counts):
            query, key, value = (part[:, :, : done[row] + count] for part in rows[row])
            alone = ch.attention(query, key, value, causal=True, window=window)[0, :, done[row] :]
            torch.testing.assert_close(found[row, :, :count], alone, atol=1e-6, rtol=0)
            done[row] += count
    assert cache.lengths.tolist() == (totals if rounds else [])


@pytest.mark.parametrize("window", [1, 2, 3, 5])
@pytest.mark.parametrize("split", [[1] * 61, [7] + [1] * 54, [3, 1, 19, 2, 2, 1, 30, 1, 1, 1]])
def test_a_sliding_cache_equals_the_full_forward(window: int, split: list[int]) -> None:
    query, (key, value) = queries(61), keys_and_values(61)
    full = ch.attention(query, key, value, causal=True, window=window)
    cache = SlidingKVCache(window)
    steps = []
    for q, k, v in zip(*(chunks(part, split) for part in (query, key, value)), strict=True):
        keys, values = cache.append(k, v)
        steps.append(ch.attention(q, keys, values, causal=True, window=window))
    torch.testing.assert_close(torch.cat(steps, dim=2), full, atol=1e-6, rtol=0)
    assert cache.length == 61 and cache.positions(1).tolist() == [[61]]


def test_a_sliding_cache_takes_constant_memory() -> None:
    key, value = keys_and_values(1)
    cache = SlidingKVCache(5)
    for token in range(100):
        cache.append(key, value)
        assert cache.capacity == 10
        assert min(token + 1, 5) <= cache.held <= 10
    assert cache.length == 100


def test_a_sliding_cache_forgets_for_good() -> None:
    key, value = keys_and_values(30)
    cache = SlidingKVCache(5)
    for token in range(30):
        cache.append(key[:, :, token : token + 1], value[:, :, token : token + 1])
    cache.crop(28)
    assert cache.length == 28
    assert cache.keys[:, :, -4:].equal(key[:, :, 24:28])
    with pytest.raises(InputError, match=r"crop\(3\): a window of 5 would need keys from before"):
        cache.crop(3)
    cache.reset()
    assert cache.append(key[:, :, :2], value[:, :, :2])[0].equal(key[:, :, :2])


def test_a_sliding_cache_holds_rows_of_equal_length() -> None:
    with pytest.raises(InputError, match="counts is not for it"):
        SlidingKVCache(5).append(*keys_and_values(3), torch.tensor([3, 1]))
    with pytest.raises(InputError, match=r"window .keys, .* whole number from 1 .* got 0"):
        SlidingKVCache(0)


def test_an_empty_cache_has_nothing_to_show() -> None:
    cache = KVCache()
    for name in ("keys", "values"):
        with pytest.raises(InputError, match="the cache is empty: append comes first"):
            getattr(cache, name)
    with pytest.raises(InputError, match="reorder: the cache is empty, there are no rows yet"):
        cache.reorder(torch.tensor([0]))
    assert isinstance(cache.mask(), masks.Mask)


def test_a_capacity_below_zero() -> None:
    with pytest.raises(InputError, match=r"capacity .* number from 0 to .*; got -1"):
        KVCache(-1)


@pytest.mark.parametrize("rows", [[2], [-1, 0]])
def test_rows_that_are_not_there(rows: list[int]) -> None:
    cache = KVCache()
    cache.append(*keys_and_values(3))
    with pytest.raises(InputError, match=r"rows must be 0 to 1; got "):
        cache.reorder(torch.tensor(rows))


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize("counts", [[3, 4], [-1, 0], [1, 1, 1]])
def test_counts_that_cannot_be(counts: list[int]) -> None:
    wanted = r"counts .how many of the 3 new tokens of each row are real. must be "
    with pytest.raises(InputError, match=wanted):
        KVCache().append(*keys_and_values(3), torch.tensor(counts))


@pytest.mark.usefixtures("unchecked")
def test_what_does_not_fit_the_cache() -> None:
    key, value = keys_and_values(3)
    cache = KVCache()
    with pytest.raises(ShapeError, match=r"append wants key .*; got \(2, 3, 3, 7\) and \(2, 3, 2,"):
        cache.append(key, value[:, :, :2])
    with pytest.raises(ShapeError, match=r"append wants key \(batch, kv_head, query, key_dim\)"):
        cache.append(key[0], value[0])
    cache.append(key, value)
    for other_key, other_value in (
        (key[:1], value[:1]),
        (key[:, :1], value[:, :1]),
        (key[..., :2], value),
        (key, value[..., :2]),
        (key.double(), value.double()),
    ):
        with pytest.raises(ShapeError, match=r"the cache holds .* = \(2, 3, 7, 5, torch.float32\)"):
            cache.append(other_key, other_value)
    assert cache.length == 3
