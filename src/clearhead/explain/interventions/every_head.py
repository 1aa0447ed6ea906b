"""Every head and feed-forward layer of a model ablated on one text, one at a time."""

from __future__ import annotations

from collections.abc import Iterator

from jaxtyping import Float
from torch import Tensor

from clearhead.explain.interventions.changed_rows import (
    Begin,
    Progress,
    RowChange,
    changed_states,
)
from clearhead.explain.interventions.places import head_columns
from clearhead.layers.block import Block
from clearhead.models.stack import Stack


def states_without_each(
    stack: Stack, begin: Begin, position: int, progress: Progress | None = None
) -> tuple[list[str], Float[Tensor, "row model"]]:
    """The final states at a position: of the model as it is, then without each head and layer.

    The names are those of heads (L3H1, C3H1) and feed-forward layers (L3F), in the order of the
    rows behind the first.
    """
    named = dict(named_changes(stack))
    states = changed_states(stack, begin, list(named.values()), None, position, progress)
    return list(named), states


def named_changes(stack: Stack) -> Iterator[tuple[str, RowChange]]:
    """Each head and feed-forward layer by its name, as a change of its whole output."""
    for number, block in enumerate(stack.blocks):
        assert isinstance(block, Block)
        for head in range(block.attention.heads):
            columns = head_columns(block.attention, head)
            yield f"L{number}H{head}", RowChange(number, "heads", columns)
        if block.cross_attention is not None:
            for head in range(block.cross_attention.heads):
                columns = head_columns(block.cross_attention, head)
                yield f"C{number}H{head}", RowChange(number, "cross heads", columns)
        yield f"L{number}F", RowChange(number, "feed-forward")


def rows_of(stack: Stack) -> int:
    """How many rows are computed: the model as it is, and one for each change."""
    return 1 + sum(1 for _ in named_changes(stack))
