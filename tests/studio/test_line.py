"""The connection of a page that has stopped reading: it ends, and keeps nobody waiting."""

import socket

import pytest

from clearhead.studio import client as client_module
from clearhead.studio import line as line_module
from clearhead.studio.studio import Studio
from tests.studio.heard import Deaf, Talker, serving, wait_until


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
