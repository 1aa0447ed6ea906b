from __future__ import annotations

import pytest
import torch
from transformers.models.t5.modeling_t5 import T5Attention

from clearhead.attention.relative import relative_bias, relative_buckets
from clearhead.errors import ConfigError


def test_buckets_by_hand() -> None:
    # 8 buckets, causal: 0 … 3 exact, then 4 + log(d/4)/log(16/4) · 4: 4, 4, 5 at 4, 5, 6 …
    row = relative_buckets(1, 20, buckets=8, max_distance=16, causal=True)[0]
    assert row.flip(0).tolist() == [0, 1, 2, 3, 4, 4, 5, 5, 6, 6, 6, 6, 7, 7, 7, 7, 7, 7, 7, 7]


def test_both_directions_by_hand() -> None:
    # half of the 8 buckets behind (and here), half ahead; 0 and 1 exact, then logarithmic
    middle = relative_buckets(9, 9, buckets=8, max_distance=8)[4]
    assert middle.tolist() == [3, 2, 2, 1, 0, 5, 6, 6, 7]


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize(("buckets", "max_distance"), [(32, 128), (8, 20), (32, 64), (7, 11)])
@pytest.mark.parametrize(("queries", "keys"), [(300, 300), (5, 211), (1, 17)])
def test_t5_in_transformers(
    queries: int, keys: int, buckets: int, max_distance: int, causal: bool
) -> None:
    standing = torch.arange(queries)[:, None] + keys - queries
    theirs = T5Attention._relative_position_bucket(
        torch.arange(keys)[None] - standing,
        bidirectional=not causal,
        num_buckets=buckets,
        max_distance=max_distance,
    )
    ours = relative_buckets(
        queries, keys, buckets=buckets, max_distance=max_distance, causal=causal
    )
    assert ours.equal(theirs)


def test_the_bias_of_each_head() -> None:
    table = torch.randn(8, 3)
    buckets = relative_buckets(5, 7, buckets=8, max_distance=16)
    bias = relative_bias(table, buckets)
    assert bias.shape == (3, 5, 7)
    for head, query, key in ((0, 0, 0), (2, 4, 1), (1, 3, 6)):
        assert bias[head, query, key] == table[buckets[query, key], head]


@pytest.mark.parametrize(
    ("buckets", "max_distance", "causal"), [(2, 128, True), (32, 16, True), (32, 8, False)]
)
def test_buckets_that_cannot_be(buckets: int, max_distance: int, causal: bool) -> None:
    with pytest.raises(ConfigError, match=f"got buckets={buckets}, max_distance={max_distance}"):
        relative_buckets(3, 3, buckets=buckets, max_distance=max_distance, causal=causal)
