"""The error tree of aicr-evidence.

ServiceError                    everything this service raises on purpose
├── InputError                  the caller's text is not what was asked for
│   ├── ReferenceInvalid        an OCI reference or digest does not parse, or is not pinned
│   ├── PointerInvalid          a pointer file breaks evidence-format 6.2
│   ├── AllowlistInvalid        an allowlist breaks corroboration 1.2 (carries J1..J18)
│   ├── RecipeInvalid           a recipe text can not be canonicalized, decoded or named
│   └── DocumentInvalid         any other foreign JSON or YAML: malformed, too deep, too large
├── RegistryNotTrusted          the reference is outside TRUSTED_REGISTRIES (decided before any network access)
├── FetchError                  a registry answered with a status, or the wire broke; no verdict was reached
├── JudgeUnavailable            no judging worker answered in time; no verdict was reached
├── JudgeCrashed                the same bundle killed its judging worker twice
├── StoreError                  the database or the archive refused; nothing was acknowledged
├── NotFoundError               what was asked for is not known here
├── ConflictError               the request contradicts what is stored or in force
├── ForbiddenError              a token is missing, wrong or not configured
└── Cancelled                   the operator aborted

A negative verdict about a bundle is no exception: it is `app.core.bundle.Rejected`.
"""

from collections.abc import Mapping
from enum import StrEnum


class Category(StrEnum):
    """Upstream's coded errors (evidence-format 0); exit codes and HTTP statuses hang on these."""

    INVALID_REQUEST = "INVALID_REQUEST"
    CONFLICT = "CONFLICT"
    NOT_FOUND = "NOT_FOUND"
    UNAUTHORIZED = "UNAUTHORIZED"
    TIMEOUT = "TIMEOUT"
    UNAVAILABLE = "UNAVAILABLE"
    RATE_LIMITED = "RATE_LIMITED"
    INTERNAL = "INTERNAL"
    CANCELED = "CANCELED"


class ServiceError(Exception):
    """Everything this service raises on purpose.

    `message` says what was expected and what was found; `hint` says what to do; `code` is stable.
    """

    code: str = "INTERNAL"
    category: Category = Category.INTERNAL
    retryable: bool = False

    def __init__(
        self,
        message: str,
        *,
        code: str | None = None,
        hint: str | None = None,
        details: Mapping[str, object] | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.details: dict[str, object] = dict(details or {})
        if code is not None:
            self.code = code


class InputError(ServiceError):
    """The caller's text is not what was asked for."""

    code = "INVALID_REQUEST"
    category = Category.INVALID_REQUEST


class ReferenceInvalid(InputError):
    """An OCI reference or digest does not parse, or is not pinned."""


class PointerInvalid(InputError):
    """A pointer file breaks evidence-format 6.2."""


class AllowlistInvalid(InputError):
    """An allowlist breaks corroboration 1.2; `rule` is the first broken step, J1..J18 or G1..G5."""

    def __init__(self, message: str, *, rule: str, hint: str | None = None) -> None:
        super().__init__(message, hint=hint, details={"rule": rule})
        self.rule = rule


class RecipeInvalid(InputError):
    """A recipe text can not be canonicalized, decoded or named."""


class DocumentInvalid(InputError):
    """Other foreign JSON or YAML that is malformed, too deep or too large."""


class RegistryNotTrusted(ServiceError):
    """The reference is outside TRUSTED_REGISTRIES (corroboration 4.4)."""

    code = "REGISTRY_NOT_TRUSTED"
    category = Category.INVALID_REQUEST


class FetchError(ServiceError):
    """A registry answered with a status, or the wire broke; no verdict was reached.

    `http_status` is the registry's answer if there was one; `retry_after_seconds` what it asked for.
    """

    code = "SERVICE_UNAVAILABLE"
    category = Category.UNAVAILABLE
    retryable = True

    def __init__(
        self,
        message: str,
        *,
        http_status: int | None = None,
        retry_after_seconds: int | None = None,
        category: Category = Category.UNAVAILABLE,
        code: str | None = None,
        hint: str | None = None,
    ) -> None:
        super().__init__(message, hint=hint, code=code)
        self.http_status = http_status
        self.retry_after_seconds = retry_after_seconds
        self.category = category
        transient_status = http_status is not None and (http_status == 429 or http_status >= 500)
        wire = http_status is None and category in {Category.UNAVAILABLE, Category.TIMEOUT}
        self.retryable = transient_status or wire


class QuotaExceeded(ServiceError):
    """A source that is on no list holds as many records as it may (trust 6); asking again soon changes nothing."""

    code = "UNLISTED_QUOTA"
    category = Category.RATE_LIMITED

    def __init__(
        self,
        message: str,
        *,
        retry_after_seconds: int,
        hint: str | None = None,
        details: Mapping[str, object] | None = None,
    ) -> None:
        super().__init__(message, hint=hint, details=details)
        self.retry_after_seconds = retry_after_seconds


class JudgeUnavailable(ServiceError):
    """No judging worker answered in time; no verdict was reached."""

    code = "SERVICE_UNAVAILABLE"
    category = Category.UNAVAILABLE
    retryable = True


class JudgeCrashed(ServiceError):
    """The same bundle killed its judging worker twice (service 8)."""

    code = "JUDGE_CRASHED"
    category = Category.INVALID_REQUEST


class StoreError(ServiceError):
    """The database or the archive refused; nothing was acknowledged."""

    code = "SERVICE_UNAVAILABLE"
    category = Category.UNAVAILABLE
    retryable = True


class NotFoundError(ServiceError):
    """What was asked for is not known here."""

    code = "NOT_FOUND"
    category = Category.NOT_FOUND


class ConflictError(ServiceError):
    """The request contradicts what is stored or in force."""

    code = "CONFLICT"
    category = Category.CONFLICT


class ForbiddenError(ServiceError):
    """A token is missing, wrong or not configured."""

    code = "UNAUTHORIZED"
    category = Category.UNAUTHORIZED


class Cancelled(ServiceError):
    """The operator aborted; no verdict was reached."""

    code = "CANCELED"
    category = Category.CANCELED
