from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from clearhead.trace.watching.code_names import may_attend, names_in_code

fused = functional.scaled_dot_product_attention


def helper(states: Tensor) -> Tensor:
    return fused(states, states, states)


class Alias(nn.Module):
    def forward(self, states: Tensor) -> Tensor:
        return helper(states)


class Method(nn.Module):
    def forward(self, states: Tensor) -> Tensor:
        return self.mix(states)

    def mix(self, states: Tensor) -> Tensor:
        return torch.softmax(states, dim=-1)

    def generate(self) -> None:
        """Not called by forward."""


class Sampler(nn.Module):
    def forward(self, states: Tensor) -> Tensor:
        return states + 1

    def sample(self, logits: Tensor) -> Tensor:
        return logits.softmax(-1)


def test_aliases_helpers_and_methods_are_followed() -> None:
    assert may_attend(names_in_code(Alias)) and "scaled_dot_product_attention" in names_in_code(
        Alias
    )
    assert may_attend(names_in_code(Method))


def test_methods_that_forward_does_not_call_do_not_count() -> None:
    assert not may_attend(names_in_code(Sampler))
