"""Refuse logits that are NaN or infinite, and choices that leave no token."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor

from clearhead.errors import InputError, NotFiniteError


def refuse_unsound(logits: Float[Tensor, "batch vocab"]) -> None:
    """Raise an error if a row of the model's own logits is NaN or infinite.

    One NaN makes the largest number of its row NaN, so that one pass finds all of them.
    """
    finite = logits.amax(-1).isfinite()
    if bool(finite.all()):
        return
    rows = (~finite).nonzero().flatten().tolist()
    which = "" if len(finite) == 1 else f" (rows {', '.join(map(str, rows))} of the batch)"
    raise unsound(which)


def unsound(which: str = "") -> NotFiniteError:
    """The error for a model whose numbers are not finite, wherever that was found."""
    return NotFiniteError(
        f"no token can be sampled: the model's logits are NaN or infinite{which}.",
        hint="check the weights for NaN. Half precision overflows in some models: engine=False "
        "(--no-engine) with dtype=torch.float32 has none.",
    )


def refuse_no_choice(logits: Float[Tensor, "batch vocab"]) -> None:
    """Raise an error if penalties and rules leave a row without a token, or with infinite logits.

    ``logits`` were sound before.
    """
    highest = logits.amax(-1)
    if bool(highest.isfinite().all()):
        return
    if bool((highest == -torch.inf).any()):
        raise InputError(
            "no token can be sampled: the settings forbid every token.",
            hint="look at logit_bias, no_repeat_ngram_size, and the settings of the model's files "
            "(loaded.generation).",
        )
    raise NotFiniteError(
        "no token can be sampled: penalties or logit_bias make logits infinite.",
        hint="give smaller numbers; logit_bias of 100 already decides.",
    )
