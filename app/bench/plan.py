"""How large a run is, and who is told that something was done."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

T = TypeVar("T")


def _nothing() -> None:
    pass


@dataclass(frozen=True, slots=True)
class Plan:
    """`full` takes the sizes of service 7; `scale` shrinks the sizes of `small` further, for tests."""

    size: str = "small"
    scale: float = 1.0
    tick: Callable[[], None] = _nothing

    def pick(self, *, small: int, full: int, least: int = 2) -> int:
        """The number of rounds or things for this size."""
        wanted = full if self.size == "full" else small
        return max(least, int(wanted * self.scale))
