"""The JSON that leaves: camelCase models over core values and read views. Keys are added, never renamed.

Bodies that come in are in `app.web.bodies`; what is shown of an identity is decided in `app.services.report`.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any, Generic, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field
from pydantic.alias_generators import to_camel

from app.core.coordinate import Coordinate
from app.core.refs import Digest

T = TypeVar("T")


class Schema(BaseModel):
    """Reads a core value by attribute, writes camelCase."""

    model_config = ConfigDict(
        alias_generator=to_camel, populate_by_name=True, from_attributes=True, frozen=True, use_enum_values=True
    )

    def to_json(self) -> bytes:
        """Compact JSON with every key, in the order of the model."""
        return self.model_dump_json(by_alias=True).encode()


def _digest(value: object) -> object:
    return str(value) if isinstance(value, Digest) else value


def _path(value: object) -> object:
    return value.path if isinstance(value, Coordinate) else value


def _prefixed(value: object) -> object:
    return f"sha256:{value}" if isinstance(value, str) and value and not value.startswith("sha256:") else value


DigestText = Annotated[str, BeforeValidator(_digest)]
"""`sha256:` and 64 hex."""

Sha256 = Annotated[str, BeforeValidator(_prefixed)]
"""Bare hex inside, prefixed outside."""

CoordinatePath = Annotated[str, BeforeValidator(_path)]
"""`group/dashboard/tab`; opaque."""

SourceClassField = Field(alias="class", validation_alias="source_class")


class Page(Schema, Generic[T]):
    """One page of a list; `next` is the opaque `cursor` of the following one, null on the last."""

    items: list[T]
    next: str | None = None


class ProblemOut(Schema):
    """The envelope of every error."""

    code: str
    message: str
    details: dict[str, Any] | None = None
    request_id: str
    timestamp: datetime
    retryable: bool


# --- values of the core ----------------------------------------------------------------------------


class CriteriaOut(Schema):
    """A recipe's criteria; empty means any."""

    service: str
    accelerator: str
    os: str
    intent: str
    platform: str


class RemarkOut(Schema):
    """Shown, never silently weighed."""

    code: str
    message: str
    data: Mapping[str, str]


class StaleReasonOut(Schema):
    """Why a record is not current, and what clears it."""

    reason: str
    message: str
    clears: str
    difference: list[str]


class SignerResultOut(Schema):
    """One source's result in one row; `dimmed` when it ran on another Kubernetes than `?k8s=` asks for."""

    source: str
    source_id: str
    result: str
    status: str
    counts: bool
    weight: str
    digest: DigestText
    aicr_version: str
    aicr_commit: str
    k8s_version: str
    attested_at: datetime
    skip_reason: str
    run_url: str
    dimmed: bool = False


class RowOut(Schema):
    """One check: its consensus and who said what."""

    phase: str
    name: str
    consensus: str
    passes: int
    fails: int
    reported: int
    counted: bool
    declared: bool
    skip_reasons: list[str]
    signers: list[SignerResultOut]


class GridOut(Schema):
    """Rows at one AICR version, combined when it is empty; builds that are no releases stand by their commit."""

    aicr_version: str
    aicr_commit: str
    state: str
    phase_states: Mapping[str, str]
    rows: list[RowOut]


class VersionOut(Schema):
    """One strict grid in short; `?aicrVersion=` shows its rows."""

    aicr_version: str
    aicr_commit: str
    state: str
    phase_states: Mapping[str, str]


class StandingOut(Schema):
    """One source on this recipe: who, whether it counts, and how current its latest run is."""

    source: str
    source_id: str
    issuer: str
    identity: str
    label: str
    source_class: str = SourceClassField
    allowlisted: bool
    signer_key: str
    party: str
    digest: DigestText
    attested_at: datetime
    logged_at: datetime
    aicr_version: str
    k8s_version: str
    recipe_digest: Sha256
    predicate_type: str
    age_days: int
    runs: int
    speaks: bool
    weightless: str
    staleness: list[StaleReasonOut]
    remarks: list[RemarkOut]


class SetAsideOut(Schema):
    """A run that is not weighed at all."""

    digest: DigestText
    source: str
    code: str
    reason: str


class MissingOut(Schema):
    """What would raise the recipe."""

    code: str
    message: str
    phase: str
    name: str
    needed: int
    have: int
    source: str
    digest: str


class CatalogueOut(Schema):
    """Today's version of a recipe; digests by both rules."""

    recipe: str
    legacy: Sha256
    content_only: Sha256
    recorded_at: datetime
    commit: str
    ref: str
    at: datetime | None
    declared: list[tuple[str, str]] | None
    floors: Mapping[str, str]
    retired: bool


# --- recipes ---------------------------------------------------------------------------------------


class RecipeLine(Schema):
    """One recipe of the catalogue."""

    recipe: str
    profile: str
    profile_selection: str
    criteria: CriteriaOut | None
    coordinate: str | None
    state: str
    current_state: str | None
    phase_states: Mapping[str, str]
    confirming: int
    failing: int
    reported: int
    passes: int
    current_passes: int | None
    threshold: int
    parties: int
    sources: int
    classes: list[str]
    digests: int
    missing: int
    newest: str | None
    staleness: list[str]
    published: bool
    links: Mapping[str, str]


class ViewOut(Schema):
    """Through which lens an answer was computed."""

    aicr_version: str
    aicr_commit: str
    k8s: str
    as_of: datetime | None
    confirm_by: str
    confirm_threshold: int


class RecipeOut(Schema):
    """Everything that is said about one recipe; `rows` are those of the grid that `view` names."""

    recipe: str
    profile: str
    profile_selection: str
    criteria: CriteriaOut | None
    coordinate: CoordinatePath | None
    state: str
    current_state: str | None
    phase_states: Mapping[str, str]
    confirming: int
    failing: int
    reported: int
    parties: int
    digests: int
    newest: datetime | None
    staleness: list[str]
    view: ViewOut
    rows: list[RowOut]
    current: GridOut | None
    versions: list[VersionOut]
    sources: list[StandingOut]
    set_aside: list[SetAsideOut]
    missing: list[MissingOut]
    remarks: list[RemarkOut]
    catalogue: CatalogueOut | None
    verified: list[str]
    not_proven: list[str]
    links: Mapping[str, str]


class CataloguePut(Schema):
    """What a push of one recipe did."""

    recipe: str
    changed: bool
    legacy: Sha256
    content_only: Sha256
    links: Mapping[str, str]


class CatalogueBulk(Schema):
    """What a bulk push did."""

    received: int
    changed: list[str]
    retired: list[str]


# --- evidence --------------------------------------------------------------------------------------


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


# --- sources and allowlist -------------------------------------------------------------------------


class EntryOut(Schema):
    """One entry of the allowlist in force."""

    source_class: str = SourceClassField
    label: str
    issuer: str
    source: str
    identity_pattern: str


class AllowlistOut(Schema):
    """The allowlist in force; `problem` says why a newer file is not."""

    sha256: Sha256
    since: datetime
    status: str
    problem: str | None
    entries: list[EntryOut]


class AllowlistVersionOut(Schema):
    """One allowlist that was in force from `since` on, and what it changed."""

    sha256: Sha256
    since: datetime
    added: list[EntryOut]
    removed: list[EntryOut]


class SourceOut(Schema):
    """One source over all recipes: who it is and why it counts or not."""

    source: str
    source_id: str
    identity: str
    issuer: str
    label: str
    source_class: str = SourceClassField
    allowlisted: bool
    why: str
    party: str
    records: int
    recipes: list[str]
    first_seen: datetime
    last_seen: datetime
    links: Mapping[str, str]


# --- system ----------------------------------------------------------------------------------------


class Health(Schema):
    """The process answers."""

    status: str
    timestamp: datetime


class Ready(Schema):
    """Whether every part answers; `parts` names each."""

    status: str
    parts: Mapping[str, str]
    timestamp: datetime
    reason: str | None = None
