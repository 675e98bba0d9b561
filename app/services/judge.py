"""From an unpacked bundle to a verdict: the five steps of evidence-format 8.3, in their order.

This is where to learn what is checked. Each step is one method; the rules themselves are pure functions of the core,
the signature is judged behind the `BundleVerifier` port. Upstream's checks decide the exit; findings (trust 2) decide
it too when the job is strict. A verdict is data: bad input is a `Rejected`, whatever a library throws at it.
"""

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from app.core.bundle import (
    ATTESTATION_FILE,
    PHASES,
    STATEMENT_FILE,
    Accepted,
    Content,
    RawSignature,
    ReadFault,
    Rejected,
    Run,
    SignatureRefused,
    Statement,
    Verdict,
    VerifiedSignature,
    ctrf_file,
)
from app.core.cross_check import cross_check
from app.core.ctrf import PhaseReport, parse_report
from app.core.documents import Predicate
from app.core.errors import Category, DocumentInvalid, PointerInvalid, ServiceError
from app.core.findings import FindingContext, failing, find
from app.core.inventory import check_inventory, locate_bundle, recipe_bytes
from app.core.phases import check_phases
from app.core.pointer import Pointer, parse_pointer
from app.core.recipe import Recipe
from app.core.recipe_identity import check_identity
from app.core.refs import Digest
from app.core.report import CauseClass, FailureCause, Fault, Finding, Report, ReportSigner, StepName, SubRow
from app.core.rules import RULES
from app.core.runs import RunParts, make_run
from app.core.signature_choice import Choice, choose_signature
from app.core.statement import check_coherence, read_unsigned_statement
from app.core.verdict_steps import StepLog, fault_of
from app.ports import BundleVerifier, ContentReader, JudgeJob

POINTER_INVALID = "POINTER_INVALID"
"""Code of a rejection whose pointer breaks evidence-format 6.2; whoever reads pointers first says so before."""
UNEXPECTED = "JUDGING_FAILED"
"""Code of a rejection that no rule spoke: something was thrown while judging (trust 1.1)."""

_log = logging.getLogger(__name__)
_Part = TypeVar("_Part")


@dataclass(frozen=True, slots=True)
class JudgeService:
    """Judges one bundle at a time in this process; implements `app.ports.Judge`."""

    reader: ContentReader
    verifier: BundleVerifier

    def judge(self, job: JudgeJob, /) -> Verdict:
        """The verdict on `job`; never raises for anything that the bundle holds.

        Out of memory is let through: the supervisor of the judging process knows what to do about it.
        """
        judgement = _Judgement(job, self.reader, self.verifier)
        try:
            return judgement.verdict()
        except MemoryError:
            raise
        except Exception as err:  # noqa: BLE001 - trust 1.1: whatever is thrown while judging is a rejection
            return judgement.crashed(err)


@dataclass(slots=True)
class _Judgement:
    """One run through the steps; what a step has read is there for the later ones."""

    job: JudgeJob
    reader: ContentReader
    verifier: BundleVerifier
    log: StepLog = field(init=False)
    pointer: Pointer | None = None
    content: Content | None = None
    choice: Choice | None = None
    signature: VerifiedSignature | None = None
    predicate: Predicate | None = None
    recipe: Recipe | None = None
    reports: dict[str, PhaseReport] = field(default_factory=dict)
    failing: tuple[Finding, ...] = ()

    def __post_init__(self) -> None:
        digest = str(self.job.digest) if self.job.digest else None
        self.log = StepLog(self.job.input, bundle_digest=digest)

    def verdict(self) -> Verdict:
        """Run the steps; the first and the third stop the run, the others are recorded and it goes on."""
        if (content := self._materialize()) is not None:
            self._verify_signature(content)
            if (parsed := self._parse_predicate(content)) is not None:
                self._check_bundle(content, *parsed)
                self.log.informational(StepName.SUMMARY)
        return self._conclude()

    # (1) materialize-bundle

    def _materialize(self) -> Content | None:
        """The bundle's files as a value, and the pointer that led here."""
        try:
            if self.job.pointer is not None:
                self.pointer = parse_pointer(self.job.pointer)
                self.log.pointer = self.pointer.to_json()
            content = locate_bundle(self.reader.read(self.job.directory))
        except ServiceError as err:
            code = POINTER_INVALID if isinstance(err, PointerInvalid) else RULES["MATERIALIZE"].code
            self.log.failed(StepName.MATERIALIZE, fault_of(err, code))
            return None
        if content is None:
            message = "expected recipe.yaml and manifest.json at the root or below summary-bundle, found no such bundle"
            self.log.failed(StepName.MATERIALIZE, Fault(RULES["MATERIALIZE"].code, message))
            return None
        self.log.passed(StepName.MATERIALIZE)
        self.content = content
        return content

    # (2) signature-verify

    def _verify_signature(self, content: Content) -> None:
        """Signature, pins and the pointer's claim; on failure the run goes on with the unsigned statement."""
        signatures = self._signatures(content)
        if isinstance(signatures, Fault):
            self.log.failed(StepName.SIGNATURE, signatures)
        elif not signatures:
            self._without_signature()
        else:
            self._with_signature(signatures)

    def _signatures(self, content: Content) -> tuple[RawSignature, ...] | Fault:
        """Those attached in the registry, else the one that lies in the directory."""
        if self.job.signatures:
            return self.job.signatures
        match content.read(ATTESTATION_FILE):
            case bytes() as bundle:
                return (RawSignature(bundle),)
            case ReadFault.MISSING:
                return ()
            case ReadFault.UNAVAILABLE:
                message = f"{ATTESTATION_FILE} can not be read from storage"
                return Fault(RULES["SIGSTORE"].code, message, category=Category.UNAVAILABLE)
            case ReadFault.TOO_LARGE:
                return Fault(RULES["S1"].code, f"{ATTESTATION_FILE} is larger than 10 MiB")
            case fault:
                return Fault(RULES["SIGSTORE"].code, f"{ATTESTATION_FILE} is no regular file: {fault.value}")

    def _without_signature(self) -> None:
        pins = self.job.pins
        if (mismatch := cross_check(self.pointer.signer if self.pointer else None, None)) is not None:
            self.log.failed(StepName.SIGNATURE, mismatch)
        elif pins.issuer is not None or pins.identity_regexp is not None:
            message = "no signature: a signer is pinned, the bundle is unsigned"
            self.log.failed(StepName.SIGNATURE, Fault(RULES["UNSIGNED"].code, message))
        else:
            self.log.unsigned = True
            self.log.skipped(StepName.SIGNATURE, "the bundle is unsigned (pending signature)")

    def _with_signature(self, signatures: tuple[RawSignature, ...]) -> None:
        claim = self.pointer.signer if self.pointer else None
        self.choice = choose_signature(signatures, self._verify, claim=claim, strict=self.job.strict)
        match self.choice.outcome:
            case SignatureRefused(_, code, message, category, hint):
                self.log.failed(StepName.SIGNATURE, Fault(code, message, category, hint=hint))
            case VerifiedSignature() as signature:
                fault = _incoherence(signature.statement) or cross_check(claim, signature)
                if fault is not None:
                    self.log.failed(StepName.SIGNATURE, fault)
                else:
                    self._signed_by(signature)

    def _signed_by(self, signature: VerifiedSignature) -> None:
        self.signature = signature
        signer, index = signature.signer, signature.log.index
        self.log.signer = ReportSigner(signer.identity, signer.issuer, index)
        detail = f"verified under {signature.root}"
        self.log.passed(StepName.SIGNATURE, detail, [SubRow("rekorLogIndex", str(index))])

    def _verify(self, signature: RawSignature) -> VerifiedSignature | SignatureRefused:
        return self.verifier.verify(
            signature.bundle, artifact=self.job.digest, pins=self.job.pins, now=self.job.received_at
        )

    # (3) predicate-parse

    def _parse_predicate(self, content: Content) -> tuple[Statement, Predicate] | None:
        """The signed statement's predicate, else that of the unsigned file; a failure stops the run.

        The file is read also where it can never be evidence: the report goes on with it (8.3, step 2).
        """
        statement = self.signature.statement if self.signature else self._unsigned_statement(content)
        if isinstance(statement, Fault):
            self.log.failed(StepName.PREDICATE, statement)
            return None
        try:
            predicate = Predicate.read(statement.predicate)
        except DocumentInvalid as err:
            self.log.failed(StepName.PREDICATE, Fault(RULES["PREDICATE"].code, err.message))
            return None
        self.predicate = predicate
        self.log.predicate, self.log.recipe_name = statement.predicate, predicate.recipe.name
        if self.pointer is not None and self.pointer.recipe != predicate.recipe.name:
            message = f"pointer.recipe is {self.pointer.recipe!r}, predicate.recipe.name {predicate.recipe.name!r}"
            self.log.failed(StepName.PREDICATE, Fault(RULES["PREDICATE"].code, message))
            return None
        self.log.failed_phases = any(phase.failed for phase in predicate.phase_summaries)
        self.log.passed(StepName.PREDICATE, statement.predicate_type)
        return statement, predicate

    def _unsigned_statement(self, content: Content) -> Statement | Fault:
        match content.read(STATEMENT_FILE):
            case bytes() as payload:
                try:
                    statement = read_unsigned_statement(payload)
                except DocumentInvalid as err:
                    return Fault(RULES["PREDICATE"].code, f"{STATEMENT_FILE}: {err.message}")
                return _incoherence(statement) or statement
            case ReadFault.UNAVAILABLE:
                category = Category.UNAVAILABLE
                message = f"{STATEMENT_FILE} can not be read from storage"
                return Fault(RULES["PREDICATE"].code, message, category=category)
            case fault:
                return Fault(RULES["PREDICATE"].code, f"{STATEMENT_FILE} can not be read: {fault.value}")

    # (4) manifest-hash-check

    def _check_bundle(self, content: Content, statement: Statement, predicate: Predicate) -> None:
        """Inventory, phase digests and recipe identity, the first failure wins; then what is stricter than upstream."""
        inventory = check_inventory(content, predicate.manifest.digest)
        fault = inventory.fault or check_phases(content, predicate.phase_summaries)
        if fault is None:
            text = recipe_bytes(content, inventory)
            identity = check_identity(text, predicate, statement.predicate_type, pointer=self.pointer)
            self.recipe, fault = identity.recipe, identity.fault
        unreadable = self._read_reports(content)
        context = FindingContext(
            content=content,
            statement=statement,
            predicate=predicate,
            inventory=inventory,
            reports=self.reports,
            unreadable=unreadable,
            recipe=self.recipe,
            pointer=self.pointer,
            pointer_name=self.job.pointer_name,
            signature=self.signature,
            signatures=self.choice.count if self.choice else 0,
            ambiguous=self.choice.ambiguous if self.choice else "",
            digest=self.job.digest,
        )
        self.log.findings = find(context)
        self.failing = failing(self.log.findings, ambiguous=bool(context.ambiguous))
        if fault is None and self.job.strict and self.failing:
            fault = _strict_fault(self.failing)
        if fault is not None:
            self.log.failed(StepName.MANIFEST, fault)
        else:
            self.log.passed(StepName.MANIFEST, f"{len(inventory.files)} files")

    def _read_reports(self, content: Content) -> Mapping[str, str]:
        """Read every phase report that is there; returns why some could not be read."""
        unreadable: dict[str, str] = {}
        for phase in PHASES:
            data = content.read(ctrf_file(phase))
            if isinstance(data, bytes):
                try:
                    self.reports[phase] = parse_report(phase, data)
                except DocumentInvalid as err:
                    unreadable[phase] = err.message
        return unreadable

    # (5) the verdict

    def _conclude(self) -> Verdict:
        """Evidence is what passes strictly, has a verified signer and a name; everything else is a rejection."""
        report = self.log.report()
        details = self.choice.details() if self.choice and self.choice.ambiguous else {}
        if self.log.first is not None and report.failure_cause is not None:
            step, code = self.log.first
            return Rejected(step, code, report.failure_cause, report, details)
        if self.signature is None or self.choice is None:
            cause = FailureCause(CauseClass.SIGNATURE, "no signature: evidence must be signed")
            return Rejected(StepName.SIGNATURE, RULES["UNSIGNED"].code, cause, report)
        if self.failing:
            cause = FailureCause(CauseClass.INTEGRITY, _strict_fault(self.failing).message)
            return Rejected(StepName.MANIFEST, self.failing[0].code, cause, report, details)
        if self.job.digest is None:
            cause = FailureCause(
                CauseClass.UNKNOWN, "a directory has no manifest digest: evidence is a pushed artifact"
            )
            return Rejected(StepName.MATERIALIZE, RULES["MATERIALIZE"].code, cause, report)
        return Accepted(self._run(self.job.digest, self.signature, report), report, self.signature, self.choice.index)

    def _run(self, digest: Digest, signature: VerifiedSignature, report: Report) -> Run:
        return make_run(
            RunParts(
                digest=digest,
                content=_there(self.content),
                predicate=_there(self.predicate),
                recipe=_there(self.recipe),
                signature=signature,
                reports=self.reports,
                received_at=self.job.received_at,
                exit=report.exit,
                public=self.job.public,
            )
        )

    def crashed(self, err: Exception) -> Rejected:
        """What a rule or a library threw, as a failure of the step that it came from."""
        done = {step.name for step in self.log.steps}
        step = next((name for name in StepName if name not in done), StepName.SUMMARY)
        message = f"judging stopped at an unexpected {type(err).__name__}"
        _log.error("%s in %s", message, step.value, exc_info=err)
        self.log.failed(step, Fault(UNEXPECTED, message, Category.INTERNAL))
        report = self.log.report()
        cause = report.failure_cause or FailureCause(CauseClass.UNKNOWN, message)
        return Rejected(*(self.log.first or (step, UNEXPECTED)), cause, report)


def _there(part: _Part | None) -> _Part:
    """A part that an accepting verdict always has; its absence is a defect of this module, reported as such."""
    if part is None:
        raise RuntimeError("expected an accepted bundle to be read whole")
    return part


def _incoherence(statement: Statement) -> Fault | None:
    """Whether predicate type and profile block belong together (evidence-format 1.1)."""
    try:
        check_coherence(statement.predicate_type, statement.predicate)
    except DocumentInvalid as err:
        return Fault(RULES["COHERENCE"].code, err.message)
    return None


def _strict_fault(findings: tuple[Finding, ...]) -> Fault:
    """All failing findings as one failure; the first one gives the code."""
    first = findings[0]
    more = f" (and {len(findings) - 1} more)" if len(findings) > 1 else ""
    rows = tuple(SubRow(finding.rule, finding.message) for finding in findings)
    return Fault(first.code, f"{first.rule}: {first.message}{more}", sub_rows=rows)
