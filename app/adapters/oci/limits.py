"""What one pull may cost: size limits, a deadline, and the byte budget that all pulls share."""

import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from app.adapters.oci.codes import fetch_error

MIB = 1 << 20


@dataclass(frozen=True, slots=True)
class ReaderLimits:
    """Limits of the strict reader; defaults of trust 3 and evidence-format 5.3, sizes in bytes."""

    manifest_bytes: int = 4 * MIB
    blob_bytes: int = 64 * MIB
    unpacked_bytes: int = 256 * MIB
    ratio: int = 100  # unpacked to compressed, asked once `ratio_floor_bytes` came out
    ratio_floor_bytes: int = MIB
    files: int = 4096  # and at most as many directories
    path_bytes: int = 512
    depth: int = 16
    referrers: int = 64  # signatures of one artifact, and pages of the listing
    signature_bytes: int = 10 * MIB
    signatures_bytes: int = 16 * MIB  # all signatures of one artifact, since they are held in memory
    referrer_manifest_bytes: int = MIB
    token_bytes: int = 256 << 10
    redirects: int = 5
    retries: int = 2
    connect_timeout_seconds: float = 10.0
    read_timeout_seconds: float = 15.0

    def unpacked_cost(self, layer_size: int) -> int:
        """The most that a layer of `layer_size` bytes can take on disk, compressed file included."""
        return layer_size + min(self.unpacked_bytes, max(self.ratio_floor_bytes, layer_size * self.ratio))


class Deadline:
    """The end of one whole pull on the monotonic clock; a slow drip ends here."""

    def __init__(self, seconds: float, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._seconds = seconds
        self._end = clock() + seconds

    def remaining(self) -> float:
        """Seconds left, above zero; raises `FetchError` (REGISTRY_TIMEOUT) when none are."""
        left = self._end - self._clock()
        if left <= 0:
            raise fetch_error("REGISTRY_TIMEOUT", f"the pull did not finish within {self._seconds:g} seconds")
        return left


class ByteBudget:
    """Bytes that all running pulls may hold together (service 8); first come, first served.

    A pull takes its worst case once, before it downloads, so that two pulls can not wait for each other. A
    request over the total counts as the total: it runs alone instead of never.
    """

    def __init__(self, total_bytes: int) -> None:
        self._total = total_bytes
        self._free = total_bytes
        self._queue: deque[object] = deque()
        self._changed = threading.Condition()

    @property
    def free_bytes(self) -> int:
        """What is not taken now."""
        with self._changed:
            return self._free

    @contextmanager
    def reserve(self, size: int, deadline: Deadline) -> Iterator[Callable[[int], None]]:
        """Hold `size` bytes while the context lasts; the yielded call gives all but `n` bytes back early."""
        held = min(size, self._total)
        self._take(held, deadline)

        def shrink(n: int) -> None:
            nonlocal held
            with self._changed:
                surplus = max(0, held - n)
                held -= surplus
                self._free += surplus
                self._changed.notify_all()

        try:
            yield shrink
        finally:
            shrink(0)

    def _take(self, size: int, deadline: Deadline) -> None:
        ticket = object()
        with self._changed:
            self._queue.append(ticket)
            try:
                while self._queue[0] is not ticket or self._free < size:
                    self._changed.wait(deadline.remaining())
                self._free -= size
            finally:
                self._queue.remove(ticket)
                self._changed.notify_all()
