"""A linear map that takes the quicker of torch's two matrix products on a CPU.

torch multiplies float32 matrices with MKL, which holds back on processors that are not Intel's.
oneDNN, the other library inside torch, does not: for 512 rows of width 576 to 1,536 it took 4.6 ms
instead of 5.7, for 128 rows of 384 to 1,536 0.86 instead of 1.39 (AMD, 2 cores).
"""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor, nn

from clearhead.kernels.plain_tensors import is_transformed

FEWEST_ROWS = 32  # below, there is little to win, and each new number of rows is prepared first


class Linear(nn.Linear):
    """states · Wᵀ + b, as ``nn.Linear``; without a gradient on a CPU by oneDNN."""

    def forward(self, input: Float[Tensor, "*batch in"]) -> Float[Tensor, "*batch out"]:
        """The product, in the quicker way."""
        if not _by_onednn(input, self.weight):
            return super().forward(input)
        result: Tensor = torch.ops.mkldnn._linear_pointwise(
            input, self.weight, self.bias, "none", [], ""
        )
        return result


def _by_onednn(states: Tensor, weight: Tensor) -> bool:
    return (
        not torch.is_grad_enabled()
        and type(states) is Tensor
        and states.dtype is weight.dtype is torch.float32
        and states.is_cpu
        and weight.is_cpu
        and states.ndim >= 2
        and states.numel() >= FEWEST_ROWS * states.shape[-1] > 0
        and not torch.is_autocast_enabled("cpu")
        and not is_transformed()
        and not torch.compiler.is_compiling()
        and torch.backends.mkldnn.is_available()  # type: ignore[no-untyped-call]
    )
