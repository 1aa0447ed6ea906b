"""What the engine's steps work in: memory that lives as long as a runner, and what is next."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from typing import Any, NamedTuple

import torch

from clearhead.generation.engine import Engine
from clearhead.generation.engine_structures import BLOCK, GROUP, LINE, SCRATCH_BYTES, TILE, Step
from clearhead.generation.engine_weights import rounded_up


class Piece(NamedTuple):
    """Tokens of one row that go through the layers together: first … last − 1 of the new ones."""

    row: int
    first: int
    last: int
    place: int  # where the first of them stands in its row


def blocks_of(rows: list[list[int]], lengths: list[int]) -> Iterator[list[Piece]]:
    """Cut rows into blocks of at most BLOCK tokens; a block may hold pieces of several rows."""
    block: list[Piece] = []
    room = BLOCK
    for row, ids in enumerate(rows):
        first = 0
        while first < len(ids):
            last = min(len(ids), first + room)
            block.append(Piece(row, first, last, lengths[row] + first))
            room -= last - first
            first = last
            if not room:
                yield block
                block, room = [], BLOCK
    if block:
        yield block


class EngineMemory:
    """What a runner's steps work in."""

    def __init__(self, engine: Engine) -> None:
        from clearhead.generation.engine_kernel import (
            PHASES_AROUND,
            PHASES_OF_ATTENTION,
            PHASES_OF_FEED_FORWARD,
        )
        from clearhead.generation.engine_numbers_kernel import ACTIVATIONS, RECORD_BYTES

        self.engine = engine
        of_layer = PHASES_OF_ATTENTION * (1 + engine.crossing) + PHASES_OF_FEED_FORWARD
        self._phases = PHASES_AROUND + engine.config.layers * of_layer
        self._activation = ACTIVATIONS.index(engine.config.activation)
        sizes = engine.sizes
        self._mixed_width = sizes["heads"] * sizes["value_width"]
        self._widest = max(sizes["model_width"], self._mixed_width)
        self._input_bytes = rounded_up(RECORD_BYTES * self._widest // GROUP, LINE)
        self._hidden_bytes = rounded_up(RECORD_BYTES * sizes["hidden_width"] // GROUP, LINE)
        self._private_bytes = 2 * rounded_up(4 * self._widest + self._input_bytes, LINE)
        self._projected_width = (
            (sizes["heads"] + sizes["kv_heads"]) * sizes["key_width"]
            + sizes["kv_heads"] * sizes["value_width"]
        )  # fmt: skip
        self.ids, self.rows, self.places, self.wanted = (
            (ctypes.c_int64 * BLOCK)() for _ in range(4)
        )
        self.segments = (ctypes.c_int64 * (BLOCK + 1))()
        self._private = torch.empty(0)
        self._partials = torch.empty(0)

    def step(self, attentions: ctypes.Array[Any], feed_forwards: ctypes.Array[Any]) -> Step:
        """A step with all that stays the same."""
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
            gated=int(config.gated),
            rms=int(config.norm == "rms"),
            post_norm=int(config.norm_place == "after"),
            cross=int(engine.crossing),
            attentions=ctypes.addressof(attentions),
            feed_forwards=ctypes.addressof(feed_forwards),
            embedding=engine.embedding,
            embedding_norm=engine.embedding_norm,
            final_norm=engine.final_norm,
            head=engine.head,
            ids=ctypes.addressof(self.ids),
            rows=ctypes.addressof(self.rows),
            places=ctypes.addressof(self.places),
            segment_starts=ctypes.addressof(self.segments),
            wanted_tokens=ctypes.addressof(self.wanted),
            input_bytes=self._input_bytes,
            projected_width=self._projected_width,
            hidden_bytes=self._hidden_bytes,
            private_bytes=self._private_bytes,
            scale=sizes["key_dim"] ** -0.5 if scale is None else scale,
            epsilon=config.norm_epsilon,
            embedding_scale=config.embedding_scale,
        )

    def fill(self, step: Step, block: list[Piece], rows: list[list[int]], *, every: bool) -> None:
        """Say which tokens are next."""
        start = wanted = 0
        for number, piece in enumerate(block):
            count = piece.last - piece.first
            stop = start + count
            self.ids[start:stop] = [*rows[piece.row][piece.first : piece.last]]
            self.rows[start:stop] = [piece.row] * count
            self.places[start:stop] = [*range(piece.place, piece.place + count)]
            self.segments[number], self.segments[number + 1] = start, stop
            if every:
                self.wanted[wanted : wanted + count] = [*range(start, stop)]
                wanted += count
            elif piece.last == len(rows[piece.row]):
                self.wanted[wanted] = stop - 1
                wanted += 1
            start = stop
        step.tokens, step.segments, step.wanted = start, len(block), wanted

    def make_private(self, step: Step, threads: int) -> None:
        """Memory for each thread."""
        needed = threads * (SCRATCH_BYTES + self._private_bytes)
        if self._private.numel() < needed:
            self._private = torch.zeros(needed, dtype=torch.uint8)
            self._tickets = torch.zeros(self._phases * (threads + 1) * LINE, dtype=torch.uint8)
            step.private, step.tickets = self._private.data_ptr(), self._tickets.data_ptr()

    def make_partials(self, step: Step, chunks: int) -> None:
        """Memory for what the chunks of keys yield."""
        sizes = self.engine.sizes
        needed = BLOCK * sizes["heads"] * chunks * (sizes["value_width"] + TILE)
        if self._partials.numel() < needed:
            self._partials = torch.empty(needed)
            step.partials = self._partials.data_ptr()

    def clear_tickets(self, step: Step) -> None:
        """No unit of work is taken yet."""
        ctypes.memset(step.tickets, 0, self._tickets.numel())

    def say_source_lengths(self, step: Step, lengths: list[int]) -> None:
        """How many tokens each row's source has."""
        self._source_lengths = (ctypes.c_int64 * len(lengths))(*lengths)
        step.source_lengths = ctypes.addressof(self._source_lengths)
