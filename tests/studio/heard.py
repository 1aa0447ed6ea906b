"""A listener that keeps what it is told, and a running studio with a client that talks to it."""

from __future__ import annotations

import json
import socket
import struct
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from websockets.client import ClientProtocol
from websockets.sync.client import ClientConnection, connect
from websockets.typing import Origin
from websockets.uri import parse_uri

import clearhead as ch
from clearhead.studio.studio import Studio
from clearhead.studio.worker import Job
from tests.shared.explain_models import decoder

LONG = 300.0  # seconds: no machine is so busy
TEXT = "the students opened their books and their minds"


class Heard:
    """Who asked for a job, in a test."""

    def __init__(self) -> None:
        self.messages: list[dict[str, Any]] = []
        self.payloads: list[bytes] = []

    def tell(self, kind: str, number: int, payload: bytes = b"", /, **fields: object) -> None:
        json.dumps(fields, allow_nan=False)  # as a client sends it
        self.messages.append({"kind": kind, "id": number, **fields})
        self.payloads.append(payload)

    def of(self, kind: str) -> list[dict[str, Any]]:
        return [one for one in self.messages if one["kind"] == kind]


def job_of(heard: Heard, number: int = 1, run: Callable[[Job], None] = lambda _: None) -> Job:
    return Job(heard, number, "test", run)


def wait_until(holds: Callable[[], object]) -> None:
    """Wait for what another thread does."""
    end = time.monotonic() + LONG
    while not holds() and time.monotonic() < end:
        time.sleep(0.002)
    assert holds()


@contextmanager
def serving(*things: Any) -> Iterator[Studio]:
    """A studio with a tiny decoder, or with these."""
    with ch.studio(list(things) or [decoder()], port=0) as studio:
        yield studio


def live(studio: Studio) -> tuple[str, Origin]:
    """The address of a studio's WebSocket, and the origin of its page."""
    return studio.url.replace("http://", "ws://") + "live", Origin(
        f"http://127.0.0.1:{studio.port}"
    )


class Deaf:
    """A client that reads nothing."""

    def __init__(self, studio: Studio) -> None:
        address, origin = live(studio)
        self.protocol = ClientProtocol(parse_uri(address), origin=origin)
        self.socket = socket.socket()
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        self.socket.connect(("127.0.0.1", studio.port))
        self.protocol.send_request(self.protocol.connect())
        self.socket.sendall(b"".join(self.protocol.data_to_send()))
        self.protocol.receive_data(self.socket.recv(4096))  # it is let in

    def __enter__(self) -> Deaf:
        return self

    def __exit__(self, *error: object) -> None:
        self.socket.close()


class Talker:
    """A client of a studio, which is not a browser."""

    def __init__(self, studio: Studio, **options: Any) -> None:
        address, origin = live(studio)
        self._open = ExitStack()
        patient: dict[str, Any] = {"open_timeout": LONG, "ping_interval": None}
        opening = connect(address, origin=origin, max_size=None, proxy=None, **patient, **options)
        self.line: ClientConnection = self._open.enter_context(opening)
        self.number = 0

    def __enter__(self) -> Talker:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        self._open.close()

    def send(self, asked: str, **fields: Any) -> int:
        self.number += 1
        self.line.send(json.dumps({"id": self.number, "do": asked, **fields}))
        return self.number

    def hear(self) -> dict[str, Any]:
        """The next message; the bytes behind it are its field ``payload``."""
        data = self.line.recv(timeout=LONG)
        if isinstance(data, str):
            found: dict[str, Any] = json.loads(data)
            return found
        (size,) = struct.unpack_from("<I", data)
        return {**json.loads(data[4 : 4 + size]), "payload": data[4 + size :]}

    def until(self, *kinds: str, number: int | None = None) -> dict[str, Any]:
        """The next message of one of these kinds."""
        while True:
            found = self.hear()
            if found["kind"] in kinds and number in (None, found["id"]):
                return found

    def ask(self, asked: str, *kinds: str, **fields: Any) -> dict[str, Any]:
        return self.until(*kinds, number=self.send(asked, **fields))
