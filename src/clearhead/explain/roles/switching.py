"""Switching one head off: its output is replaced just before W_O mixes the heads."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from clearhead.errors import InputError
from clearhead.explain.roles.tally import CountedLayer

# How models call W_O: ours; Llama and kin; BART, OPT; GPT-2; GPT-NeoX, Falcon; T5; DistilBERT.
_NAMES = ("output", "o_proj", "out_proj", "c_proj", "dense", "o", "out_lin", "wo")


def output_projection(model: nn.Module, layer: CountedLayer) -> nn.Module:
    """The module that gets the heads' outputs side by side: W_O."""
    attention = model.get_submodule(layer.path)
    places: list[Any] = [getattr(attention, name, None) for name in _NAMES]
    parent = layer.path.rpartition(".")[0]
    if layer.path.endswith(".self"):  # BERT keeps W_O beside the attention, not inside
        output = getattr(model.get_submodule(parent), "output", None)
        places.append(getattr(output, "dense", None))
    width = layer.heads * layer.value_dim
    for place in places:
        functional = isinstance(attention, nn.MultiheadAttention)
        if isinstance(place, nn.Module) and _takes(place) == width and not functional:
            return place
    raise InputError(
        f"where the heads of {layer.name} ({layer.path}) are put together is not known: no part of "
        f"it takes {width} numbers.",
        hint="roles(…, interventions=0) does without switching heads off.",
    )


def _takes(module: nn.Module) -> int | None:
    if isinstance(module, nn.Linear):
        return module.in_features
    weight = getattr(module, "weight", None)  # GPT-2's Conv1D
    return weight.shape[0] if isinstance(weight, Tensor) and weight.ndim == 2 else None


@contextmanager
def switched_off(
    model: nn.Module, layer: CountedLayer, head: int, instead: Tensor | float = 0.0
) -> Iterator[None]:
    """While it lasts, the head gives ``instead`` at every position: zeros, or its mean output."""
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
    """The mean of what the heads of some layers put out, over real tokens."""

    def __init__(self, model: nn.Module, layers: list[CountedLayer]) -> None:
        self._sums: dict[str, Tensor] = {}
        self._counts: dict[str, int] = {}
        self.real: Tensor | None = None
        self._handles = [
            output_projection(model, layer).register_forward_pre_hook(self._taker(layer.name))
            for layer in layers
        ]

    def _taker(self, name: str) -> Any:
        def take(_module: nn.Module, args: tuple[Tensor, ...]) -> None:
            heads = args[0].detach().flatten(0, -2).double()
            flags = torch.ones(len(heads), dtype=torch.bool) if self.real is None else self.real
            real = torch.zeros(len(heads), dtype=torch.bool, device=heads.device)
            if len(args[0]) >= len(flags):  # rows; behind those of sentences a full one may stand
                real[: flags.numel()] = flags.flatten().to(heads.device)
            else:  # real tokens only, one behind the other
                real[: int(flags.sum())] = True
            total = heads[real].sum(dim=0)
            self._sums[name] = self._sums.get(name, torch.zeros_like(total)) + total
            self._counts[name] = self._counts.get(name, 0) + int(real.sum())

        return take

    def of(self, layer: CountedLayer, head: int) -> Tensor:
        """The mean output of one head."""
        if layer.name not in self._counts:
            raise InputError(
                f"the heads of {layer.name} are put together without calling the module for it.",
                hint="roles(…, interventions=0) does without switching heads off.",
            )
        mean = (self._sums[layer.name] / self._counts[layer.name]).float()
        return mean[head * layer.value_dim : (head + 1) * layer.value_dim]

    def close(self) -> None:
        """Take the hooks away again."""
        for handle in self._handles:
            handle.remove()
