"""Classifying faults, merging causes, exits, and the JSON report (evidence-format 8.4, 8.6, 11.9)."""

import itertools
import json

import pytest

from app.core.errors import Cancelled, Category, DocumentInvalid, FetchError
from app.core.report import (
    CauseClass,
    Exit,
    FailureCause,
    Fault,
    Finding,
    InputKind,
    Report,
    ReportSigner,
    StepName,
    SubRow,
)
from app.core.verdict_steps import StepLog, classify_failure, fault_of, merge_causes, process_exit, unreadable


def registry_fault(status: int) -> Fault:
    return Fault("REGISTRY", f"the registry answered {status}", Category.UNAVAILABLE, http_status=status)


@pytest.mark.parametrize(
    ("status", "cause", "exit_value", "hint"),
    [
        pytest.param(401, CauseClass.REGISTRY_FORBIDDEN, 2, "public", id="V10-401"),
        pytest.param(403, CauseClass.REGISTRY_FORBIDDEN, 2, "credentials", id="V10-403"),
        pytest.param(404, CauseClass.NOT_FOUND, 2, "pushed", id="V11"),
        pytest.param(400, CauseClass.REGISTRY, 2, None, id="V12"),
        pytest.param(418, CauseClass.REGISTRY, 2, None, id="other-4xx"),
        pytest.param(302, CauseClass.REGISTRY, 2, None, id="3xx"),
        pytest.param(429, CauseClass.TRANSIENT, 3, "retry", id="V13-429"),
        pytest.param(500, CauseClass.TRANSIENT, 3, "retry", id="V13-500"),
        pytest.param(502, CauseClass.TRANSIENT, 3, "retry", id="V13-502"),
        pytest.param(503, CauseClass.TRANSIENT, 3, "retry", id="V13-503"),
    ],
)
@pytest.mark.parametrize("step", [*StepName, None])
def test_a_registrys_status_decides_whatever_the_step(
    step: StepName | None, status: int, cause: CauseClass, exit_value: int, hint: str | None
) -> None:
    got, exit_got = classify_failure(step, registry_fault(status))
    assert (got.cause, got.http_status, exit_got) == (cause, status, exit_value)
    assert got.hint is None if hint is None else hint in (got.hint or "")


@pytest.mark.parametrize(
    ("step", "category", "cause", "exit_value"),
    [
        pytest.param(StepName.SIGNATURE, Category.UNAUTHORIZED, CauseClass.SIGNATURE, 2, id="V14-step-2"),
        pytest.param(StepName.PREDICATE, Category.INVALID_REQUEST, CauseClass.SCHEMA, 2, id="V14-step-3"),
        pytest.param(StepName.MANIFEST, Category.INVALID_REQUEST, CauseClass.INTEGRITY, 2, id="V14-step-4"),
        pytest.param(StepName.MATERIALIZE, Category.INVALID_REQUEST, CauseClass.UNKNOWN, 2, id="V15-step-1"),
        pytest.param(None, Category.INTERNAL, CauseClass.UNKNOWN, 2, id="V15-no-step"),
        *(
            pytest.param(step, category, CauseClass.TRANSIENT, 3, id=f"V16-{step}-{category}")
            for step, category in itertools.product(
                [StepName.MATERIALIZE, StepName.SIGNATURE, StepName.MANIFEST, None],
                [Category.TIMEOUT, Category.UNAVAILABLE],
            )
        ),
        pytest.param(StepName.SIGNATURE, Category.CANCELED, CauseClass.CANCELED, 3, id="V17"),
    ],
)
def test_without_a_status_the_category_and_then_the_step_decide(
    step: StepName | None, category: Category, cause: CauseClass, exit_value: int
) -> None:
    got, exit_got = classify_failure(step, Fault("CODE", "why", category))
    assert (got.cause, got.detail, got.http_status, exit_got) == (cause, "why", None, exit_value)
    has_hint = cause in {CauseClass.TRANSIENT, CauseClass.CANCELED}
    assert bool(got.hint) is has_hint


def cause_of(cause: CauseClass) -> FailureCause:
    return FailureCause(cause, cause.value)


@pytest.mark.parametrize(
    ("first", "later", "kept"),
    [
        pytest.param(None, CauseClass.SIGNATURE, CauseClass.SIGNATURE, id="nothing-yet"),
        pytest.param(CauseClass.TRANSIENT, CauseClass.INTEGRITY, CauseClass.INTEGRITY, id="V18"),
        pytest.param(CauseClass.CANCELED, CauseClass.SCHEMA, CauseClass.SCHEMA, id="canceled-then-verdict"),
        pytest.param(CauseClass.INTEGRITY, CauseClass.TRANSIENT, CauseClass.INTEGRITY, id="V19"),
        pytest.param(CauseClass.SIGNATURE, CauseClass.INTEGRITY, CauseClass.SIGNATURE, id="V20"),
        pytest.param(CauseClass.TRANSIENT, CauseClass.CANCELED, CauseClass.TRANSIENT, id="two-without-verdict"),
    ],
)
def test_the_first_cause_is_kept_unless_it_says_nothing_and_a_later_one_does(
    first: CauseClass | None, later: CauseClass, kept: CauseClass
) -> None:
    assert merge_causes(cause_of(first) if first else None, cause_of(later)).cause is kept


def report(exit_value: int, cause: CauseClass | None = None) -> Report:
    return Report(InputKind.DIRECTORY, (), exit_value, failure_cause=cause_of(cause) if cause else None)


@pytest.mark.parametrize(
    ("finished", "process"),
    [
        pytest.param(report(0), 0, id="V21-0"),
        pytest.param(report(1), 2, id="V21-1"),
        pytest.param(report(2, CauseClass.INTEGRITY), 2, id="V21-2"),
        pytest.param(report(3, CauseClass.TRANSIENT), 5, id="V22-transient"),
        pytest.param(report(3), 5, id="V22-no-cause"),
        pytest.param(report(3, CauseClass.CANCELED), 9, id="V22-canceled"),
    ],
)
def test_a_reports_exit_is_the_process_exit(finished: Report, process: int) -> None:
    assert process_exit(finished) == process


def test_the_rule_that_spoke_first_is_kept_with_its_step() -> None:
    log = StepLog(InputKind.OCI)
    log.failed(StepName.SIGNATURE, Fault("FIRST", "unreadable", Category.UNAVAILABLE))
    assert log.first == (StepName.SIGNATURE, "FIRST")
    log.failed(StepName.MANIFEST, Fault("SECOND", "differs"))
    log.failed(StepName.MANIFEST, Fault("THIRD", "differs too"))
    assert log.first == (StepName.MANIFEST, "SECOND")
    assert log.report().exit == Exit.INVALID


@pytest.mark.parametrize(
    ("unsigned", "failed_phases", "exit_value", "pending"),
    [(False, False, 0, False), (True, False, 0, True), (True, True, 1, False), (False, True, 1, False)],
)
def test_pending_is_only_a_valid_bundle_without_signature(
    unsigned: bool,  # noqa: FBT001 - columns of the table above
    failed_phases: bool,  # noqa: FBT001
    exit_value: int,
    pending: bool,  # noqa: FBT001
) -> None:
    log = StepLog(InputKind.OCI, unsigned=unsigned, failed_phases=failed_phases)
    assert (log.report().exit, log.report().pending) == (exit_value, pending)


def test_a_bundle_that_could_not_be_fetched_is_a_report_with_one_step() -> None:
    found = unreadable(InputKind.OCI, FetchError("no such manifest", http_status=404))
    assert [step.name for step in found.steps] == [StepName.MATERIALIZE]
    assert found.to_json()["failureCause"] == {
        "class": "not-found",
        "detail": "no such manifest",
        "httpStatus": 404,
        "hint": "was the bundle pushed to this registry, and is the digest right?",
    }


@pytest.mark.parametrize(
    ("error", "category", "status"),
    [
        (FetchError("x", http_status=503), Category.UNAVAILABLE, 503),
        (DocumentInvalid("x"), Category.INVALID_REQUEST, None),
        (Cancelled("x"), Category.CANCELED, None),
    ],
)
def test_an_error_keeps_its_category_and_status_as_a_fault(
    error: FetchError | DocumentInvalid | Cancelled, category: Category, status: int | None
) -> None:
    fault = fault_of(error)
    assert (fault.code, fault.category, fault.http_status) == ("BUNDLE_NOT_READABLE", category, status)


def test_the_json_report_has_exactly_the_stated_keys_in_their_order() -> None:
    log = StepLog(
        InputKind.POINTER,
        pointer={"recipe": "r"},
        bundle_digest="sha256:ab",
        signer=ReportSigner("a@example.org", "https://i.example.org", 0),
        predicate={"k": 1},
        recipe_name="r",
        findings=(Finding("E3", "E3_PHASE_COUNTS_MISMATCH", "m"),),
    )
    log.passed(StepName.MATERIALIZE)
    log.passed(StepName.SIGNATURE, "ok", [SubRow("rekorLogIndex", "0")])
    log.failed(StepName.MANIFEST, Fault("C", "why", sub_rows=(SubRow("a", "b"),)))
    document = log.report().to_json()
    assert list(document) == [
        "input",
        "pointer",
        "predicate",
        "signer",
        "recipeName",
        "bundleDigest",
        "steps",
        "exit",
        "failureCause",
        "findings",
    ]
    assert document["signer"] == {"identity": "a@example.org", "issuer": "https://i.example.org", "rekorLogIndex": 0}
    assert document["steps"] == [
        {"step": 1, "name": "materialize-bundle", "status": "passed"},
        {
            "step": 2,
            "name": "signature-verify",
            "status": "passed",
            "detail": "ok",
            "subRows": [{"key": "rekorLogIndex", "value": "0"}],
        },
        {
            "step": 4,
            "name": "manifest-hash-check",
            "status": "failed",
            "detail": "why",
            "subRows": [{"key": "a", "value": "b"}],
        },
    ]
    assert document["findings"] == [{"rule": "E3", "code": "E3_PHASE_COUNTS_MISMATCH", "message": "m"}]
    assert json.loads(json.dumps(document)) == document


def test_a_pending_report_says_so_and_leaves_absent_keys_out() -> None:
    log = StepLog(InputKind.DIRECTORY, unsigned=True)
    log.skipped(StepName.SIGNATURE, "unsigned")
    assert log.report().to_json() == {
        "input": "dir",
        "steps": [{"step": 2, "name": "signature-verify", "status": "skipped", "detail": "unsigned"}],
        "exit": 0,
        "pending": True,
    }
