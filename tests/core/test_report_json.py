"""A report read back from its JSON (evidence-format 8.6)."""

from typing import Any

import pytest

from app.core.errors import DocumentInvalid
from app.core.markdown import render_markdown
from app.core.report import (
    CauseClass,
    FailureCause,
    Finding,
    InputKind,
    Report,
    ReportSigner,
    Step,
    StepName,
    StepStatus,
    SubRow,
)
from app.core.report_json import read_report

FULL = Report(
    input=InputKind.POINTER,
    steps=(
        Step(StepName.MATERIALIZE, StepStatus.PASSED),
        Step(StepName.SIGNATURE, StepStatus.PASSED, "signed", (SubRow("rekorLogIndex", "0"),)),
        Step(StepName.MANIFEST, StepStatus.FAILED, "one file differs", (SubRow("ctrf/x.json", "differs"),)),
    ),
    exit=2,
    pointer={"recipe": "h100"},
    predicate={"aicrVersion": "v1"},
    signer=ReportSigner("someone@example.org", "https://issuer.example.org", 0),
    recipe_name="h100",
    bundle_digest="sha256:" + "a" * 64,
    failure_cause=FailureCause(CauseClass.INTEGRITY, "one file differs", 404, "look again"),
    findings=(Finding("E5", "E5_POINTER", "another time"),),
)
BARE = Report(input=InputKind.DIRECTORY, steps=(), exit=0, pending=True)


@pytest.mark.parametrize("report", [pytest.param(FULL, id="full"), pytest.param(BARE, id="bare")])
def test_a_report_reads_back_as_it_was(report: Report) -> None:
    assert read_report(report.to_json()) == report


def test_an_index_that_is_not_there_stays_away() -> None:
    body = Report(InputKind.OCI, (), 1, signer=ReportSigner("a", "b")).to_json()
    assert read_report(body).signer == ReportSigner("a", "b", None)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        pytest.param({"exit": "0"}, "expected exit as int, got str", id="exit-text"),
        pytest.param({"exit": True}, "expected exit as int, got bool", id="exit-bool"),
        pytest.param({"exit": 4}, "expected an exit from 0 to 3 that fits its failureCause, got 4", id="exit-4"),
        pytest.param({"exit": 3}, "expected an exit from 0 to 3 that fits its failureCause, got 3", id="no-cause"),
        pytest.param(
            {"failureCause": {"class": "signature", "detail": "x"}},
            "expected an exit from 0 to 3 that fits its failureCause, got 0",
            id="cause-of-nothing",
        ),
        pytest.param(
            {"exit": 2, "failureCause": {"class": "odd", "detail": "x"}}, "expected class as one of", id="class"
        ),
        pytest.param({"input": "file"}, "expected input as one of dir, pointer, oci, got 'file'", id="input"),
        pytest.param({"steps": None}, "expected steps as list, got NoneType", id="steps"),
        pytest.param({"steps": ["x"]}, "expected steps as a list of objects", id="step"),
        pytest.param({"steps": [{"name": "x", "status": "passed"}]}, "expected name as one of", id="step-name"),
        pytest.param({"predicate": []}, "expected predicate as dict, got list", id="predicate"),
        pytest.param({"pending": 1}, "expected pending as bool, got int", id="pending"),
        pytest.param({"signer": {"identity": "x"}}, "expected issuer as str, got NoneType", id="signer"),
        pytest.param({"findings": [{"rule": "E1"}]}, "expected code as str, got NoneType", id="finding"),
    ],
)
def test_what_is_no_report_is_refused(change: dict[str, Any], said: str) -> None:
    with pytest.raises(DocumentInvalid, match=said):
        read_report({"input": "dir", "steps": [], "exit": 0, **change})


@pytest.mark.parametrize("count", [float("inf"), float("-inf"), float("nan"), "7", None])
def test_a_count_that_is_no_number_is_drawn_as_none(count: object) -> None:
    body = {
        "input": "dir",
        "steps": [],
        "exit": 0,
        "predicate": {"phases": {"deployment": {"passed": count, "failed": 0, "skipped": 0}}},
    }
    assert "- ⚪ **deployment** passed=0 failed=0 skipped=0 (nothing recorded)" in render_markdown(read_report(body))
