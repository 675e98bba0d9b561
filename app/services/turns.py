"""Turns at a digest: one fetch at a time across processes, by leases (trust 3, service 6)."""

import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from app.core.errors import FetchError, StoreError
from app.core.refs import Digest
from app.ports import Clock, EvidenceStore
from app.services.pulling import PullTime

_POLL_SECONDS = 0.05
_POLL_SLOWEST_SECONDS = 0.4


@dataclass(frozen=True, slots=True)
class Turns:
    """Hands out turns; a lease of `lease_seconds` is prolonged while its holder works."""

    store: EvidenceStore
    clock: Clock
    lease_seconds: float
    pause: Callable[[float], None] = time.sleep

    @contextmanager
    def turn(self, digest: Digest, pulling: PullTime) -> Iterator[bool]:
        """Hold the lease of `digest`, so that nobody else fetches it at the same time; whether that took waiting.

        Waiting takes from the time of the pull; raises `FetchError` when that is over.
        """
        holder = uuid.uuid4().hex
        waited, pause = False, _POLL_SECONDS
        while not self._take(digest, holder):
            if pulling.over:
                raise FetchError(
                    f"{digest} is being taken in by another process",
                    retry_after_seconds=2,
                    hint="try again in a moment; the answer will then be there",
                )
            self.pause(pause)
            waited = True
            pause = min(pause * 1.5, _POLL_SLOWEST_SECONDS)
        try:
            with self._prolonged(digest, holder):
                yield waited
        finally:
            self.store.release(digest, holder)

    @contextmanager
    def _prolonged(self, digest: Digest, holder: str) -> Iterator[None]:
        """Keep a lease alive on a thread of its own while its holder fetches and judges."""
        done = threading.Event()

        def prolong() -> None:
            while not done.wait(self.lease_seconds / 3):
                try:
                    self._take(digest, holder)
                except StoreError:
                    continue  # two more tries before it expires

        thread = threading.Thread(target=prolong, name="aicr-lease", daemon=True)
        thread.start()
        try:
            yield
        finally:
            done.set()
            thread.join()

    def _take(self, digest: Digest, holder: str) -> bool:
        return self.store.lease(digest, holder, now=self.clock(), seconds=self.lease_seconds)
