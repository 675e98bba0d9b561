"""What the services ask of the world. Each port lets only errors of `app.core.errors` out.

Paths are plain strings here: the core and the services never open them.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Protocol

from app.core.bundle import (
    Content,
    Pins,
    RawSignature,
    Run,
    SignatureRefused,
    Verdict,
    VerifiedSignature,
)
from app.core.catalogue import CatalogueVersion
from app.core.input_form import PathKind
from app.core.refs import Digest, OciRef
from app.core.report import InputKind
from app.core.tree_listing import TreeListing
from app.core.verdict import RecipeInputs, RecipeVerdict


class Clock(Protocol):
    """The only source of time; UTC."""

    def __call__(self) -> datetime:
        """Now."""


# --- fetch -----------------------------------------------------------------------------------------


class Access(StrEnum):
    """Whether a pull may use configured credentials; an anonymous `POST` never does (service 2)."""

    ANONYMOUS = "anonymous"
    CREDENTIALED = "credentialed"


@dataclass(frozen=True, slots=True)
class PullOptions:
    """How one pull behaves; the host flags hold for the reference's own host only (trust 3)."""

    timeout_seconds: float
    access: Access = Access.ANONYMOUS
    plain_http: bool = False
    insecure_tls: bool = False
    private_host: bool = False  # a person named this host himself: loopback and private addresses allowed


@dataclass(frozen=True, slots=True)
class Artifact:
    """A resolved artifact: exact manifest and its signatures, no layer yet."""

    ref: OciRef  # pinned to `digest`
    digest: Digest
    manifest: bytes
    config: bytes
    layer_digest: Digest
    layer_size: int
    signatures: tuple[RawSignature, ...]


@dataclass(frozen=True, slots=True)
class Pulled:
    """An artifact on disk: `directory` holds the unpacked bundle, `layer` is the exact blob's file."""

    artifact: Artifact
    directory: str
    layer: str


class BundleSource(Protocol):
    """A registry, read as an attacker's (trust 3)."""

    def resolve(self, ref: OciRef, options: PullOptions, /) -> Artifact:
        """Manifest and signature referrers of `ref`; raises `FetchError`."""

    def pull(self, artifact: Artifact, options: PullOptions, /) -> AbstractContextManager[Pulled]:
        """The layer in a private directory that is gone when the context ends; raises `FetchError`."""


class ContentReader(Protocol):
    """Gathers a directory into a value."""

    def read(self, directory: str, /) -> Content:
        """Every entry hashed, `CAPTURED_LIMITS` files read once, no link followed.

        Raises `NotFoundError`, `DocumentInvalid` (code CONTENT_LIMIT) and, for a storage fault, `FetchError`.
        """


OpenArchive = Callable[[str], AbstractContextManager[Pulled]]
"""Opens a tar that `GET .../archive` served: the artifact in a private directory that is gone when the context ends.

Bounded like a pull; raises `FetchError`.
"""


class PointerTree(Protocol):
    """Pointer files and the committed tree on disk."""

    def kind_of(self, path: str, /) -> PathKind:
        """What stands at a path."""

    def read_pointer(self, path: str, /) -> bytes:
        """A pointer file's bytes; raises `PointerInvalid` for a link, a special file or more than 1 MiB."""

    def read_file(self, path: str, /, *, max_bytes: int) -> bytes:
        """Any regular file's bytes; raises `NotFoundError`, `InputError` and, for a storage fault, `FetchError`."""

    def listing(self, root: str, /) -> TreeListing:
        """A tree down to its source directories; raises `NotFoundError` when the root can not be read."""

    def write(self, path: str, data: bytes, /) -> None:
        """Replace a file in one step; durable once this returns."""

    def relocate(self, path: str, /) -> str:
        """Move a signed flat pointer to its canonical place; raises `ConflictError` rather than overwrite."""


# --- verify ----------------------------------------------------------------------------------------


class BundleVerifier(Protocol):
    """Signature, transparency log and certificate: rules S1-S16 and S18 (trust 1.2)."""

    def verify(
        self, bundle: bytes, /, *, artifact: Digest | None, pins: Pins, now: datetime
    ) -> VerifiedSignature | SignatureRefused:
        """Judge one Sigstore bundle; with `artifact`, its subject must be that digest.

        Never raises for bad input: whatever the engine throws is a refusal with a code.
        """


@dataclass(frozen=True, slots=True)
class JudgeJob:
    """All that a judging worker needs; picklable and small (files stay in `directory`)."""

    directory: str
    input: InputKind
    received_at: datetime
    digest: Digest | None = None
    signatures: tuple[RawSignature, ...] = ()
    pointer: bytes | None = None
    pointer_name: str = ""  # file name of the pointer, when it came from a file (E5)
    pins: Pins = field(default_factory=Pins)
    strict: bool = True
    public: bool = True


class Judge(Protocol):
    """Turns an unpacked bundle into a verdict, in this process or in a supervised worker."""

    def judge(self, job: JudgeJob, /) -> Verdict:
        """Raises only `JudgeUnavailable` and `JudgeCrashed`."""


# --- keep ------------------------------------------------------------------------------------------


class BundleArchive(Protocol):
    """Bundles as they came, as an OCI layout by digest (service 6)."""

    def put(self, artifact: Artifact, signature: RawSignature, layer: str, /) -> None:
        """Keep manifest, config, layer, referrer manifest and Sigstore bundle; durable once this returns."""

    def holds(self, digest: Digest, signature_sha256: str, /) -> bool:
        """Whether this bundle is archived with this signature."""

    def open(self, digest: Digest, /) -> AbstractContextManager[Pulled]:
        """The archived artifact, unpacked into a private directory; raises `NotFoundError`."""

    def signature(self, digest: Digest, signature_sha256: str, /) -> RawSignature:
        """The exact Sigstore bundle; raises `NotFoundError`."""

    def sweep(self, known: Callable[[Digest, str], bool], /) -> int:
        """Remove what no record names (left by a crash); returns how many bundles and signatures went."""


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

    `source` is a slug or a canonical id; `since` (inclusive) and `until` (exclusive) are times of receipt.
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


Project = Callable[[RecipeInputs], RecipeVerdict]
"""Pure recomputation of one recipe, run inside the store's transaction."""

Classify = Callable[[Run], tuple[str, bool]]
"""(class, allowlisted) of a run's signer under the allowlist in force.

It depends on `run.signer.issuer` and `run.signer.identity` alone: the store asks once a source and may pass a
run without results.
"""


class EvidenceStore(Protocol):
    """Rows, maintained projections and the append-only event table (service 6)."""

    def keep(
        self,
        run: Run,
        received: Received,
        /,
        *,
        project: Project,
        classify: Classify,
        allowlist_sha256: str | None = None,
    ) -> Kept:
        """One transaction: event, record, results, location, latest, recipe state; durable once this returns.

        `received` decides `received_at` and `public` of the run that is kept.
        Twice is once: for a known (digest, source id) only the location is added. `ConflictError` with the code
        LOG_ENTRY_REUSED or SIGNATURE_REUSED when the log entry or the Sigstore bundle is there under another key,
        and with ALLOWLIST_CHANGED (load it and try again) when `allowlist_sha256` is given and not in force.
        `InputError` with the code FIELD_TOO_LONG when a name or version has more than 512 characters.
        """

    def add_location(self, digest: Digest, received: Received, /) -> None:
        """Note that a digest was seen at a reference; a sighting less than an hour old is not noted again.

        Raises `NotFoundError` for a digest that no record has.
        """

    def find_by_signature(self, digest: Digest, signature_sha256: str, /) -> Record | None:
        """The record of exactly this bundle and signature."""

    def knows(self, digest: Digest, signature_sha256: str, /) -> bool:
        """Whether a record names exactly this bundle and signature; what the archive's sweep asks."""

    def holds(self, digest: Digest, source_id: str, /) -> bool:
        """Whether this source has a record of this digest."""

    def held_by(self, source_id: str, /, *, weightless_only: bool = False) -> int:
        """How many records a source has, or how many of them have no weight."""

    def records_of(self, digest: Digest, /) -> tuple[Record, ...]:
        """All records of a digest, one per source, in order of receipt."""

    def records(
        self, where: RecordFilter, /, *, after: int | None, limit: int
    ) -> tuple[tuple[Record, ...], int | None]:
        """A page of records, newest first, and the cursor of the next one.

        Lists are light: `run.results`, `run.figures` and `run.recipe_text` are empty, `run.phases` has the counts.
        """

    def runs_of(self, recipe: str, /, *, as_of: datetime | None = None, limit: int = 1000) -> tuple[Run, ...]:
        """The newest `limit` runs of a recipe with their results, newest attestation first: its history."""

    def sources(self, *, after: str | None, limit: int) -> tuple[tuple[KnownSource, ...], str | None]:
        """A page of sources in order of their canonical id, and the cursor of the next one."""

    def source(self, source: str, /) -> KnownSource | None:
        """One source by slug or canonical id."""

    def inputs(self, recipe: str, /, *, as_of: datetime | None = None) -> RecipeInputs | None:
        """What one recipe's verdict depends on; None for a recipe that nobody named (by then, with `as_of`)."""

    def revision(self, recipe: str, /) -> int | None:
        """The recipe's revision, cheap to ask; None when unknown."""

    def state_revision(self) -> int:
        """Grows with every change of any projection."""

    def summaries(self) -> tuple[RecipeSummary, ...]:
        """Every known recipe, by name."""

    def put_catalogue(
        self, versions: Sequence[CatalogueVersion], /, *, replace: bool, project: Project
    ) -> tuple[str, ...]:
        """Append versions that say something new, retire absent ones on `replace`; the recipes that changed."""

    def activate_allowlist(self, version: AllowlistVersion, /, *, project: Project, classify: Classify) -> bool:
        """Put a version into force and re-classify everything; False when it already is in force."""

    def reproject(self, mark: str, /, *, project: Project) -> bool:
        """Compute every recipe anew unless `mark` (the rules that weigh) made what is there; whether it did."""

    def allowlists(self) -> tuple[AllowlistVersion, ...]:
        """Every version that was in force, oldest first; the last one is in force."""

    def retract(self, digest: Digest, source_id: str, act: Act, /, *, retracted: bool, project: Project) -> bool:
        """Take a record's passes away, or give them back; False when that was so already.

        Raises `NotFoundError` without such a record. Nothing is removed.
        """

    def set_gone(self, digest: Digest, at: datetime, /, *, gone: bool, project: Project) -> bool:
        """Note that no location of a digest is left, or that one is again; False when that was so already.

        Raises `NotFoundError` without a record of it.
        """

    def record_attempt(self, attempt: Attempt, /) -> Attempt:
        """Keep an attempt, or raise the counter of its twin: same outcome, code and digest (else reference).

        `id`, `first_at` and `count` are the store's to give; text beyond a bound is cut.
        """

    def prune_attempts(self, before: datetime, /) -> int:
        """Forget attempts last seen before then; returns how many."""

    def attempts(
        self, *, after: int | None, limit: int, outcome: str | None = None, digest: str | None = None
    ) -> tuple[tuple[Attempt, ...], int | None]:
        """A page of attempts, newest first."""

    def attempt(self, attempt_id: int, /) -> Attempt | None:
        """One attempt."""

    def lease(self, digest: Digest, holder: str, /, *, now: datetime, seconds: float) -> bool:
        """Take or prolong the right to fetch a digest; False while somebody else holds it."""

    def release(self, digest: Digest, holder: str, /) -> None:
        """Give a lease back."""

    def replay(self) -> Iterator["Event"]:
        """The event table, oldest first; keys `text` and `pointer` of its data name texts by sha256."""

    def text(self, sha256: str, /) -> bytes:
        """A text that an event names; raises `NotFoundError`."""

    def acknowledged(self) -> Iterator[Acknowledged]:
        """All evidence that was taken in, oldest first: what a rebuild judges again from the archive."""

    def rebuild(
        self,
        runs: Iterable[tuple[Run, Received]],
        /,
        *,
        project: Project,
        classify: Classify,
        allow_missing: bool = False,
    ) -> int:
        """Drop every projection and make it anew from `runs` and the events, in one transaction; runs kept.

        A run that no event acknowledges is left out. When an acknowledged one is not in `runs`, nothing changes
        and `StoreError` (code ARCHIVE_INCOMPLETE) names it, unless `allow_missing`.
        """

    def ping(self) -> None:
        """Raises `StoreError` when the database does not answer."""


@dataclass(frozen=True, slots=True)
class Event:
    """One line of the append-only table: what no signed byte says."""

    seq: int
    at: datetime
    kind: str
    data: Mapping[str, object]
