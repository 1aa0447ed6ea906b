"""The server: three files, one WebSocket for each page, tiles of long texts. Nothing else."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route, WebSocketRoute
from starlette.websockets import WebSocket

from clearhead.errors import InputError
from clearhead.studio.client import Client
from clearhead.studio.guard import Guard
from clearhead.studio.line import Line
from clearhead.studio.messages import LONGEST_MESSAGE
from clearhead.studio.page import PAGE, script, style_sheet
from clearhead.studio.requests import Requests
from clearhead.visible import visible_text

MOST_CLIENTS = 200
PORT = 8765  # unless it is taken


def make_app(requests: Requests) -> Starlette:
    """The routes, without the guard."""

    async def page(_request: Request) -> Response:
        return HTMLResponse(PAGE)

    async def scripts(_request: Request) -> Response:
        return Response(script(), media_type="text/javascript")

    async def styles(_request: Request) -> Response:
        return Response(style_sheet(), media_type="text/css")

    async def live(websocket: WebSocket) -> None:
        if len(requests.clients) >= MOST_CLIENTS:
            await websocket.close(1013, "too many pages are open.")
            return
        client = Client(websocket, requests)
        requests.clients.add(client)
        await client.serve()

    return Starlette(
        routes=[
            Route("/", page),
            Route("/studio.js", scripts),
            Route("/studio.css", styles),
            WebSocketRoute("/live", live),
        ]
    )


def bound_socket(host: str, port: int | None) -> socket.socket:
    """A socket at the wanted port; unless one is wanted, at the usual or at any free one.

    Raises:
        InputError: the address cannot be had.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    wanted = (PORT, 0) if port is None else (port,)
    for one in wanted:
        found = socket.socket(family, socket.SOCK_STREAM)
        found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            found.bind((host, one))
            return found
        except OSError as error:
            found.close()
            reason = error.strerror or str(error)
        except TypeError:  # a name with a NUL in it
            found.close()
            reason = "this is no address"
    place = "host" if port is None else f"host, port {port}"
    raise InputError(
        f"{place}: {visible_text(host)[:60]} cannot be served: {reason}.",
        hint="another program may have the port; leave it out to take a free one.",
    )


def make_server(requests: Requests, token: str, host: str, port: int, *, framed: bool) -> Server:
    """The server behind its guard."""
    guarded = Guard(make_app(requests), token, host, port, framed=framed)
    config = uvicorn.Config(
        guarded, log_level="critical", access_log=False, ws=Line,
        ws_per_message_deflate=False,  # pages are near: packing takes longer
        ws_max_size=LONGEST_MESSAGE + 1000, ws_max_queue=8, server_header=False,
        timeout_graceful_shutdown=2, lifespan="off", limit_concurrency=4 * MOST_CLIENTS,
    )  # fmt: skip
    return Server(config)


class Server(uvicorn.Server):
    """uvicorn, which leaves Ctrl-C to whoever started it."""

    def install_signal_handlers(self) -> None:
        """Nothing: the command line and notebooks have their own."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Nothing either."""
        yield
