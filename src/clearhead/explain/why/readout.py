"""Readout: the logits and probabilities of a few tokens, for many final states at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from clearhead.checkpoints.load import Loaded
from clearhead.explain.why.prediction_run import token_embedding

ROWS = 128  # at a time: the logits of a whole vocabulary are large


@dataclass(frozen=True, eq=False)
class Readout:
    """What the output head says about some tokens, in float64."""

    logits: Float[Tensor, "row token"]
    probabilities: Float[Tensor, "row token"]


def read_tokens(loaded: Loaded, states: Float[Tensor, "row model"], ids: Sequence[int]) -> Readout:
    """Apply the model's own output head to final states."""
    starts = range(0, len(states), ROWS)
    parts = [_read(loaded, states[start : start + ROWS], list(ids)) for start in starts]
    return Readout(*(torch.cat(part) for part in zip(*parts, strict=True)))


def _read(
    loaded: Loaded, rows: Float[Tensor, "row model"], ids: list[int]
) -> tuple[Tensor, Tensor]:
    head = loaded.model.head
    assert head is not None
    # In one block of memory: of rows that lie apart, torch would take one product for each.
    logits = head(rows.contiguous()[None], token_embedding(loaded))[0]
    whole = logits.logsumexp(dim=1, keepdim=True).double()
    chosen = logits[:, ids].double()
    return chosen, (chosen - whole).exp()
