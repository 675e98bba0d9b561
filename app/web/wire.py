"""HTTP connections whose request heads have to arrive in time, and be HTTP (corroboration 7.2).

uvicorn bounds how long a finished connection may stay idle, not how long somebody may take to write a request head;
a few thousand callers that never finish theirs would hold every descriptor. Bodies are bounded in `app.web.bodies`.
What is no HTTP reaches no application, so its error is written here, in the envelope of all others.
"""

import asyncio
import json
import uuid

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from app.bootstrap.container import utc_now
from app.web.middleware import standing_headers
from app.web.problems import Answer, envelope

HEAD_SECONDS = 5.0
"""From the connection, or from the first byte of a later request, to the end of the head."""

NO_HTTP = Answer(
    "INVALID_REQUEST",
    "expected a request of HTTP/1.1, got something else",
    {"hint": "percent-encode whatever is not ASCII in the address; send no more than one Content-Length, a number"},
)


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

    def send_400_response(self, msg: str) -> None:  # noqa: ARG002 - uvicorn's one sentence for every fault
        """The error envelope, then the end; the end alone when an answer has begun, which can not be taken back."""
        if self.conn.our_state not in {h11.IDLE, h11.SEND_RESPONSE}:
            self.transport.abort()
            return
        request_id = str(uuid.uuid4())
        body = json.dumps(envelope(NO_HTTP, request_id=request_id, now=utc_now())).encode()
        headers = {
            **standing_headers(request_id),
            "Cache-Control": "no-store",
            "Content-Type": "application/json",
            "Content-Length": str(len(body)),
            "Connection": "close",
        }
        start = h11.Response(status_code=NO_HTTP.status, headers=list(headers.items()), reason=b"Bad Request")
        for event in (start, h11.Data(data=body), h11.EndOfMessage()):
            self.transport.write(self.conn.send(event) or b"")
        self.transport.close()

    def _arm(self) -> None:
        if self.head_timer is None:
            self.head_timer = self.loop.call_later(HEAD_SECONDS, self.transport.abort)

    def _disarm(self) -> None:
        if self.head_timer is not None:
            self.head_timer.cancel()
            self.head_timer = None
