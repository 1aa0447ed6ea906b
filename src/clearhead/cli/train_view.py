"""The view of a training run: a bar with the loss, samples, and the curve at the end."""

from __future__ import annotations

import shlex
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from clearhead.cli.loading import waiting
from clearhead.cli.looking_options import program
from clearhead.cli.printing import console, say
from clearhead.errors import MissingExtraError
from clearhead.files.text_file import write_text
from clearhead.training.curve import Curve
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
from clearhead.training.run_folder import RunFolder

if TYPE_CHECKING:
    from rich.progress import Progress

RECENT = 20  # steps that the shown loss and speed are the mean of


class TrainView:
    """Listens to a run's events and shows them."""

    def __init__(self, out: Path, *, tensorboard: bool, silent: bool = False) -> None:
        self.out, self.tensorboard, self.silent = out, tensorboard, silent
        self.started: Started | None = None
        self.recent: deque[Stepped] = deque(maxlen=RECENT)
        self.validation = ""
        self.sample: Sampled | None = None
        self.finished: Finished | None = None
        self.stopped: Stopped | None = None
        self.board: Any = None

    def show(self, events: Iterator[Event], begun: Callable[[], None] = lambda: None) -> None:
        """Show every event as it comes; ``begun`` is called when the first one is there."""
        from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

        if self.silent:
            self._listen(events, begun)
            return
        columns = (
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            TimeRemainingColumn(),
        )
        with Progress(*columns, console=console(err=True), transient=True) as bar:
            self.task = bar.add_task("", total=None)
            with waiting("reading the texts …"):
                first = next(events)
            begun()
            self._take(first, bar)
            for event in events:
                self._take(event, bar)
        if self.stopped is not None:
            self._say_how_to_go_on(self.stopped)

    def _listen(self, events: Iterator[Event], begun: Callable[[], None]) -> None:
        """Show nothing: another process does."""
        for event in events:
            begun()
            if isinstance(event, Stopped):
                self.stopped = event
            elif isinstance(event, Finished):
                self.finished = event

    def _take(self, event: Event, bar: Progress) -> None:
        if isinstance(event, Started):
            self.started = event
            self.board = _board(self.out / "training") if self.tensorboard else None
            say(_opening(event))
            bar.update(self.task, completed=event.step, total=event.total)
        elif isinstance(event, Stepped):
            self.recent.append(event)
            bar.update(
                self.task, completed=event.step, total=event.total, description=self._state(event)
            )
        elif isinstance(event, Validated):
            self.validation = f", validation {event.loss:.3f}"
            say(f"step {event.step:>6}  validation loss {event.loss:.4f}"
                       f"{'' if event.best else '  (not the best)'}")  # fmt: skip
        elif isinstance(event, Sampled):
            self.sample = event
            say(f"             {_one_line(event.prompt)} → {_one_line(event.text)}")
        elif isinstance(event, Warned):
            say(f"Warning: {event.message}", err=True)
            if event.hint is not None:
                say(f"Hint: {event.hint}", err=True)
        elif isinstance(event, Stopped):
            self.stopped = event
        elif isinstance(event, Finished):
            self.finished = event
        self._to_board(event)

    def cut_off(self) -> None:
        """Say how to go on after an end that was not waited for."""
        if self.silent:
            return
        if not RunFolder(self.out).begun:
            say("stopped before the run began: nothing was written.", err=True)
            return
        say(f"stopped at once; to continue from the last checkpoint: {self._resume()}",
                   err=True)  # fmt: skip

    def _say_how_to_go_on(self, stopped: Stopped) -> None:
        say(f"stopped after step {stopped.step}.", err=True)
        if stopped.path is not None:
            say(f"checkpoint: {_shown(stopped.path)}", err=True)
        say(f"to continue: {self._resume()}", err=True)

    def _resume(self) -> str:
        return f"{program()} train --resume --out {shlex.quote(str(self.out))}"

    def _state(self, event: Stepped) -> str:
        loss = sum(step.loss for step in self.recent) / len(self.recent)
        seconds = sum(step.seconds for step in self.recent)
        speed = sum(step.tokens for step in self.recent) / max(seconds, 1e-9)
        total = "" if event.total is None else f"/{event.total}"
        return f"step {event.step}{total}  loss {loss:.3f}{self.validation}  {speed:,.0f} tokens/s"

    def finish(self) -> bool:
        """Show the curve and the command that tries the model; True if the loss has risen."""
        assert self.finished is not None
        if not self.silent:
            self._show_result(self.finished)
        return self.finished.rose

    def _show_result(self, finished: Finished) -> None:
        assert self.started is not None
        folder = RunFolder(self.out)
        curve = Curve.from_log(folder.log.lines())
        picture = folder.inside / "curve.svg"
        write_text(picture, curve.svg(f"{self.out.name}: loss"))
        say("\n" + curve.text() + "\n")
        if finished.loss is not None:
            say(
                f"validation loss {finished.loss:.4f}, weights of {finished.weights}"
                + (" (stopped early: no new best for a while)"
                   if finished.reason == "patience" else "")
            )  # fmt: skip
        say(f"loss curve: {_shown(picture)}")
        if self.board is not None:
            self.board.close()
        prompt = _one_line(self.sample.prompt if self.sample else "Once upon a time", 40)
        verb = "translate" if self.started.config.kind == "encoder-decoder" else "generate"
        say(
            f"try it: {program()} {verb} --model {shlex.quote(str(self.out))} {shlex.quote(prompt)}"
        )

    def _to_board(self, event: Event) -> None:
        if self.board is None:
            return
        if isinstance(event, Stepped):
            self.board.add_scalar("loss/training", event.loss, event.step)
            self.board.add_scalar("rate", event.rate, event.step)
        elif isinstance(event, Validated):
            self.board.add_scalar("loss/validation", event.loss, event.step)


def _opening(event: Started) -> str:
    kind = "encoder-decoder" if event.config.kind == "encoder-decoder" else "language model"
    begun = f"continues after step {event.step}" if event.step else "begins"
    learned, held = event.tokens
    return (
        f"{kind} of {event.parameters:,} parameters, vocabulary {event.config.vocab:,}; "
        f"{learned:,} tokens to train on, {held:,} held out to validate on "
        f"({held / max(1, learned + held):.1%}); "
        f"one epoch is {event.batches_per_pass} steps; training {begun}"
    )


def _board(folder: Path) -> Any:
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError:
        raise MissingExtraError("--tensorboard", "tensorboard") from None
    return SummaryWriter(str(folder / "tensorboard"))


def _one_line(text: str, most: int = 60) -> str:
    line = " ".join(text.split())
    return line if len(line) <= most else line[: most - 1] + "…"


def _shown(path: Path) -> str:
    try:
        return str(path.relative_to(Path.cwd()))
    except ValueError:
        return str(path)
