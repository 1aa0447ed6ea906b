"""NaN is refused by every path, and the error names the argument that holds it."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any

import pytest
import torch

import clearhead as ch
from clearhead.attention import masks
from clearhead.errors import InputError
from tests.attention.test_checks import fitting, ones

pytestmark = pytest.mark.usefixtures("unchecked")
PATHS: dict[str, dict[str, Any]] = {
    "plain call": {},
    "causal": {"causal": True},
    "window": {"window": 3},
    "mask": {"mask": ones(7, 7).tril().bool()},
    "bias": {"bias": torch.zeros(7, 7)},
    "softcap": {"softcap": 2.0},
    "sinks": {"sinks": torch.zeros(6)},
    "causal sinks": {"sinks": torch.zeros(6), "causal": True},
}


@pytest.mark.parametrize("learning", [False, True])
@pytest.mark.parametrize("options", list(PATHS.values()), ids=list(PATHS))
@pytest.mark.parametrize(("position", "name"), [(0, "query"), (1, "key"), (2, "value")])
@pytest.mark.parametrize("function", [ch.attention, ch.attention_steps])
def test_nan_in_a_tensor(
    function: Callable[..., object],
    position: int,
    name: str,
    options: dict[str, Any],
    learning: bool,
) -> None:
    parts = list(fitting(queries=7))
    parts[position][1, 2, 4, 3] = math.nan
    shape = re.escape(str(tuple(parts[position].shape)))
    parts = [part.requires_grad_(learning) for part in parts]
    with pytest.raises(
        InputError, match=rf"{name} holds NaN \(first at \(1, 2, 4, 3\) of {shape}\)"
    ):
        function(*parts, **options)


@pytest.mark.parametrize("function", [ch.attention, ch.attention_steps])
@pytest.mark.parametrize("position", range(3))
def test_nan_in_a_single_head_without_axes(function: Callable[..., object], position: int) -> None:
    parts = [torch.randn(3, 5), torch.randn(4, 5), torch.randn(4, 5)]
    function(*parts)
    parts[position][1, 2] = math.nan
    with pytest.raises(InputError, match=f"{('query', 'key', 'value')[position]} holds NaN"):
        function(*parts)


@pytest.mark.parametrize("position", [1, 2])
def test_nan_in_a_masked_key_or_value(position: int) -> None:
    parts = list(fitting())
    parts[position][0, 0, 6, 0] = math.nan
    for mask in (masks.lengths(6), ones(5, 7).bool() & (torch.arange(7) != 6)):
        with pytest.raises(InputError, match=r"(?s)holds NaN \(first at .*a diverged training run"):
            ch.attention(*parts, mask=mask)


@pytest.mark.parametrize("position", range(3))
@pytest.mark.parametrize("keys", [11, 300])
def test_nan_in_a_decoding_step(position: int, keys: int) -> None:
    parts = list(fitting(queries=1, keys=keys))
    parts[position][0, 0, 0, 5] = math.nan
    with pytest.raises(InputError, match=f"{('query', 'key', 'value')[position]} holds NaN"):
        ch.attention(*parts, causal=True)


@pytest.mark.parametrize("softcap", [None, 2.0])
def test_nan_in_bias_and_sinks(softcap: float | None) -> None:
    bias = torch.zeros(5, 7)
    bias[3, 2] = math.nan
    with pytest.raises(InputError, match=r"bias holds NaN \(first at \(0, 0, 3, 2\)"):
        ch.attention(*fitting(), bias=bias, softcap=softcap)
    sinks = torch.tensor([0.0, 0.0, math.nan, 0.0, 0.0, 0.0])
    with pytest.raises(InputError, match=r"sinks holds NaN \(first at \(2,\) of \(6,\)\)"):
        ch.attention(*fitting(), sinks=sinks, softcap=softcap)


@pytest.mark.parametrize("learning", [False, True])
@pytest.mark.parametrize(("position", "name"), [(0, "query"), (1, "key")])
def test_infinity_that_makes_nan(position: int, name: str, learning: bool) -> None:
    parts = list(fitting())
    parts[position][1, 2, 4, 3] = math.inf
    parts = [part.requires_grad_(learning) for part in parts]
    with pytest.raises(InputError, match=f"the result is NaN: {name} holds ±inf"):
        ch.attention(*parts)


def test_infinity_in_the_bias() -> None:
    bias = torch.zeros(5, 7)
    bias[3, 2] = math.inf
    with pytest.raises(InputError, match="the result is NaN: bias holds ±inf"):
        ch.attention(*fitting(), bias=bias)


def test_scores_that_overflow() -> None:
    query, key, value = fitting()
    with pytest.raises(InputError, match="the result is NaN: the scores of query and key overflow"):
        ch.attention(query * 1e30, key * 1e30, value)


def test_numbers_that_are_large_but_fine() -> None:
    query, key, value = fitting()
    value = value * torch.tensor([3e37, -3e37]).repeat(11)[:11]
    assert ch.attention(query, key, value).sum().isinf()  # a sum may overflow, its numbers do not
    assert ch.attention(query, key, value).isfinite().all()
    assert ch.attention(query * 1e9, key * 1e9, value).isfinite().all()
