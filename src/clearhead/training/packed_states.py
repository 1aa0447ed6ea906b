"""States of documents that share a row: each token's are what they would be with it alone."""

from __future__ import annotations

from typing import Any

from jaxtyping import Float, Int
from torch import Tensor

from clearhead.attention import masks
from clearhead.attention.alibi import alibi_bias, alibi_slopes
from clearhead.layers.block import Block
from clearhead.models.stack import Stack


def packed_states(
    stack: Stack,
    ids: Int[Tensor, "row token"],
    documents: Int[Tensor, "row token"],
    positions: Int[Tensor, "row token"],
) -> Float[Tensor, "row token model"]:
    """Nobody looks across a border, and positions count from each document's beginning."""
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
    """What distance adds to the scores; it is the same wherever in the row a document stands."""
    if stack.config.positions == "alibi":
        return alibi_bias(alibi_slopes(stack.config.heads).to(states), length, length)
    return None if stack.relative is None else stack.relative(length, length)
