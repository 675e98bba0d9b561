"""The passing part of the in-memory store: attempts with their counters, leases."""

import threading
from dataclasses import replace
from datetime import datetime, timedelta

from app.core.refs import Digest
from app.ports import Attempt


class MemoryAttempts:
    """Those methods of `app.ports.EvidenceStore` that are about no evidence; `_lock` makes each a transaction."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._attempts: dict[int, Attempt] = {}
        self._leases: dict[str, tuple[str, datetime]] = {}

    def record_attempt(self, attempt: Attempt, /) -> Attempt:
        def key(one: Attempt) -> tuple[str, ...]:
            source = one.source if one.outcome == "accepted" else ""
            return (one.outcome, one.code, one.digest or one.reference, source)

        with self._lock:
            for number, known in self._attempts.items():
                if key(known) == key(attempt):
                    kept = replace(attempt, id=number, first_at=known.first_at, count=known.count + 1)
                    self._attempts[number] = kept
                    return kept
            number = max(self._attempts, default=0) + 1
            self._attempts[number] = replace(attempt, id=number, first_at=attempt.last_at, count=1)
            return self._attempts[number]

    def prune_attempts(self, before: datetime, /) -> int:
        with self._lock:
            old = [number for number, attempt in self._attempts.items() if attempt.last_at < before]
            for number in old:
                del self._attempts[number]
            return len(old)

    def attempts(
        self, *, after: int | None, limit: int, outcome: str | None = None, digest: str | None = None
    ) -> tuple[tuple[Attempt, ...], int | None]:
        found = [
            attempt
            for number, attempt in sorted(self._attempts.items(), reverse=True)
            if (after is None or number < after)
            and outcome in (None, attempt.outcome)
            and digest in (None, attempt.digest)
        ]
        return tuple(found[:limit]), found[limit - 1].id if len(found) > limit else None

    def attempt(self, attempt_id: int, /) -> Attempt | None:
        return self._attempts.get(attempt_id)

    def lease(self, digest: Digest, holder: str, /, *, now: datetime, seconds: float) -> bool:
        with self._lock:
            held = self._leases.get(digest.hex)
            if held and held[0] != holder and held[1] > now:
                return False
            self._leases[digest.hex] = (holder, now + timedelta(seconds=seconds))
            return True

    def release(self, digest: Digest, holder: str, /) -> None:
        with self._lock:
            if self._leases.get(digest.hex, ("",))[0] == holder:
                del self._leases[digest.hex]
