"""The one verification report, whoever asks: steps, statuses, failure causes, exits (evidence-format 8.3-8.6).

How a report is drawn as Markdown is in `core.markdown`; which checks fill it, in `services.judge`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from app.core.errors import Category


class InputKind(StrEnum):
    """How the bundle was named (evidence-format 8.1); an archive tar reads as `oci`, since it has a manifest digest."""

    DIRECTORY = "dir"
    POINTER = "pointer"
    OCI = "oci"


class StepName(StrEnum):
    """The five steps, in order; `number` is what the report prints."""

    MATERIALIZE = "materialize-bundle"
    SIGNATURE = "signature-verify"
    PREDICATE = "predicate-parse"
    MANIFEST = "manifest-hash-check"
    SUMMARY = "render-summary"

    @property
    def number(self) -> int:
        """1 to 5."""
        return list(StepName).index(self) + 1


class StepStatus(StrEnum):
    """Outcome of one step."""

    PASSED = "passed"
    FAILED = "failed"
    SKIPPED = "skipped"
    INFORMATIONAL = "informational"


class CauseClass(StrEnum):
    """Failure classes of evidence-format 8.4."""

    REGISTRY_FORBIDDEN = "registry-forbidden"
    NOT_FOUND = "not-found"
    TRANSIENT = "transient"
    REGISTRY = "registry"
    CANCELED = "canceled"
    SIGNATURE = "signature"
    INTEGRITY = "integrity"
    SCHEMA = "schema"
    UNKNOWN = "unknown"


class Exit:
    """The report's `exit` values (evidence-format 8.4)."""

    VALID = 0
    PHASE_FAILURES = 1
    INVALID = 2
    NO_VERDICT = 3


@dataclass(frozen=True, slots=True)
class SubRow:
    """One detail line of a step."""

    key: str
    value: str


@dataclass(frozen=True, slots=True)
class Step:
    """One step of the report as it is printed."""

    name: StepName
    status: StepStatus
    detail: str = ""
    sub_rows: tuple[SubRow, ...] = ()


@dataclass(frozen=True, slots=True)
class Fault:
    """Why a step failed, before it is classified.

    `code` is the stable code of the rule that spoke (`S5_BASE64`, `MANIFEST_INVENTORY`, ...);
    `http_status` is a registry's answer when there was one.
    """

    code: str
    message: str
    category: Category = Category.INVALID_REQUEST
    http_status: int | None = None
    hint: str | None = None
    sub_rows: tuple[SubRow, ...] = ()


@dataclass(frozen=True, slots=True)
class FailureCause:
    """`failureCause` of the JSON report; present iff exit is 2 or 3."""

    cause: CauseClass
    detail: str
    http_status: int | None = None
    hint: str | None = None

    def to_json(self) -> dict[str, object]:
        """Keys `class, detail, httpStatus?, hint?`."""
        out: dict[str, object] = {"class": self.cause.value, "detail": self.detail}
        if self.http_status is not None:
            out["httpStatus"] = self.http_status
        if self.hint:
            out["hint"] = self.hint
        return out


@dataclass(frozen=True, slots=True)
class Finding:
    """A check that is stricter than upstream; `rule` is E1..E10 or an S rule (trust 2)."""

    rule: str
    code: str
    message: str

    def to_json(self) -> dict[str, object]:
        """Keys `rule, code, message`."""
        return {"rule": self.rule, "code": self.code, "message": self.message}


@dataclass(frozen=True, slots=True)
class ReportSigner:
    """The verified signer as the report shows it; index `None` when the entry has none."""

    identity: str
    issuer: str
    rekor_log_index: int | None = None

    def to_json(self) -> dict[str, object]:
        """Keys `identity, issuer, rekorLogIndex?`."""
        out: dict[str, object] = {"identity": self.identity, "issuer": self.issuer}
        if self.rekor_log_index is not None:
            out["rekorLogIndex"] = self.rekor_log_index
        return out


@dataclass(frozen=True, slots=True)
class Report:
    """A finished report; `to_json` gives exactly the keys of evidence-format 8.6 (plus `findings`)."""

    input: InputKind
    steps: tuple[Step, ...]
    exit: int
    pending: bool = False
    pointer: Mapping[str, object] | None = None
    predicate: Mapping[str, object] | None = None
    signer: ReportSigner | None = None
    recipe_name: str | None = None
    bundle_digest: str | None = None
    failure_cause: FailureCause | None = None
    findings: tuple[Finding, ...] = field(default=())

    def to_json(self) -> dict[str, object]:
        """The JSON report; keys in the order of evidence-format 8.6, absent ones left out."""
        out: dict[str, object] = {"input": self.input.value}
        if self.pointer is not None:
            out["pointer"] = dict(self.pointer)
        if self.predicate is not None:
            out["predicate"] = dict(self.predicate)
        if self.signer is not None:
            out["signer"] = self.signer.to_json()
        if self.recipe_name is not None:
            out["recipeName"] = self.recipe_name
        if self.bundle_digest is not None:
            out["bundleDigest"] = self.bundle_digest
        steps: list[dict[str, object]] = []
        for step in self.steps:
            row: dict[str, object] = {
                "step": step.name.number,
                "name": step.name.value,
                "status": step.status.value,
            }
            if step.detail:
                row["detail"] = step.detail
            if step.sub_rows:
                row["subRows"] = [{"key": r.key, "value": r.value} for r in step.sub_rows]
            steps.append(row)
        out["steps"] = steps
        out["exit"] = self.exit
        if self.pending:
            out["pending"] = True
        if self.failure_cause is not None:
            out["failureCause"] = self.failure_cause.to_json()
        if self.findings:
            out["findings"] = [f.to_json() for f in self.findings]
        return out
