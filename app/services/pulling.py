"""One whole pull, signature included, ends at one time, whatever it is made of (service 2, `PULL_TIMEOUT_SECONDS`).

A port gets what its predecessors left; waiting for somebody else's fetch of the same digest counts like fetching.
"""

import time
from collections.abc import Callable
from dataclasses import replace

from app.core.errors import Category, FetchError
from app.ports import PullOptions


class PullTime:
    """The time of one pull, running from the moment it is made; `clock` counts seconds and never runs backwards."""

    def __init__(self, seconds: float, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._seconds = seconds
        self._clock = clock
        self._end = clock() + seconds

    @property
    def over(self) -> bool:
        """Whether nothing is left."""
        return self._end <= self._clock()

    def left(self) -> float:
        """Seconds left, above zero; raises `FetchError` (REGISTRY_TIMEOUT) when none are."""
        left = self._end - self._clock()
        if left <= 0:
            raise FetchError(
                f"the pull did not finish within {self._seconds:g} seconds",
                category=Category.TIMEOUT,
                code="REGISTRY_TIMEOUT",
                hint="the registry could not be read in time; nothing was decided, try again",
            )
        return left

    def options(self, options: PullOptions) -> PullOptions:
        """The same options for what comes next, which gets what is left."""
        return replace(options, timeout_seconds=self.left())
