"""How a server ends: not ready any more, then the running requests, then the sockets (corroboration 7.2).

uvicorn alone closes its sockets at once, so that a load balancer would learn of the end from refused connections
while long requests still run. Here SIGINT or SIGTERM first makes `/ready` answer 503, the requests that were running
get their time while others are still answered, and only then uvicorn's own handler has its turn.
"""

import asyncio
import logging
import signal
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from types import FrameType
from typing import Any

from fastapi import FastAPI
from starlette.types import ASGIApp, Receive, Scope, Send

log = logging.getLogger(__name__)

LAST_SECONDS = 5
"""Of the shutdown's time, what is left to requests that came in while others were waited for."""

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class RunningRequests:
    """Keeps the task of every request while it runs in `running`."""

    def __init__(self, app: ASGIApp, running: set["asyncio.Task[Any]"]) -> None:
        self.app = app
        self.running = running

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one connection."""
        task = asyncio.current_task()
        if scope["type"] != "http" or task is None:
            await self.app(scope, receive, send)
            return
        self.running.add(task)
        try:
            await self.app(scope, receive, send)
        finally:
            self.running.discard(task)


@asynccontextmanager
async def draining(app: FastAPI) -> AsyncIterator[None]:
    """The application's life: drains on the first signal, and calls `app.state.close` when everything has ended."""
    put_back = _drain_on_signals(app) if threading.current_thread() is threading.main_thread() else None
    try:
        yield
    finally:
        if put_back is not None:
            put_back()
        app.state.close()


def _drain_on_signals(app: FastAPI) -> Callable[[], None]:
    """Stand before the handlers of the server that runs this application; returns what puts them back."""
    loop = asyncio.get_running_loop()
    servers = {number: signal.getsignal(number) for number in _SIGNALS}
    tasks = set()

    def server_ends(number: int) -> None:
        handler = servers[signal.Signals(number)]
        if callable(handler):
            handler(number, None)

    async def drain(number: int) -> None:
        waiting = set(app.state.running)
        if waiting:
            log.info("not ready any more; waiting for %d running requests", len(waiting))
            await asyncio.wait(waiting, timeout=app.state.drain_seconds)
        server_ends(number)

    def first(number: int) -> None:
        tasks.add(loop.create_task(drain(number)))

    def asked(number: int, _frame: FrameType | None) -> None:
        if not app.state.draining:
            app.state.draining = True
            loop.call_soon_threadsafe(first, number)
        elif number == signal.SIGINT:  # a second Ctrl-C: somebody does not want to wait
            server_ends(number)

    for number in _SIGNALS:
        if callable(servers[number]):
            signal.signal(number, asked)

    def put_back() -> None:
        for number, handler in servers.items():
            if signal.getsignal(number) is asked:
                signal.signal(number, handler)

    return put_back
