"""The whole step: logits of the output tokens, number of phases, progress of loading."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from clearhead.engine.engine import engine_runs_here
from clearhead.engine.kernels.structures import LINE
from clearhead.engine.runner import EngineRunner
from tests.shared.engine_steps import PreparedStep, decoder

pytestmark = pytest.mark.skipif(not engine_runs_here(), reason="no OpenMP or half precision here")


@pytest.mark.parametrize("norm_place", ["before", "after"])
def test_logits_of_the_output_tokens(norm_place: str) -> None:
    model = decoder(norm_place=norm_place)
    rows = [[3, 4, 5], [6], [7, 8]]
    prepared = PreparedStep(model, rows, [0, 0, 0])
    logits = torch.full((4, 64), torch.nan)
    prepared.step.logits, prepared.step.logits_row = logits.data_ptr(), 4 * 64
    prepared.engine.run(prepared.step)
    assert torch.equal(logits[:3, :53], EngineRunner(prepared.engine).extend(rows))
    assert logits[3].isnan().all()
    every = EngineRunner(prepared.engine).extend_all(rows[0])
    assert torch.equal(logits[0, :53], every[-1])


def test_phases_stay_below_their_bound() -> None:
    prepared = PreparedStep(decoder(norm_place="after"), [[3, 4, 5]], [0])
    logits = torch.zeros(1, 64)
    prepared.step.logits, prepared.step.logits_row = logits.data_ptr(), 4 * 64
    prepared.engine.run(prepared.step)
    counters = prepared.workspace._counters.numpy().view(np.int64).reshape(-1, LINE // 8)
    used = counters[:, 0].nonzero()[0]
    assert used.max() < 2 * prepared.workspace._phases  # one thread: two counters to a phase
    assert not counters[:, 1:].any()  # each has a cache line of its own


def test_loading_reports_its_progress() -> None:
    from clearhead.engine.kernels.step import step_function

    reports: list[tuple[int, int]] = []
    first = step_function(lambda done, total: reports.append((done, total)))
    assert step_function(lambda _done, _total: None) == first
    total = reports[-1][1]
    assert reports == [(done, total) for done in range(total + 1)]
    assert total > 20
