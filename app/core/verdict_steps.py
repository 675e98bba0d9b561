"""How step outcomes become one report: classifying faults, merging causes, exits (evidence-format 8.3, 8.4).

Which checks fill the steps is in `services.judge`; how the report is drawn, in `core.markdown`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from app.core.errors import Category, FetchError, ServiceError
from app.core.report import (
    CauseClass,
    Exit,
    FailureCause,
    Fault,
    Finding,
    InputKind,
    Report,
    ReportSigner,
    Step,
    StepName,
    StepStatus,
    SubRow,
)
from app.core.rules import RULES

_NO_VERDICT = frozenset({CauseClass.TRANSIENT, CauseClass.CANCELED})
_BY_STEP: Mapping[StepName, CauseClass] = {
    StepName.SIGNATURE: CauseClass.SIGNATURE,
    StepName.MANIFEST: CauseClass.INTEGRITY,
    StepName.PREDICATE: CauseClass.SCHEMA,
}

PROCESS_SUCCESS = 0
PROCESS_INVALID = 2
PROCESS_NO_VERDICT = 5
PROCESS_CANCELED = 9


def classify_failure(step: StepName | None, fault: Fault) -> tuple[FailureCause, int]:
    """The cause of one failed step and the exit that it alone makes (evidence-format 8.4).

    `step` is None for a failure outside the five steps.
    """
    cause = _cause(step, fault)
    return cause, Exit.NO_VERDICT if cause.cause in _NO_VERDICT else Exit.INVALID


def _cause(step: StepName | None, fault: Fault) -> FailureCause:
    """The first rule of the table that fits speaks."""
    if fault.http_status is not None:
        return _registry_cause(fault.http_status, fault)
    if fault.category is Category.CANCELED:
        return FailureCause(CauseClass.CANCELED, fault.message, hint="the run was aborted; no verdict was reached")
    if fault.category in {Category.TIMEOUT, Category.UNAVAILABLE}:
        return FailureCause(
            CauseClass.TRANSIENT, fault.message, hint=fault.hint or "the evidence could not be read; retry later"
        )
    cause = CauseClass.UNKNOWN if step is None else _BY_STEP.get(step, CauseClass.UNKNOWN)
    return FailureCause(cause, fault.message)


def _registry_cause(status: int, fault: Fault) -> FailureCause:
    match status:
        case 401 | 403:
            cause = CauseClass.REGISTRY_FORBIDDEN
            hint: str | None = "make the package public, or supply credentials that may pull it"
        case 404:
            cause, hint = CauseClass.NOT_FOUND, "was the bundle pushed to this registry, and is the digest right?"
        case 429:
            cause, hint = CauseClass.TRANSIENT, "the registry limits the rate of requests; retry later"
        case _ if status >= 500:
            cause, hint = CauseClass.TRANSIENT, "the registry reported a server error; retry later"
        case _:
            cause, hint = CauseClass.REGISTRY, None
    return FailureCause(cause, fault.message, http_status=status, hint=hint)


def merge_causes(first: FailureCause | None, later: FailureCause) -> FailureCause:
    """Keep the first cause, except that a real verdict replaces one that says nothing was reached."""
    if first is None or (first.cause in _NO_VERDICT and later.cause not in _NO_VERDICT):
        return later
    return first


def process_exit(report: Report) -> int:
    """The exit of a process that ends with this report (V21, V22)."""
    match report.exit:
        case Exit.VALID:
            return PROCESS_SUCCESS
        case Exit.NO_VERDICT:
            cause = report.failure_cause
            canceled = cause is not None and cause.cause is CauseClass.CANCELED
            return PROCESS_CANCELED if canceled else PROCESS_NO_VERDICT
        case _:
            return PROCESS_INVALID


def fault_of(error: ServiceError, code: str = RULES["MATERIALIZE"].code) -> Fault:
    """An error that ended a step, as that step's fault; a registry's status is kept."""
    status = error.http_status if isinstance(error, FetchError) else None
    return Fault(code, error.message, category=error.category, http_status=status, hint=error.hint)


def unreadable(input_kind: InputKind, error: ServiceError, *, pointer: Mapping[str, object] | None = None) -> Report:
    """The report of a run that ended in step 1: nothing but that step (evidence-format 8.3)."""
    steps = StepLog(input_kind, pointer=pointer)
    steps.failed(StepName.MATERIALIZE, fault_of(error))
    return steps.report()


@dataclass(slots=True)
class StepLog:
    """Collects the outcome of each step and makes the report from them.

    The first fault's code is kept beside its cause, so that a refusal names the rule that spoke first.
    """

    input: InputKind
    pointer: Mapping[str, object] | None = None
    bundle_digest: str | None = None
    signer: ReportSigner | None = None
    predicate: Mapping[str, object] | None = None
    recipe_name: str | None = None
    unsigned: bool = False
    failed_phases: bool = False
    findings: tuple[Finding, ...] = ()
    steps: list[Step] = field(default_factory=list)
    cause: FailureCause | None = None
    first: tuple[StepName, str] | None = None

    def passed(self, name: StepName, detail: str = "", rows: Sequence[SubRow] = ()) -> None:
        """Note that a step holds."""
        self.steps.append(Step(name, StepStatus.PASSED, detail, tuple(rows)))

    def skipped(self, name: StepName, detail: str) -> None:
        """Note that a step had nothing to check."""
        self.steps.append(Step(name, StepStatus.SKIPPED, detail))

    def informational(self, name: StepName, detail: str = "") -> None:
        """Note a step that judges nothing."""
        self.steps.append(Step(name, StepStatus.INFORMATIONAL, detail))

    def failed(self, name: StepName, fault: Fault) -> None:
        """Note that a step fails; the cause is merged into the report's."""
        self.steps.append(Step(name, StepStatus.FAILED, fault.message, fault.sub_rows))
        cause, _ = classify_failure(name, fault)
        merged = merge_causes(self.cause, cause)
        if merged is cause:
            self.first = (name, fault.code)
        self.cause = merged

    def report(self) -> Report:
        """The finished report; `pending` only when nothing failed and there is no signature."""
        if self.cause is not None:
            exit_value = Exit.NO_VERDICT if self.cause.cause in _NO_VERDICT else Exit.INVALID
        else:
            exit_value = Exit.PHASE_FAILURES if self.failed_phases else Exit.VALID
        return Report(
            input=self.input,
            steps=tuple(self.steps),
            exit=exit_value,
            pending=exit_value == Exit.VALID and self.unsigned,
            pointer=self.pointer,
            predicate=self.predicate,
            signer=self.signer,
            recipe_name=self.recipe_name,
            bundle_digest=self.bundle_digest,
            failure_cause=self.cause,
            findings=self.findings,
        )
