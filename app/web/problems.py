"""The one table from error codes to HTTP statuses, and the envelope every error is answered in (corroboration 7.1).

Which error is raised is decided in the core and the services; which exit a command ends with, in the command line.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from starlette.requests import Request
from starlette.responses import JSONResponse

from app.core.errors import (
    Category,
    FetchError,
    ForbiddenError,
    JudgeUnavailable,
    QuotaExceeded,
    ServiceError,
    StoreError,
)
from app.core.report import CauseClass
from app.core.summary import instant
from app.services.ingest_types import BODY_TOO_LARGE, Refused

RETRY_AFTER_SECONDS = 5
"""What a caller is asked to wait when nobody named a time."""


@dataclass(frozen=True, slots=True)
class Problem:
    """One row of the table: status, whether the same request may succeed later, what it means and what to do."""

    status: int
    retryable: bool
    meaning: str
    cure: str


PROBLEMS: Mapping[str, Problem] = {
    "INVALID_REQUEST": Problem(
        400,
        retryable=False,
        meaning="the request is not what was asked for; the message says where",
        cure="correct what the message names; `/docs` shows the shape",
    ),
    "UNAUTHORIZED": Problem(
        401,
        retryable=False,
        meaning="the bearer token is missing or wrong",
        cure="send `Authorization: Bearer` with the token of this route; a `POST` also works without the header",
    ),
    "FORBIDDEN": Problem(
        403,
        retryable=False,
        meaning="the setting that would open this route is not set",
        cure="set the token that the message names, then restart the service",
    ),
    "REGISTRY_NOT_TRUSTED": Problem(
        403,
        retryable=False,
        meaning="the reference is outside the trusted registries; decided before any network access",
        cure="push to a trusted registry, or add the setting line of the answer",
    ),
    "NOT_FOUND": Problem(
        404,
        retryable=False,
        meaning="nothing is known under this name",
        cure="check the name; the lists show what is known",
    ),
    "METHOD_NOT_ALLOWED": Problem(
        405,
        retryable=False,
        meaning="`Allow` names the methods of this path",
        cure="use a method that `Allow` names",
    ),
    "CANCELED": Problem(
        408,
        retryable=False,
        meaning="the request did not arrive whole in time",
        cure="send the body faster, in one piece",
    ),
    "CONFLICT": Problem(
        409,
        retryable=False,
        meaning="the request contradicts what is stored or in force",
        cure="read what is in force, then decide again",
    ),
    "PAYLOAD_TOO_LARGE": Problem(
        413,
        retryable=False,
        meaning="a body, a blob or an unpacked bundle is over its limit",
        cure="make it smaller, or ask the operator to raise the limit",
    ),
    "UNSUPPORTED_MEDIA_TYPE": Problem(
        415,
        retryable=False,
        meaning="the body is neither of the media types of this route",
        cure="send `Content-Type: application/json`, or `application/yaml` with a YAML body",
    ),
    "EVIDENCE_REFUSED": Problem(
        422,
        retryable=False,
        meaning="the bundle was judged and does not count; `details` has step, code and cause",
        cure="look the code of `details` up in docs/errors.md; the bundle is judged anew each time",
    ),
    "JUDGE_CRASHED": Problem(
        422,
        retryable=False,
        meaning="this bundle ended its judging worker twice",
        cure="verify the bundle with the command line; report it if it is honest",
    ),
    "RATE_LIMIT_EXCEEDED": Problem(
        429,
        retryable=True,
        meaning="too many requests; `Retry-After` says how long to wait",
        cure="wait as long as `Retry-After` says",
    ),
    "INTERNAL": Problem(
        500,
        retryable=True,
        meaning="a fault of the service; quote the request id",
        cure="try again; report it with the request id",
    ),
    "SERVICE_UNAVAILABLE": Problem(
        503,
        retryable=True,
        meaning="no verdict was reached; `Retry-After` says when to try again",
        cure="try again when `Retry-After` says",
    ),
    "TIMEOUT": Problem(
        504,
        retryable=True,
        meaning="the answer took longer than a request may",
        cure="try again, or ask for less",
    ),
}
"""Every code that this service answers with."""

_BY_CATEGORY: Mapping[Category, str] = {
    Category.INVALID_REQUEST: "INVALID_REQUEST",
    Category.CONFLICT: "CONFLICT",
    Category.NOT_FOUND: "NOT_FOUND",
    Category.UNAUTHORIZED: "UNAUTHORIZED",
    Category.TIMEOUT: "TIMEOUT",
    Category.UNAVAILABLE: "SERVICE_UNAVAILABLE",
    Category.RATE_LIMITED: "RATE_LIMIT_EXCEEDED",
    Category.INTERNAL: "INTERNAL",
    Category.CANCELED: "CANCELED",
}


@dataclass(frozen=True, slots=True)
class Answer:
    """An error on its way out: code of the table, text, details and extra headers."""

    code: str
    message: str
    details: Mapping[str, object] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)

    @property
    def status(self) -> int:
        """The status of the code."""
        return PROBLEMS[self.code].status


def answer_of(error: ServiceError) -> Answer:
    """Turn an error of the tree into an answer; texts of faults inside the service never leave it."""
    details: dict[str, object] = dict(error.details)
    if error.hint:
        details["hint"] = error.hint
    match error:
        case FetchError(code="BODY_TOO_LARGE"):
            return Answer("PAYLOAD_TOO_LARGE", error.message, details | {"reason": BODY_TOO_LARGE})
        case FetchError(retryable=True):
            wait = error.retry_after_seconds or RETRY_AFTER_SECONDS
            cause = _cause(CauseClass.TRANSIENT, error)
            return Answer("SERVICE_UNAVAILABLE", error.message, {"cause": cause}, {"Retry-After": str(wait)})
        case FetchError():
            return Answer("EVIDENCE_REFUSED", error.message, details | {"cause": _cause(_registry_class(error), error)})
        case QuotaExceeded():
            headers = {"Retry-After": str(error.retry_after_seconds)}
            return Answer("RATE_LIMIT_EXCEEDED", error.message, details | {"reason": error.code}, headers)
        case JudgeUnavailable():
            message = "no judging worker answered in time; nothing was decided"
            return Answer("SERVICE_UNAVAILABLE", message, headers={"Retry-After": str(RETRY_AFTER_SECONDS)})
        case StoreError():
            message = "the store did not answer; nothing was acknowledged"
            return Answer("SERVICE_UNAVAILABLE", message, headers={"Retry-After": str(RETRY_AFTER_SECONDS)})
        case ForbiddenError() if error.code == "UNAUTHORIZED":
            return Answer("UNAUTHORIZED", error.message, details, {"WWW-Authenticate": 'Bearer realm="aicr-evidence"'})
        case _:
            return _by_table(error, details)


def refused_answer(refused: Refused, details: Mapping[str, object]) -> Answer:
    """A negative verdict as 422; `details` is what `app.services.report` shows of it."""
    return Answer("EVIDENCE_REFUSED", f"refused at {refused.step.value}: {refused.code}", details)


def envelope(answer: Answer, *, request_id: str, now: datetime) -> dict[str, object]:
    """The body that every error has."""
    body: dict[str, object] = {"code": answer.code, "message": answer.message}
    if answer.details:
        body["details"] = dict(answer.details)
    body["requestId"] = request_id
    body["timestamp"] = instant(now.replace(microsecond=0))
    body["retryable"] = PROBLEMS[answer.code].retryable
    return body


def problem_response(request: Request, answer: Answer) -> JSONResponse:
    """The envelope as a response; never cached."""
    body = envelope(answer, request_id=getattr(request.state, "request_id", ""), now=request.app.state.clock())
    headers = {"Cache-Control": "no-store", **answer.headers}
    return JSONResponse(body, status_code=answer.status, headers=headers)


def _by_table(error: ServiceError, details: dict[str, object]) -> Answer:
    code = error.code if error.code in PROBLEMS else _BY_CATEGORY[error.category]
    if PROBLEMS[code].status >= 500:
        headers = {"Retry-After": str(RETRY_AFTER_SECONDS)} if code == "SERVICE_UNAVAILABLE" else {}
        return Answer(code, PROBLEMS[code].meaning, headers=headers)
    if code != error.code:
        details["reason"] = error.code
    return Answer(code, error.message, details)


def _registry_class(error: FetchError) -> CauseClass:
    match error.http_status:
        case 401 | 403:
            return CauseClass.REGISTRY_FORBIDDEN
        case 404:
            return CauseClass.NOT_FOUND
        case None:
            return CauseClass.UNKNOWN
        case _:
            return CauseClass.REGISTRY


def _cause(cause: CauseClass, error: FetchError) -> dict[str, object]:
    out: dict[str, object] = {"class": cause.value, "detail": error.message}
    if error.http_status is not None:
        out["httpStatus"] = error.http_status
    if error.hint:
        out["hint"] = error.hint
    return out
