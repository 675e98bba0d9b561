"""Criteria, coordinates and profile segments, both ways (corroboration 3, evidence-format 1.7-1.8)."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Criteria:
    """A recipe's resolved criteria; empty means `any`. `nodes` is advisory and in no coordinate."""

    service: str = ""
    accelerator: str = ""
    os: str = ""
    intent: str = ""
    platform: str = ""
    nodes: int = 0


@dataclass(frozen=True, slots=True)
class Coordinate:
    """`group/dashboard/tab`; opaque to consumers, since values can contain `-`."""

    group: str
    dashboard: str
    tab: str

    @property
    def path(self) -> str:
        """The frozen string form."""
        return f"{self.group}/{self.dashboard}/{self.tab}"
