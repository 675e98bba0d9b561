"""One type a stage: Content and RawSignature -> VerifiedSignature -> Run; the verdict is `Accepted | Rejected`.

Nothing here reads a file: an adapter gathers a directory into `Content`, the rules judge that value.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from app.core.coordinate import Coordinate, Criteria
from app.core.errors import Category
from app.core.identity import SignerIdentity
from app.core.refs import Digest
from app.core.report import FailureCause, Report, StepName

MANIFEST_FILE = "manifest.json"
RECIPE_FILE = "recipe.yaml"
SNAPSHOT_FILE = "snapshot.yaml"
BOM_FILE = "bom.cdx.json"
STATEMENT_FILE = "statement.intoto.json"
ATTESTATION_FILE = "attestation.intoto.jsonl"
PHASES = ("deployment", "performance", "conformance")
"""Canonical order of predicate phases (evidence-format 1.5); the grid's order is in `core.consensus`."""


def ctrf_file(phase: str) -> str:
    """The bundle path of a phase's report."""
    return f"ctrf/{phase}.json"


CAPTURED_LIMITS: Mapping[str, int] = {
    MANIFEST_FILE: 1 << 20,
    RECIPE_FILE: 1 << 20,
    STATEMENT_FILE: 10 << 20,
    ATTESTATION_FILE: 10 << 20,
    BOM_FILE: 8 << 20,
    **{ctrf_file(phase): 10 << 20 for phase in PHASES},
}
"""Files that are read whole, with their caps in bytes (evidence-format 4, 8.3, 10)."""


class EntryKind(StrEnum):
    """What a directory entry is, without following links."""

    FILE = "file"
    DIRECTORY = "directory"
    SYMLINK = "symlink"
    OTHER = "other"


class ReadFault(StrEnum):
    """Why a file could not be captured; UNAVAILABLE is a storage fault (EIO, EACCES, ...), no verdict."""

    MISSING = "missing"
    SYMLINK = "symlink"
    NOT_REGULAR = "not-regular"
    TOO_LARGE = "too-large"
    UNAVAILABLE = "unavailable"


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry below the bundle root; `path` has `/` separators, `sha256` is bare hex for readable files."""

    path: str
    kind: EntryKind
    size: int = 0
    sha256: str | None = None
    fault: ReadFault | None = None


@dataclass(frozen=True, slots=True)
class Content:
    """What an unpacked bundle holds: every entry, and the files of `CAPTURED_LIMITS` read once."""

    entries: Mapping[str, Entry]
    captured: Mapping[str, bytes | ReadFault]

    def read(self, path: str) -> bytes | ReadFault:
        """The captured bytes of `path`, or why there are none."""
        return self.captured.get(path, ReadFault.MISSING)


@dataclass(frozen=True, slots=True)
class RawSignature:
    """A Sigstore bundle as it came, with the referrer manifest that carried it (none from a directory)."""

    bundle: bytes
    referrer: Digest | None = None
    referrer_manifest: bytes | None = None


@dataclass(frozen=True, slots=True)
class Pins:
    """What the caller asks of the signer; an unset pin accepts anything (evidence-format 8.2)."""

    issuer: str | None = None
    identity_regexp: str | None = None


@dataclass(frozen=True, slots=True)
class LogEntry:
    """Where the signature is logged; an index means nothing without its log (trust 1.2)."""

    log: str  # origin, e.g. rekor.sigstore.dev
    log_id: str  # hex
    index: int  # the entry's global index
    proof_index: int  # the index in the shard's tree
    kind: str  # dsse or hashedrekord


@dataclass(frozen=True, slots=True, order=True)
class LogPlace:
    """Where in the order of the logs a signature stands; the least is the earliest.

    A log tells the time in whole seconds, so within one second of one log its own index decides: who signs first
    can't be overtaken by a digest that happens to be lower. Two logs in one second have no order but that of their ids.
    """

    at: datetime
    log_id: str
    index: int


@dataclass(frozen=True, slots=True)
class Subject:
    """One subject of a statement; `sha256` is bare hex."""

    name: str
    sha256: str


@dataclass(frozen=True, slots=True)
class Statement:
    """An in-toto statement: the exact payload bytes beside what was read from them."""

    payload: bytes
    type: str
    predicate_type: str
    subjects: tuple[Subject, ...]
    predicate: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class VerifiedSignature:
    """What only a `BundleVerifier` returns: signature, log entry and times hold under `root`.

    `logged_at` is the earliest verified time (UTC); `weightless` is the S18 remark, empty when the
    signature has its full weight.
    """

    signer: SignerIdentity
    statement: Statement
    log: LogEntry
    logged_at: datetime
    root: str
    root_sha256: str
    bundle_sha256: str
    weightless: str = ""

    @property
    def place(self) -> LogPlace:
        """The signature's place in the order of the logs."""
        return LogPlace(self.logged_at, self.log.log_id, self.log.index)


@dataclass(frozen=True, slots=True)
class SignatureRefused:
    """Step 2 failed; `rule` is S1..S18, or `SIGSTORE` when the engine refused, or `PIN`."""

    rule: str
    code: str
    message: str
    category: Category = Category.UNAUTHORIZED
    hint: str | None = None


@dataclass(frozen=True, slots=True)
class TestOutcome:
    """One test of one CTRF report; `status` verbatim, `duration_ms` as recorded."""

    phase: str
    name: str
    status: str
    duration_ms: int | None = None
    skip_reason: str = ""
    runtime_source: str = ""


@dataclass(frozen=True, slots=True)
class PhaseSummary:
    """A phase as the predicate counts it; `ctrf_digest` prefixed."""

    phase: str
    passed: int
    failed: int
    skipped: int
    ctrf_digest: str


@dataclass(frozen=True, slots=True)
class DimensionMatch:
    """One row of criteriaMatch (evidence-format 1.4)."""

    dimension: str
    match: str
    requires: str = ""
    provides: str = ""


@dataclass(frozen=True, slots=True)
class Figure:
    """One measured number of one check, as a full bundle's output states it (evidence-format 9)."""

    phase: str
    check: str
    name: str  # lower case with hyphens, e.g. inference-throughput
    value: float
    unit: str


@dataclass(frozen=True, slots=True)
class Run:
    """An accepted bundle of one source, flat: what the store keeps and corroboration reads.

    Key: (`digest`, `source_id`). Everything but `received_at` and `public` derives from signed bytes.
    `recipe_digest` is bare hex by the algorithm of `predicate_type`. `prints` identify copied runs (trust 6).
    """

    digest: Digest
    signer: SignerIdentity
    recipe: str
    criteria: Criteria
    coordinate: Coordinate
    profile: str  # path segment, "" when unprofiled
    profile_selection: str  # exact name=value, "" when unprofiled
    predicate_type: str
    recipe_digest: str
    aicr_version: str
    aicr_commit: str
    k8s_version: str
    k8s_constraint: str
    attested_at: datetime
    logged_at: datetime
    received_at: datetime
    log: LogEntry
    root: str
    root_sha256: str
    signature_sha256: str
    exit: int
    phases: tuple[PhaseSummary, ...]
    results: tuple[TestOutcome, ...]
    prints: tuple[tuple[str, str], ...]  # (kind, value): ("ctrf", digest), ("snapshot", digest), ("durations", digest)
    dimensions: tuple[DimensionMatch, ...]
    hardware_matched: bool
    weightless: str = ""
    public: bool = True
    remarks: tuple[str, ...] = ()  # remark codes that one run carries alone: signed-late, overridden, ...
    overridden_paths: tuple[str, ...] = ()
    validator_images: tuple[str, ...] = ()
    recipe_text: str = ""
    figures: tuple[Figure, ...] = ()

    @property
    def place(self) -> LogPlace:
        """The run's place in the order of the logs."""
        return LogPlace(self.logged_at, self.log.log_id, self.log.index)

    @property
    def source(self) -> str:
        """The 32-hex slug of the signer."""
        return self.signer.slug

    @property
    def source_id(self) -> str:
        """The 64-hex canonical id of the signer."""
        return self.signer.canonical_id


@dataclass(frozen=True, slots=True)
class Accepted:
    """A verdict that counts as evidence: strict checks passed, a signer is known, the recipe has a name."""

    run: Run
    report: Report
    signature: VerifiedSignature
    signature_index: int = 0  # which of the artifact's signatures was used


@dataclass(frozen=True, slots=True)
class Rejected:
    """A verdict that does not count; `code` names the rule that spoke first."""

    step: StepName
    code: str
    cause: FailureCause
    report: Report
    details: Mapping[str, object] = field(default_factory=dict)


Verdict = Accepted | Rejected
