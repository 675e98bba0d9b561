"""How a cluster's fingerprint fits a recipe's criteria (evidence-format 1.4).

The producer records it, the verifier computes it again; what a mismatch means is decided elsewhere.
"""

from dataclasses import dataclass, replace
from typing import Final, Protocol

from app.core.bundle import DimensionMatch
from app.core.coordinate import ANY, Criteria

MATCHED: Final = "matched"
UNKNOWN: Final = "unknown"
NOT_INFERABLE: Final = "not-inferable"
MISMATCHED: Final = "mismatched"

OPT_IN_SERVICES: Final = frozenset({"generic"})
"""Services that no snapshot shows, only a user's choice; the full set is not published (evidence-format 12.4)."""


class TextValue(Protocol):
    """A captured text; empty was not captured."""

    @property
    def value(self) -> str:
        """The text."""


class NumberValue(Protocol):
    """A captured number; 0 was not captured."""

    @property
    def value(self) -> int:
        """The number."""


class Captured(Protocol):
    """The dimensions of a fingerprint that are compared, whoever models it."""

    @property
    def service(self) -> TextValue:
        """Kubernetes service."""

    @property
    def accelerator(self) -> TextValue:
        """GPU kind."""

    @property
    def os(self) -> TextValue:
        """Operating system."""

    @property
    def node_count(self) -> NumberValue:
        """Number of nodes."""


@dataclass(frozen=True, slots=True)
class CriteriaMatch:
    """The six rows in their order; `matched` unless one of them is mismatched."""

    dimensions: tuple[DimensionMatch, ...]

    @property
    def matched(self) -> bool:
        """Whether no row is `mismatched`."""
        return all(row.match != MISMATCHED for row in self.dimensions)

    def before_not_inferable(self) -> "CriteriaMatch":
        """The same as producers wrote it that did not know `not-inferable` yet: they said `mismatched`."""
        return CriteriaMatch(
            tuple(replace(row, match=MISMATCHED) if row.match == NOT_INFERABLE else row for row in self.dimensions)
        )


def match_criteria(criteria: Criteria | None, fingerprint: Captured) -> CriteriaMatch:
    """Compare the six dimensions; a recipe without criteria requires nothing."""
    criteria = criteria or Criteria()
    return CriteriaMatch(
        (
            _row("service", criteria.service, fingerprint.service.value),
            _row("accelerator", criteria.accelerator, fingerprint.accelerator.value),
            _row("os", criteria.os, fingerprint.os.value),
            _row("intent", criteria.intent, ""),
            _row("platform", criteria.platform, ""),
            _row("nodes", _decimal(criteria.nodes), _decimal(fingerprint.node_count.value)),
        )
    )


def _decimal(number: int) -> str:
    return str(number) if number else ""


def _row(dimension: str, requires: str, provides: str) -> DimensionMatch:
    requires = "" if requires == ANY else requires
    provides = "" if provides == ANY else provides
    if not requires or requires == provides:
        match = MATCHED
    elif not provides:
        match = UNKNOWN
    elif dimension == "service" and requires in OPT_IN_SERVICES:
        match = NOT_INFERABLE
    else:
        match = MISMATCHED
    return DimensionMatch(dimension, match, requires, provides)
