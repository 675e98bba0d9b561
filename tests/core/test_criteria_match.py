"""Criteria against a fingerprint: the match values of evidence-format 1.4, vectors F8 and F9."""

from dataclasses import dataclass, field

import pytest

from app.core.bundle import DimensionMatch
from app.core.coordinate import Criteria
from app.core.criteria_match import match_criteria


@dataclass(frozen=True)
class _Value:
    value: str = ""


@dataclass(frozen=True)
class _Number:
    value: int = 0


@dataclass(frozen=True)
class _Captured:
    service: _Value = field(default_factory=_Value)
    accelerator: _Value = field(default_factory=_Value)
    os: _Value = field(default_factory=_Value)
    node_count: _Number = field(default_factory=_Number)


EKS = _Captured(_Value("eks"), _Value("h100"), _Value("ubuntu"), _Number(8))

ROWS = [
    pytest.param(Criteria(service="generic"), EKS, "service", ("not-inferable", "generic", "eks"), True, id="F8"),
    pytest.param(Criteria(accelerator="h100"), _Captured(), "accelerator", ("unknown", "h100", ""), True, id="F9"),
    pytest.param(Criteria(service="eks"), EKS, "service", ("matched", "eks", "eks"), True, id="equal"),
    pytest.param(Criteria(), EKS, "service", ("matched", "", "eks"), True, id="no-requirement"),
    pytest.param(Criteria(service="any"), EKS, "service", ("matched", "", "eks"), True, id="any"),
    pytest.param(Criteria(service="gke"), EKS, "service", ("mismatched", "gke", "eks"), False, id="other-service"),
    pytest.param(Criteria(service="generic"), _Captured(), "service", ("unknown", "generic", ""), True, id="generic"),
    pytest.param(
        Criteria(os="generic"), EKS, "os", ("mismatched", "generic", "ubuntu"), False, id="generic-is-a-service"
    ),
    pytest.param(Criteria(accelerator="b200"), EKS, "accelerator", ("mismatched", "b200", "h100"), False, id="gpu"),
    pytest.param(
        Criteria(os="ubuntu"), _Captured(os=_Value("any")), "os", ("unknown", "ubuntu", ""), True, id="any-os"
    ),
    pytest.param(Criteria(intent="training"), EKS, "intent", ("unknown", "training", ""), True, id="intent"),
    pytest.param(Criteria(platform="slurm"), EKS, "platform", ("unknown", "slurm", ""), True, id="platform"),
    pytest.param(Criteria(nodes=8), EKS, "nodes", ("matched", "8", "8"), True, id="nodes"),
    pytest.param(Criteria(nodes=4), EKS, "nodes", ("mismatched", "4", "8"), False, id="other-nodes"),
    pytest.param(Criteria(nodes=4), _Captured(), "nodes", ("unknown", "4", ""), True, id="nodes-not-captured"),
    pytest.param(Criteria(nodes=0), EKS, "nodes", ("matched", "", "8"), True, id="nodes-not-required"),
    pytest.param(None, EKS, "service", ("matched", "", "eks"), True, id="no-criteria"),
]


@pytest.mark.parametrize(("criteria", "captured", "dimension", "row", "matched"), ROWS)
def test_each_dimension_has_its_match(
    criteria: Criteria | None,
    captured: _Captured,
    dimension: str,
    row: tuple[str, str, str],
    matched: bool,  # noqa: FBT001
) -> None:
    result = match_criteria(criteria, captured)
    assert next(found for found in result.dimensions if found.dimension == dimension) == DimensionMatch(dimension, *row)
    assert result.matched is matched


def test_the_six_rows_keep_their_order() -> None:
    assert [row.dimension for row in match_criteria(Criteria(), _Captured()).dimensions] == [
        "service",
        "accelerator",
        "os",
        "intent",
        "platform",
        "nodes",
    ]
