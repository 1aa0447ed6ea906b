"""The models and traces that a page may choose from, and those that are loaded."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from clearhead.arguments import about, shown
from clearhead.checkpoints.load import Loaded, load
from clearhead.checkpoints.store.hub import is_hub_id
from clearhead.checkpoints.store.model_store import ModelStore
from clearhead.errors import ClearheadError, InputError, UnreadWarning
from clearhead.studio.worker import Worker
from clearhead.trace.seen import Seen
from clearhead.trace.trace_file import open_trace
from clearhead.visible import visible_text

Progress = Callable[[int, int, str], None]
Offered = Loaded | Seen | str | Path


class Shelf:
    """What was given to ``studio``, and the models of the catalogue. Nothing else can be opened.

    Args:
        given: models, traces, or names and paths of either; the first is shown first.
        store: the models known by name.
    """

    def __init__(self, given: Sequence[Offered], store: ModelStore | None = None) -> None:
        self.store = store or ModelStore()
        self._sources: dict[str, str | Path] = {}
        self._things: dict[str, Loaded | Seen] = {}
        self._workers: dict[str, Worker] = {}
        self._lock = threading.Lock()
        self._given: list[str] = []
        self._owners: dict[str, object] = {}  # of what was dropped on a page: for that page alone
        for one in given:
            self._offer(one)
        for name in self.store.catalogue:
            self._sources.setdefault(name, name)
        self.first = [*self._given, *self._sources][0]

    def _offer(self, one: Offered) -> None:
        self._check(one)
        name = _name(one, [*self._sources, *self._things])
        self._given.append(name)
        if isinstance(one, Loaded | Seen):
            self._things[name] = one
        else:
            self._sources[name] = one

    def _check(self, one: Offered) -> None:
        """Refuse what cannot be opened later."""
        if isinstance(one, Seen):
            with about("model"):
                one.require()
        elif isinstance(one, str | Path) and not self._is_known(one):
            raise InputError(
                f"model: there is no model or path {shown(str(one))}.",
                hint=f"known by name: {', '.join(self.store.catalogue)}; or give a path.",
            )

    def _is_known(self, source: str | Path) -> bool:
        if str(source) in self.store.catalogue or exists(source):
            return True
        return isinstance(source, str) and is_hub_id(source)

    def offer_to(self, owner: object, name: str, path: Path) -> str:
        """Offer a trace to one page alone; its name from now on."""
        name = _name(Path(name or "dropped"), [*self._sources, *self._things])
        with self._lock:
            self._sources[name], self._owners[name] = path, owner
        return name

    def is_for(self, owner: object, name: str) -> bool:
        """False for what was dropped on another page."""
        return self._owners.get(name, owner) is owner

    def take_back(self, owner: object) -> None:
        """Let go of what a page has dropped."""
        for name in [name for name, one in list(self._owners.items()) if one is owner]:
            with self._lock:
                workers = [self._workers.pop(one, None) for one in (name, _beside(name))]
                self._things.pop(name, None)
                self._sources.pop(name, None)
                del self._owners[name]
            for worker in workers:
                if worker is not None:
                    worker.stop()

    def described(self, owner: object = None) -> list[dict[str, Any]]:
        """Every model with its size, and whether it is here and loaded."""
        names = dict.fromkeys([*self._given, *self._sources])
        return [self._described(name) for name in names if self.is_for(owner, name)]

    def _described(self, name: str) -> dict[str, Any]:
        thing = self._things.get(name)
        found: dict[str, Any] = {"name": name, "loaded": thing is not None, "here": True}
        if isinstance(thing, Seen):
            return found | {"kind": "trace", "size": thing.nbytes}
        if isinstance(thing, Loaded):
            parameters = sum(one.numel() for one in thing.model.parameters())
            found |= {"kind": thing.config.kind, "parameters": parameters}
        source = self._sources.get(name)
        if source in self.store.catalogue:
            entry = self.store.entry(str(source))
            found |= {
                "kind": entry.kind, "parameters": entry.parameters, "size": entry.size,
                "here": self.store.installed(str(source)), "terms": entry.terms,
                "download": sum(wheel.size for wheel in entry.wheels), "licence": entry.licence,
                "what": entry.description,
            }  # fmt: skip
        elif source is not None:
            path = Path(source)
            kind = "trace" if is_trace(path) else "file"
            found |= {"size": _size(path), "kind": found.get("kind", kind)}
            if name not in self._owners:
                found["source"] = visible_text(str(source))
        return found

    def loaded(self, name: str) -> Loaded | Seen | None:
        """A model or trace, if it is in memory."""
        return self._things.get(name)

    def load(self, name: str, progress: Progress) -> Loaded | Seen:
        """A model or trace by its name here; it is fetched and loaded where it is not."""
        known = self._things.get(name)
        if known is not None:
            return known
        source = self._sources.get(name)
        if source is None:
            raise InputError(
                f"{visible_text(name)[:60]} is none of the models of this studio.",
                hint="clearhead studio MODEL … offers more.",
            )
        if name in self._owners:
            return self._dropped(name, Path(source))
        if is_trace(Path(source)):
            thing: Loaded | Seen = open_trace(source)
        else:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UnreadWarning)
                thing = load(source, progress=progress)
        with self._lock:
            return self._things.setdefault(name, thing)

    def _dropped(self, name: str, path: Path) -> Seen:
        """What a page has dropped; a file that is no trace is not offered any longer."""
        try:
            seen = open_trace(path)
        except ClearheadError as error:
            owner = self._owners.get(name)
            self.take_back(owner)
            text = error.message.replace(str(path), name)
            raise InputError(text, hint="seen.save writes traces.") from None
        with self._lock:
            if name in self._owners:  # otherwise its page has gone meanwhile
                self._things[name] = seen
        return seen

    def worker(self, name: str) -> Worker:
        """The thread that computes for a model; one for each."""
        with self._lock:
            if name not in self._workers:
                if name not in self._sources and name not in self._things:
                    raise InputError("there is no such model in this studio.")
                self._workers[name] = Worker(name)
            return self._workers[name]

    def beside(self, name: str) -> str:
        """The name of a second thread of a model, for what must not wait behind the first."""
        second = _beside(name)
        with self._lock:
            offered = name in self._sources or name in self._things
            if offered and second not in self._workers:
                self._workers[second] = Worker(second)
        return second

    @property
    def workers(self) -> list[Worker]:
        """All threads that were started."""
        with self._lock:
            return list(self._workers.values())

    def end(self) -> None:
        """Stop all threads and let go of what was loaded here."""
        for worker in self.workers:
            worker.end()
        self._things.clear()


def exists(path: str | Path) -> bool:
    """True if there is such a file or folder."""
    try:
        return bool(str(path)) and Path(path).exists()
    except (OSError, ValueError):  # too long for a path, or no path at all
        return False


def is_trace(path: Path) -> bool:
    """True for a file that ``seen.save`` wrote, by its ending."""
    return path.suffix == ".trace" and path.is_file()


def _beside(name: str) -> str:
    """The name of the second thread of a model."""
    return f"{name} beside"


def _name(one: Offered, taken: list[str]) -> str:
    """A name for the page: short, and each once."""
    if isinstance(one, Seen):
        name = "trace"
    elif isinstance(one, Loaded):
        name = one.name or "model"
    else:
        name = Path(one).name or str(one)
    name = visible_text(name)
    number, found = 2, name
    while found in taken:
        found, number = f"{name} ({number})", number + 1
    return found


def _size(path: Path) -> int:
    if path.is_dir():
        return sum(part.stat().st_size for part in path.iterdir() if part.is_file())
    return path.stat().st_size if path.exists() else 0
