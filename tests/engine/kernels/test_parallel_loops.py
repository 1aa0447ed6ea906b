"""Phases: every unit of work is done, also by one thread of several; the next phase is returned."""

from __future__ import annotations

import pytest
import torch

from clearhead.engine.engine import engine_runs_here
from tests.shared.engine_steps import PreparedStep, call, decoder

pytestmark = pytest.mark.skipif(not engine_runs_here(), reason="no OpenMP or half precision here")

ROWS, LENGTHS = [[3, 4, 5], [6], [7, 8]], [140, 0, 33]


def attention_phases(prepared: PreparedStep, threads: int) -> list[int]:
    """Run the phases of the first attention as thread 0 of so many; the numbers returned."""
    step, address, attention = prepared.fields, prepared.address, prepared.attention
    layer = prepared.runner._attentions[0]
    results = step.private + 2048
    phase = call("embed_all", address, 0, threads)
    phases = [phase]
    for name, arguments in (
        ("normalise_and_quantise_all", (layer.norm,)),
        ("project", (layer.project, step.inputs, step.tokens, step.projected,
                     4 * step.projected_width, results)),
        ("rotate_and_store_all", (attention,)),
        ("attend_all", (attention, step.private)),
        ("merge_all", (attention,)),
        ("add_projected", (layer.output, step.inputs, step.states, results)),
    ):  # fmt: skip
        phase = call(name, address, *arguments, phase, 0, threads)
        phases.append(phase)
    layer = prepared.feed_forward
    phase = call("hidden_layer", address, layer, step.inputs, results, phase, 0, threads)
    return [*phases, phase]


def test_one_thread_of_two_does_all_the_work() -> None:
    """The second one never comes: its units are taken by the first."""
    model = decoder()
    alone, both = (PreparedStep(model, ROWS, LENGTHS) for _ in range(2))
    assert attention_phases(alone, 1) == list(range(1, 9))
    assert attention_phases(both, 2) == list(range(1, 9))
    for name in ("inputs", "hidden"):
        assert torch.equal(alone.memory(name), both.memory(name)), name
        assert alone.vectors(name, 2, 6).any(dim=-1).all(), name
    for name in ("states", "normed", "projected", "mixed"):
        assert torch.equal(alone.memory(name), both.memory(name)), name
        assert alone.memory(name)[:6].any(dim=-1).all(), name
        assert not alone.memory(name)[6:].any(), name


def test_a_thread_that_comes_late_finds_nothing_to_do() -> None:
    prepared = PreparedStep(decoder(), ROWS, LENGTHS)
    assert call("embed_all", prepared.address, 0, 2) == 1
    prepared.memory("states").zero_()
    assert call("embed_all", prepared.address, 1, 2) == 1
    assert not prepared.memory("states").any()
