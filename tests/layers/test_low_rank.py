"""LoRA layers: W·x + b + scale·B·(A·x)."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from clearhead.errors import ConfigError
from clearhead.layers.linear import Linear
from clearhead.layers.low_rank import LowRankLinear


@pytest.mark.parametrize("rank", [1, 3, 11])
@pytest.mark.parametrize("bias", [True, False])
def test_it_is_the_map_with_the_product_added(rank: int, bias: bool) -> None:
    base = Linear(7, 5, bias=bias)
    layer = LowRankLinear(base, rank=rank, alpha=13.0)
    torch.nn.init.normal_(layer.low_rank_b)
    states = torch.randn(2, 37, 7)
    whole = base.weight + 13 / rank * layer.low_rank_b @ layer.low_rank_a
    wanted = torch.nn.functional.linear(states, whole, base.bias)
    torch.testing.assert_close(layer(states), wanted, atol=1e-4, rtol=1e-4)
    with torch.no_grad():  # the quicker product
        torch.testing.assert_close(layer(states), wanted, atol=1e-4, rtol=1e-4)
    assert layer.weight is base.weight and f"rank={rank}" in repr(layer)


def test_dropout_only_in_training() -> None:
    layer = LowRankLinear(Linear(700, 5), rank=2, alpha=2.0, dropout=0.5)
    torch.nn.init.normal_(layer.low_rank_b)
    states = torch.randn(3, 700)
    assert not torch.equal(layer(states), layer(states))
    layer.eval()
    assert torch.equal(layer(states), layer(states))


@pytest.mark.parametrize(
    ("numbers", "message"),
    [({"rank": 0, "alpha": 1.0}, "rank must be"), ({"rank": 2, "alpha": float("nan")}, "alpha")],
)
def test_numbers_out_of_range(numbers: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        LowRankLinear(Linear(3, 2), **numbers)
