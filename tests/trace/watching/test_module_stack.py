from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from clearhead.trace.watching.module_stack import (
    ModuleStack,
    attention_modules,
    looks_cross,
    modules_of,
)
from clearhead.trace.watching.watch import watch


class SelfAttention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.project = nn.Linear(3, 3)
        self.stack: ModuleStack | None = None
        self.place: Any = None

    def forward(self, states: Tensor) -> Tensor:
        if self.stack is not None:
            self.place = self.stack.place()
        return self.project(states)  # type: ignore[no-any-return]


class Wrapper(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.attention, self.norm = SelfAttention(), nn.LayerNorm(3)

    def forward(self, states: Tensor) -> Tensor:
        return self.norm(self.attention(states))  # type: ignore[no-any-return]


def test_the_innermost_attention_modules_are_found() -> None:
    model = nn.Sequential(Wrapper(), Wrapper())
    assert list(attention_modules(model)) == ["0.attention", "1.attention"]


def test_cross_attention_by_name_or_attribute() -> None:
    layer = SelfAttention()
    assert looks_cross("decoder.0.cross_attn", layer) and looks_cross("a.multihead_attn", layer)
    assert not looks_cross("decoder.0.self_attn", layer)
    layer.is_cross_attention = True  # type: ignore[assignment]
    assert looks_cross("decoder.0.self_attn", layer)


def test_the_running_module_and_what_was_entered() -> None:
    model, entered = nn.Sequential(Wrapper(), Wrapper()), []
    stack = ModuleStack(model, lambda path, args, kwargs: entered.append((path, args[0].shape)))
    attention = model[1].attention
    assert isinstance(attention, SelfAttention)
    attention.stack = stack
    model(torch.zeros(2, 3))
    assert attention.place.path == "1.attention" and attention.place.module is attention
    assert entered == [("", (2, 3))] and stack.forward == 1 and stack.frames == []
    assert stack.ran == {"0.attention", "1.attention"}
    stack.close()
    model(torch.zeros(2, 3))
    assert stack.forward == 1 and not model._forward_hooks


def test_a_module_is_found_by_pythons_own_stack_without_a_hook() -> None:
    class Plain(nn.Module):
        def forward(self, states: Tensor) -> Tensor:
            places.append(stack.place())
            return states

    places: list[Any] = []
    model = nn.Sequential(Plain(), Plain())
    stack = ModuleStack(model, lambda *_: None)
    model(torch.zeros(2, 3))
    assert [place.path for place in places] == ["0", "1"] and not model[0]._forward_hooks
    stack.close()


def test_what_fails_in_a_hook_does_not_reach_the_model() -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("of the observer")

    model = nn.Sequential(Wrapper())
    stack = ModuleStack(model, fail)
    assert model(torch.ones(2, 3)).shape == (2, 3)
    stack.close()


def test_modules_that_run_elsewhere_are_reported() -> None:
    model, elsewhere = nn.Sequential(Wrapper(), Wrapper()), list[str]()
    stack = ModuleStack(model, lambda *_: None, is_here=lambda: False, elsewhere=elsewhere.append)
    model(torch.zeros(2, 3))
    assert elsewhere == ["0.attention", "1.attention"] and stack.forward == 0
    stack.close()


class Odd(nn.Module):
    """Its methods call their module by another name, and nothing but ``forward`` is called."""

    def __init__(self, fused: bool) -> None:
        super().__init__()
        self.fused = fused

    def forward(this, states: Tensor) -> Tensor:  # noqa: N805 - what this is about
        if this.fused:
            return nn.functional.scaled_dot_product_attention(states, states, states)
        return torch.softmax(states @ states.mT, dim=-1) @ states


def test_a_forward_that_is_called_directly_is_seen_or_named() -> None:
    model, states = (
        nn.ModuleDict({"fused": Odd(True), "plain": Odd(False)}),
        torch.randn(2, 3, 5, 7),
    )
    with watch(model) as seen:
        model["fused"].forward(states)
        model["plain"].forward(states)
    assert [layer.path for layer in seen.layers] == ["fused"] and seen.verify().exact
    assert seen.missed == "1 of 2 attention modules watched; `plain` computes attention by itself"


@pytest.mark.filterwarnings("ignore:There is a performance drop")
def test_a_kernel_that_vmap_calls_for_each_sample_is_named() -> None:
    model, states = nn.Sequential(Odd(True)), torch.randn(5, 2, 3, 7, 11)
    plain = torch.vmap(model)(states)
    with watch(model) as seen:
        watched = torch.vmap(model)(states)
    assert torch.equal(plain, watched) and seen.layers == []
    assert seen.missed.endswith("`0` was refused: torch.vmap runs its kernel once for each sample")


def test_every_module_is_listed_as_torch_lists_it() -> None:
    """Shared modules once, at their first place; tables and empty places."""
    shared = nn.Linear(2, 2)
    first, more = nn.Sequential(shared, nn.ReLU()), nn.ModuleList([shared])
    more.append(nn.Sequential(first, nn.TransformerEncoderLayer(4, 2, 8)))
    model = nn.ModuleDict({"a": first, "b": more})
    model.register_module("nothing", None)
    assert modules_of(model) == list(model.named_modules())
    assert modules_of(shared) == [("", shared)]
