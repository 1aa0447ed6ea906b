"""The training loop: batch, loss, gradient, step; at intervals a validation and a checkpoint."""

from __future__ import annotations

import dataclasses
import math
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager
from typing import Any

import torch
from torch import Tensor, nn

from clearhead.errors import CheckpointError, ClearheadError, InputError
from clearhead.training.checkpoint import Checkpoint, averaged
from clearhead.training.data.batch import Batch
from clearhead.training.events import (
    Event,
    Finished,
    Sampled,
    Saved,
    Started,
    Stepped,
    Validated,
)
from clearhead.training.objectives import objective_of
from clearhead.training.optimiser import Optimiser, like, whole
from clearhead.training.precision import mixed_precision
from clearhead.training.processes import ALONE, Processes
from clearhead.training.random_seed import seeded_for
from clearhead.training.run_folder import RunFolder
from clearhead.training.schedule import planned_steps, rate_factor
from clearhead.training.settings import TrainingSettings
from clearhead.training.task import Task
from clearhead.training.validation import validation_loss


class DivergedError(ClearheadError):
    """The loss is no longer a finite number."""


def train_task(
    task: Task,
    settings: TrainingSettings,
    *,
    folder: RunFolder | None = None,
    processes: Processes = ALONE,
) -> Iterator[Event]:
    """Train the task's model in place; yield an event for everything that happens.

    With a folder, the run continues from the newest checkpoint in it, if there is one, to the same
    numbers as if it had never stopped; the model in the folder is the one of the last checkpoint,
    and in the end the best of: the last weights, the best ones, the mean of the last checkpoints.
    """
    yield from Run(task, settings, folder, processes).events()


class Run:
    """The state of one run, and its next steps."""

    def __init__(
        self, task: Task, settings: TrainingSettings, folder: RunFolder | None, processes: Processes
    ) -> None:
        self.task, self.settings, self.folder, self.processes = task, settings, folder, processes
        self.device = next(task.model.parameters()).device
        task.model.requires_grad_(True)
        self.objective = objective_of(task.model)
        self.wrapped: nn.Module = processes.wrap(self.objective, self.device)
        self.optimiser = Optimiser(task.model, settings)
        self.step, self.total = 0, settings.steps
        self.best: tuple[float, int] | None = None  # validation loss, and at which step
        self.validated: int = -1  # the last step that was
        self.loss: float | None = None  # of the last validation
        self.stale = 0  # validations since the best one
        self.began = time.perf_counter()

    def events(self) -> Iterator[Event]:
        """All events, from the first step or the last checkpoint to the end."""
        self._restore()
        count = sum(parameter.numel() for parameter in self.task.model.parameters())
        yield Started(
            self.step, self.total, count, self.task.batches.batches_per_pass, self.task.model.config
        )
        if self.step == 0:
            yield from self._checkpoint()
        while not self._over():
            yield self._learn()
            if self._planned() or self.step % self.settings.validate_every == 0 or self._over():
                yield from self._validate()
                yield from self._checkpoint()
                yield from self._sample()
        yield self._finish()

    # one step

    def _learn(self) -> Stepped:
        began = time.perf_counter()
        batch = self.task.batches.batch(self.step)
        tokens = batch.tokens
        factor = rate_factor(self.settings, self.step, self.total)
        self.task.model.train()
        self.optimiser.set_rate(factor)
        self.optimiser.clear()
        pieces = self._pieces(batch)
        loss = 0.0
        with seeded_for(
            "step", self.settings.seed, self.step, self.processes.rank, device=self.device
        ):
            for number, piece in enumerate(pieces, start=1):
                with self.processes.silent(self.wrapped, number < len(pieces)):
                    loss += self._gradient(piece.to(self.device), tokens)
        loss = self.processes.sum(loss)[0]
        norm = self._clip()
        self._check_finite(loss, norm)
        self.optimiser.step()
        self.step += 1
        stepped = Stepped(
            self.step, loss, tokens, time.perf_counter() - began, factor, norm, self.total
        )
        self._log({"step": self.step, "loss": loss, "tokens": tokens, "seconds": stepped.seconds})
        return stepped

    def _pieces(self, batch: Batch) -> list[Batch]:
        """This process's share of a batch, in as many parts as the largest share has.

        Sharded models are computed by all processes at once: none may be done before the others.
        """
        rank, count = self.processes.rank, self.processes.count
        pieces = batch.share(rank, count).parts(self.settings.accumulation)
        most = len(batch.share(0, count).parts(self.settings.accumulation))
        nothing = batch.share(batch.rows, count)
        return pieces + [nothing] * (most - len(pieces))

    def _gradient(self, piece: Any, tokens: int) -> float:
        """Add the gradient of a part of the batch; its share of the mean loss of a token."""
        try:
            with self._precision():
                loss: Tensor = self.wrapped(piece, self.settings.label_smoothing) / tokens
        except InputError:  # attention refuses NaN; here we know that the weights have it
            self._check_finite(self._sum_of_weights(), 0.0)
            raise
        (loss * self.processes.count).backward()  # type: ignore[no-untyped-call]
        return float(loss.detach())

    def _precision(self) -> AbstractContextManager[Any]:
        width = self.task.model.config.model
        return mixed_precision(self.settings.precision, self.device, width)

    def _clip(self) -> float:
        """Clip the gradient, and return its norm from before."""
        most = self.settings.clip or math.inf
        norm = torch.nn.utils.clip_grad_norm_(self.task.model.parameters(), most)
        return float(whole(norm))

    def _sum_of_weights(self) -> float:
        """Not finite as soon as one weight is not."""
        return sum(float(whole(p).abs().sum()) for p in self.task.model.parameters())

    def _check_finite(self, loss: float, norm: float) -> None:
        if math.isfinite(loss) and math.isfinite(norm):
            return
        raise DivergedError(
            f"at step {self.step + 1} the loss is {loss} and its gradient's norm {norm}: the run "
            "has diverged.",
            hint="lower learning_rate and matrix_learning_rate, or warm up longer; the last "
            "checkpoint is from before it.",
        )

    # length of the run

    def _over(self) -> bool:
        if self.total is not None and self.step >= self.total:
            return True
        return self.settings.patience is not None and self.stale >= self.settings.patience

    def _planned(self) -> bool:
        """True if the number of steps that fit into the minutes has just been decided."""
        if self.total is not None or self.settings.minutes is None:
            return False
        spent = self.processes.agree(time.perf_counter() - self.began)
        self.total = planned_steps(self.step, spent, self.settings.minutes)
        return self.total is not None

    # validation and samples

    def _validate(self) -> Iterator[Event]:
        if not self.task.validation or self.validated == self.step:
            return
        self.loss, self.validated = self._validation_loss(), self.step
        better = self.best is None or self.loss < self.best[0]
        self.stale = 0 if better else self.stale + 1
        if better:
            self.best = (self.loss, self.step)
        self._log({"step": self.step, "validation": self.loss})
        yield Validated(self.step, self.loss, better)

    def _validation_loss(self) -> float:
        self.task.model.eval()
        objective = self.wrapped if self.processes.sharded else self.objective
        return validation_loss(
            objective, self.task.validation, self.processes, self.device, self._precision()
        )

    def _sample(self) -> Iterator[Event]:
        if self.task.sample is None or not self.processes.writes or self.processes.sharded:
            return
        self.task.model.eval()
        prompt, text = self.task.sample()
        yield Sampled(self.step, prompt, text)

    # checkpoints

    def _checkpoint(self) -> Iterator[Event]:
        if self.folder is None:
            return
        weights, state = self._weights(), self.optimiser.state()  # all processes take part
        if not self.processes.writes:
            return
        facts = {
            "step": self.step, "total": self.total, "best": self.best, "stale": self.stale,
            "validated": self.validated, "loss": self.loss,
            "settings": dataclasses.asdict(self.settings),
        }  # fmt: skip
        path = self.folder.checkpoints.write(Checkpoint(self.step, weights, state, facts))
        kept = self.folder.checkpoints.steps()[-max(self.settings.average, 2) :]
        self.folder.checkpoints.keep(kept if self.best is None else [*kept, self.best[1]])
        self.folder.publish(self.task.model.config, weights, self.task.tokenizer)
        yield Saved(self.step, path)

    def _restore(self) -> None:
        steps = [] if self.folder is None else self.folder.checkpoints.steps()
        if self.folder is None or not steps:
            return
        held = self.folder.checkpoints.read(steps[-1])
        self._take(held.weights)
        self.optimiser.restore(held.optimiser)
        facts = held.facts
        if facts["settings"] != dataclasses.asdict(self.settings):
            raise CheckpointError(
                f"the run in {self.folder.folder} has other settings than these.",
                hint="a run is continued with the settings that it began with.",
            )
        self.step, self.total, self.stale = facts["step"], facts["total"], facts["stale"]
        self.best = None if facts["best"] is None else (facts["best"][0], facts["best"][1])
        self.validated, self.loss = facts["validated"], facts["loss"]
        if self.processes.writes:
            self.folder.rewind(self.step)

    def _weights(self) -> dict[str, Tensor]:
        """Every parameter as it is now, whole, on the CPU."""
        named = self.task.model.named_parameters()
        return {name: whole(parameter).cpu().clone() for name, parameter in named}

    def _take(self, weights: dict[str, Tensor]) -> None:
        named = dict(self.task.model.named_parameters())
        if set(named) != set(weights):
            raise CheckpointError(
                "the checkpoint is of another model: "
                f"{len(set(named) ^ set(weights))} names differ.",
                hint="has the config or the tokenizer changed since the run began?",
            )
        with torch.no_grad():
            for name, parameter in named.items():
                parameter.copy_(like(weights[name], parameter, "weight"))

    def _finish(self) -> Finished:
        """The best of the last weights, the best ones and the mean of the last checkpoints."""
        reason = "steps" if self.total is not None and self.step >= self.total else "patience"
        chosen, loss = f"step {self.step}", self.loss
        if self.folder is not None and loss is not None and self.best is not None:
            chosen, loss = self._choose(loss, self.best)
            weights = self._weights()
            if self.processes.writes:
                self.folder.publish(self.task.model.config, weights, self.task.tokenizer)
        self.task.model.eval()
        folder = None if self.folder is None else self.folder.folder
        return Finished(self.step, reason, loss, chosen, folder)  # type: ignore[arg-type]

    def _choose(self, loss: float, best: tuple[float, int]) -> tuple[str, float]:
        assert self.folder is not None
        self.processes.sum(0.0)  # wait until the last checkpoint is there
        checkpoints, chosen = self.folder.checkpoints, f"step {self.step}"
        steps = [step for step in checkpoints.steps() if step][-self.settings.average :]
        candidates: list[tuple[str, dict[str, Tensor]]] = []
        if best[0] < loss:
            candidates.append((f"step {best[1]}", checkpoints.read(best[1]).weights))
        if len(steps) > 1 and self.settings.average > 1:
            candidates.append(
                (f"mean of steps {steps[0]} … {steps[-1]}", averaged(checkpoints, steps))
            )
        weights = self._weights()
        for name, candidate in candidates:
            self._take(candidate)
            found = self._validation_loss()
            if found <= loss:
                chosen, loss, weights = name, found, candidate
        self._take(weights)
        return chosen, loss

    def _log(self, line: dict[str, Any]) -> None:
        if self.folder is not None and self.processes.writes:
            self.folder.log(line)
