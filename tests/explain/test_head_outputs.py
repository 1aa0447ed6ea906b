from __future__ import annotations

import math

import pytest
import torch
from torch import nn

import clearhead as ch
from clearhead.explain.head_outputs import head_outputs
from clearhead.trace.head_view import HeadView


def watched(*, values: bool = True, bias: bool = False) -> tuple[nn.Module, HeadView, torch.Tensor]:
    torch.manual_seed(3)
    module = ch.MultiHeadAttention(15, 3, key_dim=7, value_dim=5, bias=bias).eval()
    with torch.no_grad(), ch.watch(module, values=values) as seen:
        result = module(torch.randn(1, 11, 15))
    return module, seen["L0"], result[0]


@pytest.mark.parametrize("bias", [False, True])
def test_what_heads_add_sums_to_the_layers_output(bias: bool) -> None:
    module, view, result = watched(bias=bias)
    found = head_outputs(view, 4, module)
    assert found is not None and found.projected and found.bias is bias
    assert [head.head for head in found.heads] == ["L0H0", "L0H1", "L0H2"]
    summed = torch.tensor([head.added for head in found.heads]).sum(dim=0)
    if bias:
        output = module.get_submodule("output")
        assert isinstance(output, nn.Linear)
        summed += output.bias
    assert torch.allclose(summed, result[4], atol=1e-5)
    assert torch.allclose(torch.tensor(found.result), result[4], atol=1e-5)


def test_shares_are_lengths_among_all() -> None:
    module, view, _ = watched()
    found, without = head_outputs(view, 4, module), head_outputs(view, 4, None)
    assert found is not None and without is not None and not without.projected
    lengths = [math.hypot(*head.added) for head in found.heads]
    assert found.heads[1].share == pytest.approx(lengths[1] / sum(lengths))
    lengths = [math.hypot(*head.output) for head in without.heads]
    assert without.heads[1].share == pytest.approx(lengths[1] / sum(lengths))


def test_without_values_there_are_no_outputs() -> None:
    module, view, _ = watched(values=False)
    assert head_outputs(view, 4, module) is None
