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
AGAIN = 15.0  # seconds until a line is said again, where it cannot be drawn anew


def load_model(name: str) -> Loaded:
    """The model of a command line's ``--model``; what of it is not read is told in one line."""
    say_terms(name)
    with (
        waiting(f"loading {name} …") as silent,
        ExitStack() as bars,
        warnings.catch_warnings(),
    ):
        import clearhead

        warnings.simplefilter("ignore", UnreadWarning)
        loaded = clearhead.load(name, progress=_bar(name, bars, silent))
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
def waiting(what: str) -> Iterator[Callable[[], None]]:
    """Say on standard error what is being waited for, and for how long, once it takes long.

    On a terminal the line counts seconds and is wiped at the end; elsewhere it comes again, later
    each time. What is yielded ends it early, for something that tells more.
    """
    over, terminal, began = threading.Event(), sys.stderr.isatty(), time.monotonic()

    def tell() -> None:
        pause, shown = PATIENCE, False
        while not over.wait(pause):
            spent = f" {time.monotonic() - began:.0f} s" if shown else ""
            if terminal:
                clear_line()
            say(f"{what}{spent}", err=True, nl=not terminal)
            pause, shown = (1.0, True) if terminal else (max(AGAIN, pause * 2), True)
        if shown and terminal:
            clear_line()

    teller = threading.Thread(target=tell, daemon=True)
    teller.start()
    try:
        yield over.set
    finally:
        over.set()
        teller.join()


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


def _bar(name: str, bars: ExitStack, silent: Callable[[], None]) -> Progress:
    """A progress callback that draws its bar only when something is really fetched."""
    update: Progress | None = None

    def progress(done: int, total: int, what: str) -> None:
        nonlocal update
        if update is None:
            silent()
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
