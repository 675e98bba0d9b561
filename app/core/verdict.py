"""What corroboration takes and gives, as values; the rules are in `core.consensus` and `core.corroborate`.

Field names here are the words of the API: `web.schemas` only turns them into camelCase.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from app.core.bundle import LogPlace, Run
from app.core.catalogue import CatalogueVersion
from app.core.coordinate import Coordinate, Criteria
from app.core.refs import Digest

GRID_PHASES = ("deployment", "conformance", "performance")
"""Order of rows in a grid (corroboration 2.7); the predicate's order is `core.bundle.PHASES`."""


class State(StrEnum):
    """Consensus of a row or a roll-up; PARTIAL is a roll-up only (corroboration 2.8, 2.9)."""

    CONFIRMED = "CONFIRMED"
    SINGLE = "SINGLE"
    CONTESTED = "CONTESTED"
    FAILING = "FAILING"
    UNTESTED = "UNTESTED"
    PARTIAL = "PARTIAL"


class Bucket(StrEnum):
    """A test's status as consensus reads it (corroboration 2.3)."""

    PASS = "pass"
    FAIL = "fail"
    NOT_RUN = "not-run"


class Staleness(StrEnum):
    """Reasons why a record is not current; several can hold, none means current (service 5)."""

    DRIFTED = "DRIFTED"
    NEVER_PUBLISHED = "NEVER_PUBLISHED"
    UNKNOWN_CURRENT = "UNKNOWN_CURRENT"
    LEGACY_PREDICATE = "LEGACY_PREDICATE"
    SUPERSEDED = "SUPERSEDED"
    AGED = "AGED"
    SIGNER_REMOVED = "SIGNER_REMOVED"
    BUNDLE_GONE = "BUNDLE_GONE"
    RETRACTED = "RETRACTED"


@dataclass(frozen=True, slots=True)
class StaleReason:
    """One reason with its line for people, its trigger and what clears it."""

    reason: Staleness
    message: str
    clears: str
    difference: tuple[str, ...] = ()  # by component and constraint, when both texts are known


@dataclass(frozen=True, slots=True)
class Remark:
    """Shown, never silently weighed (service 5): `code`, a sentence, and what it points at."""

    code: str
    message: str
    data: Mapping[str, str] = field(default_factory=dict)


class ConfirmBy(StrEnum):
    """What is counted: signers (the field's rule) or parties (trust 6)."""

    SIGNER = "signer"
    PARTY = "party"


@dataclass(frozen=True, slots=True)
class ConfirmRule:
    """The settings that weigh: CONFIRM_BY, CONFIRM_THRESHOLD (at least 2), AGED_AFTER_DAYS."""

    by: ConfirmBy = ConfirmBy.SIGNER
    threshold: int = 2
    aged_after_days: int = 30


@dataclass(frozen=True, slots=True)
class PrintSighting:
    """A run somewhere in the store that carries one of the prints of `Run.prints`."""

    kind: str
    value: str
    digest: Digest
    issuer: str
    identity: str
    source_repository_owner: str
    place: LogPlace
    weightless: str = ""  # as `Run.weightless`: such a run has no weight to lose and takes none away


@dataclass(frozen=True, slots=True)
class NameClaim:
    """The earliest record (by place in the log, retracted or not) of one source with one identity under a recipe name.

    Grouped by (issuer, identity, weightless, criteria, profile selection); who owns the name is decided from these
    (trust 6), so that keeping only the latest runs does not move ownership to a newcomer.
    """

    criteria: Criteria
    profile_selection: str
    issuer: str
    identity: str
    digest: Digest
    place: LogPlace
    weightless: str = ""


@dataclass(frozen=True, slots=True)
class RecipeInputs:
    """All that one recipe's verdict depends on, the allowlist and the rule apart.

    `runs` may be every run of the recipe or only the newest per `core.latest.retention_key`: the verdict is the
    same, provided that `claims`, `sightings` and `run_counts` are filled from all records (`core.latest.reduced`
    says exactly how). `catalogue` oldest first; only its last version carries its text.
    `sightings` are other runs with a print of one of `runs`, of each source (and weightless or not) the one logged
    first. `claims` are the earliest record per source and identity under the name.
    `gone` names digests of which no location is left, `public` those that came in with credentials and were found
    somewhere without; `retracted` maps (digest, source id) to the reason.
    `run_counts` says how many runs a source id has on the recipe; count `runs` for an id that is not in it.
    `strangers_left_out` counts sources that no list ever had and of which nothing is here (`core.strangers.reduced`).
    """

    recipe: str
    runs: tuple[Run, ...]
    catalogue: tuple[CatalogueVersion, ...] = ()
    sightings: tuple[PrintSighting, ...] = ()
    gone: frozenset[Digest] = frozenset()
    public: frozenset[Digest] = frozenset()
    retracted: Mapping[tuple[Digest, str], str] = field(default_factory=dict)
    run_counts: Mapping[str, int] = field(default_factory=dict)
    claims: tuple[NameClaim, ...] = ()
    strangers_left_out: int = 0


@dataclass(frozen=True, slots=True)
class SignerResult:
    """One source's result in one row. `counts` tells whether it weighs; `weight` says why not.

    `weight` is one of: `counted`, `reported` (not allowlisted or weightless), `copy-of`, `same-signer`
    (another ref of the same workflow speaks), `same-party` (under confirm_by=party), `retracted` (a pass that was
    taken away), `not-run`.
    """

    source: str
    source_id: str
    result: Bucket
    status: str
    counts: bool
    weight: str
    digest: Digest
    aicr_version: str
    aicr_commit: str
    k8s_version: str
    attested_at: datetime
    skip_reason: str = ""
    run_url: str = ""


@dataclass(frozen=True, slots=True)
class Row:
    """One check of a grid. `declared`: the catalogue asks for it; `reported` counts unlisted results."""

    phase: str
    name: str
    consensus: State
    passes: int
    fails: int
    reported: int
    signers: tuple[SignerResult, ...]
    counted: bool = True  # whether the row enters roll-ups
    declared: bool = False
    skip_reasons: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Grid:
    """All rows at one AICR version, or combined when `aicr_version` is empty.

    `aicr_commit` is set for versions that are no releases: those are grouped by version and commit (service 5).
    """

    aicr_version: str
    state: State
    phase_states: Mapping[str, State]
    rows: tuple[Row, ...]
    aicr_commit: str = ""
    left_out: int = 0  # rows that only strangers report and that are too many to show


@dataclass(frozen=True, slots=True)
class SourceStanding:
    """One source on one recipe: who it is, whether it counts, and its latest run's standing."""

    source: str
    source_id: str
    issuer: str
    identity: str  # exact; the web masks it
    label: str  # allowlist label, "" when there is none
    source_class: str
    allowlisted: bool
    signer_key: str  # equal for refs of one workflow
    party: str
    digest: Digest
    attested_at: datetime
    logged_at: datetime
    aicr_version: str
    k8s_version: str
    recipe_digest: str
    predicate_type: str
    age_days: int
    runs: int
    staleness: tuple[StaleReason, ...]
    remarks: tuple[Remark, ...]
    speaks: bool  # False when another ref of the same workflow is taken instead
    weightless: str = ""  # why this source's record has weight zero although the signer is listed (S18)
    voice: str = ""  # as whom the rule in force counts it: equal for one signer, or for one party

    @property
    def counts_or_did(self) -> bool:
        """Whether its reasons are the recipe's: a list has it, or had it; what has no weight never counted."""
        if self.allowlisted or self.weightless:
            return self.allowlisted
        return any(reason.reason is Staleness.SIGNER_REMOVED for reason in self.staleness)


@dataclass(frozen=True, slots=True)
class SetAside:
    """A run that is not weighed at all, with the reason; one bad run never hides the others."""

    digest: Digest
    source: str
    code: str
    reason: str


@dataclass(frozen=True, slots=True)
class Missing:
    """What would raise the recipe: a sentence, and the same as data."""

    code: str
    message: str
    phase: str = ""
    name: str = ""
    needed: int = 0
    have: int = 0
    source: str = ""
    digest: str = ""


@dataclass(frozen=True, slots=True)
class RecipeVerdict:
    """Everything that is said about one recipe at `now`.

    `state` is upstream's meaning (whatever digest was attested, `digests` says how many); `current_state`
    counts only records for today's digest, declared checks and matching hardware, and is None without a catalogue.
    One source stands in `sources` twice when it has weightless records (S18) beside records of full weight.
    `next_change` is when an age in here next changes, so that a rendered answer can be kept until then.
    """

    recipe: str
    criteria: Criteria | None
    coordinate: Coordinate | None
    profile: str
    profile_selection: str
    state: State
    current_state: State | None
    digests: int
    combined: Grid
    current: Grid | None
    versions: tuple[Grid, ...]
    sources: tuple[SourceStanding, ...]
    set_aside: tuple[SetAside, ...]
    missing: tuple[Missing, ...]
    remarks: tuple[Remark, ...]
    confirming: int  # distinct counted signers (or parties) with a pass
    failing: int
    reported: int
    parties: int
    newest: datetime | None
    staleness: tuple[Staleness, ...]
    catalogue: CatalogueVersion | None = None
    next_change: datetime | None = None
    removed: frozenset[str] = frozenset()  # ids of sources that a list had and today's has not
    rule: ConfirmRule = ConfirmRule()  # what was weighed by; "k of n" is a row's `passes` of `rule.threshold`
