"""The feed-forward layer: each position for itself, wide in the middle."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Literal, TypeAlias, get_args

from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional

from clearhead.errors import ConfigError

Activation: TypeAlias = Literal["relu", "gelu", "gelu_tanh", "silu"]

ACTIVATIONS: dict[Activation, Callable[[Tensor], Tensor]] = {
    "relu": functional.relu,
    "gelu": functional.gelu,
    "gelu_tanh": partial(functional.gelu, approximate="tanh"),
    "silu": functional.silu,
}


class FeedForward(nn.Module):
    """f(x·W_1)·W_2 (Vaswani et al. 2017, section 3.3), or gated, (f(x·W_g) ⊙ x·W_1)·W_2.

    Gated with ``silu`` is SwiGLU, with ``gelu`` GeGLU (Shazeer 2020).
    """

    def __init__(
        self, model: int, hidden: int, activation: Activation, *, gated: bool, bias: bool
    ) -> None:
        super().__init__()
        if activation not in ACTIVATIONS:
            raise ConfigError(
                f"activation must be one of {get_args(Activation)}; got {activation!r}."
            )
        self.activation = ACTIVATIONS[activation]
        self.gate = nn.Linear(model, hidden, bias=bias) if gated else None
        self.up = nn.Linear(model, hidden, bias=bias)
        self.down = nn.Linear(hidden, model, bias=bias)

    def forward(self, states: Float[Tensor, "*batch model"]) -> Float[Tensor, "*batch model"]:
        """Up, activation, down."""
        if self.gate is None:
            hidden = self.activation(self.up(states))
        else:
            hidden = self.activation(self.gate(states)) * self.up(states)
        return self.down(hidden)  # type: ignore[no-any-return]
