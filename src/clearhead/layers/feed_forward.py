"""The feed-forward layer: two linear maps around a wide hidden layer, each position by itself."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Literal, TypeAlias, get_args

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional

from clearhead.errors import ConfigError
from clearhead.layers.dropout import drop
from clearhead.layers.linear import Linear

Activation: TypeAlias = Literal["relu", "gelu", "gelu_tanh", "silu"]

ACTIVATIONS: dict[Activation, Callable[[Tensor], Tensor]] = {
    "relu": functional.relu,
    "gelu": functional.gelu,
    "gelu_tanh": partial(functional.gelu, approximate="tanh"),
    "silu": functional.silu,
}


class FeedForward(nn.Module):
    """f(x·W_1)·W_2 (Vaswani et al. 2017, section 3.3), or gated, (f(x·W_g) ⊙ x·W_1)·W_2.

    Gated with ``silu`` is SwiGLU, with ``gelu`` GeGLU (Shazeer 2020). ``dropout`` is that of the
    hidden layer.
    """

    def __init__(
        self,
        model: int,
        hidden: int,
        activation: Activation,
        *,
        gated: bool,
        bias: bool,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        if activation not in ACTIVATIONS:
            raise ConfigError(
                f"activation must be one of {get_args(Activation)}; got {activation!r}."
            )
        self.activation, self.dropout = ACTIVATIONS[activation], dropout
        self.gate = Linear(model, hidden, bias=bias) if gated else None
        self.up = Linear(model, hidden, bias=bias)
        self.down = Linear(hidden, model, bias=bias)

    def forward(self, states: Float[Tensor, "*batch model"]) -> Float[Tensor, "*batch model"]:
        """Up, activation, dropout, down."""
        if self.gate is None:
            hidden = self.activation(self.up(states))
        else:
            hidden = _times(self.activation(self.gate(states)), self.up(states))
        return self.down(drop(hidden, self.dropout, self.training))  # type: ignore[no-any-return]


def _times(first: Tensor, second: Tensor) -> Tensor:
    """first ⊙ second; written over the first where no gradient needs it, which saves the system
    from clearing new memory: at 512 tokens that took most of the layer's time outside products."""
    return first * second if torch.is_grad_enabled() else first.mul_(second)
