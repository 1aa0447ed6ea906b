"""The workspace of a runner's steps: memory that is reused, and the tokens of the next step."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from typing import Any, NamedTuple

import torch

from clearhead.engine.compiled import step_code
from clearhead.engine.engine import Engine
from clearhead.engine.kernels.structures import BLOCK, GROUP, LINE, SCRATCH_BYTES, TILE, Step
from clearhead.engine.weights import rounded_up


class Segment(NamedTuple):
    """New tokens first … last − 1 of one row, which go through the layers in one step."""

    row: int
    first: int
    last: int
    position: int  # of the first of them, in its row


def split_into_blocks(rows: list[list[int]], lengths: list[int]) -> Iterator[list[Segment]]:
    """Split rows into blocks of at most BLOCK tokens; a block may hold segments of several rows."""
    block: list[Segment] = []
    free = BLOCK
    for row, ids in enumerate(rows):
        first = 0
        while first < len(ids):
            last = min(len(ids), first + free)
            block.append(Segment(row, first, last, lengths[row] + first))
            free -= last - first
            first = last
            if not free:
                yield block
                block, free = [], BLOCK
    if block:
        yield block


class Workspace:
    """The memory of a runner's steps."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        facts = step_code().facts
        attentions = 1 + engine.has_cross_attention
        layer_phases = facts["attention_phases"] * attentions + facts["feed_forward_phases"]
        self._phases = facts["other_phases"] + engine.config.layers * layer_phases
        self._activation = facts["activations"].index(engine.config.activation)
        sizes = engine.sizes
        self._mixed_width = rounded_up(sizes["heads"] * sizes["value_dim"]) + GROUP  # the last head
        self._widest = max(sizes["model_width"], self._mixed_width)
        self._input_bytes = facts["group_bytes"] * self._widest // GROUP
        self._hidden_bytes = facts["group_bytes"] * sizes["hidden_width"] // GROUP
        self._private_bytes = 2 * rounded_up(4 * self._widest + self._input_bytes, LINE)
        self._projected_width = (
            (sizes["heads"] + sizes["kv_heads"]) * sizes["key_width"]
            + sizes["kv_heads"] * sizes["value_width"]
        )  # fmt: skip
        self.ids, self.rows, self.positions, self.output_tokens = (
            (ctypes.c_int64 * BLOCK)() for _ in range(4)
        )
        self.segment_starts = (ctypes.c_int64 * (BLOCK + 1))()
        self._private = torch.empty(0)
        self._partials = torch.empty(0)

    def step(self, attentions: ctypes.Array[Any], feed_forwards: ctypes.Array[Any]) -> Step:
        """Make the step's structure, with all fields that do not change between calls."""
        engine, sizes = self.engine, self.engine.sizes
        config = engine.config
        self._shared = {
            "states": torch.zeros(BLOCK, sizes["model_width"]),
            "normed": torch.zeros(BLOCK, sizes["model_width"]),
            "inputs": torch.zeros(BLOCK, self._input_bytes, dtype=torch.uint8),
            "projected": torch.zeros(BLOCK, self._projected_width),
            "mixed": torch.zeros(BLOCK, self._mixed_width),
            "hidden": torch.zeros(BLOCK, self._hidden_bytes, dtype=torch.uint8),
        }
        scale = config.attention_scale
        return Step(
            **sizes,
            **{name: tensor.data_ptr() for name, tensor in self._shared.items()},
            activation=self._activation,
            rms=int(config.norm == "rms"),
            post_norm=int(config.norm_place == "after"),
            cross=int(engine.has_cross_attention),
            attentions=ctypes.addressof(attentions),
            feed_forwards=ctypes.addressof(feed_forwards),
            embedding=engine.embedding,
            embedding_norm=engine.embedding_norm,
            final_norm=engine.final_norm,
            head=engine.head,
            ids=ctypes.addressof(self.ids),
            rows=ctypes.addressof(self.rows),
            positions=ctypes.addressof(self.positions),
            segment_starts=ctypes.addressof(self.segment_starts),
            output_tokens=ctypes.addressof(self.output_tokens),
            mixed_width=self._mixed_width,
            projected_width=self._projected_width,
            private_bytes=self._private_bytes,
            scale=sizes["key_dim"] ** -0.5 if scale is None else scale,
            epsilon=config.norm_epsilon,
            embedding_scale=config.embedding_scale,
            softcap=config.attention_softcap or 0.0,
        )

    def set_tokens(
        self, step: Step, block: list[Segment], rows: list[list[int]], *, every: bool
    ) -> None:
        """Set the tokens of the next step; with ``every``, logits are wanted after each of them."""
        start = outputs = 0
        for number, segment in enumerate(block):
            count = segment.last - segment.first
            stop = start + count
            self.ids[start:stop] = [*rows[segment.row][segment.first : segment.last]]
            self.rows[start:stop] = [segment.row] * count
            self.positions[start:stop] = [*range(segment.position, segment.position + count)]
            self.segment_starts[number], self.segment_starts[number + 1] = start, stop
            if every:
                self.output_tokens[outputs : outputs + count] = [*range(start, stop)]
                outputs += count
            elif segment.last == len(rows[segment.row]):
                self.output_tokens[outputs] = stop - 1
                outputs += 1
            start = stop
        step.tokens, step.segments, step.outputs = start, len(block), outputs

    def reserve_thread_memory(self, step: Step, threads: int) -> None:
        """Reserve the memory of each thread."""
        needed = threads * (SCRATCH_BYTES + self._private_bytes)
        if self._private.numel() < needed:
            self._private = torch.zeros(needed, dtype=torch.uint8)
            self._counters = torch.zeros(self._phases * 2 * threads * LINE, dtype=torch.uint8)
            step.private, step.counters = self._private.data_ptr(), self._counters.data_ptr()

    def reserve_partials(self, step: Step, chunks: int) -> None:
        """Reserve memory for the partial results of attention."""
        sizes = self.engine.sizes
        needed = BLOCK * sizes["heads"] * chunks * (sizes["value_width"] + TILE)
        if self._partials.numel() < needed:
            self._partials = torch.empty(needed)
            step.partials = self._partials.data_ptr()

    def clear_counters(self, step: Step) -> None:
        """Reset the counters of all phases."""
        ctypes.memset(step.counters, 0, self._counters.numel())

    def set_source_lengths(self, step: Step, lengths: list[int]) -> None:
        """Set the number of source tokens of each row."""
        self._source_lengths = (ctypes.c_int64 * len(lengths))(*lengths)
        step.source_lengths = ctypes.addressof(self._source_lengths)
