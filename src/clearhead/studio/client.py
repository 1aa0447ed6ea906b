"""One connected page: its requests come in, results go out; it holds its own looks, and no more."""

from __future__ import annotations

import asyncio
import json
import struct
import threading
from collections import deque
from typing import TYPE_CHECKING, Any

from starlette.websockets import WebSocket, WebSocketDisconnect

from clearhead.errors import ClearheadError, InputError
from clearhead.generation.session import Session
from clearhead.studio.dropped import Dropped
from clearhead.studio.looking import Pane
from clearhead.studio.messages import LONGEST_MESSAGE, PANES, parsed
from clearhead.studio.worker import failed

if TYPE_CHECKING:
    from clearhead.studio.requests import Requests

MOST_UNSENT = 64_000_000  # bytes that wait for a page which does not read them
PATIENCE = 60.0  # seconds for one message to be taken
FAREWELL = 5.0  # seconds for the message that closes
TOO_SLOW, TOO_LARGE = 1013, 1009  # codes of closing


class Client:
    """A WebSocket with what its page shows. ``tell`` may be called by any thread."""

    def __init__(self, socket: WebSocket, requests: Requests) -> None:
        self.socket, self.requests = socket, requests
        self.panes = [Pane() for _ in range(PANES)]
        self.sessions: dict[tuple[str, int], Session] = {}
        self.settings: list[dict[str, Any]] = [{} for _ in range(PANES)]
        self.dropped = Dropped()
        self.lock = threading.Lock()
        self._telling = threading.Lock()
        self._loop = asyncio.get_running_loop()
        self._told: list[str | bytes] = []  # by other threads; the server's takes them
        self._unsent: deque[str | bytes] = deque()
        self._size = 0
        self._news, self._overfull = asyncio.Event(), asyncio.Event()
        self.open = True

    def tell(self, kind: str, number: int, payload: bytes = b"", /, **fields: object) -> None:
        """Send a message: JSON, and in front of bytes the JSON's length and the JSON."""
        if not self.open:
            return
        text = json.dumps({"kind": kind, "id": number, **fields}, allow_nan=False)
        message: str | bytes = text
        if payload:
            head = text.encode("utf-8")
            message = struct.pack("<I", len(head)) + head + payload
        with self._telling:
            self._told.append(message)
            woken = len(self._told) > 1
        if woken:  # and it has not come to that yet
            return
        try:
            self._loop.call_soon_threadsafe(self._take)
        except RuntimeError:  # the server has ended meanwhile
            self.open = False

    def _take(self) -> None:
        with self._telling:
            told, self._told = self._told, []
        if not self.open:
            return
        self._unsent.extend(told)
        self._size += sum(map(len, told))
        if self._size > MOST_UNSENT:
            self.open = False  # a page that stopped reading: nothing more is kept for it
            self._unsent.clear()
            self._overfull.set()
        self._news.set()

    async def serve(self) -> None:
        """Answer requests until the page goes away."""
        try:
            await self.socket.accept()
            works = (self._send(), self._receive(), self._overfull.wait())
            tasks = [asyncio.create_task(work) for work in works]
            done, others = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in others:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        finally:
            self.leave()
        if tasks[1] not in done:  # the page is there, and does not read
            await self._close(TOO_SLOW, "this page does not read what it asked for.")

    def leave(self) -> None:
        """Cancel what runs for this page and free its memory."""
        self.open = False
        self._unsent.clear()
        self.requests.drop(self)

    def forget(self) -> None:
        """Free the memory of what the page shows and writes."""
        for pane in self.panes:
            pane.forget()
        self.sessions.clear()

    async def _send(self) -> None:
        while self.open:
            await self._news.wait()
            self._news.clear()
            while self._unsent and self.open:
                message = self._unsent.popleft()
                self._size -= len(message)
                put = self.socket.send_text if isinstance(message, str) else self.socket.send_bytes
                try:
                    async with asyncio.timeout(PATIENCE):  # wait_for would start a task for each
                        await put(message)  # type: ignore[arg-type]
                except (TimeoutError, WebSocketDisconnect, RuntimeError, OSError):
                    self.open = False

    async def _receive(self) -> None:
        while True:
            message = await self.socket.receive()
            if message["type"] == "websocket.disconnect":
                return
            text = message.get("text")
            if text is None:
                self.tell("error", 0, text="a message is text, not bytes.", hint=None)
                continue
            if len(text) > LONGEST_MESSAGE:
                await self._close(TOO_LARGE, "this message is too long.")
                return
            self._answer(text)

    def _answer(self, text: str) -> None:
        number = _number_of(text)
        try:
            number, asked, fields = parsed(text)
            self.requests.answer(self, number, asked, fields)
        except InputError as error:
            self.tell("error", number, text=error.message, hint=error.hint)
        except ClearheadError as error:
            self.tell("error", number, text=error.message, hint=error.hint)
        except Exception as error:  # a full disk, or a defect: the page goes on
            self.tell("error", number, text=failed(error), hint=None)

    async def _close(self, code: int, words: str) -> None:
        try:
            await asyncio.wait_for(self.socket.close(code, words), FAREWELL)
        except (TimeoutError, RuntimeError, OSError, WebSocketDisconnect):
            return


def _number_of(text: str) -> int:
    """The number of a request that may be wrong otherwise; 0 if it has none."""
    try:
        number = json.loads(text)["id"]
    except (ValueError, TypeError, KeyError, RecursionError):
        return 0
    return number if isinstance(number, int) and 0 <= number <= 2**53 else 0
