"""The view of a training run: a bar with the loss, samples, and the curve at the end."""

from __future__ import annotations

import math
import shlex
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from clearhead.checkpoints.adapters.base import is_adapter
from clearhead.checkpoints.load import has_tokenizer
from clearhead.cli.loading import waiting
from clearhead.cli.looking_options import program
from clearhead.cli.printing import console, say
from clearhead.errors import MissingExtraError
from clearhead.files.text_file import write_text
from clearhead.models.config import ModelConfig
from clearhead.text.folder import load_tokenizer
from clearhead.training.curve import Curve
from clearhead.training.events import (
    Event,
    Finished,
    Read,
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

PROMPT, SAMPLE = 24, 63  # characters that are shown of a prompt, and of it with what follows
RECENT = 20  # steps that the shown loss and speed are the mean of


class TrainView:
    """Listens to a run's events and shows them."""

    def __init__(self, out: Path, *, tensorboard: bool, silent: bool = False) -> None:
        self.out, self.tensorboard, self.silent = out, tensorboard, silent
        if tensorboard:
            _writer_of_boards()  # before anything is begun: it may not be installed
        self.started: Started | None = None
        self.recent: deque[Stepped] = deque(maxlen=RECENT)
        self.validation = ""
        self.sample: Sampled | None = None
        self.finished: Finished | None = None
        self.stopped: Stopped | None = None
        self.board: Any = None
        self.tokens = 0  # that were learned from

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
                event: Event | None = next(events)
            while event is not None:
                if not isinstance(event, Read | Warned):
                    begun()  # from now on, a signal ends a step, not the reading of the texts
                self._take(event, bar)
                event = next(events, None)
        if self.stopped is not None:
            self._say_how_to_go_on(self.stopped)

    def _listen(self, events: Iterator[Event], begun: Callable[[], None]) -> None:
        """Show nothing: another process does."""
        for event in events:
            if not isinstance(event, Read | Warned):
                begun()
            if isinstance(event, Stopped):
                self.stopped = event
            elif isinstance(event, Finished):
                self.finished = event

    def _take(self, event: Event, bar: Progress) -> None:
        if isinstance(event, Read):
            bar.update(self.task, completed=event.done, total=event.total or None,
                       description=_reading(event))  # fmt: skip
        elif isinstance(event, Started):
            self.started = event
            self.board = _board(self.out / "training") if self.tensorboard else None
            for line in _opening(event):
                say(line)
            beginning = "validating the model as it is …" if event.step == 0 else ""
            bar.update(self.task, completed=event.step, total=event.total, description=beginning)
        elif isinstance(event, Stepped):
            self.recent.append(event)
            bar.update(
                self.task, completed=event.step, total=event.total, description=self._state(event)
            )
        elif isinstance(event, Validated):
            self.validation = f", validation {event.loss:.3f}"
            bits = "" if event.bits_per_byte is None else f"  {event.bits_per_byte:.4f} bits/byte"
            remark = "" if event.best else "  (not the best)"
            if event.step == 0:
                remark = "  (before training)"
            say(f"step {event.step:>6}  validation loss {event.loss:.4f}{bits}{remark}")
        elif isinstance(event, Sampled):
            self.sample = event
            prompt = _one_line(event.prompt, PROMPT)
            text = _one_line(event.text, SAMPLE - len(prompt))
            say(f"             {prompt} → {text}")
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
        lines = folder.log.lines()
        curve = Curve.from_log(lines)
        picture = folder.inside / "curve.svg"
        write_text(picture, curve.svg(f"{self.out.name}: loss"))
        say("\n" + curve.text() + "\n")
        start = next((line["validation"] for line in lines if _is_start(line)), None)
        if finished.loss is not None:
            say(
                f"validation loss {finished.loss:.4f}"
                + (f" ({start:.4f} before training)" if start is not None else "")
                + f", weights of {finished.weights}"
                + (" (stopped early: no new best for a while)"
                   if finished.reason == "patience" else "")
            )  # fmt: skip
        if finished.weights == "step 0":
            say("training has not improved on the start: the model in the folder is as it was. "
                "More or other text, more minutes, or a lower --set learning_rate= may help.",
                err=True)  # fmt: skip
        say(f"loss curve: {_shown(picture)}")
        if self.board is not None:
            self.board.close()
        for what, command in self._next_commands(self.started.config):
            say(f"{what:<10} {command}")

    def _next_commands(self, config: ModelConfig) -> Iterator[tuple[str, str]]:
        """What to do with the result: commands that work as they stand."""
        prompt = self.sample.prompt if self.sample else "Once upon a time"
        words = _argument(_one_line(prompt, 40).removesuffix("…").strip() or "Once")
        name, start = shlex.quote(str(self.out)), program()
        verbs = {"encoder-decoder": "translate", "decoder": "generate"}
        yield "try it:", f"{start} {verbs.get(config.kind, 'look')} --model {name} {words}"
        if _has_chat_template(self.out):
            yield "chat:", f"{start} chat --model {name}"
        if config.kind == "decoder":
            yield "look:", f"{start} look --model {name} {words}"
        if is_adapter(self.out):
            yield "merge:", f"{start} models merge {name} {shlex.quote(str(self.out) + '-merged')}"
        longer = self._longer()
        if longer is not None:
            yield "longer:", f"{self._resume()} --minutes {longer}"

    def _longer(self) -> int | None:
        """Twice as many minutes as the run has taken; None without a checkpoint."""
        checkpoints = RunFolder(self.out).checkpoints
        last = checkpoints.steps()[-1:]
        if not last:
            return None
        return max(1, math.ceil(2 * checkpoints.facts(last[0]).progress.seconds / 60))

    def _to_board(self, event: Event) -> None:
        if self.board is None:
            return
        if isinstance(event, Stepped):
            self.tokens += event.tokens
            for name, value in (
                ("loss/training", event.loss), ("learning_rate", event.learning_rate),
                ("gradient_norm", event.gradient), ("tokens", self.tokens),
                ("seconds", event.seconds),
            ):  # fmt: skip
                self.board.add_scalar(name, value, event.step)
        elif isinstance(event, Validated):
            self.board.add_scalar("loss/validation", event.loss, event.step)
            if event.bits_per_byte is not None:
                self.board.add_scalar("bits_per_byte", event.bits_per_byte, event.step)
            for head, found in event.heads.items():
                for name in ("entropy", "score", "first"):
                    self.board.add_scalar(f"{name}/{head}", getattr(found, name), event.step)


def _is_start(line: Mapping[str, Any]) -> bool:
    """True for the line of the validation before training, by whichever life of the run."""
    return line["step"] == 0 and "validation" in line


def _reading(event: Read) -> str:
    if not event.total:
        return f"{event.what} …"
    return f"{event.what}  {event.done / 1e6:,.0f} of {event.total / 1e6:,.0f} MB"


def _opening(event: Started) -> Iterator[str]:
    kind = {"decoder": "language model"}.get(event.config.kind, event.config.kind)
    yield f"{kind} of {event.parameters:,} parameters, vocabulary {event.config.vocab:,}"
    if event.trained is not None and event.trained < event.parameters:
        yield f"{event.trained:,} of the parameters are trained ({_share(event)})"
    learned, held = event.tokens
    yield (
        f"{learned:,} tokens to train on, {held:,} held out to validate on "
        f"({held / max(1, learned + held):.1%})"
    )
    if event.held_out:
        yield f"held out: {event.held_out}"
    if event.validated is not None:
        yield f"each validation takes {event.validated:,} of the tokens that are held out"
    begun = f"continues after step {event.step}" if event.step else "begins"
    steps = "1 step" if event.batches_per_pass == 1 else f"{event.batches_per_pass:,} steps"
    yield f"one epoch is {steps}; training {begun}"


def _share(event: Started) -> str:
    assert event.trained is not None
    return f"{event.trained / max(1, event.parameters):.2%}"


def _argument(words: str) -> str:
    """Words to be pasted; behind ``--`` if they look like an option, as a list in Markdown does."""
    return "-- " * words.startswith("-") + shlex.quote(words)


def _has_chat_template(folder: Path) -> bool:
    return has_tokenizer(folder) and load_tokenizer(folder).chat_template is not None


def _board(folder: Path) -> Any:
    return _writer_of_boards()(str(folder / "tensorboard"))


def _writer_of_boards() -> Any:
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError:
        raise MissingExtraError("--tensorboard", "tensorboard") from None
    return SummaryWriter


def _one_line(text: str, most: int = 60) -> str:
    line = " ".join(text.split())
    return line if len(line) <= most else line[: most - 1] + "…"


def _shown(path: Path) -> str:
    try:
        return str(path.relative_to(Path.cwd()))
    except ValueError:
        return str(path)
