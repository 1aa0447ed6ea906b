"""Chunked cross-entropy: logits are computed for a few tokens at a time.

The logits of n tokens are n × vocab numbers, often more than all the rest of a step. They are
computed for a chunk of tokens at a time, together with their gradient, and then discarded.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.func import functional_call
from torch.nn import functional

from clearhead.checkpoints.gguf.quantised import QuantisedTensor
from clearhead.models.heads import LanguageHead, MaskedHead
from clearhead.training.data.batches.batch import IGNORED

LOGITS_AT_ONCE = 1 << 22  # 16 MB in float32
TokenHead: TypeAlias = LanguageHead | MaskedHead


def cross_entropy(
    head: TokenHead,
    embedding: Float[Tensor, "vocab model"],
    states: Float[Tensor, "row token model"],
    targets: Int[Tensor, "row token"],
    *,
    smoothing: float = 0.0,
    at_once: int = LOGITS_AT_ONCE,
) -> Float[Tensor, ""]:
    """−Σ log p(target), over the targets that are not IGNORED.

    With ``smoothing`` ε a target's share is 1 − ε, and ε is shared by the whole vocabulary
    (Szegedy et al. 2016).
    """
    counted = targets != IGNORED
    states, targets = states[counted], targets[counted]
    chunk = max(1, at_once // embedding.shape[0])
    if len(targets) <= chunk:
        return _loss(head(states[None], embedding)[0], targets, smoothing)
    weights = dict(head.named_parameters())
    loss: Tensor = _ChunkedLoss.apply(
        states, targets, embedding, head, smoothing, chunk, *weights.values()
    )  # type: ignore[no-untyped-call]
    return loss


def _loss(logits: Tensor, targets: Tensor, smoothing: float) -> Tensor:
    return functional.cross_entropy(
        logits.float(), targets, reduction="sum", label_smoothing=smoothing
    )


def _plain(tensor: Tensor) -> Tensor:
    """Without a gradient; the blocks of a file are unpacked once, not for each chunk."""
    return tensor.floats() if isinstance(tensor, QuantisedTensor) else tensor.detach()


class _ChunkedLoss(torch.autograd.Function):
    """The gradient is computed in the forward pass, chunk by chunk: no logits are kept for it."""

    @staticmethod
    def forward(
        ctx: Any,
        states: Tensor,
        targets: Tensor,
        embedding: Tensor,
        head: TokenHead,
        smoothing: float,
        chunk: int,
        *weights: Tensor,
    ) -> Tensor:
        wants = any(ctx.needs_input_grad)
        names = [name for name, _ in head.named_parameters()]
        wanted = [ctx.needs_input_grad[2], *ctx.needs_input_grad[6:]]  # not of frozen ones
        pairs = zip((embedding, *weights), wanted, strict=True)
        leaves = [_plain(tensor).requires_grad_(wish) for tensor, wish in pairs]
        learned = [leaf for leaf in leaves if leaf.requires_grad]
        totals = [torch.zeros_like(leaf) for leaf in learned]
        to_states = torch.zeros_like(states) if wants else None
        loss = states.new_zeros((), dtype=torch.float32)
        for at in range(0, len(targets), chunk):
            part = states[at : at + chunk].detach().requires_grad_(wants)
            with torch.set_grad_enabled(wants):
                given = dict(zip(names, leaves[1:], strict=True))
                logits = functional_call(head, given, (part[None], leaves[0]))[0]
                one = _loss(logits, targets[at : at + chunk], smoothing)
            loss += one.detach()
            if to_states is not None:
                found = torch.autograd.grad(one, [part, *learned], allow_unused=True)
                to_states[at : at + chunk] = found[0]
                for total, gradient in zip(totals, found[1:], strict=True):
                    if gradient is not None:
                        total += gradient
        ctx.gradients, ctx.wanted = (to_states, totals), wanted
        return loss

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        to_states, totals = ctx.gradients[0], iter(ctx.gradients[1])
        scaled = [next(totals) * gradients[0] if wish else None for wish in ctx.wanted]
        first = None if to_states is None else to_states * gradients[0]
        return first, None, scaled[0], None, None, None, *scaled[1:]
