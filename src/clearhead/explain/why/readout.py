"""Readout: the logits and probabilities of a few tokens, for many final states at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from clearhead.checkpoints.load import Loaded
from clearhead.explain.why.prediction_run import uncapped_logits
from clearhead.explain.why.target import sampled_logits, softcap_of

LOGITS = 2**24  # at a time, 64 MB; a matrix that is kept as blocks is unpacked once for each time


@dataclass(frozen=True, eq=False)
class Readout:
    """What the output head says about some tokens, in float64."""

    logits: Float[Tensor, "row token"]  # as the model returns them
    uncapped: Float[Tensor, "row token"]  # before the softcap; the same where there is none
    probabilities: Float[Tensor, "row token"]


def read_tokens(loaded: Loaded, states: Float[Tensor, "row model"], ids: Sequence[int]) -> Readout:
    """Apply the model's own output head to final states."""
    size = max(1, LOGITS // loaded.config.vocab)
    starts = range(0, len(states), size)
    parts = [_read(loaded, states[start : start + size], list(ids)) for start in starts]
    return Readout(*(torch.cat(part) for part in zip(*parts, strict=True)))


def _read(
    loaded: Loaded, rows: Float[Tensor, "row model"], ids: list[int]
) -> tuple[Tensor, Tensor, Tensor]:
    # In one block of memory: of rows that lie apart, torch would take one product for each.
    raw = uncapped_logits(loaded, rows.contiguous())
    cap = softcap_of(loaded)
    logits = raw if cap is None else cap * torch.tanh(raw / cap)
    sampled = sampled_logits(loaded, logits)
    chosen = logits[:, ids].double()
    shares = (chosen - sampled.logsumexp(dim=1, keepdim=True).double()).exp()
    shares[:, [id >= sampled.shape[1] for id in ids]] = 0.0
    return chosen, raw[:, ids].double(), shares
