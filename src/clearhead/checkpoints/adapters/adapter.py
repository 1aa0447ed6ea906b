"""An adapter: for some matrices W of a model two narrow ones; W + scale·B·A is the adapted one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor, nn

from clearhead.checkpoints.adapters.base import Base
from clearhead.checkpoints.gguf.quantised import QuantisedTensor
from clearhead.errors import CheckpointError
from clearhead.models.build import Model


@dataclass(frozen=True)
class LowRank:
    """What is added to one matrix: scale · B · A."""

    a: Float[Tensor, "rank in"]
    b: Float[Tensor, "out rank"]
    scale: float

    @property
    def difference(self) -> Float[Tensor, "out in"]:
        """scale · B · A, in float32."""
        return self.scale * (self.b.float() @ self.a.float())


@dataclass(frozen=True)
class Adapter:
    """An adapter of a model: matrices by the names of the parameters that they are added to."""

    matrices: Mapping[str, LowRank]
    base: Base
    dropout: float = 0.0


@torch.no_grad()
def add_adapter(model: Model, adapter: Adapter) -> None:
    """Add an adapter to the weights of a model, in place; they keep their dtype and device.

    A matrix that is the blocks of a file becomes float32.

    Raises:
        CheckpointError: the model has no such matrix, or one of another shape.
    """
    parameters = dict(model.named_parameters())
    for name, low_rank in adapter.matrices.items():
        weight, added = parameters.get(name), low_rank.difference
        if weight is None or weight.shape != added.shape:
            shape = "none" if weight is None else f"one of shape {tuple(weight.shape)}"
            raise CheckpointError(
                f"the adapter has a matrix of shape {tuple(added.shape)} for {name}, and the model "
                f"has {shape}.",
                hint="is it the model that the adapter was trained on?",
            )
        whole = weight.floats() if isinstance(weight, QuantisedTensor) else weight.detach()
        summed = (whole.float() + added.to(whole.device)).to(weight.dtype)
        owner, _, last = name.rpartition(".")
        setattr(model.get_submodule(owner), last, nn.Parameter(summed, weight.requires_grad))
