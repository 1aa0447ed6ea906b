"""The loop: losses fall, runs continue bit for bit, and what goes wrong is said."""

from __future__ import annotations

import dataclasses
import errno
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

import clearhead as ch
from clearhead.errors import CheckpointError, InputError
from clearhead.training import loop
from clearhead.training.divergence import DivergedError
from clearhead.training.events import (
    Event,
    Finished,
    Sampled,
    Saved,
    Started,
    Stepped,
    Stopped,
    Validated,
    Warned,
)
from clearhead.training.loop import train_task
from clearhead.training.run_folder import RunFolder
from clearhead.training.run_folder.checkpoint import averaged
from clearhead.training.tasks.task import Task
from tests.training.conftest import Make


def losses(events: list[Event]) -> list[float]:
    return [event.loss for event in events if isinstance(event, Stepped | Validated)]


def test_losses_fall_and_the_folder_opens(make: Make, tmp_path: Path) -> None:
    task, settings = make(steps=40, validate_every=20)
    events = list(train_task(task, settings, folder=RunFolder(tmp_path / "run")))
    steps = [event for event in events if isinstance(event, Stepped)]
    assert [event.step for event in steps] == list(range(1, 41))
    assert steps[-1].loss < 0.9 * steps[0].loss
    assert [event.step for event in events if isinstance(event, Saved)] == [0, 20, 40]
    assert sum(isinstance(event, Sampled) for event in events) == 2
    finished = events[-1]
    assert isinstance(finished, Finished) and finished.reason == "steps"
    loaded = ch.load(tmp_path / "run")
    assert loaded.config.changed(dropout=0.0) == task.model.config.resolved().changed(
        window_layers=None,
        attention_scale=None,
        rotary_width=None,
        value_dim=None,
        attention_dropout=loaded.config.attention_dropout,
        embedding_dropout=loaded.config.embedding_dropout,
    )
    ids = torch.arange(5)[None]
    torch.testing.assert_close(loaded.model(ids), task.model(ids))


def test_an_abandoned_run_continues_bit_for_bit(make: Make, tmp_path: Path) -> None:
    task, settings = make()
    whole = losses(list(train_task(task, settings, folder=RunFolder(tmp_path / "whole"))))
    task, settings = make()
    for event in train_task(task, settings, folder=RunFolder(tmp_path / "cut")):
        if isinstance(event, Stepped) and event.step == 6:
            break
    task, settings = make()
    rest = list(train_task(task, settings, folder=RunFolder(tmp_path / "cut")))
    assert losses(rest) == whole[5:]  # from after step 4, which was validated
    assert len(RunFolder(tmp_path / "cut").log.lines()) == len(whole)


def test_accumulation_changes_nothing(make: Make) -> None:
    runs = []
    for parts in (1, 3):
        task, settings = make(accumulation=parts, optimiser="adamw", learning_rate=3e-4)
        runs.append(losses(list(train_task(task, settings))))
    torch.testing.assert_close(torch.tensor(runs[0]), torch.tensor(runs[1]), atol=1e-5, rtol=0)


def test_another_seed_is_another_run(make: Make) -> None:
    first, second = (losses(list(train_task(*make(seed=seed)))) for seed in (5, 6))
    assert first != second


def test_averaging_takes_the_mean(make: Make, tmp_path: Path) -> None:
    task, settings = make(average=3)
    folder = RunFolder(tmp_path / "run")
    list(train_task(task, settings, folder=folder))
    steps = folder.checkpoints.steps()
    assert steps == [4, 8, 12]
    name = "stack.blocks.1.attention.query.weight"
    wanted = sum(folder.checkpoints.read(step).weights[name].double() for step in steps) / 3
    torch.testing.assert_close(averaged(folder.checkpoints, steps)[name].double(), wanted)


def test_early_stopping_keeps_the_best(make: Make, tmp_path: Path) -> None:
    task, settings = make(
        steps=400, validate_every=1, patience=2, matrix_learning_rate=3.0, learning_rate=0.5,
        average=1,
    )  # fmt: skip
    events = list(train_task(task, settings, folder=RunFolder(tmp_path / "run")))
    finished = events[-1]
    assert isinstance(finished, Finished)
    assert (finished.reason, finished.step < 400) == ("patience", True)
    tried = [event.loss for event in events if isinstance(event, Validated)]
    assert finished.loss == pytest.approx(min(tried), rel=1e-5)


class Clock:
    """A clock that only batches move, each by what its number says."""

    def __init__(self, task: Task, seconds: Callable[[float], float]) -> None:
        self.now, self._seconds, self._batches = 0.0, seconds, task.batches
        self.batches_per_pass = task.batches.batches_per_pass

    def perf_counter(self) -> float:
        return self.now

    def batch(self, number: int) -> Any:
        self.now += self._seconds(self.now)
        return self._batches.batch(number)


def test_a_run_takes_its_minutes(
    make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Although other programs slow down its first quarter."""
    minutes = 1.0
    task, settings = make(steps=None, minutes=minutes, validate_every=20)
    clock = Clock(task, lambda now: 8.0 if now < 15 else 1.0)
    monkeypatch.setattr(loop, "time", clock)
    events = list(train_task(dataclasses.replace(task, batches=clock), settings,
                             folder=RunFolder(tmp_path / "run")))  # fmt: skip
    steps = [event for event in events if isinstance(event, Stepped)]
    assert steps[0].total is None and len({step.total for step in steps}) > 2
    assert clock.now == pytest.approx(60 * minutes, rel=0.05)
    assert steps[-1].rate < 0.3 and max(step.rate for step in steps) == 1.0


def test_what_was_decided_is_decided_again(
    make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run of some minutes loses its last steps, and does them again at another speed."""
    whole = RunFolder(tmp_path / "run")
    changed: dict[str, Any] = {"steps": None, "minutes": 0.5, "validate_every": 1000}
    task, settings = make(**changed)
    clock = Clock(task, lambda now: 0.5)
    monkeypatch.setattr(loop, "time", clock)
    for event in train_task(dataclasses.replace(task, batches=clock), settings, folder=whole):
        if isinstance(event, Stepped) and event.step == 26:
            break  # as a kill would end it: the last checkpoint is that of step 0
    before = whole.log.lines()
    with whole.log.path.open("a") as file:  # a step that was never done decides nothing
        file.write('{"step": 1000000, "total": 1000001, "done": 0.5}\n')
    task, settings = make(**changed)
    clock = Clock(task, lambda now: 0.3)
    monkeypatch.setattr(loop, "time", clock)
    list(train_task(dataclasses.replace(task, batches=clock), settings, folder=whole))
    after = whole.log.lines()
    same = ("step", "loss", "total", "done")
    assert [[line.get(name) for name in same] for line in before] == [
        [line.get(name) for name in same] for line in after[: len(before)]
    ]
    assert sum("total" in line for line in before) >= 3 and len(after) > len(before) + 20


def test_a_loss_that_is_no_number(make: Make, tmp_path: Path) -> None:
    task, settings = make()
    folder = RunFolder(tmp_path / "run")
    with pytest.raises(DivergedError, match="at step 6 the loss is nan"):
        for event in train_task(task, settings, folder=folder):
            if isinstance(event, Stepped) and event.step == 5:
                assert isinstance(task.model, ch.Decoder)
                task.model.stack.embedding.tokens.weight.data[5].fill_(torch.nan)
    assert folder.checkpoints.steps()[-1] == 4
    assert all(bool(t.isfinite().all()) for t in folder.checkpoints.read(4).weights.values())


def test_a_full_disk(make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    task, settings = make()
    folder = RunFolder(tmp_path / "run")

    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with pytest.raises(CheckpointError, match="No space left on device"):
        for event in train_task(task, settings, folder=folder):
            if isinstance(event, Stepped) and event.step == 6:
                monkeypatch.setattr("clearhead.checkpoints.safetensors.file.save_file", full)
    monkeypatch.undo()
    task, settings = make()
    assert isinstance(list(train_task(task, settings, folder=folder))[-1], Finished)


def test_other_settings_are_another_run(make: Make, tmp_path: Path) -> None:
    folder = RunFolder(tmp_path / "run")
    task, settings = make()
    list(train_task(task, settings, folder=folder))
    with pytest.raises(CheckpointError, match="has other settings"):
        list(train_task(*make(clip=0.5), folder=folder))


@pytest.mark.usefixtures("unchecked")
def test_checkpoints_come_by_the_clock_and_change_nothing(make: Make, tmp_path: Path) -> None:
    whole = list(train_task(*make(validate_every=5), folder=RunFolder(tmp_path / "whole")))
    often = make(validate_every=5, checkpoint_minutes=1e-3)
    events = []
    for event in train_task(*often, folder=RunFolder(tmp_path / "often")):
        events.append(event)
        time.sleep(0.06)
    saved = [event.step for event in events if isinstance(event, Saved)]
    assert len(saved) > 8 > len([event for event in whole if isinstance(event, Saved)])
    assert losses(events) == losses(whole)
    finished, other = events[-1], whole[-1]
    assert isinstance(finished, Finished) and isinstance(other, Finished)
    assert (finished.loss, finished.weights) == (other.loss, other.weights)
    kept = RunFolder(tmp_path / "often").checkpoints.steps()
    assert kept == [5, 10, 11, 12]  # the milestones, and the two newest


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize("step", [0, 3, 4, 12])
def test_stopped_after_a_step_and_continued(make: Make, tmp_path: Path, step: int) -> None:
    """Between validations, at one (which then comes first), and at the last step."""
    whole = losses(list(train_task(*make(), folder=RunFolder(tmp_path / "whole"))))
    first: list[Event] = []

    def enough() -> bool:
        return sum(isinstance(event, Stepped) for event in first) >= step

    for event in train_task(*make(), folder=RunFolder(tmp_path / "cut"), stop=enough):
        first.append(event)
    path = RunFolder(tmp_path / "cut").checkpoints.path(step)
    assert first[-1] == Stopped(step, path) and path.exists()
    rest = list(train_task(*make(), folder=RunFolder(tmp_path / "cut")))
    assert losses(first) + losses(rest) == whole
    assert isinstance(rest[-1], Finished)
    assert len(RunFolder(tmp_path / "cut").log.lines()) == len(whole)


def test_stopped_without_a_folder(make: Make) -> None:
    assert list(train_task(*make(), stop=lambda: True))[-1] == Stopped(0, None)


@pytest.mark.usefixtures("unchecked")
def test_a_run_is_made_longer(make: Make, tmp_path: Path) -> None:
    folder = RunFolder(tmp_path / "run")
    for event in train_task(*make(steps=8), folder=folder):
        if isinstance(event, Started):
            time.sleep(0.07)  # longer than 0.001 minutes, on every machine
    events = list(train_task(*make(steps=13), folder=folder))
    assert [event.step for event in events if isinstance(event, Stepped)] == list(range(9, 14))
    assert [event.total for event in events if isinstance(event, Stepped)] == [13] * 5
    with pytest.raises(InputError, match="has had 13 steps already, so it cannot end after 8"):
        list(train_task(*make(steps=8), folder=folder))
    with pytest.raises(InputError, match=r"minutes already, so it cannot end after 0\.001"):
        list(train_task(*make(steps=None, minutes=0.001), folder=folder))
    events = list(train_task(*make(steps=None, minutes=1.0), folder=folder, stop=lambda: True))
    assert isinstance(events[0], Started) and (events[0].step, events[0].total) == (13, None)


def test_a_run_that_stopped_early_is_made_longer(make: Make, tmp_path: Path) -> None:
    """More steps are a new beginning for its patience."""
    folder = RunFolder(tmp_path / "run")
    worse = {"validate_every": 1, "patience": 1, "matrix_learning_rate": 3.0, "learning_rate": 0.5}
    events = list(train_task(*make(steps=50, **worse), folder=folder))
    last = events[-1]
    assert isinstance(last, Finished) and last.reason == "patience"
    again = list(train_task(*make(steps=60, **worse), folder=folder))
    assert sum(isinstance(event, Stepped) for event in again) >= 1


@pytest.mark.usefixtures("unchecked")
def test_a_loss_that_rises_is_told(make: Make) -> None:
    task, settings = make(
        steps=24, optimiser="adamw", learning_rate=30.0, clip=0.0, validate_every=24, warmup=1,
        schedule="inverse-square-root",
    )  # fmt: skip
    *_, warned, finished = list(train_task(task, settings))
    assert isinstance(warned, Warned) and "the loss has risen" in warned.message
    assert isinstance(finished, Finished) and finished.rose


@pytest.mark.parametrize("better", [True, False])
def test_validations_decide_where_the_start_was_validated(
    make: Make, better: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Batches of short runs differ by more than what was learned."""
    task, settings = make(steps=2, validate_every=2)
    found = iter((3.0, 2.9, 2.9) if better else (3.0, 3.1, 3.1))
    monkeypatch.setattr(loop, "validation_loss", lambda *_: next(found))
    monkeypatch.setattr(loop, "risen", lambda _: (2.0, 9.0))
    events = list(train_task(dataclasses.replace(task, further=True), settings))
    finished = events[-1]
    assert isinstance(finished, Finished) and finished.rose is not better


def test_a_validation_loss_that_is_no_number(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("clearhead.training.loop.validation_loss", lambda *_: float("nan"))
    with pytest.raises(DivergedError, match="at step 4 the validation loss is nan"):
        list(train_task(*make()))
