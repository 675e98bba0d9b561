"""The evidence store: rows, maintained projections, the append-only event table."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime
from typing import NamedTuple, Protocol

from app.core.bundle import Run
from app.core.catalogue import CatalogueVersion
from app.core.refs import Digest
from app.core.verdict import RecipeInputs, RecipeVerdict
from app.ports.kept import (
    Acknowledged,
    Act,
    AllowlistVersion,
    Attempt,
    Event,
    Kept,
    KnownSource,
    Received,
    RecipeSummary,
    Record,
    RecordFilter,
    Weighing,
)

Project = Callable[[RecipeInputs], RecipeVerdict]
"""Pure recomputation of one recipe, run inside the store's transaction."""


class Listing(NamedTuple):
    """What the lists say about a signer: `known` is whether the list in force or an earlier one has it."""

    source_class: str
    allowlisted: bool
    known: bool


Classify = Callable[[Run], Listing]
"""What the lists say about a run's signer.

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

    def inputs(self, recipe: str, /, *, as_of: datetime | None = None, strangers: bool = False) -> RecipeInputs | None:
        """What one recipe's verdict depends on; None for a recipe that nobody named (by then, with `as_of`).

        Of what has no weight only the newest run of each of `core.strangers.MAX_STRANGERS` sources is there, the other
        sources as a number; with `strangers` everything of today, as a list asks that was never in force.
        """

    def inputs_with(self, run: Run, /) -> RecipeInputs:
        """What the verdict of the run's recipe would depend on, were it kept."""

    def revision(self, recipe: str, /) -> int | None:
        """The recipe's revision, cheap to ask; None when unknown."""

    def state_revision(self) -> int:
        """Grows with every change of any projection."""

    def summaries(self) -> tuple[RecipeSummary, ...]:
        """Every known recipe, by name."""

    def put_catalogue(
        self,
        versions: Sequence[CatalogueVersion],
        /,
        *,
        replace: bool,
        project: Project,
        allowlist_sha256: str | None = None,
    ) -> tuple[str, ...]:
        """Append versions that say something new, retire absent ones on `replace`; the recipes that changed.

        Here and below `allowlist_sha256` is the list that `project` counts by: `ConflictError` ALLOWLIST_CHANGED when
        another one is in force by now, and nothing changes.
        """

    def activate_allowlist(self, version: AllowlistVersion, /, *, project: Project, classify: Classify) -> bool:
        """Put a version into force and re-classify everything; False when it already is in force."""

    def reproject(
        self, mark: str, /, *, project: Project, weighing: Weighing, allowlist_sha256: str | None = None
    ) -> bool:
        """Compute every recipe anew unless `mark` (the rules that weigh) made what is there; whether it did.

        When it did, an event keeps the settings that weigh from now on.
        """

    def weighings(self) -> tuple[Weighing, ...]:
        """The settings that weighed, oldest first; the last ones made what is there."""

    def allowlist_in_force(self) -> str | None:
        """The bare hex sha256 of the list in force, cheap to ask; None before the first one."""

    def allowlists(self) -> tuple[AllowlistVersion, ...]:
        """Every version that was in force, oldest first; the last one is in force."""

    def retract(
        self,
        digest: Digest,
        source_id: str,
        act: Act,
        /,
        *,
        retracted: bool,
        project: Project,
        allowlist_sha256: str | None = None,
    ) -> bool:
        """Take a record's passes away, or give them back; False when that was so already.

        Raises `NotFoundError` without such a record. Nothing is removed.
        """

    def set_gone(
        self, digest: Digest, at: datetime, /, *, gone: bool, project: Project, allowlist_sha256: str | None = None
    ) -> bool:
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

    def replay(self) -> Iterator[Event]:
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
