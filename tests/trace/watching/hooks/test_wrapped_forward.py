from __future__ import annotations

import copy
from typing import Any

import torch
from torch import nn

from clearhead.trace.watching.hooks.wrapped_forward import WrappedForward


def test_a_wrapped_module_runs_as_it_is_and_is_left_as_it_was() -> None:
    said: list[str] = []
    module, states = nn.Linear(3, 5), torch.ones(2, 3)
    plain = module(states)
    wrapped = WrappedForward(module, lambda *_: said.append("in"), lambda *_: said.append("out"))
    assert torch.equal(module(states), plain) and said == ["in", "out"]
    assert torch.equal(copy.deepcopy(module)(states), plain) and said == ["in", "out"]
    wrapped.remove()
    assert "forward" not in module.__dict__


def test_a_forward_that_somebody_else_put_there_comes_back() -> None:
    module = nn.Identity()

    def mine(states: Any) -> Any:
        return states * 2

    module.__dict__["forward"] = mine
    wrapped = WrappedForward(module, lambda *_: None, lambda *_: None)
    assert module(torch.ones(1)) == 2
    wrapped.remove()
    assert module.__dict__["forward"] is mine
