"""A page's connection, which ends even if the page has stopped reading."""

from __future__ import annotations

from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.protocol import State

LAST_WORDS = 5.0  # seconds to take what was sent before the end
FAREWELL = 1.0  # the same, when the server itself ends


class Line(WebSocketsSansIOProtocol):
    """uvicorn's WebSocket, which by itself waits without end for a page to take what is left."""

    async def run_asgi(self) -> None:
        """Serve the page, then close the connection."""
        await super().run_asgi()
        self.loop.call_later(LAST_WORDS, self.transport.abort)

    def shutdown(self) -> None:
        """The server ends. A connection that is closing already cannot be told so."""
        if self.handshake_complete and self.conn.state is not State.OPEN:
            self.stop_keepalive()
            self.transport.abort()
        else:
            super().shutdown()
            self.loop.call_later(FAREWELL, self.transport.abort)
