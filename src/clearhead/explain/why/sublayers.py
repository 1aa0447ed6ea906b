"""Sublayers of a forward: what each of them read and wrote at the positions that are explained.

The forward is the model's own. Hooks copy the states of a few positions; of attention an observer
keeps the weights of these queries and refers to the values, so that memory stays below that of the
key-value cache.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from clearhead.attention.call import Call
from clearhead.attention.observers import OBSERVERS
from clearhead.attention.steps import steps_of
from clearhead.explain.interventions.changes import Change, Cuts, changes_of, replaced_at
from clearhead.layers.block import Block, Residual
from clearhead.layers.multi_head import MultiHeadAttention
from clearhead.models.stack import Stack

FEED_FORWARD = "F"  # L3F is the feed-forward layer of layer 3


@dataclass(frozen=True, eq=False)
class AttentionRows:
    """The attention of the queries at some positions, in one layer.

    A query reaches ``keys``: all of them, or those in its window. The values are those of all keys,
    as the model computed them.
    """

    module: MultiHeadAttention
    weights: tuple[Float[Tensor, "head _"], ...]  # float64, one for each position
    keys: tuple[range, ...]
    values: Float[Tensor, "kv_head key value_dim"]
    joined: Float[Tensor, "position width"]  # float64: what W_O read, heads side by side
    changed: tuple[ChangedHeads, ...]  # by interventions, one for each position

    def head_values(self, head: int) -> Float[Tensor, "key value_dim"]:
        """The values that a query head sums up; grouped heads share them."""
        group = self.module.heads // self.module.kv_heads
        return self.values[head // group]


@dataclass(frozen=True)
class ChangedHeads:
    """The heads of a layer that interventions have changed, at one position."""

    replaced: frozenset[int]  # their outputs came from no source
    cut: Mapping[int, frozenset[int]]  # by head: the keys from which it took nothing


@dataclass(frozen=True, eq=False)
class Sublayer:
    """One sublayer: its residual, and the states around it at some positions, in float64."""

    name: str  # L3, C3 (cross-attention), L3F (feed-forward)
    residual: Residual
    before: Float[Tensor, "position model"]  # the residual stream that it read
    written: Float[Tensor, "position model"]  # its own output
    attention: AttentionRows | None  # None: a feed-forward layer
    changes: tuple[Change, ...] = ()  # by interventions


@dataclass(frozen=True, eq=False)
class Captured:
    """Every sublayer of a stack in order, and the states that enter and leave it."""

    stack: Stack
    positions: tuple[int, ...]
    sublayers: tuple[Sublayer, ...]
    stream: Float[Tensor, "position model"]  # behind the last sublayer, before the final norm
    final: Float[Tensor, "position model"]  # what the stack returned

    def changes(self) -> tuple[Change, ...]:
        """The interventions in force, in the order of the sublayers."""
        return tuple(change for one in self.sublayers for change in one.changes)

    def named(self, name: str) -> Sublayer | None:
        """The sublayer of this name; None if there is none."""
        return next((one for one in self.sublayers if one.name == name), None)


class Capture:
    """Collects a :class:`Captured` while the model runs, for the first row of the batch."""

    def __init__(self, stack: Stack, positions: Sequence[int], letter: str = "L") -> None:
        self._stack, self._positions, self._letter = stack, tuple(positions), letter
        self._before: dict[nn.Module, Tensor] = {}
        self._written: dict[nn.Module, Tensor] = {}
        self._joined: dict[nn.Module, Tensor] = {}
        self._rows: dict[nn.Module, AttentionRows] = {}
        self._changes: dict[nn.Module, tuple[Change, ...]] = {}
        self._calls: list[Call] = []
        self._stream: Tensor | None = None
        self._final: Tensor | None = None

    def captured(self) -> Captured:
        """What was collected; call it after the forward."""
        assert self._final is not None
        made = [
            Sublayer(
                name,
                residual,
                self._before[residual],
                self._written[layer],
                self._rows.get(layer),
                self._changes[layer],
            )
            for name, residual, layer in sublayers_of(self._stack, self._letter)
        ]
        stream = self._final if self._stream is None else self._stream
        return Captured(self._stack, self._positions, tuple(made), stream, self._final)

    @contextmanager
    def running(self) -> Iterator[None]:
        """Collect from the forward inside the block."""
        handles = [self._stack.register_forward_hook(self._keep_final)]
        if self._stack.norm is not None:
            handles.append(self._stack.norm.register_forward_pre_hook(self._keep_stream))
        for _, residual, layer in sublayers_of(self._stack, self._letter):
            handles.append(residual.register_forward_hook(self._keep_before))
            handles.append(layer.register_forward_hook(self._keep_written))
            if isinstance(layer, MultiHeadAttention):  # behind W_O: as interventions left it
                handles.append(layer.output.register_forward_hook(self._keep_joined))
        try:
            with OBSERVERS.observed_by(self._observe):
                yield
        finally:
            for handle in handles:
                handle.remove()

    def _observe(self, call: Call, _output: Tensor, _logsum: Tensor | None) -> None:
        self._calls.append(call)

    def _keep_before(self, residual: nn.Module, args: tuple[Any, ...], _output: Tensor) -> None:
        self._before[residual] = self._at(args[0])

    def _keep_written(self, layer: nn.Module, _args: tuple[Any, ...], output: Tensor) -> None:
        self._written[layer] = self._at(output)
        self._changes[layer] = changes_of(layer)
        if isinstance(layer, MultiHeadAttention):
            joined = self._joined.pop(layer.output)
            self._rows[layer] = _rows_of(layer, self._calls.pop(), joined, self._positions)
        self._calls.clear()

    def _keep_joined(self, output: nn.Module, args: tuple[Any, ...], _written: Tensor) -> None:
        self._joined[output] = self._at(args[0])

    def _keep_stream(self, _norm: nn.Module, args: tuple[Any, ...]) -> None:
        self._stream = self._at(args[0])

    def _keep_final(self, _stack: nn.Module, _args: tuple[Any, ...], output: Tensor) -> None:
        self._final = self._at(output)

    def _at(self, states: Float[Tensor, "batch query model"]) -> Float[Tensor, "position model"]:
        return states[0, list(self._positions)].detach().double()


def sublayers_of(stack: Stack, letter: str) -> Iterator[tuple[str, Residual, nn.Module]]:
    """Name, residual and module of every sublayer of a stack, in the order of the forward."""
    for number, block in enumerate(stack.blocks):
        assert isinstance(block, Block)
        yield f"{letter}{number}", block.attention_residual, block.attention
        if block.cross_attention is not None:
            yield f"C{number}", block.cross_residual, block.cross_attention
        yield f"{letter}{number}{FEED_FORWARD}", block.feed_forward_residual, block.feed_forward


def _rows_of(
    module: MultiHeadAttention,
    call: Call,
    joined: Float[Tensor, "position width"],
    positions: Sequence[int],
) -> AttentionRows:
    changes, keys = changes_of(module), call.key.shape[2]
    rows = [_row_weights(call, position) for position in positions]
    return AttentionRows(
        module,
        tuple(weights for weights, _ in rows),
        tuple(keys for _, keys in rows),
        call.value[0].detach(),
        joined,
        tuple(_changed_heads(module, changes, position, keys) for position in positions),
    )


def _changed_heads(
    module: MultiHeadAttention, changes: Sequence[Change], position: int, keys: int
) -> ChangedHeads:
    cuts, heads = Cuts(changes, 0, keys), range(module.heads)
    replaced = frozenset(head for head in heads if replaced_at(changes, head, position))
    cut = {head: found for head in heads if (found := cuts.at(head, position))}
    return ChangedHeads(replaced, cut)


def _row_weights(call: Call, row: int) -> tuple[Float[Tensor, "head reach"], range]:
    """The weights of one query over the keys that it can reach, in float64."""
    rows = range(row, row + 1)
    keys = call.block(rows)[0]
    narrow = call.narrowed(rows)
    exact = replace(
        narrow,
        query=narrow.query[:1].double(),
        key=narrow.key[:1].double(),
        value=narrow.value[:1, ..., :1].double(),  # the weights alone are wanted
        bias=None if narrow.bias is None else narrow.bias[:1].double(),
        sinks=None if narrow.sinks is None else narrow.sinks.double(),
        leading=torch.Size([1]),
    )
    return steps_of(exact).weights[0, :, 0].detach(), keys
