"""Rates as settings write them."""

from dataclasses import dataclass
from typing import Self

RATE = "a rate such as '100/s burst 200', or 0"
_LEAST, _MOST = 0.001, 1e6


@dataclass(frozen=True, slots=True)
class RateLimit:
    """A token bucket: `per_second` tokens flow in, `burst` are held; None of it when off."""

    per_second: float
    burst: int

    @classmethod
    def parse(cls, text: str) -> Self | None:
        """Read `100/s burst 200`; `0` is off. Raises `ValueError`."""
        if text.strip() == "0":
            return None
        parts = text.split()
        try:
            if len(parts) != 3 or parts[1] != "burst" or not parts[0].endswith("/s"):
                raise ValueError  # noqa: TRY301
            limit = cls(float(parts[0][:-2]), int(parts[2]))
        except ValueError:
            raise ValueError(f"expected {RATE}, got {text[:80]!r}") from None
        if not _LEAST <= limit.per_second <= _MOST or not 1 <= limit.burst <= _MOST:
            raise ValueError(f"expected a rate from 0.001/s and a burst from 1, to a million each, got {text[:80]!r}")
        return limit
