"""``ch.studio``: the live page, in a browser or in a notebook."""

from __future__ import annotations

import secrets
import threading
import time
import webbrowser
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

from clearhead.arguments import flag, shown, whole_number
from clearhead.arguments import text as text_argument
from clearhead.checkpoints.load import Loaded
from clearhead.errors import ClearheadError, InputError, MissingExtraError
from clearhead.trace.seen import Seen

START = 60.0  # seconds for the server to come up, and to end
HEIGHT = 900  # pixels of the frame in a notebook


def studio(
    model: Loaded | Seen | str | Path | Sequence[Loaded | Seen | str | Path] = "smollm2",
    *,
    host: str = "127.0.0.1",
    port: int | None = None,
    open: bool = False,
) -> Studio:
    """Serve a page on this machine: type, and see what the model attends to, says and why.

        >>> import clearhead as ch
        >>> with ch.studio(ch.load("dates")) as studio:
        ...     studio.url.startswith("http://127.0.0.1:")
        True

    In a notebook the result shows itself: the page in a frame. It runs until ``close()``, or until
    Python ends.

    Args:
        model: a model of ``ch.load``, a trace, or the name or path of either; or several. The page
            also offers the models of the catalogue.
        host: the address to serve. Other machines reach only another one than the default; whoever
            knows the URL can then use the model.
        port: the port; 8765 or, if that is taken, any free one unless given.
        open: whether to open the page in a browser.

    Returns:
        The running server: ``url``, ``close()``.

    Raises:
        InputError: the address cannot be served, or there is nothing to show.
        MissingExtraError: the extra ``studio`` is not installed.
    """
    given = _several(model)
    host = text_argument("host", host)
    if not host.strip():  # to the system it would mean every address
        raise InputError("host is an address of this machine; got an empty text.")
    port = None if port is None else whole_number("port", port, least=0, most=65535)
    return Studio(given, host, port, open_page=flag("open", open), framed=True)


def _several(model: object) -> list[Any]:
    found = [model] if isinstance(model, Loaded | Seen | str | Path) else model
    if not isinstance(found, Sequence) or not found:
        raise InputError(f"model is a model, a trace, or the name of one; got {shown(model)}.")
    for one in found:
        if not isinstance(one, Loaded | Seen | str | Path):
            raise InputError(f"model is a model, a trace, or the name of one; got {shown(one)}.")
    return list(found)


class Studio:
    """A running server with its page. ``with`` closes it at the end."""

    def __init__(
        self, given: list[Any], host: str, port: int | None, *, open_page: bool, framed: bool
    ) -> None:
        try:
            from clearhead.studio.requests import Requests
            from clearhead.studio.server import bound_socket, make_server
        except ImportError as error:
            if (error.name or "").partition(".")[0] in ("starlette", "uvicorn", "websockets"):
                raise MissingExtraError("the studio", "studio") from error
            raise
        from clearhead.studio.shelf import Shelf

        shelf = Shelf(given)
        self._socket = bound_socket(host, port)
        self.host, self.port = host, int(self._socket.getsockname()[1])
        self._token = secrets.token_urlsafe(24)
        self.requests = Requests(shelf)
        self._server = make_server(self.requests, self._token, host, self.port, framed=framed)
        run = {"sockets": [self._socket]}
        self._thread = threading.Thread(target=self._server.run, kwargs=run, daemon=True)
        self._thread.start()
        self._wait_until_up()
        if open_page:
            webbrowser.open(self.url)

    def _wait_until_up(self) -> None:
        began = time.monotonic()
        while not self._server.started:
            if not self._thread.is_alive() or time.monotonic() - began > START:
                raise ClearheadError("the server did not start.")
            time.sleep(0.005)

    @property
    def url(self) -> str:
        """The address of the page; the token in it is the key to the server."""
        name = "127.0.0.1" if self.host in ("0.0.0.0", "localhost") else self.host
        name = f"[{name}]" if ":" in name else name
        return f"http://{name}:{self.port}/{self._token}/"

    @property
    def running(self) -> bool:
        """True until it is closed."""
        return self._thread.is_alive()

    def wait(self) -> None:
        """Wait until somebody closes it, or Ctrl-C."""
        while self._thread.is_alive():
            self._thread.join(timeout=0.5)

    def close(self) -> None:
        """End the server: pages lose their connection, computations stop, memory is freed."""
        self._server.should_exit = True
        self._thread.join(timeout=START)
        self._socket.close()
        self.requests.shelf.end()

    def __enter__(self) -> Studio:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        state = "" if self.running else ", closed"
        return f"Studio({self.url!r}{state})"

    def _repr_html_(self) -> str:
        """The page in a frame, for a notebook."""
        return (
            f'<iframe src="{self.url}" title="clearhead studio" width="100%" height="{HEIGHT}" '
            'style="border:0" allow="clipboard-write"></iframe>'
        )
