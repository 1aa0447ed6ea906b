"""The optimiser Muon (Jordan et al. 2024): orthogonalised momentum for matrices.

A gradient's momentum M = U·S·Vᵀ becomes about U·Vᵀ, by a few steps of Newton and Schulz's
iteration, which needs products of matrices only. Matrices of one shape are computed
together. The iteration is stable enough for bfloat16 (Jordan et al.), if the model uses it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.distributed.tensor import DTensor, distribute_tensor

# Singular values come to about 0.7 … 1.2 in five steps, which is near enough to 1 (Jordan et al.).
QUINTIC = (3.4445, -4.7750, 2.0315)
ROUNDS = 5


class Muon(torch.optim.Optimizer):
    """W ← W·(1 − rate·decay) − rate·√max(1, rows/columns)·orthogonal(momentum, Nesterov's)."""

    def __init__(
        self,
        parameters: Iterable[nn.Parameter],
        *,
        learning_rate: float,
        momentum: float = 0.95,
        weight_decay: float = 0.0,
        dtype: torch.dtype = torch.float32,
    ) -> None:
        defaults = {"lr": learning_rate, "momentum": momentum, "weight_decay": weight_decay}
        super().__init__(parameters, defaults)
        self._dtype = dtype

    @torch.no_grad()
    def step(self, closure: Any = None) -> None:  # type: ignore[override]
        """Update every matrix that has a gradient."""
        assert closure is None, "the loss is not computed anew"
        for group in self.param_groups:
            alike: dict[tuple[int, ...], list[nn.Parameter]] = defaultdict(list)
            for parameter in group["params"]:
                if parameter.grad is not None:
                    alike[tuple(parameter.shape)].append(parameter)
            for matrices in alike.values():
                self._move(matrices, group)

    def _move(self, matrices: list[nn.Parameter], group: dict[str, Any]) -> None:
        momenta = torch.stack([self._momentum(m, group) for m in matrices])
        directions = orthogonal(momenta.to(self._dtype)).to(momenta.dtype)
        rate = group["lr"] * max(1.0, matrices[0].shape[0] / matrices[0].shape[1]) ** 0.5
        for parameter, direction in zip(matrices, directions, strict=True):
            if isinstance(parameter, DTensor):
                direction = distribute_tensor(
                    direction, parameter.device_mesh, parameter.placements
                )
            parameter.mul_(1 - group["lr"] * group["weight_decay"]).add_(direction, alpha=-rate)

    def _momentum(self, parameter: nn.Parameter, group: dict[str, Any]) -> Tensor:
        """The whole matrix's momentum, looking one step ahead."""
        gradient, state = parameter.grad, self.state[parameter]
        assert gradient is not None
        if "momentum" not in state:
            state["momentum"] = torch.zeros_like(gradient)
        held: Tensor = state["momentum"]
        held.lerp_(gradient, 1 - group["momentum"])
        ahead = gradient.lerp(held, group["momentum"])
        return ahead.full_tensor() if isinstance(ahead, DTensor) else ahead


def orthogonal(
    matrices: Float[Tensor, "matrix row column"], rounds: int = ROUNDS
) -> Float[Tensor, "matrix row column"]:
    """About U·Vᵀ of each U·S·Vᵀ."""
    tall = matrices.shape[1] > matrices.shape[2]
    x = matrices.mT if tall else matrices
    x = x / (x.norm(dim=(1, 2), keepdim=True) + 1e-7)
    a, b, c = QUINTIC
    for _ in range(rounds):
        square = x @ x.mT
        x = torch.baddbmm(x, torch.baddbmm(square, square, square, beta=b, alpha=c), x, beta=a)
    return x.mT if tall else x
