"""Ablation of one head: its output is replaced just before W_O mixes the heads."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from clearhead.errors import InputError
from clearhead.explain.roles.counts.tally import CountedLayer

# The names of W_O: ours; Llama and kin; BART, OPT; GPT-2; GPT-NeoX, Falcon; T5; DistilBERT.
_NAMES = ("output", "o_proj", "out_proj", "c_proj", "dense", "o", "out_lin", "wo")


def output_projection(model: nn.Module, layer: CountedLayer) -> nn.Module:
    """Return W_O: the module that takes the concatenated outputs of the heads."""
    attention = model.get_submodule(layer.path)
    places: list[Any] = [getattr(attention, name, None) for name in _NAMES]
    parent = layer.path.rpartition(".")[0]
    if layer.path.endswith(".self"):  # BERT keeps W_O beside the attention, not inside
        output = getattr(model.get_submodule(parent), "output", None)
        places.append(getattr(output, "dense", None))
    width = layer.heads * layer.value_dim
    for place in places:
        functional = isinstance(attention, nn.MultiheadAttention)
        if isinstance(place, nn.Module) and _input_width(place) == width and not functional:
            return place
    raise InputError(
        f"where the heads of {layer.name} ({layer.path}) are put together is not known: no part of "
        f"it takes {width} numbers.",
        hint="roles(…, interventions=0) works without ablations.",
    )


def _input_width(module: nn.Module) -> int | None:
    if isinstance(module, nn.Linear):
        return module.in_features
    weight = getattr(module, "weight", None)  # GPT-2's Conv1D
    return weight.shape[0] if isinstance(weight, Tensor) and weight.ndim == 2 else None


@contextmanager
def ablated(
    model: nn.Module, layer: CountedLayer, head: int, instead: Tensor | float = 0.0
) -> Iterator[None]:
    """Replace the head's output by ``instead`` at every position: zeros, or its mean output."""
    columns = slice(head * layer.value_dim, (head + 1) * layer.value_dim)

    def replace(_module: nn.Module, args: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        heads = args[0].clone()
        heads[..., columns] = instead
        return (heads, *args[1:])

    handle = output_projection(model, layer).register_forward_pre_hook(replace)
    try:
        yield
    finally:
        handle.remove()


class MeanOutputs:
    """The mean outputs of the heads of some layers, over real tokens."""

    def __init__(self, model: nn.Module, layers: list[CountedLayer]) -> None:
        self._sums: dict[str, Tensor] = {}
        self._counts: dict[str, int] = {}
        self.real: Tensor | None = None
        self._handles = [
            output_projection(model, layer).register_forward_pre_hook(self._hook(layer.name))
            for layer in layers
        ]

    def _hook(self, name: str) -> Any:
        def add_outputs(_module: nn.Module, args: tuple[Tensor, ...]) -> None:
            heads = args[0].detach().flatten(0, -2).double()
            flags = torch.ones(len(heads), dtype=torch.bool) if self.real is None else self.real
            real = torch.zeros(len(heads), dtype=torch.bool, device=heads.device)
            if len(args[0]) >= len(flags):  # rows; after those of sentences there may be added ones
                real[: flags.numel()] = flags.flatten().to(heads.device)
            else:  # packed: real tokens only
                real[: int(flags.sum())] = True
            total = heads[real].sum(dim=0)
            self._sums[name] = self._sums.get(name, torch.zeros_like(total)) + total
            self._counts[name] = self._counts.get(name, 0) + int(real.sum())

        return add_outputs

    def of(self, layer: CountedLayer, head: int) -> Tensor:
        """Return the mean output of one head."""
        if layer.name not in self._counts:
            raise InputError(
                f"the heads of {layer.name} are put together without calling the module for it.",
                hint="roles(…, interventions=0) works without ablations.",
            )
        mean = (self._sums[layer.name] / self._counts[layer.name]).float()
        return mean[head * layer.value_dim : (head + 1) * layer.value_dim]

    def close(self) -> None:
        """Remove the hooks."""
        for handle in self._handles:
            handle.remove()
