"""Time as a port."""

from datetime import datetime
from typing import Protocol


class Clock(Protocol):
    """The only source of time; UTC."""

    def __call__(self) -> datetime:
        """Now."""
