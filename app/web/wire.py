"""HTTP connections whose request heads have to arrive in time (corroboration 7.2).

uvicorn bounds how long a finished connection may stay idle, not how long somebody may take to write a request head;
a few thousand callers that never finish theirs would hold every descriptor. Bodies are bounded in `app.web.bodies`.
"""

import asyncio

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

HEAD_SECONDS = 5.0
"""From the connection, or from the first byte of a later request, to the end of the head."""


class TimedHeads(H11Protocol):
    """uvicorn's HTTP/1.1 that hangs up on a head that does not end."""

    head_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """The first head is due from now."""
        super().connection_made(transport)
        self._arm()

    def data_received(self, data: bytes) -> None:
        """The timer runs as long as there is a head that has begun and not ended."""
        super().data_received(data)
        pending = self.conn.their_state is h11.IDLE and bool(self.conn.trailing_data[0])
        if pending:
            self._arm()
        else:
            self._disarm()

    def connection_lost(self, exc: Exception | None) -> None:
        """Nothing is due any more."""
        self._disarm()
        super().connection_lost(exc)

    def _arm(self) -> None:
        if self.head_timer is None:
            self.head_timer = self.loop.call_later(HEAD_SECONDS, self.transport.abort)

    def _disarm(self) -> None:
        if self.head_timer is not None:
            self.head_timer.cancel()
            self.head_timer = None
