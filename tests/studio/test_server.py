"""A real client against a running server: what it says to good, bad and hostile messages."""

import json
import random
import socket
import threading
from pathlib import Path
from typing import Any

import pytest
from websockets.exceptions import ConnectionClosed

from clearhead.errors import InputError
from clearhead.studio import client as client_module
from clearhead.studio import line as line_module
from clearhead.studio.messages import KINDS
from clearhead.studio.server import bound_socket
from clearhead.studio.studio import Studio
from tests.shared.explain_models import decoder
from tests.studio.heard import TEXT, Deaf, Talker, serving, wait_until

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
    """The server answers a good message after any number of others, of all kinds."""
    monkeypatch.setenv("CLEARHEAD_HOME", str(tmp_path))  # roles that are counted are kept there
    dice = random.Random(7)
    words = ["", "tiny", "L0H1", "the students", "\u202e<script>", "x" * 3000]
    values = [None, True, -1, 0, 1, 2, 2**60, 0.5, [], [1], [[0]], {}, {"head": "L0H0"}, *words]
    names = ["pane", "model", "text", "ids", "head", "look", "name", "settings", "count", "seed",
             "position", "off", "map", "place", "what", "format", "measure",
             "size", "first", "data"]  # fmt: skip
    with serving() as studio, Talker(studio) as talker:
        listener = threading.Thread(target=lambda: [None for _ in talker.line], daemon=True)
        listener.start()
        for number in range(1000):
            message: dict[str, Any] = {
                name: dice.choice(values) for name in dice.sample(names, dice.randrange(9))
            }
            if dice.random() < 0.6:
                message = {**LOOK, **message}
            message |= {"id": number, "do": dice.choice([*KINDS, "eval", None])}
            text = json.dumps(message)
            cut = dice.randrange(len(text)) if dice.random() < 0.2 else len(text)
            talker.line.send(text[:cut])
        with Talker(studio) as other:
            assert other.ask("look", "look", **LOOK)["meta"]


@pytest.fixture
def small_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    """A page that does not read is let go sooner."""
    monkeypatch.setattr(client_module, "MOST_UNSENT", 5_000_000)
    monkeypatch.setattr(client_module, "FAREWELL", 0.1)
    monkeypatch.setattr(line_module, "LAST_WORDS", 0.1)


def tell_until_let_go(studio: Studio) -> None:
    """The page gets more than it is sent, and the system keeps little for it."""
    wait_until(lambda: bool(studio.requests.clients))
    (connection,) = studio._server.server_state.connections
    line = connection.transport.get_extra_info("socket")
    line.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
    (client,) = studio.requests.clients
    for _ in range(20):
        client.tell("block", 1, bytes(1_000_000))
    wait_until(lambda: not studio.requests.clients)


@pytest.mark.usefixtures("small_limits")
def test_a_client_that_does_not_read_is_let_go_and_cut() -> None:
    """uvicorn would keep the connection, with what was not sent, until the page is closed."""
    with serving() as studio, Deaf(studio):
        tell_until_let_go(studio)
        wait_until(lambda: not studio._server.server_state.connections)
        with Talker(studio) as other:
            assert other.ask("models", "models")


@pytest.mark.usefixtures("small_limits")
def test_the_server_ends_while_a_client_does_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(line_module, "LAST_WORDS", 60)
    with serving() as studio, Deaf(studio):
        tell_until_let_go(studio)
        assert studio._server.server_state.connections
        studio.close()
        assert not studio.running and not studio._server.server_state.connections


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
