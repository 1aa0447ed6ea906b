from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from clearhead.trace.watching.watch import watch
from tests.shared.recorded_weights import weights_of

HIDDEN = torch.ones(5, 7, dtype=torch.bool).triu(3)
STEPS: dict[str, Callable[[Tensor], Tensor]] = {
    "scale": lambda s: s / 4,
    "in place": lambda s: s.mul_(0.5).masked_fill_(HIDDEN, -1e9),
    "bias": lambda s: s * 0.3 + torch.arange(7.0),
    "bias first": lambda s: (s + torch.arange(7.0)) * 0.3,
    "masked_fill": lambda s: s.masked_fill(HIDDEN, -torch.inf),
    "where": lambda s: torch.where(HIDDEN, -1e9, s),
    "finite mask": lambda s: s + torch.where(HIDDEN, torch.finfo(torch.float32).min, 0.0),
    "cap": lambda s: 5 * torch.tanh(s / 5),
    "temperature": lambda s: s * torch.tensor([0.5, 1.0, 2.0])[:, None, None],
    "clamp": lambda s: s.clamp(-1, 1),
    "sine": lambda s: s.sin(),
    "maximum": lambda s: s - s.amax(-1, keepdim=True),
    "float64": lambda s: s.double(),
}


class Zebra(nn.Module):
    def __init__(self, step: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.step = step

    def forward(self, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        self.weights = torch.softmax(self.step(query @ key.mT), dim=-1)
        return (self.weights.to(value.dtype) @ value).transpose(1, 2).flatten(2)


@pytest.mark.parametrize("grad", ["grad", "no_grad", "inference_mode"])
@pytest.mark.parametrize("step", STEPS)
def test_steps_between_product_and_softmax(step: str, grad: str) -> None:
    torch.manual_seed(0)
    net, given = Zebra(STEPS[step]), [torch.randn(2, 3, n, 11) for n in (5, 7, 7)]
    modes: dict[str, Any] = {
        "grad": torch.enable_grad, "no_grad": torch.no_grad, "inference_mode": torch.inference_mode
    }  # fmt: skip
    with modes[grad]():
        plain = net(*given)
        with watch(net) as seen:
            watched = net(*given)
    assert torch.equal(plain, watched) and seen.missed == ""
    assert (seen.layers[0].batch, seen.layers[0].heads) == (2, 3)
    assert (weights_of(seen.records[0]) - net.weights).abs().max() < 1e-6
    assert seen.verify().exact
    odd = "kept as the model computed them" in seen.layers[0].note
    assert odd is (step in ("clamp", "sine"))


def test_the_same_weights_twice_are_one_call() -> None:
    class Twice(nn.Module):
        def forward(self, states: Tensor) -> Tensor:
            weights = torch.softmax(states @ states.mT, dim=-1)
            return weights @ states + weights @ (states + 1)

    with watch(net := Twice()) as seen:
        net(torch.randn(1, 2, 3, 5))
    assert len(seen.layers) == 1 and seen.missed == ""


@pytest.mark.parametrize("what", ["query", "key", "output"])
@pytest.mark.parametrize("inference", [True, False])
def test_tensors_that_are_written_over_later_do_not_change_the_record(
    what: str, inference: bool
) -> None:
    class Careless(nn.Module):
        def forward(self, states: Tensor) -> Tensor:
            query, key = states * 1, states + 1
            weights = torch.softmax(query @ key.mT, dim=-1)
            self.weights = weights.clone()
            output = weights @ states
            {"query": query, "key": key, "output": output}[what].zero_()
            return output.transpose(1, 2).flatten(2)

    torch.manual_seed(0)
    net = Careless()
    with torch.inference_mode(inference), torch.no_grad(), watch(net) as seen:
        net(torch.randn(2, 3, 5, 7))
    if seen.layers:
        assert (weights_of(seen.records[0]) - net.weights).abs().max() < 1e-6
        assert seen.verify().exact
    else:
        assert "written over" in seen.missed
