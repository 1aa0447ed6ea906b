"""The training loop: batch, loss, gradient, step; at intervals a validation and a checkpoint."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Literal

import torch
from torch import Tensor, nn

from clearhead.errors import InputError
from clearhead.training.data.batches.batch import Batch
from clearhead.training.divergence import check_finite, risen
from clearhead.training.events import (
    Event,
    Finished,
    Sampled,
    Started,
    Stepped,
    Stopped,
    Validated,
    Warned,
)
from clearhead.training.head_statistics import HeadObserver, as_line
from clearhead.training.objectives import objective_of
from clearhead.training.optimiser import Optimiser, whole
from clearhead.training.precision import mixed_precision
from clearhead.training.processes import ALONE, Processes
from clearhead.training.products import quick_products
from clearhead.training.random_seed import seeded_for
from clearhead.training.run_folder import RunFolder
from clearhead.training.run_folder.progress import Progress
from clearhead.training.saving import Saving
from clearhead.training.schedule import Pace, Stopwatch, rate_factor
from clearhead.training.settings import TrainingSettings
from clearhead.training.tasks.parameters import train_only
from clearhead.training.tasks.task import Task
from clearhead.training.validation import bits_per_byte, validation_loss

Stop = Callable[[], bool]


def never() -> bool:
    """The answer of nobody who wants to stop."""
    return False


def train_task(
    task: Task,
    settings: TrainingSettings,
    *,
    folder: RunFolder | None = None,
    processes: Processes = ALONE,
    stop: Stop = never,
) -> Iterator[Event]:
    """Train the task's model in place; yield an event for everything that happens.

    With a folder, the run continues from the newest checkpoint in it, if there is one, to the same
    numbers as if it had never stopped; the model in the folder is the one of the last checkpoint,
    and in the end the best of: the last weights, the best ones, the mean of the last checkpoints.
    As soon as ``stop()`` is true, a checkpoint is written and the run ends with ``Stopped``.
    """
    locked = folder is not None and processes.writes
    with folder.locked() if folder is not None and locked else nullcontext():
        yield from Run(task, settings, folder, processes, stop).events()


class Run:
    """The state of one run, and its next steps."""

    def __init__(
        self, task: Task, settings: TrainingSettings, folder: RunFolder | None,
        processes: Processes, stop: Stop = never,
    ) -> None:  # fmt: skip
        self.task, self.settings, self.processes, self.stop = task, settings, processes, stop
        self.device = next(task.model.parameters()).device
        train_only(task.model, settings)
        self.objective = objective_of(task.model) if task.objective is None else task.objective
        self.wrapped: nn.Module = processes.wrap(self.objective, self.device)
        self.optimiser = Optimiser(task.model, settings)
        self.saving = Saving(task, settings, folder, self.optimiser, processes)
        self.progress = Progress()
        self.watch: Stopwatch | None = None  # of a run of so many minutes
        # as all processes agreed in the last step:
        self.stopping = self.save_now = self.plan_now = False

    def events(self) -> Iterator[Event]:
        """All events, from the first step or the last checkpoint to the end."""
        self.progress, warnings = self.saving.restore()
        self._start_clocks()
        yield from warnings
        parameters = list(self.task.model.parameters())
        yield Started(
            self.progress.step, self.progress.total, sum(p.numel() for p in parameters),
            self.task.batches.batches_per_pass, self.task.model.config, self.task.tokens,
            sum(p.numel() for p in parameters if p.requires_grad),
            self.task.validated, self.task.held_out,
        )  # fmt: skip
        if self.progress.step == 0:
            for note in self.task.notes:
                yield Warned(0, note)
            yield from self._begin()
        while True:
            if self._due() and not self._stops():
                yield from self._validate()
            if self._stops():
                yield from self._stopped()
                return
            if self._over():
                break
            yield self._learn()
            if (self.save_now or self.saving.keeps(self.progress.step)) and not self._due():
                yield from self._save()
        yield from self._finish()

    def _begin(self) -> Iterator[Event]:
        """The first checkpoint. A model that was trained before is validated first: the start
        competes with what comes of it."""
        began = time.perf_counter()
        if self.task.further and self.task.validation and self.progress.best is None:
            validated = self._validated_now()
            if validated is None:
                return  # stopped before it began
            yield validated
        yield from self._save()
        if self.watch is not None:
            self.watch.validation = time.perf_counter() - began

    # one step

    @quick_products()
    def _learn(self) -> Stepped:
        began = time.perf_counter()
        step, total = self.progress.step, self.progress.total
        batch = self.task.batches.batch(step)
        tokens = batch.tokens
        factor = rate_factor(self.settings, step, self.progress.pace)
        self.task.model.train()
        self.optimiser.set_rate(factor)
        self.optimiser.clear()
        pieces = self._pieces(batch)
        loss = 0.0
        with seeded_for("step", self.settings.seed, step, self.processes.rank, device=self.device):
            for number, piece in enumerate(pieces, start=1):
                with self.processes.silent(self.wrapped, number < len(pieces)):
                    loss += self._gradient(piece.to(self.device), tokens)
        loss = self._agree(loss)
        norm = self._clip()
        check_finite(step + 1, loss=loss, norm_of_the_gradient=norm)
        self.optimiser.step()
        self.progress.stepped(loss)
        rate = factor * self.settings.learning_rate
        seconds = time.perf_counter() - began
        stepped = Stepped(step + 1, loss, tokens, seconds, factor, norm, total, rate)
        self.saving.log(
            step=step + 1, loss=loss, tokens=tokens, seconds=seconds, learning_rate=rate,
            gradient=norm,
        )  # fmt: skip
        self._plan(stepped.seconds)
        return stepped

    def _agree(self, loss: float) -> float:
        """The loss of all processes; and if one wants to stop, or the first to save or to plan.

        One exchange for all of it: processes that disagree would wait for each other forever.
        """
        waited = time.perf_counter() - self.saved_at >= 60 * self.settings.checkpoint_minutes
        first = self.processes.writes
        wishes = float(self.stop()), float(waited and first), float(first and self._plan_is_due())
        loss, stops, saves, plans = self.processes.sum(loss, *wishes)
        self.stopping, self.save_now, self.plan_now = stops > 0, saves > 0, plans > 0
        return loss

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
                total: Tensor = self.wrapped(piece, self.settings.label_smoothing)
                loss = total / max(1, tokens)  # texts of single tokens: nothing to predict
        except InputError:  # attention refuses NaN; here we know that the weights have it
            check_finite(self.progress.step + 1, loss=self._sum_of_weights())
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

    # length of the run

    def _start_clocks(self) -> None:
        self.began = self.saved_at = time.perf_counter()
        self.before, minutes = self.progress.seconds, self.settings.minutes
        self.watch = None if minutes is None else Stopwatch(minutes, self.before)

    def _over(self) -> bool:
        if self._all_steps():
            return True
        return self.settings.patience is not None and self.progress.stale >= self.settings.patience

    def _all_steps(self) -> bool:
        return self.progress.total is not None and self.progress.step >= self.progress.total

    def _plan_is_due(self) -> bool:
        """True if it is time for an estimate, or if one was made here before the run was killed."""
        if self.watch is None:
            return False
        recorded = self.saving.recorded
        return self.progress.step + 1 in recorded or (
            not recorded and self.watch.due(self._now(), running=1)
        )

    def _plan(self, seconds: float) -> None:
        """Estimate again after which step the minutes are over; or take what was decided before.

        What was decided is in the log, so steps that a kill has lost are done again as they were.
        The first process decides for all.
        """
        if self.watch is None:
            return
        self.watch.stepped(seconds)
        if not self.plan_now:
            return
        step = self.progress.step
        pace = self.saving.recorded.pop(step, None) or self._estimated(self.watch, step)
        total, done = map(self.processes.agree, (float(pace.total), pace.done))
        self.progress.pace = Pace(int(total), step, done)
        self.saving.log_pace(self.progress.pace)

    def _estimated(self, watch: Stopwatch, step: int) -> Pace:
        endings = 2 if self.settings.average > 1 else 1  # the last weights, the mean of several
        every = self.settings.validate_every
        return watch.estimated(
            self.progress.pace, step, self._now(), validate_every=every, endings=endings
        )

    def _now(self) -> float:
        """Seconds since this life of the run began."""
        return time.perf_counter() - self.began

    def _stops(self) -> bool:
        """True if somebody wants to stop. All processes stop after the same step."""
        if self._over() and not self._due():
            return False  # it is done
        return self.stopping or (self.processes.count == 1 and self.stop())

    def _stopped(self) -> Iterator[Event]:
        last = self.saving.last
        if last is None or last[0] != self.progress.step:
            yield from self._save()
        step, path = self.progress.step, None
        if self.saving.last is not None:
            step, path = self.saving.last
        yield Stopped(step, path)

    # validation, samples, checkpoints

    def _due(self) -> bool:
        """True if this step is one to validate after, and that has not been done."""
        step = self.progress.step
        if step == 0 or self.progress.at_milestone:
            return False
        return step % self.settings.validate_every == 0 or self._all_steps()

    def _validate(self) -> Iterator[Event]:
        """Validate, write a checkpoint, generate a sample."""
        began = time.perf_counter()
        if self.task.validation:
            validated = self._validated_now()
            if validated is None:
                return  # stopped: this validation comes first when the run continues
            yield validated
        self.progress.reached(self.settings.average)
        yield from self._save()
        yield from self._sample()
        if self.watch is not None:
            self.watch.validation = time.perf_counter() - began

    def _validated_now(self) -> Validated | None:
        """Validate, and note how good it is; None if somebody stopped the run meanwhile."""
        observer = HeadObserver()
        loss = self._validation_loss(self.stop if self.processes.count == 1 else never, observer)
        if loss is None:
            return None
        check_finite(self.progress.step, validation_loss=loss)
        return self._validated(loss, self.progress.validated(loss), observer)

    def _validated(self, loss: float, better: bool, observer: HeadObserver) -> Validated:
        """Write a validation down: its loss, bits per byte, and what each head does."""
        bits = bits_per_byte(loss, self.task.bytes_per_token)
        heads = observer.by_name(self.task.model.config)
        more: dict[str, Any] = {} if bits is None else {"bits_per_byte": bits}
        more |= {"heads": as_line(heads)} if heads else {}
        self.saving.log(step=self.progress.step, validation=loss, **more)
        return Validated(self.progress.step, loss, better, bits, heads)

    @quick_products()
    def _validation_loss(
        self, stop: Stop = never, observer: HeadObserver | None = None
    ) -> float | None:
        self.task.model.eval()
        objective = self.wrapped if self.processes.sharded else self.objective
        return validation_loss(
            objective, self.task.validation, self.processes, self.device, self._precision(), stop,
            observer,
        )  # fmt: skip

    def _sample(self) -> Iterator[Event]:
        if self.task.sample is None or not self.processes.writes or self.processes.sharded:
            return
        self.task.model.eval()
        prompt, text = self.task.sample()
        yield Sampled(self.progress.step, prompt, text)

    def _save(self) -> Iterator[Event]:
        self.progress.seconds = self.before + time.perf_counter() - self.began
        yield from self.saving.save(self.progress)
        self.saved_at, self.save_now = time.perf_counter(), False

    # the end

    def _finish(self) -> Iterator[Event]:
        """The best of the last weights, the best ones and the mean of the last checkpoints."""
        chosen, loss, warnings = self.saving.choose(self.progress, self._final_loss)
        yield from warnings
        self.task.model.eval()
        rose = None if self._improved_on_the_start() else risen(self.progress)
        if rose is not None:
            yield Warned(
                self.progress.step,
                f"the loss has risen: {rose[0]:.4f} at the beginning, {rose[1]:.4f} at the end. "
                "The model has learned nothing that lasts.",
                hint="lower learning_rate and matrix_learning_rate, or warm up longer.",
            )
        folder = None if self.saving.folder is None else self.saving.folder.folder
        reason: Literal["steps", "patience"] = "steps" if self._all_steps() else "patience"
        yield Finished(self.progress.step, reason, loss, chosen, folder, rose is not None)

    def _improved_on_the_start(self) -> bool:
        """True if the start was validated, and the end is the best of all validations.

        That says more than the losses of single batches, of which short runs have few.
        """
        best = self.progress.best
        return self.task.further and self.progress.stale == 0 and best is not None and best[1] > 0

    def _final_loss(self) -> float:
        loss = self._validation_loss()
        assert loss is not None
        return loss
