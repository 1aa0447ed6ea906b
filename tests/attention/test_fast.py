"""Which kernel computes a call: the table of ``fast.py``, row by row."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

import clearhead as ch
from clearhead.attention import decode, fast, tiles

KERNELS = (
    "decode_step", "short_attention", "decode_attention", "three_products", "tiled",
    "plain_blocks", "portable", "flash",
)  # fmt: skip


@pytest.fixture
def taken(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The kernels that gave a result, in order."""
    found: list[str] = []

    def noting(name: str, kernel: Any) -> Any:
        def called(*given: Any, **named: Any) -> Any:
            result = kernel(*given, **named)
            if result is not None:
                found.append(name)
            return result

        return called

    for name in KERNELS:
        monkeypatch.setattr(fast, name, noting(name, getattr(fast, name)))
    return found


def states(
    queries: int, keys: int, *, learning: bool = False, value_dim: int = 16
) -> tuple[Tensor, Tensor, Tensor]:
    shapes = ((2, 4, queries, 16), (2, 4, keys, 16), (2, 4, keys, value_dim))
    return tuple(torch.randn(shape).requires_grad_(learning) for shape in shapes)  # type: ignore[return-value]


compiled = pytest.mark.skipif(
    decode._kernel() is None or tiles._kernel() is None, reason="no OpenMP, numba or FMA here"
)


@compiled
@pytest.mark.parametrize(
    ("sizes", "options", "kernel"),
    [
        ((1, 300), {}, "decode_step"),
        ((1, 300), {"softcap": 2.0}, "decode_attention"),
        ((1, 700), {"window": 300, "causal": True}, "decode_attention"),
        ((53, 53), {}, "short_attention"),
        ((53, 53), {"causal": True}, "short_attention"),
        ((53, 61), {"causal": True}, "three_products"),
        ((300, 300), {"causal": True}, "tiled"),
        ((300, 300), {"window": 17}, "tiled"),
        ((300, 300), {"softcap": 2.0}, "tiled"),
        ((53, 53), {"softcap": 2.0}, "plain_blocks"),
        ((53, 53), {"bias": torch.zeros(53, 53)}, "flash"),
        ((53, 53), {"mask": torch.ones(53, 53).bool()}, "flash"),
    ],
    ids=str,
)
def test_the_kernel_for_the_case(
    sizes: tuple[int, int], options: dict[str, Any], kernel: str, taken: list[str]
) -> None:
    query, key, value = states(*sizes)
    output = ch.attention(query, key, value, **options)
    assert taken[-1:] == [kernel]
    torch.testing.assert_close(
        output, ch.attention_steps(query, key, value, **options).output, atol=6e-6, rtol=0
    )


@pytest.mark.parametrize(
    ("options", "kernel"),
    [
        ({}, "short_attention"),
        ({"window": 7}, "tiled"),
        ({"bias": torch.zeros(53, 53)}, "flash"),
        ({"bias": torch.zeros(53, 53, requires_grad=True)}, "plain_blocks"),
        ({"sinks": torch.zeros(4, requires_grad=True)}, "tiled"),
        ({"softcap": 2.0}, "tiled"),
    ],
    ids=str,
)
def test_with_a_gradient(options: dict[str, Any], kernel: str, taken: list[str]) -> None:
    ch.attention(*states(53, 53, learning=True), **options)
    assert taken[-1:] == [kernel]


@pytest.mark.filterwarnings("ignore:There is a performance drop")
def test_under_vmap_it_is_torchs_own_choice(taken: list[str]) -> None:
    torch.func.vmap(lambda query: ch.attention(query, query, query))(torch.randn(3, 2, 5, 7))
    assert taken == ["portable"]


def test_no_lean_way_with_options_or_while_watched(taken: list[str]) -> None:
    with ch.watch(torch.nn.Identity()):
        ch.attention(*states(53, 53))
    assert taken == ["three_products"]
