from __future__ import annotations

import torch

from clearhead.trace.watching.bias_rules import bias_rule, collapsed, is_dense

QUERIES, KEYS = 5, 7


def test_numbers_that_only_hide_are_no_bias() -> None:
    shown = torch.ones(1, 1, QUERIES, KEYS, dtype=torch.bool).tril(2)
    numbers = torch.where(shown, 0.0, -1e9)
    assert bias_rule(numbers, shown, QUERIES, KEYS) is None
    assert bias_rule(torch.zeros(1, 1, QUERIES, KEYS), None, QUERIES, KEYS) is None


def test_rules_of_keys_and_distances_and_what_follows_none() -> None:
    of_key = torch.arange(7.0).expand(1, 1, QUERIES, KEYS)
    distances = torch.arange(KEYS)[None] - torch.arange(QUERIES)[:, None]
    of_distance = (distances.float() * 0.5)[None, None]
    key, distance = (bias_rule(one, None, QUERIES, KEYS) for one in (of_key, of_distance))
    assert key is not None and key.numbers is not None and key.numbers.shape[2] == 1
    assert distance is not None and distance.diagonals is not None
    odd = bias_rule(torch.randn(1, 3, QUERIES, KEYS), None, QUERIES, KEYS)
    assert odd is not None and is_dense(odd) and not is_dense(key)


def test_axes_along_which_all_is_the_same_are_left_out() -> None:
    assert collapsed(torch.ones(3, 5), 0).shape == (1, 5)
    assert collapsed(torch.arange(15).view(3, 5), 0).shape == (3, 5)
