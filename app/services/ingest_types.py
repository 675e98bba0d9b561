"""What goes into an ingest and what comes out of it; the flow itself is `app.services.ingest`.

A negative verdict is data (`Refused`). What no verdict was reached about is raised: `RegistryNotTrusted`, `FetchError`
(retryable ones, and `BODY_TOO_LARGE`), `JudgeUnavailable`, `JudgeCrashed`, `StoreError`, `ConflictError`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from app.core.bundle import Run
from app.core.refs import Digest, OciRef
from app.core.report import FailureCause, Report, StepName
from app.core.verdict import RecipeVerdict
from app.ports import Access, Record

BODY_TOO_LARGE = "BODY_TOO_LARGE"
"""Code of the `FetchError` that says a limit of trust 3 was exceeded while reading a registry."""


@dataclass(frozen=True, slots=True)
class IngestRequest:
    """One bundle to take in: a digest-pinned reference, and the exact pointer text when one was submitted.

    `dry_run` judges and tells what storing would change; `verify_only` judges and asks for the report alone. Neither
    stores anything.
    """

    reference: OciRef
    pointer: bytes | None = None
    dry_run: bool = False
    verify_only: bool = False
    access: Access = Access.ANONYMOUS


@dataclass(frozen=True, slots=True)
class Stored:
    """The bundle counts as evidence and is durable; `created` is False when (digest, source) was there already.

    `record.state_at_ingest` holds `before` and `after`, the recipe's state around the first storing (`before` None when
    the recipe was unknown then), so that a repeat answers as the first time did.
    """

    created: bool
    record: Record


@dataclass(frozen=True, slots=True)
class Judged:
    """An accepting verdict that was asked for without storing.

    `before` and `after` are what the recipe's verdict is and would become; both are None under `verify_only`.
    """

    run: Run
    source_class: str
    allowlisted: bool
    report: Report
    before: RecipeVerdict | None = None
    after: RecipeVerdict | None = None


@dataclass(frozen=True, slots=True)
class Refused:
    """The bundle does not count; `code` names the rule that spoke first, `attempt_id` the line kept about it.

    `details` holds what a rule adds for the caller, such as the signatures to choose from (E7).
    """

    step: StepName
    code: str
    cause: FailureCause
    report: Report
    digest: Digest | None = None
    attempt_id: int | None = None
    details: Mapping[str, object] = field(default_factory=dict)


IngestResult = Stored | Judged | Refused
