"""The rows that wait for observers: what they hold, when they are handed over."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from clearhead.engine.engine import Engine, engine_runs_here
from clearhead.engine.observers import (
    SeenCall,
    SeenForward,
    Waiting,
    add_observer,
    remove_observer,
)
from clearhead.engine.runner import EngineRunner
from tests.engine.test_runner import decoder, rows_of

pytestmark = pytest.mark.skipif(not engine_runs_here(), reason="no OpenMP or half precision here")


class Keeper:
    """Keeps every forward as it is handed over."""

    def __init__(self) -> None:
        self.ids: list[Tensor] = []
        self.calls: list[list[SeenCall]] = []
        self.waiting: list[Waiting] = []

    def owns(self, hook: Any) -> bool:
        return False

    def watches(self, model: nn.Module) -> bool:
        return True

    def wait_for(self, rows: Waiting) -> None:
        self.waiting.append(rows)

    def keep(self, forward: SeenForward) -> None:
        self.ids.append(forward.ids)
        self.calls.append(list(forward.calls()))


@pytest.fixture
def keeper() -> Iterator[Keeper]:
    found = Keeper()
    add_observer(found)
    yield found
    remove_observer(found)


def check(call: SeenCall) -> None:
    """Output and log-sum-exp follow from the queries, keys and values, in float64."""
    assert call.query is not None and call.key is not None and call.value is not None
    assert call.output is not None and call.logsum is not None
    group, rows, keys = (
        call.query.shape[1] // call.key.shape[1], call.query.shape[2], call.key.shape[2],
    )  # fmt: skip
    key, value = (part.double().repeat_interleave(group, 1) for part in (call.key, call.value))
    scores = call.query.double() @ key.transpose(2, 3) * call.scale
    if call.softcap is not None:
        scores = call.softcap * torch.tanh(scores / call.softcap)
    seen = call.mask
    if seen is None:
        seen = torch.ones(rows, keys, dtype=torch.bool).tril(keys - rows)[None, None]
    scores = scores.masked_fill(~seen, -torch.inf)
    there = seen.any(-1).expand(scores.shape[:3])
    torch.testing.assert_close(
        call.logsum.double()[there], scores.logsumexp(-1)[there], rtol=0, atol=1e-5
    )
    wanted = (scores.softmax(-1) @ value)[there]
    torch.testing.assert_close(call.output.double()[there], wanted, rtol=0, atol=1e-5)
    assert not call.logsum[~there].any() and not call.output[~there].any()


@pytest.mark.parametrize("name", ["llama", "gemma2", "window"])
def test_rows_wait_until_they_are_asked_for(name: str, keeper: Keeper) -> None:
    runner = EngineRunner(Engine(decoder(name)))
    prompt, step = rows_of(13)[0], rows_of(1)[0]
    runner.extend([prompt])
    runner.extend([step])
    assert keeper.ids == [] and len(keeper.waiting) == 1
    keeper.waiting[0].hand_over()
    keeper.waiting[0].hand_over()  # nothing is left
    assert [ids.tolist() for ids in keeper.ids] == [[prompt + step]]
    assert len(keeper.calls[0]) == 3
    for call in keeper.calls[0]:
        check(call)


def test_unequal_rows_are_padded(keeper: Keeper) -> None:
    runner = EngineRunner(Engine(decoder("llama")))
    rows = rows_of(5, 2)
    runner.extend(rows)
    runner.extend(rows_of(1, 1))  # another number of tokens: the prompt is handed over
    assert keeper.ids[0].tolist() == [rows[0], [*rows[1], 0, 0, 0]]
    runner.reorder([1])
    assert keeper.ids[1].shape == (2, 1)
    for call in keeper.calls[0] + keeper.calls[1]:
        check(call)


def test_long_prompts_are_handed_over_in_parts(keeper: Keeper) -> None:
    runner = EngineRunner(Engine(decoder("gemma3")))
    runner.extend(rows_of(601))
    runner.crop(0)
    assert sum(ids.shape[1] for ids in keeper.ids) == 601 and len(keeper.ids) == 3
    for calls in keeper.calls:
        for call in calls:
            check(call)
    windowed, whole = keeper.calls[-1][0], keeper.calls[-1][2]
    assert windowed.key is not None and whole.key is not None
    assert windowed.key.shape[2] < 100 < whole.key.shape[2] == 601


def test_wrong_drafts_are_forgotten(keeper: Keeper) -> None:
    runner = EngineRunner(Engine(decoder("llama")))
    runner.extend(rows_of(7))
    ids = rows_of(5)[0]
    runner.extend_all(ids)
    runner.crop(9)  # two of them were right
    runner.crop(9)  # the session's own: everything is handed over
    assert keeper.ids[0].tolist() == [rows_of(7)[0] + ids[:2]]
