"""Many interventions in one text: each in a row of its own, in batches.

A row joins its batch at the layer in which it is changed. Before that it would be a copy of the
model as it is, which is computed once, beside the first batch. So half of the work is saved.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from itertools import count
from typing import Literal, TypeAlias

import torch
from jaxtyping import Float
from torch import Tensor

from clearhead.explain.interventions.outputs import Outputs
from clearhead.layers.block import Block
from clearhead.models.stack import Shared, Stack

Progress: TypeAlias = Callable[[int, int], None]
Part: TypeAlias = Literal["heads", "cross heads", "attention", "feed-forward", "state"]
Donor: TypeAlias = Mapping[tuple[int, Part], Tensor]  # each (query, width of the part)
Begin: TypeAlias = tuple[Float[Tensor, "1 query model"], Shared]
# Of a batch. Weights that are kept as their file has them are unpacked once for each batch.
TOKENS = 2048


@dataclass(frozen=True)
class RowChange:
    """One row: the output of a part is replaced there, in some columns and at some positions."""

    layer: int
    part: Part  # "state": the residual stream behind the block
    columns: slice | None = None  # None: all
    positions: tuple[int, ...] | None = None  # None: all

    @property
    def joins(self) -> int:
        """The first block that the row runs through."""
        return self.layer + (self.part == "state")

    def apply(self, row: Float[Tensor, "query width"], donor: Donor | None) -> None:
        """Replace by what the donor put out there; by zeros without one."""
        where = slice(None) if self.positions is None else list(self.positions)
        columns = slice(None) if self.columns is None else self.columns
        instead = None if donor is None else donor[self.layer, self.part][where, columns]
        row[where, columns] = 0.0 if instead is None else instead


def parts_of(block: Block) -> dict[Part, Outputs]:
    """The outputs of a block that can be changed."""
    parts: dict[Part, Outputs] = {
        "heads": Outputs(block.attention.output, joined=True),
        "attention": Outputs(block.attention, joined=False),
        "feed-forward": Outputs(block.feed_forward, joined=False),
    }
    if block.cross_attention is not None:
        parts["cross heads"] = Outputs(block.cross_attention.output, joined=True)
    return parts


def recorded(stack: Stack, begin: Begin) -> Donor:
    """What every part puts out for the one row of a text."""
    kept: dict[tuple[int, Part], Tensor] = {}
    states, shared = begin

    def keep(where: tuple[int, Part], outputs: Tensor) -> None:
        kept[where] = outputs[0].clone()

    for number, block in enumerate(stack.blocks):
        assert isinstance(block, Block)
        with ExitStack() as hooks:
            for part, outputs in parts_of(block).items():
                hooks.enter_context(outputs.read_by(partial(keep, (number, part))))
            states = stack.run_block(number, states, shared)
        kept[number, "state"] = states[0]
    return kept


def changed_states(
    stack: Stack,
    begin: Begin,
    changes: Sequence[RowChange],
    donor: Donor | None,
    position: int,
    progress: Progress | None = None,
) -> Float[Tensor, "row model"]:
    """The final states at a position: of the model as it is, then with each of the changes."""
    order = sorted(range(len(changes)), key=lambda number: changes[number].joins)
    groups = list(_groups(order, begin[0].shape[1])) or [[]]
    blocks = len(stack.blocks)
    total = blocks + sum(blocks - changes[group[0]].joins for group in groups[1:])
    done = count(1)

    def step() -> None:
        if progress is not None:
            progress(next(done), total)

    entering: list[Tensor] = [begin[0]]
    width = begin[0].shape[-1]
    final = begin[0].new_empty(len(changes) + 1, width)
    for group in groups:
        chosen = [changes[number] for number in group]
        states = _run_group(stack, begin[1], entering, chosen, donor, step)
        final[[number + 1 for number in group]] = states[:, position]
    final[0] = entering[-1][0, position]
    return final if stack.norm is None else stack.norm(final)


def _groups(order: Sequence[int], tokens: int) -> Iterator[Sequence[int]]:
    size = max(1, TOKENS // tokens)
    for first in range(0, len(order), size):
        yield order[first : first + size]


def _run_group(
    stack: Stack,
    shared: Shared,
    entering: list[Float[Tensor, "1 query model"]],
    changes: Sequence[RowChange],
    donor: Donor | None,
    step: Callable[[], None],
) -> Float[Tensor, "row query model"]:
    """Rows in the order of the blocks at which they join.

    The first group takes the model as it is along, as its first row: ``entering`` gets what enters
    each block, and what is behind the last.
    """
    context, blocks = shared.context, len(stack.blocks)
    first = len(entering) == 1
    states = entering[0][: int(first)]
    try:
        for number in range(0 if first else changes[0].joins, blocks + 1):
            states = _joined(states, entering[number], changes, number, donor)
            if number == blocks:
                break
            if context is not None:
                shared.context = context.expand(len(states), -1, -1)
            block = stack.blocks[number]
            assert isinstance(block, Block)
            with _changed(block, number, changes, donor, int(first)):
                states = stack.run_block(number, states, shared)
            if first:
                entering.append(states[:1])
            step()
    finally:
        shared.context = context
    return states[int(first) :]


def _joined(
    states: Float[Tensor, "row query model"],
    entering: Float[Tensor, "1 query model"],
    changes: Sequence[RowChange],
    number: int,
    donor: Donor | None,
) -> Float[Tensor, "joined query model"]:
    """The rows so far, and those that join at this block."""
    joining = [change for change in changes if change.joins == number]
    new = entering.repeat(len(joining), 1, 1)
    for row, change in zip(new, joining, strict=True):
        if change.part == "state":
            change.apply(row, donor)
    return torch.cat([states, new])


def _changed(
    block: Block, number: int, changes: Sequence[RowChange], donor: Donor | None, before: int
) -> ExitStack:
    """The changes of this block, made while it runs: one in each of their rows.

    ``before``: rows that stand before them.
    """
    hooks = ExitStack()
    for part, outputs in parts_of(block).items():
        rows = [
            (row, change)
            for row, change in enumerate(changes, start=before)
            if change.layer == number and change.part == part
        ]
        if rows:
            hooks.enter_context(outputs.changed_by(partial(_apply_all, rows, donor)))
    return hooks


def _apply_all(rows: Sequence[tuple[int, RowChange]], donor: Donor | None, outputs: Tensor) -> None:
    for row, change in rows:
        change.apply(outputs[row], donor)
