"""What is said about recipes."""

from collections.abc import Mapping
from datetime import datetime

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
    retired: bool
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
    """Everything that is said about one recipe; `state`, `phaseStates` and `rows` are those of the grid of `view`.

    `missing` is what that grid misses when a version was asked for, else what today's recipe does. Counts, sources and
    remarks are the recipe's, whatever its version.
    """

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


class AskedOut(Schema):
    """What was understood; empty is open."""

    criteria: CriteriaOut
    profile_selection: str
    notes: list[str]


class DifferenceOut(Schema):
    """One dimension in which a recipe is not what was asked for."""

    dimension: str
    asked: str
    recipe: str


class MatchOut(Schema):
    """A recipe beside what was asked; `passes` of `threshold` is its k of n.

    `backing` says who makes it a recipe to use: `catalogue`, `evidence` (a listed source's, unknown to the catalogue),
    `retired` or `none`. `staleness` are the reasons that hold for some of the evidence that counts.
    """

    recipe: str
    criteria: CriteriaOut
    profile_selection: str
    state: str
    current_state: str | None
    passes: int
    threshold: int
    backing: str
    staleness: list[str]
    differs: list[DifferenceOut]
    unsaid: list[str]
    general: list[str]
    command: str
    config: str
    links: Mapping[str, str]


class AnswerOut(Schema):
    """`state` is null when no recipe fits that is in use; then `nearest` says what differs.

    `more` counts recipes that fit beyond those in `matches`. Left out are recipes that fit and are `retired` from the
    catalogue (the first few by name) or `unbacked` (how many): only sources that no list has attest them.
    """

    state: str | None
    sentence: str
    asked: AskedOut
    matches: list[MatchOut]
    nearest: list[MatchOut]
    more: int
    retired: list[str]
    unbacked: int


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
