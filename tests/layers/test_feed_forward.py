from __future__ import annotations

from collections.abc import Callable
from typing import get_args

import pytest
import torch
from torch import Tensor

from clearhead.errors import ConfigError
from clearhead.layers.feed_forward import ACTIVATIONS, Activation, FeedForward


def test_by_hand() -> None:
    layer = FeedForward(2, 3, "relu", gated=False, bias=True)
    with torch.no_grad():
        layer.up.weight.copy_(torch.tensor([[1.0, 2.0], [-1.0, 0.0], [0.0, 1.0]]))
        layer.up.bias.copy_(torch.tensor([0.0, -1.0, 1.0]))
        layer.down.weight.copy_(torch.tensor([[1.0, 5.0, 2.0], [0.0, 7.0, -1.0]]))
        layer.down.bias.copy_(torch.tensor([0.5, 0.0]))
    # up: 1 + 4 = 5; −1 − 1 = −2, cut to 0; 2 + 1 = 3. down: 5 + 6 + 0.5; −3
    assert layer(torch.tensor([1.0, 2.0])).tolist() == [11.5, -3.0]


def test_gated_by_hand() -> None:
    layer = FeedForward(1, 1, "relu", gated=True, bias=False)
    assert layer.gate is not None
    with torch.no_grad():
        layer.gate.weight.fill_(2.0)
        layer.up.weight.fill_(3.0)
        layer.down.weight.fill_(5.0)
    assert layer(torch.tensor([[7.0], [-7.0]])).tolist() == [[14.0 * 21.0 * 5.0], [0.0]]


def _gelu_tanh(x: Tensor) -> Tensor:
    return x * (1 + torch.tanh((2 / torch.pi) ** 0.5 * (x + 0.044715 * x**3))) / 2


@pytest.mark.parametrize("activation", get_args(Activation))
@pytest.mark.parametrize("gated", [False, True])
def test_formula(activation: Activation, gated: bool) -> None:
    layer, states = FeedForward(5, 11, activation, gated=gated, bias=True), torch.randn(2, 3, 5)
    functions: dict[str, Callable[[Tensor], Tensor]] = {
        "relu": torch.relu,
        "gelu": lambda x: x * (1 + torch.erf(x / 2**0.5)) / 2,
        "gelu_tanh": _gelu_tanh,
        "silu": lambda x: x / (1 + torch.exp(-x)),
    }
    function = functions[activation]
    inner = layer.up(states)
    if layer.gate is None:
        wanted = layer.down(function(inner))
    else:
        wanted = layer.down(function(layer.gate(states)) * inner)
    torch.testing.assert_close(layer(states), wanted)
    assert set(ACTIVATIONS) == set(get_args(Activation))


@pytest.mark.parametrize(("gated", "bias", "count"), [
    (False, False, 2 * 5 * 11), (True, False, 3 * 5 * 11), (True, True, 3 * 5 * 11 + 11 + 11 + 5),
])  # fmt: skip
def test_parameter_count(gated: bool, bias: bool, count: int) -> None:
    layer = FeedForward(5, 11, "silu", gated=gated, bias=bias)
    assert sum(parameter.numel() for parameter in layer.parameters()) == count


def test_positions_do_not_mix() -> None:
    layer, states = FeedForward(5, 11, "gelu", gated=True, bias=True), torch.randn(2, 7, 5)
    torch.testing.assert_close(layer(states)[:, 3], layer(states[:, 3]))


def test_unknown_activation() -> None:
    import jaxtyping

    jaxtyping.config.update("jaxtyping_disable", True)
    try:
        with pytest.raises(ConfigError, match=r"activation must be one of .*; got 'cubic'"):
            FeedForward(5, 11, "cubic", gated=False, bias=False)  # type: ignore[arg-type]
    finally:
        jaxtyping.config.update("jaxtyping_disable", False)
