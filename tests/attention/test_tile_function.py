"""Attention over tiles under autograd: options, second derivatives, transforms, odd gradients."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

import clearhead as ch
from clearhead.attention import tile_function, tiles
from clearhead.attention.call import Call
from clearhead.attention.masks import WHOLE
from clearhead.attention.tile_function import plain_tiled, tiled
from clearhead.attention.tile_gradients import gradients_apply, tile_gradients

pytestmark = pytest.mark.skipif(not gradients_apply(), reason="no OpenMP, numba or FMA here")
OPTIONS: list[dict[str, Any]] = [
    {},
    {"causal": True},
    {"causal": True, "window": 13},
    {"window": 17},
    {"causal": True, "softcap": 2.0},
    {"causal": True, "scale": -0.3},
    {"scale": 0.0},
    {"causal": True, "sinks": torch.tensor([0.5, -1.0, 3.0, 0.0])},
]


def draw(queries: int = 43, keys: int = 43, kv_heads: int = 2, value_dim: int = 8) -> list[Tensor]:
    generator = torch.Generator().manual_seed(queries + keys)

    def states(heads: int, count: int, width: int) -> Tensor:
        return torch.randn(3, count, heads, width, generator=generator).transpose(1, 2)

    return [states(4, queries, 16), states(kv_heads, keys, 16), states(kv_heads, keys, value_dim)]


@pytest.fixture
def kernels(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The gradients that the kernel computed."""
    calls: list[str] = []

    def noting(*given: Any, **named: Any) -> Any:
        calls.append("gradients")
        return tile_gradients(*given, **named)

    monkeypatch.setattr(tile_function, "tile_gradients", noting)
    return calls


def on_this_machine(options: dict[str, Any]) -> bool:
    """False where flash is taken because a register does not hold a whole vector."""
    kernel = tiles._kernel()
    assert kernel is not None
    return kernel.wide or set(options) - {"scale"} != set()


@pytest.mark.parametrize("value_dim", [16, 8, 5])
@pytest.mark.parametrize("queries", [43, 31])
@pytest.mark.parametrize("options", OPTIONS, ids=lambda options: " ".join(options) or "plain")
def test_gradients(
    options: dict[str, Any], queries: int, value_dim: int, kernels: list[str]
) -> None:
    """All gradients against every step of the formula in float64, the sinks' among them."""
    inputs = draw(queries, value_dim=value_dim)

    def gradients(dtype: torch.dtype, attend: Any) -> tuple[Tensor, ...]:
        learned = [part.detach().to(dtype).requires_grad_() for part in inputs]
        given = dict(options)
        if "sinks" in options:
            given["sinks"] = options["sinks"].to(dtype).requires_grad_()
        output = attend(*learned, **given)
        learned += [given["sinks"]] if "sinks" in options else []
        return torch.autograd.grad(output.sin().sum(), learned)

    got = gradients(torch.float32, ch.attention)
    exact = gradients(torch.float64, lambda *g, **o: ch.attention_steps(*g, **o).output)
    for mine, wanted in zip(got, exact, strict=True):
        torch.testing.assert_close(mine.double(), wanted, atol=1e-5, rtol=1e-5)
    if value_dim != 5 and on_this_machine(options):
        assert kernels == ["gradients"]


def test_queries_that_see_nothing_have_zero_gradients() -> None:
    query, key, value = (part.requires_grad_() for part in draw(queries=53, keys=43))
    output = ch.attention(query, key, value, causal=True)  # the first 10 see nothing
    assert "Tiled" in str(output.grad_fn)
    found = torch.autograd.grad(output.sum(), (query, key, value))
    assert all(part.isfinite().all() for part in found)
    assert not found[0][:, :, :10].any() and found[0][:, :, 11:].any()
    assert not output[:, :, :10].any()


def test_second_derivatives_are_those_of_the_plain_steps() -> None:
    inputs = [part.requires_grad_() for part in draw(queries=29, keys=29)]

    def second(attend: Any) -> tuple[Tensor, ...]:
        first = torch.autograd.grad(attend(*inputs).sin().sum(), inputs, create_graph=True)
        return torch.autograd.grad(
            torch.stack([part.square().sum() for part in first]).sum(), inputs
        )

    got = second(lambda *given: ch.attention(*given, causal=True))
    wanted = second(lambda *given: ch.attention_steps(*given, causal=True).output)
    for mine, right in zip(got, wanted, strict=True):
        torch.testing.assert_close(mine, right, atol=1e-4, rtol=1e-4)


def test_batched_gradients() -> None:
    """``is_grads_batched`` hands out wrappers that have no memory."""
    query, key, value = draw(queries=29, keys=29)

    def some(query: Tensor) -> Tensor:
        return ch.attention(query, key, value, causal=True)[0, 0, 25:, :2]

    at_once, one_by_one = (
        torch.autograd.functional.jacobian(some, query, vectorize=vectorize)  # type: ignore[no-untyped-call]
        for vectorize in (True, False)
    )
    torch.testing.assert_close(at_once, one_by_one, atol=1e-6, rtol=1e-5)


@pytest.mark.filterwarnings("ignore:There is a performance drop")
def test_transforms_go_another_way(kernels: list[str]) -> None:
    query, key, value = draw(queries=29, keys=29)

    def loss(query: Tensor) -> Tensor:
        return ch.attention(query, key, value, causal=True).sin().sum()

    transformed = torch.func.grad(loss)(query)
    assert kernels == []
    learned = query.clone().requires_grad_()
    torch.testing.assert_close(
        transformed, torch.autograd.grad(loss(learned), learned)[0], atol=1e-5, rtol=1e-5
    )
    assert kernels == ["gradients"]


def test_a_gradient_of_one_repeated_number() -> None:
    inputs = [part.requires_grad_() for part in draw()]
    repeated = torch.ones(()).expand(3, 4, 43, 8)
    spelled = torch.ones(3, 4, 43, 8)
    found = [
        torch.autograd.grad(ch.attention(*inputs, causal=True), inputs, gradient)
        for gradient in (repeated, spelled)
    ]
    for one, other in zip(*found, strict=True):
        assert torch.equal(one, other)


def test_one_tensor_as_query_key_and_value() -> None:
    states = draw(kv_heads=4, value_dim=16)[0]
    one, other = states.clone().requires_grad_(), states.double().requires_grad_()
    got = torch.autograd.grad(ch.attention(one, one, one, causal=True).sin().sum(), one)[0]
    exact = ch.attention_steps(other, other, other, causal=True).output.sin().sum()
    torch.testing.assert_close(
        got.double(), torch.autograd.grad(exact, other)[0], atol=1e-5, rtol=0
    )


@pytest.mark.parametrize("learns", [0, 1, 2])
def test_only_one_of_the_three_learns(learns: int) -> None:
    inputs = draw()
    inputs[learns].requires_grad_()
    all_learn = [part.detach().clone().requires_grad_() for part in inputs]
    alone = torch.autograd.grad(ch.attention(*inputs, causal=True).sum(), inputs[learns])[0]
    together = torch.autograd.grad(ch.attention(*all_learn, causal=True).sum(), all_learn)
    assert torch.equal(alone, together[learns])


def test_under_autocast(kernels: list[str]) -> None:
    """Half-precision states go another way, and gradients come back in their own kind."""
    inputs = [part.requires_grad_() for part in draw(kv_heads=4, value_dim=16)]
    with torch.autocast("cpu", torch.bfloat16):
        halves = [part.bfloat16() for part in inputs]
        output = ch.attention(halves[0], halves[1], halves[2], causal=True)
    found = torch.autograd.grad(output.float().sum(), inputs)
    assert kernels == []
    assert {part.dtype for part in found} == {torch.float32}
    wanted = torch.autograd.grad(ch.attention(*inputs, causal=True).sum(), inputs)
    for mine, right in zip(found, wanted, strict=True):
        torch.testing.assert_close(mine, right, atol=0.05, rtol=0.05)


def test_the_logsum_has_no_sink_in_it() -> None:
    query, key, value = draw()
    sinks = torch.tensor([1.0, 2, 3, 4])
    call = Call(query, key, value, None, None, 0.25, None, sinks, torch.Size([3]), False)
    output, logsum = tiled(call, WHOLE)
    query.requires_grad_()
    again, learned_logsum = tiled(call, WHOLE)
    assert torch.equal(output, again) and torch.equal(logsum, learned_logsum)
    scores = call.query @ call.key.repeat_interleave(2, 1).mT * 0.25
    torch.testing.assert_close(logsum, scores.logsumexp(-1).detach(), atol=1e-5, rtol=0)


@pytest.mark.parametrize("causal", [False, True])
def test_the_plain_case_is_the_general_one(causal: bool) -> None:
    query, key, value = (part.requires_grad_() for part in draw(kv_heads=4, value_dim=16))
    plain = plain_tiled(query, key, value, causal, 0.25)
    general = ch.attention(query, key, value, causal=causal, scale=0.25)
    torch.testing.assert_close(plain, general, atol=1e-6, rtol=0)
