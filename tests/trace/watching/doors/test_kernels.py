from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from clearhead.trace.watching.doors.kernels import KERNELS
from clearhead.trace.watching.watch import watch
from tests.shared.recorded_weights import weights_of


class Net(nn.Module):
    def forward(self, query: Tensor, key: Tensor, **options: Any) -> Tensor:
        return functional.scaled_dot_product_attention(query, key, key, **options)


def test_doors_are_there_only_while_somebody_watches() -> None:
    assert KERNELS._library is None
    with watch(Net()), watch(Net()):
        assert KERNELS._library is not None
    assert KERNELS._library is None


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64])
@pytest.mark.parametrize("autocast", [False, True])
def test_the_same_bits_in_the_precision_that_autocast_chose(
    dtype: torch.dtype, autocast: bool
) -> None:
    torch.manual_seed(0)
    net, states = Net(), torch.randn(2, 3, 7, 11, dtype=dtype)
    with torch.autocast("cpu", enabled=autocast):
        plain = net(states, states)
        with watch(net) as seen:
            watched = net(states, states)
    assert torch.equal(plain, watched) and plain.dtype == watched.dtype
    narrow = torch.bfloat16 if autocast and dtype == torch.float32 else dtype
    assert seen.layers[0].dtype == narrow and seen.verify().exact


@pytest.mark.parametrize("shapes", [
    ((1, 3, 5, 11), (4, 3, 7, 11)), ((2, 7, 3, 5, 11), (2, 7, 3, 5, 11)), ((5, 11), (7, 11)),
])  # fmt: skip
def test_shapes_that_no_fused_kernel_takes_run_as_they_do(shapes: Any) -> None:
    torch.manual_seed(0)
    net, query, key = Net(), torch.randn(*shapes[0]), torch.randn(*shapes[1])
    plain = net(query, key)
    with watch(net) as seen:
        watched = net(query, key)
    assert torch.equal(plain, watched)
    assert seen.missed or seen.verify().exact


def spelled(states: Tensor) -> Tensor:
    return torch.softmax(states @ states.mT, dim=-1) @ states


class Spelled(nn.Module):
    def forward(self, states: Tensor) -> Tensor:
        return spelled(states)


@pytest.mark.filterwarnings("ignore:There is a performance drop", "ignore::DeprecationWarning")
@pytest.mark.parametrize("kind", [Net, Spelled])
def test_transforms_of_torch_func_run_as_they_do(kind: type[nn.Module]) -> None:
    torch.manual_seed(0)
    net, states = kind(), torch.randn(3, 2, 4, 7, 8)
    two: Callable[[Tensor], Tensor] = (lambda x: net(x, x)) if kind is Net else net

    def everything() -> list[Tensor]:
        found = [
            torch.vmap(two)(states),
            torch.func.grad(lambda x: two(x).sum())(states[0]),
        ]
        if kind is Spelled:
            found += torch.func.jvp(two, (states[0],), (states[1],))
        return found

    plain = everything()
    with watch(net):
        watched = everything()
    assert all(torch.equal(one, other) for one, other in zip(plain, watched, strict=True))


def test_the_kernels_log_sum_exp_is_kept() -> None:
    torch.manual_seed(0)
    net, states = Net(), torch.randn(2, 3, 7, 16)
    mask = torch.ones(7, 7, dtype=torch.bool).tril()
    with watch(net) as seen:
        net(states, states, attn_mask=mask, scale=0.3)
    scores = (states.double() @ states.double().mT * 0.3).masked_fill(~mask, -torch.inf)
    assert (weights_of(seen.records[0]) - torch.softmax(scores, 3)).abs().max() < 1e-6
    assert (seen.records[0].logsum - torch.logsumexp(scores, 3)).abs().max() < 1e-5
