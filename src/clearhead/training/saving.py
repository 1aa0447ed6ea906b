"""What a run saves and takes up again: checkpoints, the model in its folder, the log."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from clearhead.checkpoints.adapters.adapter import Adapter
from clearhead.errors import CheckpointError, InputError
from clearhead.training.events import Saved, Warned
from clearhead.training.optimiser import Optimiser, like, whole
from clearhead.training.processes import Processes
from clearhead.training.run_folder import RunFolder
from clearhead.training.run_folder.checkpoint import Checkpoint, averaged
from clearhead.training.run_folder.log import EMPTY
from clearhead.training.run_folder.progress import Facts, LogPosition, Progress
from clearhead.training.schedule import Pace
from clearhead.training.settings import CHANGEABLE, LENGTH, TrainingSettings
from clearhead.training.tasks.parameters import adapters_of
from clearhead.training.tasks.task import Task

NEWEST = 2  # checkpoints that are always kept: if the last is damaged, there is another
Restored = tuple[Progress, list[Warned]]


class Saving:
    """The files of one run, from the side of the loop. Without a folder, nothing is kept."""

    def __init__(
        self, task: Task, settings: TrainingSettings, folder: RunFolder | None,
        optimiser: Optimiser, processes: Processes,
    ) -> None:  # fmt: skip
        self.task, self.settings, self.folder = task, settings, folder
        self.optimiser, self.processes = optimiser, processes
        self.last: tuple[int, Path] | None = None  # step and path of the newest checkpoint
        self.recorded: dict[int, Pace] = {}  # by step: what was decided after the last checkpoint

    # checkpoints

    def save(self, progress: Progress) -> Iterator[Saved]:
        """Write a checkpoint and the model; all processes take part, the first one writes."""
        if self.folder is None:
            return
        weights, state = self.weights(), self.optimiser.state()
        if not self.processes.writes:
            self.last = (progress.step, self.folder.checkpoints.path(progress.step))
            return
        with self.folder.explained():
            position = self.folder.log.position()
        facts = Facts(progress, position, dataclasses.asdict(self.settings))
        path = self.folder.checkpoints.write(Checkpoint(weights, state, facts))
        self.last = (progress.step, path)
        best = [] if progress.best is None else [progress.best[1]]
        newest = self.folder.checkpoints.steps()[-NEWEST:]
        self.folder.checkpoints.keep([*newest, *progress.milestones, *best])
        self._publish(self.folder, weights)
        if self.keeps(progress.step):
            self.folder.keep(progress.step)
        yield Saved(progress.step, path)

    def _publish(self, folder: RunFolder, weights: dict[str, Tensor]) -> None:
        """Put the model, or its adapters, where ``load`` finds them."""
        model, tokenizer = self.task.model, self.task.tokenizer
        if self.task.base is None:
            folder.publish(model.config, weights, tokenizer)
            return
        adapter = Adapter(adapters_of(model), self.task.base, self.settings.lora_dropout)
        folder.publish_adapter(model.config, adapter, tokenizer)

    def keeps(self, step: int) -> bool:
        """True if the model of this step is to be kept for good."""
        every = self.settings.keep_every
        return every is not None and step % every == 0

    def log_pace(self, pace: Pace) -> None:
        """Write down what was decided: if the steps after it are lost, they are done again so."""
        self.log(step=pace.step, total=pace.total, done=pace.done)

    def log(self, **line: Any) -> None:
        """Add a line to the log."""
        if self.folder is not None and self.processes.writes:
            with self.folder.explained():
                self.folder.log.append(line)

    # resuming

    def restore(self) -> Restored:
        """Take up the newest checkpoint that is whole; say which were not."""
        if self.folder is None or not self._has_checkpoints(self.folder):
            self._clean(EMPTY, 0)
            return Progress(pace=self._asked_for()), []
        held, warnings = self._newest(self.folder)
        self._check_settings(held)
        self.take(held.weights)
        self.optimiser.restore(held.optimiser, begun=held.step > 0)
        self.last = (held.step, self.folder.checkpoints.path(held.step))
        self.recorded = self._decided_after(held)
        progress = self._with_length(held)
        wrong = self._clean(held.facts.log, held.step)
        return progress, warnings + ([] if wrong is None else [Warned(held.step, wrong)])

    def _has_checkpoints(self, folder: RunFolder) -> bool:
        """As the first process sees it: it may have written one before another one looks."""
        return self.processes.agree(float(bool(folder.checkpoints.steps()))) > 0

    def _newest(self, folder: RunFolder) -> tuple[Checkpoint, list[Warned]]:
        """The newest whole checkpoint; the first process chooses, so that all take the same."""
        held: Checkpoint | None = None
        warnings: list[Warned] = []
        if self.processes.writes:
            held, warnings = _newest_whole(folder)
        step = int(self.processes.agree(-1.0 if held is None else float(held.step)))
        if step < 0:
            raise CheckpointError(
                f"no checkpoint in {folder.inside} is whole: every one is damaged.",
                hint="the model in the folder may still be: --from (start_from=) begins a new run "
                "with it.",
            )
        return held or folder.checkpoints.read(step), warnings

    def _check_settings(self, held: Checkpoint) -> None:
        now, then = dataclasses.asdict(self.settings), held.facts.settings
        differ = sorted(
            name for name in now.keys() | then.keys()
            if name not in CHANGEABLE and now.get(name) != then.get(name)
        )  # fmt: skip
        if differ:
            assert self.folder is not None
            raise CheckpointError(
                f"the run in {self.folder.folder} has other settings than these: "
                f"{', '.join(differ)}.",
                hint="a run is continued with the settings that it began with.",
            )

    def _decided_after(self, held: Checkpoint) -> dict[int, Pace]:
        """The paces in the log that are newer than the checkpoint; for the first process."""
        if self.folder is None or not self.processes.writes:
            return {}
        lines = self.folder.log.lines()
        learned = {line["step"] for line in lines if "loss" in line}
        last = held.step  # the last step that the log has without a gap
        while last + 1 in learned:
            last += 1
        decided = [line for line in lines if {"total", "done"} <= line.keys()]
        paces = {line["step"]: _pace(line) for line in decided if held.step < line["step"] <= last}
        return {step: pace for step, pace in paces.items() if pace is not None}

    def _with_length(self, held: Checkpoint) -> Progress:
        """The progress, with a new length if another one is asked for."""
        progress, settings = held.facts.progress, self.settings
        if all(held.facts.settings.get(name) == getattr(settings, name) for name in LENGTH):
            return progress
        if settings.steps is not None and settings.steps <= progress.step:
            raise InputError(
                f"the run has had {progress.step} steps already, so it cannot end after "
                f"{settings.steps}.",
                hint="steps counts from the beginning of the run: ask for more.",
            )
        if settings.minutes is not None and 60 * settings.minutes <= progress.seconds:
            raise InputError(
                f"the run has taken {progress.seconds / 60:.1f} minutes already, so it cannot end "
                f"after {settings.minutes:g}.",
                hint="minutes count from the beginning of the run: ask for more.",
            )
        self.recorded.clear()
        return dataclasses.replace(progress, pace=self._asked_for(), stale=0)

    def _asked_for(self) -> Pace | None:
        return None if self.settings.steps is None else Pace(self.settings.steps)

    def _clean(self, position: LogPosition, step: int) -> str | None:
        """Bring log, record and folder up to this checkpoint; what is wrong with the log."""
        if self.folder is None or not self.processes.writes:
            return None
        self.folder.sweep()
        if self.folder.begun:
            self.folder.amend(dataclasses.asdict(self.settings))
        with self.folder.explained():
            return self.folder.log.cut(position, step)

    # weights

    def _kept(self) -> dict[str, nn.Parameter]:
        """The parameters that a checkpoint holds: all, or with a base those of the adapters."""
        named = self.task.model.named_parameters()
        return {name: p for name, p in named if self.task.base is None or p.requires_grad}

    def weights(self) -> dict[str, Tensor]:
        """Every parameter that is kept as it is now, whole, on the CPU."""
        return {name: whole(p).cpu().clone() for name, p in self._kept().items()}

    def take(self, weights: dict[str, Tensor]) -> None:
        """Set every parameter that is kept."""
        named = self._kept()
        wanted = {name: (tuple(p.shape), p.dtype) for name, p in named.items()}
        found = {name: (tuple(t.shape), t.dtype) for name, t in weights.items()}
        if wanted != found:
            differ = {name for name in wanted.keys() | found.keys()
                      if wanted.get(name) != found.get(name)}  # fmt: skip
            raise CheckpointError(
                f"the checkpoint is of another model: {len(differ)} parameters differ in name, "
                "shape or dtype.",
                hint="has the config or the tokenizer changed since the run began?",
            )
        with torch.no_grad():
            for name, parameter in named.items():
                parameter.copy_(like(weights[name], parameter, "weight"))

    # the end

    def choose(
        self, progress: Progress, validation_loss: Callable[[], float]
    ) -> tuple[str, float | None, list[Warned]]:
        """Take and publish the best of: the last weights, the best ones, the mean of the last.

        Returns which they are, their validation loss, and what could not be read.
        """
        chosen, loss = f"step {progress.step}", progress.loss
        warnings: list[Warned] = []
        if self.folder is None or loss is None or progress.best is None:
            return chosen, loss, warnings
        self.processes.sum(0.0)  # wait until the last checkpoint is there
        weights = self.weights()
        for name, known, read in self._candidates(progress):
            try:
                candidate = read()
            except CheckpointError as error:
                warnings.append(Warned(progress.step, f"{error.message} {name} is left out."))
                continue
            self.take(candidate)
            found = validation_loss() if known is None else known
            if found <= loss:
                chosen, loss, weights = name, found, candidate
        self.take(weights)
        weights = self.weights()  # all processes take part
        if self.processes.writes:
            self._publish(self.folder, weights)
        return chosen, loss, warnings

    def _candidates(
        self, progress: Progress
    ) -> Iterator[tuple[str, float | None, Callable[[], dict[str, Tensor]]]]:
        """Weights by name, with their validation loss where it is known."""
        assert self.folder is not None and progress.best is not None and progress.loss is not None
        checkpoints, best, steps = self.folder.checkpoints, progress.best, progress.milestones
        if best[0] < progress.loss:
            yield f"step {best[1]}", best[0], lambda: checkpoints.read(best[1]).weights
        if len(steps) > 1 and self.settings.average > 1:
            name = f"mean of steps {steps[0]} … {steps[-1]}"
            yield name, None, lambda: averaged(checkpoints, steps)


def _pace(line: dict[str, Any]) -> Pace | None:
    try:
        return Pace(int(line["total"]), line["step"], float(line["done"]))
    except ValueError:  # not what was written
        return None


def _newest_whole(folder: RunFolder) -> tuple[Checkpoint | None, list[Warned]]:
    warnings: list[Warned] = []
    for step in reversed(folder.checkpoints.steps()):
        try:
            return folder.checkpoints.read(step), warnings
        except CheckpointError as error:
            aside = folder.checkpoints.set_aside(step)
            warnings.append(
                Warned(
                    step,
                    f"{error.message} The run continues from the checkpoint before it, to the same "
                    f"numbers. The damaged file is now {aside.name}.",
                    hint="a disk or a copy that damages files may do it again: check it.",
                )
            )
    return None, warnings
