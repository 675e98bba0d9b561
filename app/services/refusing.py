"""How a negative verdict leaves an ingest, whoever reached it: the judge, the registry or the store."""

from dataclasses import replace

from app.core.bundle import Accepted, Rejected
from app.core.errors import ConflictError, FetchError, InputError
from app.core.refs import Digest
from app.core.report import CauseClass, Exit, FailureCause, InputKind, StepName
from app.core.verdict_steps import unreadable
from app.services.ingest_types import IngestRequest, Refused


def refused(verdict: Rejected, digest: Digest) -> Refused:
    """The judge's verdict."""
    return Refused(verdict.step, verdict.code, verdict.cause, verdict.report, digest, details=verdict.details)


def refused_by_registry(err: FetchError, request: IngestRequest, digest: Digest) -> Refused:
    """A registry's final answer, as the report's first step (evidence-format 8.4)."""
    kind = InputKind.POINTER if request.pointer is not None else InputKind.OCI
    report = replace(unreadable(kind, err), bundle_digest=str(digest))
    cause = report.failure_cause or FailureCause(CauseClass.UNKNOWN, err.message)
    return Refused(StepName.MATERIALIZE, err.code, cause, report, digest)


def refused_by_store(err: ConflictError | InputError, verdict: Accepted, digest: Digest) -> Refused:
    """What was accepted and can not be kept.

    One log entry or signature under two keys is a replay, whatever the second bundle's bytes say; a signed name or
    version of more than 512 characters is no usual one.
    """
    replay = isinstance(err, ConflictError)
    cause = FailureCause(CauseClass.SIGNATURE if replay else CauseClass.SCHEMA, err.message, hint=err.hint)
    report = replace(verdict.report, exit=Exit.INVALID, failure_cause=cause)
    return Refused(StepName.SIGNATURE if replay else StepName.PREDICATE, err.code, cause, report, digest)
