"""Directions: a number that is linear in the states, followed back through norms and layers.

A logit is linear in the final states. A norm divides by a number that the run has fixed, so that
with this number the logit is linear in the states before the norm as well. An activation of the
form f(z) = z · g(z), as ReLU, GELU and SiLU are, is linear in the same way once g(z) is known. So
logit = vector · states + constants holds at every place of the residual stream.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
from jaxtyping import Float
from torch import Tensor, nn

from clearhead.layers.normalisation import RMSNorm


@dataclass(frozen=True, eq=False)
class Direction:
    """value = vector · states + Σ constants; the constants come of biases and have names."""

    vector: Float[Tensor, " model"]  # float64
    constants: dict[str, float] = field(default_factory=dict)

    def of(self, states: Float[Tensor, "*rows model"]) -> Float[Tensor, "*rows"]:
        """The part of the value that these states make, without constants."""
        return states.double() @ self.vector

    def before_norm(self, norm: nn.Module, states: Float[Tensor, " model"], name: str) -> Direction:
        """The same value as a reading of the states that enter the norm."""
        weighted = self.vector * _norm_weight(norm)
        if isinstance(norm, nn.LayerNorm):
            deviation = (states.var(correction=0) + norm.eps).sqrt()
            vector = (weighted - weighted.mean()) / deviation
        else:
            assert isinstance(norm, RMSNorm)
            vector = weighted / (states.square().mean() + norm.epsilon).sqrt()
        return self._moved(vector, getattr(norm, "bias", None), name)

    def before_linear(self, linear: nn.Linear, name: str) -> Direction:
        """The same value as a reading of the input of a linear map."""
        return self._moved(self.vector @ linear.weight.detach().double(), linear.bias, name)

    def before_activation(
        self, inputs: Float[Tensor, " model"], outputs: Float[Tensor, " model"]
    ) -> Direction:
        """The same value as a reading of an activation's inputs, its gates f(z) / z fixed."""
        gates = torch.where(inputs == 0, torch.zeros_like(inputs), outputs / inputs)
        return Direction(self.vector * gates, self.constants)

    @staticmethod
    def normed(norm: nn.Module, states: Float[Tensor, " model"]) -> Float[Tensor, " model"]:
        """The states behind a norm, in float64."""
        weight, bias = _norm_weight(norm), getattr(norm, "bias", None)
        if isinstance(norm, nn.LayerNorm):
            scaled = (states - states.mean()) / (states.var(correction=0) + norm.eps).sqrt()
        else:
            assert isinstance(norm, RMSNorm)
            scaled = states / (states.square().mean() + norm.epsilon).sqrt()
        found = scaled * weight
        return found if bias is None else found + bias.detach().double()

    def _moved(self, vector: Tensor, bias: Tensor | None, name: str) -> Direction:
        constants = dict(self.constants)
        if bias is not None:
            constants[name] = float(self.vector @ bias.detach().double())
        return Direction(vector, constants)


def _norm_weight(norm: nn.Module) -> Float[Tensor, " model"]:
    weight: Tensor = norm.weight  # type: ignore[assignment]
    wide = weight.detach().double()
    return 1 + wide if isinstance(norm, RMSNorm) and norm.offset else wide
