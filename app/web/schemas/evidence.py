"""Records, submissions and attempts."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from app.web.schemas.base import (
    CoordinatePath,
    CriteriaOut,
    DigestText,
    RemarkOut,
    Schema,
    Sha256,
    SourceClassField,
    StaleReasonOut,
)


class SignerOut(Schema):
    """Who signed, as it may be shown: a label, else a masked address, else the identity."""

    source: str
    source_id: str
    identity: str
    issuer: str
    label: str
    source_class: str = SourceClassField
    allowlisted: bool
    party: str


class RootOut(Schema):
    """The trusted root that verified the signature."""

    name: str
    sha256: Sha256


class LogOut(Schema):
    """Where the signature is logged; an index means nothing without its log."""

    origin: str
    id: str
    index: int
    kind: str


class PhaseOut(Schema):
    """A phase as the signed predicate counts it."""

    phase: str
    passed: int
    failed: int
    skipped: int
    ctrf_digest: str


class ResultOut(Schema):
    """One test of one phase, as recorded."""

    phase: str
    name: str
    status: str
    duration_ms: int | None
    skip_reason: str
    runtime_source: str


class DimensionOut(Schema):
    """One dimension of the hardware against the recipe."""

    dimension: str
    match: str
    requires: str
    provides: str


class LocationOut(Schema):
    """A reference under which the digest was seen."""

    reference: str
    first_seen: datetime
    last_seen: datetime
    public: bool


class RecordStaleness(Schema):
    """Why the record is not current today, and what held when it came in."""

    now: list[StaleReasonOut]
    at_ingest: Mapping[str, Any]


class RecordOut(Schema):
    """One record: a bundle digest as one source signed it."""

    digest: DigestText
    source: str
    recipe: str
    profile: str
    profile_selection: str
    coordinate: CoordinatePath
    criteria: CriteriaOut
    source_class: str = SourceClassField
    allowlisted: bool
    outcome: str
    exit: int
    predicate_type: str
    recipe_digest: Sha256
    aicr_version: str
    aicr_commit: str
    k8s_version: str
    k8s_constraint: str
    signer: SignerOut
    root: RootOut
    log: LogOut
    run_url: str
    attested_at: datetime
    logged_at: datetime
    received_at: datetime
    phases: list[PhaseOut]
    hardware_matched: bool
    remarks: list[RemarkOut]
    staleness: RecordStaleness
    links: Mapping[str, str]


class RecordDetail(RecordOut):
    """A record with its single results and hardware dimensions."""

    results: list[ResultOut]
    dimensions: list[DimensionOut]
    overridden_paths: list[str]
    validator_images: list[str]


class BundleOut(Schema):
    """A bundle and its records, one per source."""

    digest: DigestText
    records: list[RecordDetail]
    locations: list[LocationOut]
    verified: list[str]
    not_proven: list[str]
    links: Mapping[str, str]


class StateChange(Schema):
    """A recipe's state around an ingest; `before` is null when the recipe was unknown."""

    before: str | None
    after: str | None


class Submission(Schema):
    """The answer to an ingest; a repeat answers the same bytes."""

    digest: DigestText
    recipe: str
    source: str
    source_class: str = SourceClassField
    allowlisted: bool
    exit: int
    state: StateChange
    remarks: list[RemarkOut]
    links: Mapping[str, str]


class AttemptOut(Schema):
    """One try to bring a bundle in."""

    id: int
    reference: str
    digest: str
    outcome: str
    step: str
    code: str
    cause: Mapping[str, Any]
    first_at: datetime
    last_at: datetime
    count: int
    source: str
    recipe: str
    links: Mapping[str, str]
