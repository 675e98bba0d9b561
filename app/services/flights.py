"""One fetch for many callers: who asks for what is already under way waits for that answer (trust 3, service 8).

A joiner takes no slot of the executor, so fifty requests for one bundle cost one.
"""

import asyncio
from collections.abc import Callable, Hashable
from concurrent.futures import Executor
from typing import Generic, TypeVar

T = TypeVar("T")


class Flights(Generic[T]):
    """Runs blocking work on `executor`, once per key at a time.

    Lives in one event loop. The work goes on when a waiting caller leaves, since others may have joined it.
    """

    def __init__(self, executor: Executor) -> None:
        self._executor = executor
        self._running: dict[Hashable, asyncio.Future[T]] = {}

    async def run(self, key: Hashable, work: Callable[[], T]) -> tuple[T, bool]:
        """The result of `work`, and whether this call joined a run that somebody else began."""
        flight = self._running.get(key)
        joined = flight is not None
        if flight is None:
            flight = asyncio.get_running_loop().run_in_executor(self._executor, work)
            self._running[key] = flight
            flight.add_done_callback(lambda done: self._landed(key, done))
        return await asyncio.shield(flight), joined

    def _landed(self, key: Hashable, flight: asyncio.Future[T]) -> None:
        self._running.pop(key, None)
        if not flight.cancelled():
            flight.exception()  # looked at here, so that a run whose callers all left is not reported as unheard
