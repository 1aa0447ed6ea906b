"""Every head of a model ablated on one text: one in each row of a growing batch.

A row joins the batch at the layer in which its head is ablated. Before that it would be a copy of
the first row, which is the model as it is. So half of the work is saved.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from clearhead.layers.block import Block
from clearhead.layers.multi_head import MultiHeadAttention
from clearhead.models.stack import Shared, Stack

Progress = Callable[[int, int], None]


def states_without_each(
    stack: Stack,
    begin: tuple[Float[Tensor, "1 query model"], Shared],
    position: int,
    progress: Progress | None = None,
) -> tuple[list[str], Float[Tensor, "row model"]]:
    """The final states at a position: of the model as it is, then without each head and layer.

    The names are those of heads (L3H1, C3H1) and feed-forward layers (L3F), in the order of the
    rows behind the first.
    """
    states, shared = begin
    context, names = shared.context, [""]
    for number, block in enumerate(stack.blocks):
        assert isinstance(block, Block)
        added = _names_of(number, block)
        names += added
        states = torch.cat([states, states[:1].expand(len(added), -1, -1)])
        if context is not None:
            shared.context = context.expand(len(states), -1, -1)
        with _ablated(block, len(states) - len(added)):
            states = stack.run_block(number, states, shared)
        if progress is not None:
            progress(number + 1, len(stack.blocks))
    final = states if stack.norm is None else stack.norm(states)
    return names[1:], final[:, position]


def _names_of(number: int, block: Block) -> list[str]:
    names = [f"L{number}H{head}" for head in range(block.attention.heads)]
    if block.cross_attention is not None:
        names += [f"C{number}H{head}" for head in range(block.cross_attention.heads)]
    return [*names, f"L{number}F"]


@contextmanager
def _ablated(block: Block, first: int) -> Iterator[None]:
    """Zero one head in each row from ``first`` on, and the feed-forward layer in the last."""
    handles = [_zero_heads(block.attention, first)]
    if block.cross_attention is not None:
        handles.append(_zero_heads(block.cross_attention, first + block.attention.heads))

    def zero_last(_module: nn.Module, _args: Any, output: Tensor) -> Tensor:
        output = output.clone()
        output[-1] = 0.0
        return output

    handles.append(block.feed_forward.register_forward_hook(zero_last))
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


def _zero_heads(attention: MultiHeadAttention, first: int) -> Any:
    width = attention.value_dim

    def zero(_module: nn.Module, args: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        joined = args[0].clone()
        for head in range(attention.heads):
            joined[first + head, :, head * width : (head + 1) * width] = 0.0
        return (joined, *args[1:])

    return attention.output.register_forward_pre_hook(zero)


def rows_of(stack: Stack) -> int:
    """How many rows the batch has at its end."""
    blocks: Sequence[Any] = list(stack.blocks)
    return 1 + sum(len(_names_of(number, block)) for number, block in enumerate(blocks))
