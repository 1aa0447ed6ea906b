"""The door of the server: only pages of its own, with its token, at its own address, come in.

A foreign ``Host`` is how a rebound DNS name arrives, a foreign ``Origin`` how another site's script
does. The token in the path keeps other programs and users of the machine out.
"""

from __future__ import annotations

import ipaddress
import secrets
import socket
from collections.abc import Iterable
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

LOOPBACK = ("127.0.0.1", "localhost", "::1")


class Guard:
    """Lets requests through to ``app`` whose Host, Origin and token are right; adds headers.

    Args:
        app: what is guarded; it sees paths without the token.
        token: the first part of every path.
        host, port: the address that the server is bound to.
        framed: whether other pages may show this one in a frame, as notebooks do.
    """

    def __init__(self, app: ASGIApp, token: str, host: str, port: int, *, framed: bool) -> None:
        self.app, self.token, self.host, self.port, self.framed = app, token, host, port, framed

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request or one WebSocket."""
        if scope["type"] not in ("http", "websocket"):
            await self.app(scope, receive, send)
            return
        status, words = self.verdict(scope)
        if status:
            await _refuse(scope, receive, send, status, words)
            return
        prefix = f"/{self.token}"
        inner = {**scope, "path": scope["path"][len(prefix) :] or "/", "raw_path": None}
        await self.app(inner, receive, self._with_headers(send))

    def verdict(self, scope: Scope) -> tuple[int, str]:
        """The status to refuse with, and why; 0 if the request may come in."""
        headers = Headers(scope=scope)
        hosts, origins = headers.getlist("host"), headers.getlist("origin")
        if len(hosts) != 1 or not self._is_own(hosts[0]):
            return 403, "this address is not the server's."
        if len(origins) > 1 or not all(self._is_own_origin(one) for one in origins):
            return 403, "pages of another address have no access."
        if headers.get("sec-fetch-site", "none") not in ("none", "same-origin") and not (
            self.framed and headers.get("sec-fetch-dest") == "iframe"
        ):
            return 403, "pages of another address have no access."
        given = scope["path"].removeprefix("/").partition("/")[0]
        if not secrets.compare_digest(given.encode(), self.token.encode()):
            return 404, "the address has a token, which clearhead studio printed."
        return 0, ""

    def _is_own_origin(self, origin: str) -> bool:
        try:
            parts = urlsplit(origin)
        except ValueError:
            return False
        return parts.scheme == "http" and not parts.path and self._is_own(parts.netloc)

    def _is_own(self, host: str) -> bool:
        try:
            parts = urlsplit(f"//{host}")
            name, port = parts.hostname, parts.port
        except ValueError:
            return False
        if name is None or (port or 80) != self.port or "@" in host:
            return False
        if self.host in LOOPBACK:
            return name in LOOPBACK
        # Told to serve other machines: a rebound name is no number, so numbers are safe.
        return name in (*LOOPBACK, self.host, socket.gethostname()) or _is_address(name)

    def _with_headers(self, send: Send) -> Send:
        async def sent(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in self.headers():
                    headers[name] = value
            await send(message)

        return sent

    def headers(self) -> Iterable[tuple[str, str]]:
        """The headers of every answer."""
        frames = "" if self.framed else "; frame-ancestors 'none'"
        yield "Content-Security-Policy", POLICY + frames
        yield "X-Content-Type-Options", "nosniff"
        yield "Referrer-Policy", "no-referrer"  # the address has the token in it
        yield "Cache-Control", "no-store"
        yield "Cross-Origin-Resource-Policy", "same-origin"
        yield "Cross-Origin-Opener-Policy", "same-origin"


POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src 'self' blob: data:; base-uri 'none'; form-action 'none'"
)


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


async def _refuse(scope: Scope, receive: Receive, send: Send, status: int, words: str) -> None:
    if scope["type"] == "websocket":
        await receive()
        await send({"type": "websocket.close", "code": 1008, "reason": words})
        return
    await PlainTextResponse(words, status)(scope, receive, send)
