"""Everything that a page asks for, through a real connection."""

import threading
from pathlib import Path
from typing import Any

import pytest

import clearhead as ch
from clearhead.explain.make_look import make_look, read_passage
from clearhead.studio import looking, mapping
from clearhead.studio import requests as module
from clearhead.studio.worker import Job
from tests.shared.explain_models import decoder
from tests.studio.heard import LONG, TEXT, Talker, serving, wait_until

ABOUT: dict[str, Any] = {"pane": 0, "model": "tiny", "text": TEXT}


def test_writing_stopping_and_branching() -> None:
    settings = {"temperature": 0.0}
    with serving() as studio, Talker(studio) as talker:
        more: dict[str, Any] = {"settings": settings, "seed": 0, "count": 4}
        number = talker.send("write", **ABOUT, ids=[], **more)
        tokens = []
        while (found := talker.until("token", "written", number=number))["kind"] == "token":
            tokens.append(found)
        ids = [one["token"] for one in tokens]
        described = talker.ask("token", "described", **ABOUT, ids=ids[:2])
        assert described["token"] == ids[1] and described["ids"][0] == ids[1]
        other = next(one for one in tokens[1]["ids"] if one != ids[1])
        branch = talker.ask("write", "token", **ABOUT, ids=[ids[0], other], **more)
        assert branch["index"] == 0
        number = talker.send("write", **ABOUT, ids=[], **{**more, "count": 2000})
        talker.until("token", number=number)
        talker.send("stop", pane=0)
        assert talker.until("stopped", "written", number=number)["kind"] == "stopped"


def test_why_without_saving_and_comparing(tmp_path: Path) -> None:
    position = len(read_passage(decoder(), TEXT)) - 1
    with serving() as studio, Talker(studio) as talker:
        talker.ask("look", "look", **ABOUT)
        why = talker.ask("why", "why", **ABOUT, position=position, rank=1)
        client = next(iter(studio.requests.clients))
        logits = client.panes[0].logits
        assert logits is not None and why["token"]["id"] == int(logits.ids[position, 1])
        talker.until("measured")
        off = [{"head": why["heads"][0]["name"]}]
        changed = talker.ask("without", "without", **ABOUT, position=position, off=off)
        assert any(one["before"] != one["after"] for one in changed["tokens"])
        for what in ("look", "why", "head", "word"):
            for format, start in STARTS.items():
                file = talker.ask("save", "file", "error", pane=0, what=what, format=format,
                                  head="L0H1", word=2)  # fmt: skip
                assert file["kind"] == "file", (what, format, file)
                assert file["payload"].lstrip().startswith(start), (what, format)
        refused = talker.ask("save", "error", pane=0, what="look", format="exe")
        assert "a file is one of" in refused["text"]
        talker.ask("look", "look", pane=1, model="tiny", text=TEXT.replace("books", "door"))
        compared = talker.ask("compare", "compared")
        assert compared["heads"] and compared["words"]


STARTS = {"html": b"<!doctype", "svg": b"<svg", "png": b"\x89PNG", "csv": b"", "json": b""}


def test_a_long_text_as_tiles(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(looking, "MOST_TOKENS", 5)
    with serving() as studio, Talker(studio) as talker:
        assert talker.ask("look", "long", **ABOUT)["tokens"] > 5
        found = talker.ask("map", "mapped", **ABOUT, head="L1H3")
        talker.until("mapping")
        tile = talker.ask("tile", "tile", pane=0, map=found["id"], place=[0, 0, 0])
        assert len(tile["payload"]) == 12 + 4 * found["info"]["rows"] * found["info"]["columns"]
        assert talker.ask("tile", "gone", pane=0, map=found["id"] + 1, place=[0, 0, 0])
        assert (
            "level" in talker.ask("tile", "error", pane=0, map=found["id"], place=[9, 0, 0])["text"]
        )
        number = talker.send("small_maps", pane=0)
        heads = set()
        while (one := talker.until("small", "small maps", number=number))["kind"] == "small":
            heads.add(one["head"])
        assert heads == set(found["heads"])


def test_traces_encoders_and_translators() -> None:
    seen = make_look(decoder(), TEXT).seen
    with serving(seen, ch.load("dates")) as studio, Talker(studio) as talker:
        names = [one["name"] for one in talker.ask("models", "models")["models"]]
        assert names[:2] == ["trace", "dates"]
        assert talker.ask("look", "look", pane=0, model="trace", text="")["meta"]["layers"]
        found = talker.ask("look", "look", pane=1, model="dates", text="5 May 2021")
        assert found["meta"]["generated"][0]["text"] == "2"
        refused = talker.ask("why", "error", pane=0, model="trace", text="x", position=0)
        assert "no model" in refused["text"]


def test_memory_stays_within_its_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """What nobody has touched for longest is forgotten, and looked at again when asked for."""
    monkeypatch.setattr(module, "MOST_BYTES", 1)
    with serving() as studio, Talker(studio) as one, Talker(studio) as other:
        first = one.ask("look", "look", **ABOUT)
        other.ask("look", "look", **ABOUT)
        other.ask("block", "block", pane=0, look=1, name="proof")  # after that, the limit holds
        assert sum(client.panes[0].look is not None for client in studio.requests.clients) == 1
        assert one.ask("block", "gone", pane=0, look=first["id"], name="proof")
        assert one.ask("look", "look", **ABOUT)["meta"]


def test_a_page_that_leaves_while_it_is_served(monkeypatch: pytest.MonkeyPatch) -> None:
    """What was computed for it after it had gone is freed as well."""
    shown, left, show = threading.Event(), threading.Event(), looking.show_look

    def slow(pane: looking.Pane, *things: Any, **parts: Any) -> None:
        shown.set()
        assert left.wait(LONG)
        show(pane, *things, **parts)

    monkeypatch.setattr(looking, "show_look", slow)
    monkeypatch.setattr(Job, "check", lambda _: None)  # it is past the last place that would notice
    with serving() as studio:
        with Talker(studio) as talker:
            talker.send("look", **ABOUT)
            assert shown.wait(LONG)
            (client,) = studio.requests.clients
        wait_until(lambda: not studio.requests.clients)
        left.set()
        with Talker(studio) as other:  # the worker is free again when it answers
            assert other.ask("look", "look", **ABOUT)["meta"]
        assert client.panes[0].nbytes == 0 and client.panes[0].look is None
        assert all(owner is not client for owner, _ in studio.requests._used.values())


def test_many_clients_are_all_served() -> None:
    with serving() as studio:
        talkers = [Talker(studio) for _ in range(20)]
        numbers = [talker.send("look", **ABOUT) for talker in talkers for _ in range(1)]
        for talker, number in zip(talkers, numbers, strict=True):
            assert talker.until("look", number=number)["meta"]
            talker.close()


def test_a_look_ends_what_was_counted_of_the_text_before(monkeypatch: pytest.MonkeyPatch) -> None:
    """The map of a long text is not counted on when its page has gone on to another text."""
    began, show = threading.Event(), mapping.show_map

    def slow(long: Any, job: Job, *given: Any) -> None:
        began.set()
        while True:
            job.pause()

    with serving() as studio, Talker(studio) as talker:
        monkeypatch.setattr(mapping, "show_map", slow)
        number = talker.send("map", **ABOUT)
        assert began.wait(LONG)
        second = talker.send("look", **ABOUT)
        told = [talker.until("stopped", "look", "mapped") for _ in range(2)]
        # In either order: the look may run where the map pauses, before that sees that it is over.
        assert {one["id"]: one["kind"] for one in told} == {number: "stopped", second: "look"}
        monkeypatch.setattr(mapping, "show_map", show)
        assert talker.ask("map", "mapped", **ABOUT)["info"]
