"""A real client against a running server: what it says to good, bad and hostile messages."""

import contextlib
import json
import random
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from websockets.exceptions import ConnectionClosed

from clearhead.errors import InputError
from clearhead.studio import roles
from clearhead.studio.dropped import Dropped
from clearhead.studio.messages import KINDS
from clearhead.studio.server import bound_socket
from tests.shared.explain_models import decoder
from tests.shared.planted_roles import shown
from tests.studio.heard import LONG, TEXT, Talker, serving, wait_until
from tests.studio.test_messages import VALID

LOOK: dict[str, Any] = {"pane": 0, "model": "tiny", "text": TEXT}


def test_a_look_with_its_blocks() -> None:
    with serving() as studio, Talker(studio) as talker:
        found = talker.ask("look", "look", **LOOK)
        sizes = dict(found["blocks"])
        assert sum(sizes.values()) == len(found["payload"]) and "gallery" in sizes
        assert found["meta"]["axes"][0]["words"][0] == "the"
        layers = [layer["block"] for layer in found["meta"]["layers"]]
        vectors = [one["block"] for one in found["meta"]["vectors"].values()]
        for name in [*layers, *vectors, "lens", "proof"]:
            block = talker.ask("block", "block", pane=0, look=found["id"], name=name)
            assert block["payload"]
        assert json.loads(block["payload"])["exact"] is True
        gone = talker.ask("block", "gone", pane=0, look=found["id"] - 1, name="lens")
        assert gone["kind"] == "gone"
        unknown = talker.ask("block", "error", pane=0, look=found["id"], name="../../x")
        assert "no such block" in unknown["text"]


def test_bad_messages_are_answered_and_the_line_stays() -> None:
    with serving() as studio, Talker(studio) as talker:
        talker.line.send("{")
        assert talker.until("error")["id"] == 0
        talker.line.send(b"\x00\x01")
        assert "not bytes" in talker.until("error")["text"]
        for fields in ({"model": "/etc/passwd"}, {"model": "../tiny"}, {"text": "  "}, {"pane": 7}):
            assert talker.ask("look", "error", **{**LOOK, **fields})["text"]
        assert talker.ask("models", "models")["models"][0]["name"] == "tiny"


def test_a_message_that_is_too_long_ends_the_connection() -> None:
    with serving() as studio:
        with Talker(studio) as talker, pytest.raises(ConnectionClosed):
            talker.line.send("x" * 6_000_000)
            talker.hear()
        with Talker(studio) as talker:  # others are served
            assert talker.ask("models", "models")


@pytest.mark.slow
def test_a_thousand_random_messages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The server answers a good message after any number of others, of all kinds.

    Of a third of the messages every field is right, so that each kind is really done.
    """
    monkeypatch.setenv("CLEARHEAD_HOME", str(tmp_path))  # roles that are counted are kept there
    found = shown().insight
    done: set[str] = set()

    def find_roles(*_: object, **__: object) -> Any:
        done.add("roles")
        return found

    monkeypatch.setattr(roles, "find_roles", find_roles)
    dice = random.Random(7)
    words = ["", "tiny", "L0H1", "the students", "\u202e<script>", "x" * 3000, "\ud800", "\0"]
    values = [None, True, -1, 0, 1, 2, 2**60, 0.5, [], [1], [[0]], {}, {"head": "L0H0"}, *words]
    right = {**VALID, **LOOK, "size": 3}
    with serving() as studio, Talker(studio) as talker:
        heard: set[str] = set()
        listener = threading.Thread(target=lambda: heard.update(kinds(talker, 1000)), daemon=True)
        listener.start()
        for number in range(1000):
            asked = dice.choice([*KINDS, "eval", None])
            names = list(KINDS.get(str(asked), right))
            message = {name: right[name] for name in names}
            for name in dice.sample(names, dice.choice([0, 0, 1, 2]) % (len(names) + 1)):
                message[name] = dice.choice(values)
            text = json.dumps(message | {"id": number, "do": asked})
            cut = dice.randrange(len(text)) if dice.random() < 0.1 else len(text)
            talker.line.send(text[:cut])
        with Talker(studio) as other:
            assert other.ask("look", "look", **LOOK)["meta"]
            assert other.ask("roles", "roles", model="tiny", measure=True)["heads"]
        talker.line.send(json.dumps({"id": 1000, "do": "models"}))
        listener.join(LONG)
    assert done == {"roles"}
    assert {"dropped", "models", "chapter", "error"} <= heard  # at once: none replaces them


def kinds(talker: Talker, last: int) -> Iterator[str]:
    """The kinds of all messages that come, until that about the last request."""
    with contextlib.suppress(ConnectionClosed, OSError):
        while (found := talker.hear())["id"] != last:
            yield found["kind"]


def test_a_defect_in_answering_is_a_message(monkeypatch: pytest.MonkeyPatch) -> None:
    """Such as a full disk: the line of the page stays open."""

    def full(*_given: object) -> None:
        raise OSError(28, "No space left on device")

    with serving() as studio, Talker(studio) as talker:
        monkeypatch.setattr(Dropped, "begin", full)
        file = {"name": "x.trace", "size": 3, "first": 0, "data": "AAAA"}
        assert "No space left" in talker.ask("drop", "error", **file)["text"]
        assert talker.ask("models", "models")["models"]


def test_a_closed_page_frees_its_memory() -> None:
    with serving() as studio:
        with Talker(studio) as talker:
            talker.ask("look", "look", **LOOK)
            (client,) = studio.requests.clients
            assert client.panes[0].nbytes > 0
        wait_until(lambda: not studio.requests.clients)
        assert client.panes[0].look is None and client.panes[0].nbytes == 0
        assert not studio.requests._used


def test_a_port_that_is_taken() -> None:
    with serving(decoder()) as studio, pytest.raises(InputError, match="cannot be served"):
        bound_socket("127.0.0.1", studio.port)
    with pytest.raises(InputError, match="cannot be served"):
        bound_socket("203.0.113.7", 0)
