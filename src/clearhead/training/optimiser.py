"""The optimisers of a model: Muon for matrices and AdamW for the rest, or AdamW for everything."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.distributed.tensor import DTensor, distribute_tensor

from clearhead.errors import CheckpointError
from clearhead.training.muon import Muon
from clearhead.training.precision import has_bfloat16
from clearhead.training.settings import TrainingSettings


class Optimiser:
    """One or two optimisers behind one handle; their state has names, like the weights."""

    def __init__(self, model: nn.Module, settings: TrainingSettings) -> None:
        trained = [  # the others are frozen
            (name, parameter)
            for name, parameter in model.named_parameters()
            if parameter.requires_grad
        ]
        self._names: dict[Tensor, str] = {parameter: name for name, parameter in trained}
        self._parts: list[torch.optim.Optimizer] = []
        matrices = [p for name, p in trained if _for_muon(name, p, settings)]
        if matrices:
            muon = Muon(
                matrices,
                learning_rate=settings.matrix_learning_rate,
                momentum=settings.momentum,
                weight_decay=settings.weight_decay,
                dtype=_precision(matrices, settings),
            )
            self._parts.append(muon)
        taken = set(matrices)
        rest = [parameter for _, parameter in trained if parameter not in taken]
        if rest:
            self._parts.append(_adamw(rest, settings))
        for part in self._parts:
            for group in part.param_groups:
                group["peak"] = group["lr"]

    def set_rate(self, factor: float) -> None:
        """Set every learning rate to this share of its peak."""
        for part in self._parts:
            for group in part.param_groups:
                group["lr"] = group["peak"] * factor

    def step(self) -> None:
        """Update every parameter."""
        for part in self._parts:
            part.step()

    def clear(self) -> None:
        """Clear the gradients."""
        for part in self._parts:
            part.zero_grad(set_to_none=True)

    def state(self) -> dict[str, Tensor]:
        """The state of the optimisers: ``parameter name/what`` → whole tensor."""
        return {
            f"{self._names[parameter]}/{what}": whole(value)
            for part in self._parts
            for parameter, held in part.state.items()
            for what, value in held.items()
        }

    def restore(self, state: dict[str, Tensor], *, begun: bool = True) -> None:
        """Restore a state that :meth:`state` returned; before the first step there is none.

        Raises:
            CheckpointError: the state is not that of this model's parameters.
        """
        wanted = self._names_of_state() if begun else {}
        known = {key for keys in wanted.values() for key in keys}
        halves = [key for keys in wanted.values() if set(keys) & set(state) for key in keys]
        odd = sorted((set(state) - known) | (set(halves) - set(state)))
        if odd:
            raise CheckpointError(
                f"the optimiser state in the checkpoint is not this model's: {len(odd)} entries "
                f"are missing or unknown, such as {odd[0][:80]!r}."
            )
        for (part, parameter), keys in wanted.items():
            for key in keys:
                if key in state:
                    what = key.rpartition("/")[2]
                    _check_state(key, state[key], () if what == "step" else parameter.shape)
                    part.state[parameter][what] = like(state[key], parameter, what)

    def _names_of_state(self) -> dict[tuple[torch.optim.Optimizer, nn.Parameter], list[str]]:
        """For each parameter the names of its state; one that never had a gradient has none."""
        return {
            (part, parameter): [f"{self._names[parameter]}/{what}" for what in STATE[type(part)]]
            for part in self._parts
            for group in part.param_groups
            for parameter in group["params"]
        }


STATE: dict[type, tuple[str, ...]] = {
    Muon: ("momentum",),
    torch.optim.AdamW: ("step", "exp_avg", "exp_avg_sq"),
}


def _check_state(key: str, value: Tensor, shape: Sequence[int]) -> None:
    if tuple(value.shape) != tuple(shape) or not value.is_floating_point():
        raise CheckpointError(
            f"the optimiser state {key[:80]!r} in the checkpoint has the shape "
            f"{tuple(value.shape)} and the dtype {value.dtype}; wanted numbers of the shape "
            f"{tuple(shape)}."
        )


def whole(value: Tensor) -> Tensor:
    """A tensor that several processes may share, in one piece and without a gradient."""
    value = value.detach()
    return value.full_tensor() if isinstance(value, DTensor) else value


def like(value: Tensor, parameter: Tensor, what: str) -> Tensor:
    """A restored tensor, placed as its parameter is; counts of steps stay where they are."""
    if what == "step":
        return value.clone()
    if isinstance(parameter, DTensor):
        return distribute_tensor(
            value.to(parameter.device), parameter.device_mesh, parameter.placements
        )
    return value.to(parameter.device, copy=True)


def _for_muon(name: str, parameter: nn.Parameter, settings: TrainingSettings) -> bool:
    """Matrices between states; embeddings and the output are tables of vectors, not maps."""
    return settings.optimiser == "muon" and parameter.ndim == 2 and "blocks." in name


def _precision(matrices: list[nn.Parameter], settings: TrainingSettings) -> torch.dtype:
    """The dtype that Muon computes in: bfloat16 where there is such, at every width.

    Its matrices are multiplied with each other only, so there is little to convert.
    """
    halves = settings.precision != "float32" and has_bfloat16(matrices[0].device)
    return torch.bfloat16 if halves else torch.float32


def _adamw(parameters: list[nn.Parameter], settings: TrainingSettings) -> torch.optim.Optimizer:
    decayed = [parameter for parameter in parameters if parameter.ndim >= 2]
    plain = [parameter for parameter in parameters if parameter.ndim < 2]
    groups = [
        {"params": decayed, "weight_decay": settings.weight_decay},
        {"params": plain, "weight_decay": 0.0},
    ]
    return torch.optim.AdamW(
        [group for group in groups if group["params"]],
        lr=settings.learning_rate,
        betas=(settings.beta_1, settings.beta_2),
        fused=not any(isinstance(parameter, DTensor) for parameter in parameters),
    )
