"""The outputs of a layer's heads, Z_0 … Z_{T−1}, and through W_O the final Z.

    Z = concatenate(Z_0 … Z_{T−1}) · W_O + b = Σ_t Z_t · W_O[t] + b

So each head adds one vector. Its share is the length of that vector, divided by the sum of all.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from jaxtyping import Float
from torch import Tensor, nn

from clearhead.trace.head_view import HeadView

Vector = tuple[float, ...]
NAMES = ("output", "o_proj", "out_proj", "wo", "o", "c_proj", "dense", "out_lin", "proj")


@dataclass(frozen=True)
class HeadOutput:
    """The output of one head at one query."""

    head: str
    output: Vector  # Z_t = Σ softmax·v
    added: Vector  # Z_t · W_O[t], its part of Z; empty if W_O is not known
    share: float  # of the lengths of all heads' vectors: added ones, or outputs without W_O


@dataclass(frozen=True)
class HeadOutputs:
    """All heads of a layer at one query."""

    heads: tuple[HeadOutput, ...]
    result: Vector  # Z; empty if W_O is not known
    bias: bool  # True if a bias is added to Z

    @property
    def projected(self) -> bool:
        """True if W_O is known."""
        return bool(self.result)


def head_outputs(view: HeadView, row: int, model: nn.Module | None) -> HeadOutputs | None:
    """Return every head of the view's layer at one row; None if values were not kept."""
    record = view.record
    if record.value is None:
        return None
    outputs = view.output(row, limit=None).double().cpu()  # (head, value_dim)
    whole = len(view.heads) == record.facts.heads
    linear = _output_matrix(model, record.facts.path, outputs.numel()) if whole else None
    if linear is None:
        return HeadOutputs(_shares(view, outputs, None), (), False)
    matrix, bias = linear
    parts = matrix.view(len(outputs), outputs.shape[1], -1)  # (head, value_dim, model)
    added = (outputs[:, None] @ parts)[:, 0]  # (head, model)
    result = added.sum(dim=0) if bias is None else added.sum(dim=0) + bias
    return HeadOutputs(_shares(view, outputs, added), tuple(result.tolist()), bias is not None)


def _shares(
    view: HeadView,
    outputs: Float[Tensor, "head value_dim"],
    added: Float[Tensor, "head model"] | None,
) -> tuple[HeadOutput, ...]:
    lengths = (outputs if added is None else added).norm(dim=1)
    shares = (lengths / lengths.sum().clamp(min=1e-30)).tolist()
    return tuple(
        HeadOutput(
            head=f"{view.record.facts.name}H{number}",
            output=tuple(outputs[place].tolist()),
            added=() if added is None else tuple(added[place].tolist()),
            share=shares[place],
        )
        for place, number in enumerate(view.heads)
    )


def _output_matrix(
    model: nn.Module | None, path: str, width: int
) -> tuple[Float[Tensor, "heads_width model"], Float[Tensor, " model"] | None] | None:
    """W_O as the textbook multiplies it (states · W) and its bias, from the layer's module."""
    for module in _candidates(model, path):
        weight = getattr(module, "weight", None)
        if not isinstance(weight, Tensor) or weight.ndim != 2:
            continue
        matrix = weight if type(module).__name__ == "Conv1D" else weight.T
        if matrix.shape[0] == width:
            bias = getattr(module, "bias", None)
            return (
                matrix.detach().double().cpu(),
                None if bias is None else bias.detach().double().cpu(),
            )
    return None


def _candidates(model: nn.Module | None, path: str) -> Iterator[nn.Module]:
    """Modules that bear a usual name of W_O: in the attention module, then beside it (BERT)."""
    if model is None:
        return
    modules = dict(model.named_modules())
    for place in (path, path.rpartition(".")[0]):
        for name in NAMES:
            found = modules.get(f"{place}.{name}" if place else name)
            if isinstance(found, nn.Module):
                yield getattr(found, "dense", found)
