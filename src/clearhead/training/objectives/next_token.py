"""Predict the next token of a text; documents that share a row do not see each other."""

from __future__ import annotations

from typing import Any

from jaxtyping import Float, Int
from torch import Tensor

from clearhead.attention import masks
from clearhead.attention.alibi import alibi_bias, alibi_slopes
from clearhead.layers.block import Block
from clearhead.models.decoder import Decoder
from clearhead.models.stack import Stack
from clearhead.training.data.batches.batch import Batch, PackedBatch
from clearhead.training.objectives.objective import PredictedTokens


class NextToken(PredictedTokens):
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
