"""W_O of any torch model: the module that takes the outputs of all heads, side by side."""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn

from clearhead.errors import InputError

# The names of W_O: ours; Llama and kin; BART, OPT; GPT-2; GPT-NeoX, Falcon; T5; DistilBERT.
_NAMES = ("output", "o_proj", "out_proj", "c_proj", "dense", "o", "out_lin", "wo")


def output_projection(model: nn.Module, path: str, width: int, name: str) -> nn.Module:
    """Return W_O of the attention layer at a path, whose heads are ``width`` numbers together."""
    attention = model.get_submodule(path)
    places: list[Any] = [getattr(attention, one, None) for one in _NAMES]
    if path.endswith(".self"):  # BERT keeps W_O beside the attention, not inside
        output = getattr(model.get_submodule(path.rpartition(".")[0]), "output", None)
        places.append(getattr(output, "dense", None))
    functional = isinstance(attention, nn.MultiheadAttention)
    for place in places:
        if isinstance(place, nn.Module) and _input_width(place) == width and not functional:
            return place
    raise InputError(
        f"where the heads of {name} ({path}) are put together is not known: no part of it takes "
        f"{width} numbers.",
        hint="roles(…, interventions=0) works without ablations.",
    )


def _input_width(module: nn.Module) -> int | None:
    if isinstance(module, nn.Linear):
        return module.in_features
    weight = getattr(module, "weight", None)  # GPT-2's Conv1D
    return weight.shape[0] if isinstance(weight, Tensor) and weight.ndim == 2 else None
