"""What happens around every request, outermost first: request id, log line, last resort, rate limit.

Each is one small ASGI layer, so that streams stay streams. The order is upstream's (corroboration 7.2); `create_app`
puts them together. Bodies are bounded where they are read, by the limit of their route (`app.web.bodies`). No address
of a caller is ever logged, and no query text, since filters can hold addresses.
"""

import logging
import math
import traceback
import uuid
from collections.abc import Callable, Mapping, Sequence

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.ports import Clock
from app.web.limits import ClientBuckets, Grant, Network, TokenBucket, client_key
from app.web.problems import Answer, problem_response

API_VERSION = "v1"
SYSTEM_PATHS = frozenset({"/health", "/ready", "/metrics"})
"""Outside the rate limit, as upstream's: a probe must not be refused because of strangers."""

STRICT_CSP = "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; sandbox"
"""For everything that is no page: an answer opened in a browser can run and load nothing."""

log = logging.getLogger("app.web.access")


class RequestId:
    """Echo a valid `X-Request-Id` or make one; it is in the response, in errors and in the log."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one connection."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        request_id = _request_id(Headers(scope=scope).get("x-request-id", ""))
        scope.setdefault("state", {})["request_id"] = request_id

        async def tagged(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in standing_headers(request_id).items():
                    headers.setdefault(name, value)
            await send(message)

        await self.app(scope, receive, tagged)


def standing_headers(request_id: str) -> Mapping[str, str]:
    """What every answer carries; a page has a policy of its own."""
    return {
        "X-Request-Id": request_id,
        "X-API-Version": API_VERSION,
        "X-Content-Type-Options": "nosniff",
        "Content-Security-Policy": STRICT_CSP,
        "Referrer-Policy": "no-referrer",
        "X-Frame-Options": "DENY",
    }


class AccessLog:
    """One line a request: debug when it went well, warning for 4xx, error for 5xx."""

    def __init__(self, app: ASGIApp, monotonic: Callable[[], float]) -> None:
        self.app = app
        self.monotonic = monotonic

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one connection."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        started = self.monotonic()
        status = 0

        async def watched(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self.app(scope, receive, watched)
        finally:
            level = (
                logging.ERROR if status >= 500 or status == 0 else logging.WARNING if status >= 400 else logging.DEBUG
            )
            log.log(
                level,
                "%s %s %d %.1f ms %s",
                scope["method"],
                _printable(scope["path"]),
                status,
                (self.monotonic() - started) * 1000,
                scope["state"]["request_id"],
            )


class LastResort:
    """Whatever nobody expected becomes INTERNAL/500; the log gets the frames, never the text of the error.

    The text can hold what a stranger sent, an address included.
    """

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one connection."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        started = False

        async def watched(message: Message) -> None:
            nonlocal started
            started = started or message["type"] == "http.response.start"
            await send(message)

        try:
            await self.app(scope, receive, watched)
        except Exception as err:  # noqa: BLE001 - the last resort is for what nobody named
            frames = "".join(traceback.format_tb(err.__traceback__))
            log.error("unexpected %s %s\n%s", type(err).__qualname__, scope["state"]["request_id"], frames)  # noqa: TRY400
            if not started:
                await _answer(Answer("INTERNAL", "the service failed; quote the request id"), scope, receive, send)


class RateLimit:
    """One bucket for all requests of this process, one a client for what posts (service 2)."""

    def __init__(
        self,
        app: ASGIApp,
        *,
        everybody: TokenBucket | None,
        clients: ClientBuckets | None,
        trusted_proxies: Sequence[Network],
        clock: Clock,
        monotonic: Callable[[], float],
    ) -> None:
        self.app = app
        self.everybody = everybody
        self.clients = clients
        self.trusted_proxies = trusted_proxies
        self.clock = clock
        self.monotonic = monotonic

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one connection."""
        if scope["type"] != "http" or scope["path"] in SYSTEM_PATHS:
            await self.app(scope, receive, send)
            return
        grant = self._take(scope)
        if grant is None:
            await self.app(scope, receive, send)
            return
        reset = str(math.ceil(self.clock().timestamp() + grant.full_in))

        async def counted(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers["X-RateLimit-Limit"] = str(grant.limit)
                headers["X-RateLimit-Remaining"] = str(grant.remaining)
                headers["X-RateLimit-Reset"] = reset
            await send(message)

        if grant.allowed:
            await self.app(scope, receive, counted)
            return
        answer = Answer(
            "RATE_LIMIT_EXCEEDED",
            f"more than {grant.per_second:g} requests a second and {grant.limit} at once",
            {"limit": grant.per_second, "burst": grant.limit},
            {"Retry-After": str(max(1, math.ceil(grant.wait_seconds)))},
        )
        await _answer(answer, scope, receive, counted)

    def _take(self, scope: Scope) -> Grant | None:
        """The tighter of the two buckets that speak for this request; a refused client costs the others nothing."""
        now = self.monotonic()
        own: Grant | None = None
        if self.clients is not None and scope["method"] == "POST":
            peer = (scope.get("client") or ("", 0))[0]
            forwarded = ",".join(Headers(scope=scope).getlist("x-forwarded-for"))
            own = self.clients.take(client_key(peer, forwarded, self.trusted_proxies), now)
            if not own.allowed:
                return own
        if self.everybody is None:
            return own
        shared = self.everybody.take(now)
        if own is None or not shared.allowed or shared.remaining < own.remaining:
            return shared
        return own


class HeadAsGet:
    """Answer `HEAD` with the headers of `GET`; `state.head` lets an expensive route stop early."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one connection."""
        if scope["type"] != "http" or scope["method"] != "HEAD":
            await self.app(scope, receive, send)
            return

        async def headers_only(message: Message) -> None:
            if message["type"] == "http.response.body":
                message = {**message, "body": b""}
            await send(message)

        asked = {**scope, "method": "GET"}
        asked.setdefault("state", {})["head"] = True
        await self.app(asked, receive, headers_only)


async def _answer(answer: Answer, scope: Scope, receive: Receive, send: Send) -> None:
    response = problem_response(Request(scope), answer)
    await response(scope, receive, send)


def _request_id(text: str) -> str:
    """The caller's id when it is a UUID in its usual form, else a new one."""
    if len(text) == 36:
        try:
            return text if str(uuid.UUID(text)) == text.lower() else str(uuid.uuid4())
        except ValueError:
            pass
    return str(uuid.uuid4())


def _printable(path: str) -> str:
    """A path that can not forge a log line; an address in it is masked by its `@`."""
    if "@" in path:
        path = path.split("@", 1)[0] + "@…"
    return "".join(ch if ch.isprintable() else f"\\x{ord(ch):02x}" for ch in path[:300])
