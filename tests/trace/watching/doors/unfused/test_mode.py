from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn.functional import conv2d, layer_norm, linear

from clearhead.trace.watching.watch import watch
from tests.shared.recorded_weights import weights_of

TALKING, BIAS = torch.randn(3, 3), torch.randn(3)
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
    "talking heads, product": lambda s: torch.einsum("bhqk,hg->bgqk", s, TALKING),
    "talking heads, product from the left": lambda s: (TALKING @ s.flatten(2)).view_as(s),
    "talking heads, linear": lambda s: linear(s.permute(0, 2, 3, 1), TALKING, BIAS).movedim(3, 1),
    "talking heads, convolution": lambda s: conv2d(s, TALKING[:, :, None, None], BIAS),
}
CHANGES: dict[str, Callable[[Tensor], Tensor]] = {
    "talking heads": lambda w: torch.einsum("bhqk,hg->bgqk", w, TALKING),
    "linear": lambda w: linear(w.permute(0, 2, 3, 1), TALKING, BIAS).movedim(3, 1),
    "convolution": lambda w: conv2d(w, TALKING[:, :, None, None]),
    "masked afterwards": lambda w: w * (torch.arange(7) != 2),
    "gate": lambda w: w * torch.arange(7.0),
    "norm": lambda w: layer_norm(w.permute(0, 2, 3, 1), (3,)).movedim(3, 1),
    "squared": lambda w: w.square(),
    "mean with another": lambda w: (w + torch.full_like(w, 1 / 7)) / 2,
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
    assert odd is (step in ("clamp", "sine") or step.startswith("talking"))


@pytest.mark.parametrize("grad", [True, False])
@pytest.mark.parametrize("change", CHANGES)
def test_weights_that_are_changed_after_the_softmax(change: str, grad: bool) -> None:
    """Shown as the softmax gave them, with a note."""

    class Mixer(nn.Module):
        def forward(self, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
            self.weights = torch.softmax(query @ key.mT, dim=-1)
            return (CHANGES[change](self.weights) @ value).transpose(1, 2).flatten(2)

    torch.manual_seed(0)
    net, given = Mixer(), [torch.randn(2, 3, n, 11) for n in (5, 7, 7)]
    with torch.set_grad_enabled(grad):
        plain = net(*given)
        with watch(net) as seen:
            watched = net(*given)
    assert torch.equal(plain, watched) and seen.missed == ""
    assert "changes afterwards" in seen.layers[0].note
    assert (weights_of(seen.records[0]) - net.weights).abs().max() < 1e-6
    assert seen.verify().exact
    wrong = seen.records[0].copy()
    wrong.query.mul_(1.1)
    assert not seen.verify().exact


def test_differential_attention_is_two_softmaxes() -> None:
    class Differential(nn.Module):
        def forward(self, one: Tensor, two: Tensor, value: Tensor) -> Tensor:
            self.both = [torch.softmax(states @ states.mT, dim=-1) for states in (one, two)]
            weights = self.both[0] - 0.3 * self.both[1]
            return (weights @ value).transpose(1, 2).flatten(2)

    torch.manual_seed(0)
    with watch(net := Differential()) as seen:
        net(*(torch.randn(2, 3, 5, 7) for _ in range(3)))
    assert seen.missed == "" and seen.verify().exact and len(seen.layers) == 2
    for record, own in zip(seen.records, net.both, strict=True):
        assert (weights_of(record) - own).abs().max() < 1e-6


@pytest.mark.parametrize("rest", [1, 1e-6])
@pytest.mark.parametrize("shifted", [True, False])
def test_a_number_beside_the_sum_of_exponentials_is_a_sink(rest: float, shifted: bool) -> None:
    class Quiet(nn.Module):
        def forward(self, states: Tensor) -> Tensor:
            scores = states @ states.mT / 3
            powers = (scores - scores.amax(-1, keepdim=True) if shifted else scores).exp()
            self.weights = powers / (powers.sum(-1, keepdim=True) + rest)
            return self.weights @ states

    torch.manual_seed(0)
    with watch(net := Quiet()) as seen:
        net(torch.randn(2, 3, 5, 7))
    if shifted and rest == 1:
        assert seen.layers == [] and "do not sum to 1" in seen.missed
        return
    assert seen.missed == "" and seen.verify().exact
    assert seen.verify().layers[0].sinks is not shifted
    assert (weights_of(seen.records[0]) - net.weights).abs().max() < 1e-6


@pytest.mark.filterwarnings("ignore:`torch.jit.script` is deprecated")  # torch's own use of it
@pytest.mark.parametrize("product", ["baddbmm", "bmm"])
def test_forward_derivatives_are_as_without_watching(product: str) -> None:
    """A tangent of zero has no memory: a kernel that reads one ends the process."""

    class Products(nn.Module):
        def forward(self, states: Tensor) -> Tensor:
            empty, turned = states.new_zeros(2, 5, 5), states.mT
            scores = torch.baddbmm(empty, states, turned, beta=0, alpha=0.5)
            return torch.softmax(scores if product == "baddbmm" else states @ turned, -1) @ states

    net, given = Products(), (torch.randn(2, 5, 7),)
    plain = torch.func.jvp(net, given, given)
    with watch(net):
        watched = torch.func.jvp(net, given, given)
    assert all(torch.equal(*pair) for pair in zip(plain, watched, strict=True))


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


class SelfAttention(nn.Module):
    """Attention in its own steps, with something else beside it."""

    def __init__(self, other: Callable[[SelfAttention, Tensor], Tensor]) -> None:
        super().__init__()
        self.weight, self.other = nn.Parameter(torch.randn(33, 11)), other
        self.bilinear = nn.Bilinear(11, 11, 5)

    def forward(self, x: Tensor) -> Tensor:
        weights = torch.softmax(x @ x.mT, dim=-1)
        return self.other(self, weights @ x)


@pytest.mark.parametrize("grad", [torch.enable_grad, torch.no_grad, torch.inference_mode])
@pytest.mark.parametrize(
    "other",
    [
        lambda _, x: torch.linalg.pinv(x.float()),
        lambda _, x: torch.linalg.pinv((x @ x.mT).float(), hermitian=True),
        lambda net, x: net.bilinear(x.float(), x.float()),
        lambda _, x: torch.cdist(x, x + 1),
    ],
)
def test_kernels_call_others_in_mixed_precision_as_they_do_unwatched(
    other: Callable[[SelfAttention, Tensor], Tensor], grad: type[torch.no_grad]
) -> None:
    torch.manual_seed(0)
    net, x = SelfAttention(other), torch.randn(2, 7, 11)
    with grad(), torch.autocast("cpu", dtype=torch.bfloat16):
        plain = net(x)
        with watch(net):
            watched = net(x)
    assert plain.dtype == watched.dtype and torch.equal(plain, watched)


@pytest.mark.parametrize(
    "part",
    [
        lambda weight: weight.chunk(3)[1],
        lambda weight: weight.narrow(0, 11, 11),
        lambda weight: weight.T.chunk(3, dim=1)[1].T,
    ],
)
def test_parts_of_parameters_can_be_taken_in_inference_mode(
    part: Callable[[Tensor], Tensor],
) -> None:
    """torch notes that they are views; what ``chunk`` is made of must not note it again."""
    torch.manual_seed(0)
    net, x = SelfAttention(lambda net, x: x @ part(net.weight)), torch.randn(2, 7, 11)
    with torch.inference_mode():
        plain = net(x)
        with watch(net) as seen:
            watched = net(x)
    assert torch.equal(plain, watched) and seen.verify().exact


def test_a_model_without_numbers_runs_while_it_is_watched() -> None:
    net = SelfAttention(lambda net, x: linear(x, net.weight)).to("meta")
    with torch.inference_mode(), watch(net):
        assert net(torch.empty(2, 7, 11, device="meta")).shape == (2, 7, 33)
