"""Tokens of a step: blocks, segments, output tokens; memory that grows when it must."""

from __future__ import annotations

import pytest

from clearhead.engine.engine import Engine, engine_runs_here
from clearhead.engine.kernels.structures import BLOCK
from clearhead.engine.runner import EngineRunner
from clearhead.engine.workspace import Segment, split_into_blocks
from tests.shared.engine_steps import decoder

pytestmark = pytest.mark.skipif(not engine_runs_here(), reason="no OpenMP or half precision here")


def test_rows_are_split_into_blocks() -> None:
    assert BLOCK == 64
    rows = [[0] * 3, [0] * 130, [0]]
    assert list(split_into_blocks(rows, [7, 0, 5])) == [
        [Segment(0, 0, 3, 7), Segment(1, 0, 61, 0)],
        [Segment(1, 61, 125, 61)],
        [Segment(1, 125, 130, 125), Segment(2, 0, 1, 5)],
    ]
    assert list(split_into_blocks([[0] * 64], [0])) == [[Segment(0, 0, 64, 0)]]
    assert list(split_into_blocks([], [])) == []


def test_tokens_of_a_step() -> None:
    runner = EngineRunner(Engine(decoder()))
    workspace, step = runner._workspace, runner._step
    rows = [[5, 6], [7, 8, 9]]
    block = [Segment(0, 0, 2, 11), Segment(1, 0, 2, 0)]  # the last token is in another block
    workspace.set_tokens(step, block, rows, every=False)
    assert (step.tokens, step.segments, step.outputs) == (4, 2, 1)
    assert list(workspace.ids)[:4] == [5, 6, 7, 8]
    assert list(workspace.rows)[:4] == [0, 0, 1, 1]
    assert list(workspace.positions)[:4] == [11, 12, 0, 1]
    assert list(workspace.segment_starts)[:3] == [0, 2, 4]
    assert workspace.output_tokens[0] == 1
    workspace.set_tokens(step, block, rows, every=True)
    assert step.outputs == 4
    assert list(workspace.output_tokens)[:4] == [0, 1, 2, 3]


def test_memory_is_reserved_once() -> None:
    runner = EngineRunner(Engine(decoder()))
    workspace, step = runner._workspace, runner._step
    workspace.reserve_partials(step, 2)
    workspace.reserve_thread_memory(step, 2)
    partials, private = step.partials, step.private
    workspace.reserve_partials(step, 1)
    workspace.reserve_thread_memory(step, 1)
    assert (step.partials, step.private) == (partials, private)
    assert workspace._partials.numel() == 64 * 6 * 2 * (64 + 16)
    workspace._counters.fill_(3)
    workspace.clear_counters(step)
    assert not workspace._counters.any()


def test_source_lengths() -> None:
    runner = EngineRunner(Engine(decoder()))
    runner._workspace.set_source_lengths(runner._step, [3, 5, 7])
    assert list(runner._workspace._source_lengths) == [3, 5, 7]
