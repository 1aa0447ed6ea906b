"""What a page asks for, turned into jobs: each for the worker of the model that it is about."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from clearhead.checkpoints.load import Loaded
from clearhead.errors import InputError
from clearhead.generation.session import Session
from clearhead.kernels.freed_memory import give_back_freed_memory
from clearhead.studio import explaining, looking, mapping, saving, writing
from clearhead.studio.client import Client
from clearhead.studio.comparing import send_difference
from clearhead.studio.predicting import Prediction, prediction_of
from clearhead.studio.reading import Reader, whole_passage
from clearhead.studio.roles import KnownRoles
from clearhead.studio.shelf import Shelf
from clearhead.studio.worker import Job
from clearhead.trace.seen import Seen

Run = Callable[[Job, Client, dict[str, Any]], None]
MOST_BYTES = 400_000_000  # of all pages' texts; the longest unused ones are let go first
TRIMMED = 4  # looks between two times that freed memory is given back to the system
MOST_SESSIONS = 8  # caches of texts that are read, and of texts that are written
SLOW = ("map", "small_maps", "roles")  # they pause where something quicker waits
ABOUT_THE_TEXT = ("token", "why", "without", "map", "small_maps")


class Requests:
    """The models, and what every connected page asks of them."""

    def __init__(self, shelf: Shelf) -> None:
        self.shelf = shelf
        self.clients: set[Client] = set()
        self._used: OrderedDict[tuple[int, int], tuple[Client, int]] = OrderedDict()
        self._lock = threading.Lock()
        self._looks = 0
        self._known_roles = KnownRoles()

    def answer(self, client: Client, number: int, asked: str, fields: dict[str, Any]) -> None:
        """Start what a message asks for; results come from the worker's thread."""
        if asked == "chapter":
            client.tell("chapter", number, text=mapping.chapter())
        elif asked == "models":
            models = self.shelf.described(client)
            client.tell("models", number, models=models, first=self.shelf.first)
        elif asked == "drop":
            self._drop_in(client, number, **fields)
        elif asked == "stop":
            self._stop(client, fields["pane"])
        elif asked == "settings":
            client.settings[fields["pane"]] = fields["settings"]
        else:
            self._start(client, number, asked, fields)

    def _drop_in(
        self, client: Client, number: int, name: str, size: int, first: int, data: str
    ) -> None:
        """Take a piece of a trace; once it is whole, its page can choose it as a model."""
        if first == 0:
            self.shelf.take_back(client)
            others = sum(one.dropped.size for one in self.clients if one is not client)
            client.dropped.begin(size, others)
        path = client.dropped.add(first, data)
        model = None if path is None else self.shelf.offer_to(client, name, path)
        client.tell("dropped", number, come=client.dropped.come, model=model)

    def _start(self, client: Client, number: int, asked: str, fields: dict[str, Any]) -> None:
        run = getattr(self, f"_{asked}")
        name = fields.get("model") or self._model_of(client, fields.get("pane", 0))
        if not self.shelf.is_for(client, name):
            raise InputError("there is no such model in this studio.")
        pane = fields.get("pane", 0)
        channel = f"{asked} {pane}"
        if asked == "block":
            channel += f" {fields['name']}"
        if asked == "tile":  # a thread of its own: tiles are wanted while a map is counted
            channel += f" {fields['place']}"
            name = self.shelf.beside(name)
        if asked == "write":
            client.settings[pane] = fields["settings"]
        started = lambda job: self._run(run, job, client, fields)  # noqa: E731
        job = Job(client, number, channel, started, slow=asked in SLOW)
        if asked == "look":  # a newer text: what was asked about the older one is of no use
            for worker in self.shelf.workers:
                for other in ABOUT_THE_TEXT:
                    worker.drop(client, f"{other} {pane}")
        if not self.shelf.worker(name).submit(job):
            raise InputError("too many requests wait already.", hint="try again in a moment.")

    def _run(self, run: Run, job: Job, client: Client, fields: dict[str, Any]) -> None:
        try:
            run(job, client, fields)
        finally:
            if not client.open:  # it left meanwhile: what was computed for it since is freed, too
                self._free(client)

    def _model_of(self, client: Client, pane: int) -> str:
        return client.panes[pane].model or self.shelf.first

    def _stop(self, client: Client, pane: int | None) -> None:
        names = None if pane is None else [f"{kind} {pane}" for kind in STOPPED]
        for worker in self.shelf.workers:
            if names is None:
                worker.drop(client)
            for name in names or ():
                worker.drop(client, name)

    def drop(self, client: Client) -> None:
        """A page has gone: nothing is computed for it any more, and its memory is free."""
        for worker in self.shelf.workers:
            worker.drop(client)
        self._free(client)
        self.shelf.take_back(client)
        client.dropped.forget()
        self.clients.discard(client)

    def _free(self, client: Client) -> None:
        with self._lock:
            for key in [key for key, (owner, _) in self._used.items() if owner is client]:
                del self._used[key]
        client.forget()

    def _thing(self, job: Job, name: str) -> Loaded | Seen:
        known = self.shelf.loaded(name)
        if known is not None:
            return known
        job.client.tell("loading", job.number, model=name)

        def progress(done: int, total: int, what: str) -> None:
            job.tell("progress", done=done, total=total, what=f"{name}: {what}")

        return self.shelf.load(name, progress)

    def _loaded(self, job: Job, fields: dict[str, Any]) -> Loaded:
        thing = self._thing(job, fields["model"])
        if not isinstance(thing, Loaded):
            raise InputError("a trace has no model: nothing can be run with it.")
        return thing

    def _load(self, job: Job, _client: Client, fields: dict[str, Any]) -> None:
        thing = self._thing(job, fields["model"])
        kind = "trace" if isinstance(thing, Seen) else thing.config.kind
        job.tell("loaded", model=fields["model"], is_a=kind)

    def _look(self, job: Job, client: Client, fields: dict[str, Any]) -> None:
        thing = self._thing(job, fields["model"])
        pane = client.panes[fields["pane"]]
        parts = {name: fields[name] for name in ("text", "ids", "head")}
        pane_model = fields["model"]
        looking.show_look(pane, thing, pane_model, job, **parts)
        pane.model = pane_model
        self._keep_within_limit(client, fields["pane"])

    def _keep_within_limit(self, client: Client, place: int) -> None:
        """Forget the texts that nobody has touched for longest, until the others fit."""
        with self._lock:
            if not client.open:
                return
            self._used.pop((id(client), place), None)
            self._used[id(client), place] = (client, place)
            self._rest_others()
            held = {key: owner.panes[number].nbytes for key, (owner, number) in self._used.items()}
            total = sum(held.values())
            for key in list(self._used)[:-1]:
                if total <= MOST_BYTES:
                    break
                owner, number = self._used.pop(key)
                total -= held[key]
                owner.panes[number].forget()
        self._looks += 1
        # Of a single page the next look takes it again, and clearing it anew takes time.
        if len(self._used) > MOST_SESSIONS and self._looks % TRIMMED == 0:
            give_back_freed_memory()

    def _rest_others(self) -> None:
        """Only the pages that were used last keep the cache of what they read."""
        for key in list(self._used)[: max(0, len(self._used) - MOST_SESSIONS)]:
            owner, number = self._used[key]
            owner.panes[number].rest()

    def _block(self, job: Job, client: Client, fields: dict[str, Any]) -> None:
        pane = client.panes[fields["pane"]]
        looking.send_block(pane, job, look=fields["look"], name=fields["name"])

    def _write(self, job: Job, client: Client, fields: dict[str, Any]) -> None:
        loaded, pane = self._loaded(job, fields), fields["pane"]
        session = client.sessions.get((fields["model"], pane))
        if session is None or session.loaded is not loaded:
            session = Session(loaded)
            client.sessions[fields["model"], pane] = session
        self._few_sessions(client)
        parts = {name: fields[name] for name in ("text", "ids", "count", "seed")}
        writing.write(session, job, lambda: client.settings[pane], **parts)

    def _few_sessions(self, client: Client) -> None:
        """Only so many pages keep the cache of what they write."""
        others = [one for one in self.clients if one is not client and one.sessions]
        for other in others[: max(0, len(others) - MOST_SESSIONS)]:
            other.sessions.clear()

    def _token(self, job: Job, client: Client, fields: dict[str, Any]) -> None:
        loaded, pane = self._loaded(job, fields), client.panes[fields["pane"]]
        if pane.reader is None or pane.reader.loaded is not loaded:
            pane.forget()
            pane.reader, pane.model = Reader(loaded), fields["model"]
        passage, _ = whole_passage(loaded, fields["text"], fields["ids"])
        writing.describe_last(loaded, pane.reader, job, passage)

    def _why(self, job: Job, client: Client, fields: dict[str, Any]) -> None:
        pane, prediction = client.panes[fields["pane"]], self._prediction(job, client, fields)
        parts = {"token": fields["token"], "rank": fields["rank"], "instead": fields["instead"]}
        pane.why = explaining.explain(job, prediction, **parts)
        explaining.measure_heads(job, pane.why, prediction)

    def _without(self, job: Job, client: Client, fields: dict[str, Any]) -> None:
        prediction = self._prediction(job, client, fields)
        explaining.without(job, prediction, off=fields["off"], write=fields["write"])

    def _prediction(self, job: Job, client: Client, fields: dict[str, Any]) -> Prediction:
        loaded, look = self._loaded(job, fields), client.panes[fields["pane"]].look
        written = None if look is None else look.passages[0]
        parts = (fields["text"], fields["ids"], fields["position"])
        return prediction_of(loaded, *parts, written)

    def _map(self, job: Job, client: Client, fields: dict[str, Any]) -> None:
        thing, pane = self._thing(job, fields["model"]), client.panes[fields["pane"]]
        long = pane.long
        if long is None or (long.model, long.text) != (fields["model"], fields["text"]):
            pane.long = None
            long = mapping.read_long(thing, fields["model"], fields["text"], job)
            pane.long, pane.model = long, fields["model"]
            self._keep_within_limit(client, fields["pane"])
        mapping.show_map(long, job, fields["head"], self._tiles_wanted(fields["model"]))

    def _tile(self, job: Job, client: Client, fields: dict[str, Any]) -> None:
        long = client.panes[fields["pane"]].long
        mapping.send_tile(long, job, map=fields["map"], place=fields["place"])

    def _small_maps(self, job: Job, client: Client, fields: dict[str, Any]) -> None:
        long = client.panes[fields["pane"]].long
        wanted = self._tiles_wanted(self._model_of(client, fields["pane"]))
        mapping.send_small_maps(long, job, wanted)

    def _tiles_wanted(self, model: str) -> Callable[[], bool]:
        beside = self.shelf.worker(self.shelf.beside(model))
        return lambda: beside.busy

    def _compare(self, job: Job, client: Client, fields: dict[str, Any]) -> None:
        send_difference(client.panes[0], client.panes[1], job, heads=fields["heads"])

    def _roles(self, job: Job, _client: Client, fields: dict[str, Any]) -> None:
        self._known_roles.send(self._loaded(job, fields), job, measure=fields["measure"])

    def _save(self, job: Job, client: Client, fields: dict[str, Any]) -> None:
        pane = client.panes[fields["pane"]]
        parts = {name: fields[name] for name in ("what", "format", "head", "word")}
        saving.send_file(pane, job, **parts)


STOPPED = (
    "look",
    "map",
    "small_maps",
    "write",
    "token",
    "why",
    "without",
    "roles",
    "compare",
    "load",
    "save",
)
