"""Somebody waits: a bar while a model is fetched or runs are counted, a line when it takes long."""

from __future__ import annotations

import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

from clearhead.cli.printing import clear_line, console, say
from clearhead.errors import UnreadWarning

if TYPE_CHECKING:
    from clearhead.checkpoints.load import Loaded
    from clearhead.checkpoints.store.wheel import Progress

PATIENCE = 2.0  # seconds without a word


def load_model(name: str) -> Loaded:
    """The model of a command line's ``--model``; what of it is not read is told in one line."""
    say_terms(name)
    with waiting(f"loading {name} …"), ExitStack() as bars, warnings.catch_warnings():
        import clearhead

        warnings.simplefilter("ignore", UnreadWarning)
        loaded = clearhead.load(name, progress=_bar(name, bars))
    if loaded.unread:
        say(f"Warning: {UnreadWarning(loaded.unread, where=name)}", err=True)
    return loaded


def say_terms(name: str) -> None:
    """Say what one accepts by fetching a model of the catalogue, if it is to be fetched."""
    from clearhead.checkpoints.store.model_store import ModelStore

    store = ModelStore()
    entry = store.catalogue.get(name)
    if entry is not None and entry.terms and not store.installed(name):
        say(entry.terms, err=True)


@contextmanager
def waiting(what: str) -> Iterator[None]:
    """Say on standard error what is being waited for, if it takes long; wipe it when it is over."""
    shown = threading.Event()
    terminal = sys.stderr.isatty()

    def show() -> None:
        shown.set()
        say(what, err=True, nl=not terminal)

    timer = threading.Timer(PATIENCE, show)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        if shown.is_set() and terminal:
            clear_line()


@contextmanager
def measuring(what: str) -> Iterator[Callable[[int, int], None]]:
    """A progress callback (done, total): a bar on a terminal, if the work takes long."""
    began, drawn, bars = time.monotonic(), None, ExitStack()

    def progress(done: int, total: int) -> None:
        nonlocal drawn
        if drawn is None and time.monotonic() - began > PATIENCE:
            drawn = _counted(what, bars)
        if drawn is not None:
            drawn(done, total)

    if not sys.stderr.isatty():
        with waiting(what):
            yield lambda _done, _total: None
        return
    with bars:
        yield progress


def _counted(what: str, bars: ExitStack) -> Callable[[int, int], None]:
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn("{task.description}", markup=False), BarColumn(), TimeRemainingColumn(),
    )  # fmt: skip
    drawn = bars.enter_context(Progress(*columns, console=console(err=True), transient=True))
    task = drawn.add_task(what, total=None)
    return lambda done, total: drawn.update(task, completed=done, total=total)


def _bar(name: str, bars: ExitStack) -> Progress:
    """A progress callback that draws its bar only when something is really fetched."""
    update: Progress | None = None

    def progress(done: int, total: int, what: str) -> None:
        nonlocal update
        if update is None:
            update = _drawn(name, bars)
        update(done, total, what)

    return progress


def _drawn(name: str, bars: ExitStack) -> Progress:
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn

    columns = (TextColumn("{task.description}", markup=False), BarColumn(), DownloadColumn())
    drawn = bars.enter_context(Progress(*columns, console=console(err=True), transient=True))
    task = drawn.add_task(name, total=None)

    def update(done: int, total: int, what: str) -> None:
        drawn.update(task, completed=done, total=total, description=f"{name}: {what}")

    return update
