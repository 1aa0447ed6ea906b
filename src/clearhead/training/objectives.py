"""Training objectives: predict the next token of a text, or of the target of a source."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from clearhead.attention import masks
from clearhead.attention.alibi import alibi_bias, alibi_slopes
from clearhead.layers.block import Block
from clearhead.models.decoder import Decoder
from clearhead.models.encoder_decoder import EncoderDecoder
from clearhead.models.stack import Stack
from clearhead.training.data.batch import Batch, PackedBatch, PairBatch
from clearhead.training.loss import cross_entropy


class Objective(nn.Module, ABC):
    """A batch in, the sum of its tokens' losses out.

    It is a module, so that DDP and FSDP, which wrap modules, see the whole computation of a step.
    """

    model: Decoder | EncoderDecoder

    @abstractmethod
    def states(self, batch: Batch) -> Tensor:
        """The hidden states that the output head turns into logits."""

    @property
    @abstractmethod
    def embedding(self) -> Tensor:
        """The token embedding, which may serve as the head's matrix."""

    def forward(self, batch: Batch, smoothing: float = 0.0) -> Tensor:
        """−Σ log p(target | what comes before it)."""
        return cross_entropy(
            self.model.head, self.embedding, self.states(batch), batch.targets, smoothing=smoothing
        )


class NextToken(Objective):
    """−Σ log p(token | the tokens of its document before it)."""

    def __init__(self, model: Decoder) -> None:
        super().__init__()
        self.model: Decoder = model

    @property
    def embedding(self) -> Tensor:
        """The token embedding."""
        return self.model.stack.embedding.tokens.weight

    def states(self, batch: Batch) -> Tensor:
        """The decoder's states; documents of one row do not see each other."""
        assert isinstance(batch, PackedBatch)
        if batch.documents is None or batch.positions is None:
            return self.model.stack(batch.ids)  # type: ignore[no-any-return]
        return packed_states(self.model.stack, batch.ids, batch.documents, batch.positions)


class TargetGivenSource(Objective):
    """−Σ log p(target token | the source, and the target before it)."""

    def __init__(self, model: EncoderDecoder) -> None:
        super().__init__()
        self.model: EncoderDecoder = model

    @property
    def embedding(self) -> Tensor:
        """The token embedding."""
        return self.model.decoder.embedding.tokens.weight

    def states(self, batch: Batch) -> Tensor:
        """The decoder's states. Padding attends to its target; no token attends to padding."""
        assert isinstance(batch, PairBatch)
        places = torch.arange(batch.source.shape[1], device=batch.source.device)
        real = places < batch.source_counts[:, None]
        source, counts = self.model.encode(batch.source, real=real)
        return self.model.decoder(batch.ids, context=source, context_counts=counts)  # type: ignore[no-any-return]


def objective_of(model: Decoder | EncoderDecoder) -> Objective:
    """The objective that fits a model's kind."""
    return NextToken(model) if isinstance(model, Decoder) else TargetGivenSource(model)


def packed_states(
    stack: Stack,
    ids: Int[Tensor, "row token"],
    documents: Int[Tensor, "row token"],
    positions: Int[Tensor, "row token"],
) -> Float[Tensor, "row token model"]:
    """Hidden states of documents that share a row: the same as if each had a row of its own.

    Tokens attend within their document only; positions count from its beginning.
    """
    states = stack.embedding(ids, positions + stack.config.position_offset)
    mask, bias = masks.documents(documents), _bias(stack, ids.shape[1], states)
    rotations: dict[Any, Any] = {}
    for block in stack.blocks:
        assert isinstance(block, Block)
        rotary = block.attention.rotary
        if rotary is not None and rotary not in rotations:
            rotations[rotary] = rotary.at(positions, states.dtype)
        states = block(states, {"mask": mask, "bias": bias, "rotation": rotations.get(rotary)})
    return states if stack.norm is None else stack.norm(states)  # type: ignore[no-any-return]


def _bias(stack: Stack, length: int, states: Tensor) -> Tensor | None:
    """The position bias of the scores; it depends on distance only, not on the document's place."""
    if stack.config.positions == "alibi":
        return alibi_bias(alibi_slopes(stack.config.heads).to(states), length, length)
    return None if stack.relative is None else stack.relative(length, length)
