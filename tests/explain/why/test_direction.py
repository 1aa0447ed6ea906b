from __future__ import annotations

import pytest
import torch
from torch import nn

from clearhead.explain.why.direction import Direction
from clearhead.layers.normalisation import RMSNorm

torch.manual_seed(0)
VECTOR, STATES = torch.randn(7, dtype=torch.float64), torch.randn(7, dtype=torch.float64)


@pytest.mark.parametrize("norm", [nn.LayerNorm(7), RMSNorm(7), RMSNorm(7, offset=True)], ids=str)
def test_a_direction_before_a_norm_gives_the_same_value(norm: nn.Module) -> None:
    norm = norm.double().requires_grad_(False)
    for parameter in norm.parameters():
        parameter.normal_()
    behind = Direction(VECTOR)
    before = behind.before_norm(norm, STATES, "a norm")
    wanted = float(behind.of(norm(STATES)))
    assert float(before.of(STATES)) + sum(before.constants.values()) == pytest.approx(wanted)
    assert list(before.constants) == (["a norm"] if isinstance(norm, nn.LayerNorm) else [])


def test_before_a_linear_map_and_an_activation() -> None:
    linear = nn.Linear(7, 7).double().requires_grad_(False)
    outputs = nn.functional.gelu(linear(STATES))
    behind = Direction(VECTOR, {"earlier": 2.0})
    before = behind.before_activation(linear(STATES), outputs).before_linear(linear, "dense")
    value = float(before.of(STATES)) + before.constants["dense"]
    assert value == pytest.approx(float(behind.of(outputs)))
    assert before.constants["earlier"] == 2.0


def test_an_activation_of_zero_has_no_gate() -> None:
    zero = torch.zeros(7, dtype=torch.float64)
    assert Direction(VECTOR).before_activation(zero, zero).vector.tolist() == [0.0] * 7
