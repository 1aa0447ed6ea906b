"""The arguments of a call in one form."""

from __future__ import annotations

from typing import Any

import torch

from clearhead.attention import masks
from clearhead.attention.call import CAUSAL, Call, attention_call


def call_of(query: torch.Tensor, key: torch.Tensor, **options: Any) -> Call:
    named = ("mask", "bias", "causal", "window", "scale", "softcap", "sinks")
    given: list[Any] = [options.get(name, False if name == "causal" else None) for name in named]
    return attention_call(query, key, key, *given)


def test_axes_are_always_batch_and_head() -> None:
    call = call_of(torch.zeros(5, 3), torch.zeros(7, 3))
    assert call.query.shape == (1, 1, 5, 3)
    assert call.unflatten(torch.zeros(1, 1, 5, 3)).shape == (5, 3)
    call = call_of(torch.zeros(2, 1, 6, 5, 3), torch.zeros(11, 2, 7, 3).expand(2, 11, 2, 7, 3))
    assert call.query.shape == (22, 6, 5, 3)
    assert call.group == 3
    assert call.unflatten(torch.zeros(22, 6, 5, 3)).shape == (2, 11, 6, 5, 3)


def test_defaults_are_filled_in() -> None:
    call = call_of(torch.zeros(5, 64), torch.zeros(7, 64))
    assert call.scale == 0.125
    assert call.mask is None
    assert call.band == masks.WHOLE
    assert call_of(torch.zeros(5, 64), torch.zeros(7, 64), scale=2.0).scale == 2.0


def test_a_single_query_at_the_end_sees_every_key() -> None:
    assert call_of(torch.zeros(1, 3), torch.zeros(7, 3), causal=True).mask is None
    assert call_of(torch.zeros(2, 3), torch.zeros(7, 3), causal=True).mask is CAUSAL


def test_a_gradient_is_wanted_if_any_input_learns() -> None:
    query, key = torch.zeros(5, 3), torch.zeros(7, 3)
    bias = torch.zeros(5, 7, requires_grad=True)
    assert not call_of(query, key).wants_gradient
    assert call_of(query, key, bias=bias).wants_gradient
    with torch.no_grad():
        assert not call_of(query, key, bias=bias).wants_gradient


def test_a_part_of_a_call_has_the_keys_in_reach() -> None:
    key = torch.arange(7.0)[:, None]
    part = call_of(torch.zeros(7, 1), key, causal=True, window=3).narrowed(range(4, 6))
    assert part.key.flatten().tolist() == [2, 3, 4, 5]
    assert part.query.shape == (1, 1, 2, 1)
    assert part.mask is not None
    assert part.mask.tensor(2, 4, torch.device("cpu")).tolist() == [
        [True, True, True, False],
        [False, True, True, True],
    ]
