"""From the tensors of a file to the parameters of a model, and back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

import torch
from torch import Tensor

from clearhead.errors import CheckpointError, WeightNamesError
from clearhead.models.build import Model, build
from clearhead.models.config import ModelConfig
from clearhead.models.families.family import Family, Source


class WeightFile(Protocol):
    """What every reader offers."""

    def names(self) -> list[str]:
        """Every tensor's name."""

    def tensor(self, name: str) -> Tensor:
        """One tensor."""


def model_from_weights(
    config: ModelConfig, family: Family, file: WeightFile, *, where: str, dtype: torch.dtype
) -> Model:
    """Build the model and put the file's tensors into it; every name must have its place."""
    with torch.device("meta"):  # shapes only: no memory, no random numbers
        model = build(config)
    sources = family.sources(config)
    found = _find(sources, family, file.names(), where)
    state = {}
    for ours, shape in _shapes(model).items():
        tensor = sources[ours].take(file.tensor(found[ours])).to(dtype).contiguous()
        if tensor.shape != shape:
            raise CheckpointError(
                f"{where}: {found[ours]} gives {tuple(tensor.shape)}; wanted was {tuple(shape)}.",
                hint="is config.json the one of these weights?",
            )
        state[ours] = tensor
    model.load_state_dict(state, strict=False, assign=True)
    return model.eval().requires_grad_(False)


def weights_of(model: Model, family: Family) -> dict[str, Tensor]:
    """The model's tensors under the family's names, as a checkpoint of that family holds them."""
    parts: dict[str, list[tuple[Source, Tensor]]] = {}
    parameters = dict(model.named_parameters())
    for ours, source in family.sources(model.config).items():
        parts.setdefault(source.name, []).append((source, parameters[ours].detach()))
    return {
        name: held[0][0].give([tensor for _, tensor in sorted(held, key=lambda pair: pair[0].part)])
        for name, held in parts.items()
    }


def _shapes(model: Model) -> dict[str, torch.Size]:
    return {name: parameter.shape for name, parameter in model.named_parameters()}


def _find(
    sources: Mapping[str, Source], family: Family, there: list[str], where: str
) -> dict[str, str]:
    """The name in the file of each of ours; checkpoints of the bare model leave the prefix out."""
    present, found = set(there), {}
    missing: dict[str, None] = {}
    for ours, source in sources.items():
        bare = source.name.removeprefix(family.prefix)
        name = source.name if source.name in present else bare
        if name in present:
            found[ours] = name
        else:
            missing[source.name] = None
    used = set(found.values())
    unexpected = [
        name for name in there if name not in used and not name.endswith(family.ignored or ("\0",))
    ]
    if missing or unexpected:
        raise WeightNamesError(list(missing), unexpected, where=where)
    return found
