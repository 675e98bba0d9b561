"""What the store gives and takes: values that cross its port."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from app.core.bundle import Run
from app.core.refs import Digest
from app.core.verdict import ConfirmRule


@dataclass(frozen=True, slots=True)
class Received:
    """How a bundle reached us; kept as an event, since nothing signed says it."""

    at: datetime
    reference: str  # registry/repository@digest it was pulled from, "" when it came from no registry
    public: bool  # pulled without credentials
    pointer: bytes | None = None  # exact pointer text when one was submitted


@dataclass(frozen=True, slots=True)
class Record:
    """A stored run with what is known about it beside the signed bytes."""

    run: Run
    id: int
    reference: str
    source_class: str
    allowlisted: bool
    state_at_ingest: Mapping[str, object]  # before, after (recipe state), staleness, commit: when it came in
    locations: tuple["Location", ...] = ()
    party: str = ""
    latest: bool = True  # no newer record of the same source and recipe


@dataclass(frozen=True, slots=True)
class Location:
    """Where a digest was seen."""

    reference: str
    first_seen: datetime
    last_seen: datetime
    public: bool


@dataclass(frozen=True, slots=True)
class Kept:
    """What keeping a run did: `created` is False when (digest, source) was already there."""

    created: bool
    record: Record
    before: "RecipeSummary | None"  # None when the recipe was unknown
    after: "RecipeSummary"


@dataclass(frozen=True, slots=True)
class Acknowledged:
    """Evidence that was taken in once, by its event; `rebuild` expects a run for each."""

    digest: Digest
    source_id: str
    signature_sha256: str
    received: Received


@dataclass(frozen=True, slots=True)
class Act:
    """Who did what to evidence, why and when."""

    at: datetime
    actor: str
    reason: str


@dataclass(frozen=True, slots=True)
class AllowlistVersion:
    """One allowlist that was in force, from `since` on."""

    sha256: str
    since: datetime
    text: bytes
    seq: int = 0


@dataclass(frozen=True, slots=True)
class Weighing:
    """The settings that weighed from `since` on."""

    rule: ConfirmRule
    since: datetime


@dataclass(frozen=True, slots=True)
class Attempt:
    """One try to bring a bundle in; repeats of one (digest, code) raise `count`."""

    id: int
    reference: str
    digest: str
    outcome: str  # accepted, refused, no-verdict
    step: str
    code: str
    cause: Mapping[str, object]
    first_at: datetime
    last_at: datetime
    count: int
    source: str = ""
    recipe: str = ""


@dataclass(frozen=True, slots=True)
class RecipeSummary:
    """One line of the catalogue page, precomputed on ingest."""

    recipe: str
    revision: int  # grows with each change of this recipe
    verdict: Mapping[str, object]  # see core.summary.summarize


@dataclass(frozen=True, slots=True)
class KnownSource:
    """A signer that is in the store, with its standing under the allowlist in force."""

    source_id: str
    issuer: str
    identity: str  # exact; the web masks it
    source_class: str
    allowlisted: bool
    party: str  # of its newest record
    records: int
    recipes: tuple[str, ...]
    first_seen: datetime
    last_seen: datetime


@dataclass(frozen=True, slots=True)
class RecordFilter:
    """Filters of `GET /evidence`; None does not filter.

    `source` is a slug or a canonical id; `since` (inclusive) and `until` (exclusive) are times of receipt. In `party`
    each `…` stands for any characters, as in a masked address; a store may find more than one party so, never fewer.
    """

    digest: str | None = None
    recipe: str | None = None
    source: str | None = None
    party: str | None = None
    source_class: str | None = None
    predicate_type: str | None = None
    aicr_version: str | None = None
    k8s: str | None = None
    outcome: str | None = None  # passed, failed
    since: datetime | None = None
    until: datetime | None = None


@dataclass(frozen=True, slots=True)
class Event:
    """One line of the append-only table: what no signed byte says."""

    seq: int
    at: datetime
    kind: str
    data: Mapping[str, object]
