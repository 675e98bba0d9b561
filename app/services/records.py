"""The read side of evidence: records, reports, signed bytes, attempts and sources. Reads change nothing.

What comes out is masked (`app.services.masking`), the signed bytes apart. Recipes are read in `app.services.report`.
"""

import base64
import binascii
import json
from dataclasses import dataclass, replace
from datetime import datetime

from app.core.bundle import Accepted, RawSignature, Rejected
from app.core.errors import NotFoundError, StoreError
from app.core.identity import canonical_source_id
from app.core.refs import Digest
from app.core.report import InputKind, Report
from app.core.verdict import Remark, StaleReason
from app.ports import (
    Attempt,
    BundleArchive,
    Clock,
    EvidenceStore,
    Judge,
    JudgeJob,
    KnownSource,
    Location,
    Record,
    RecordFilter,
)
from app.services.masking import MASK, Masking
from app.services.report import AllowlistHolder, RecipeReading, masked_reasons, masked_remarks
from app.services.standings import RecordStandings

MAX_SCANNED = 2000
"""Records that one filtered page looks at; a sparse filter then continues with the next cursor."""

_AT_ONCE = 200
"""Records that a filtered page asks the store for at a time."""

MAX_RECIPES = 100
"""Recipes that the records of one page may be of, since each costs a verdict; the next cursor goes on after them.

Several such pages fit into what `RecordStandings` keeps ready, so that the same page again costs no verdict at all.
"""


@dataclass(frozen=True, slots=True)
class SignerView:
    """Who signed, as it may be shown."""

    source: str
    source_id: str
    identity: str
    issuer: str
    label: str
    source_class: str
    allowlisted: bool
    party: str


@dataclass(frozen=True, slots=True)
class RecordView:
    """A record, its signer as shown, and how it stands today."""

    record: Record
    signer: SignerView
    remarks: tuple[Remark, ...]
    staleness: tuple[StaleReason, ...]
    next_change: datetime | None

    @property
    def outcome(self) -> str:
        """`passed`, or `failed` when a recorded phase failed; failures are evidence."""
        return "failed" if self.record.run.exit else "passed"


@dataclass(frozen=True, slots=True)
class RecordPage:
    """Records, newest first."""

    items: tuple[RecordView, ...]
    next: int | None
    valid_until: datetime | None


@dataclass(frozen=True, slots=True)
class BundleView:
    """A bundle digest with its records, one per source, and where it was seen."""

    digest: Digest
    records: tuple[RecordView, ...]
    locations: tuple[Location, ...]
    valid_until: datetime | None


@dataclass(frozen=True, slots=True)
class SourceView:
    """One source over all recipes, and why it counts or not."""

    known: KnownSource
    signer: SignerView
    why: str


class RecordReading:
    """Reads records, reports, attempts and sources."""

    def __init__(
        self,
        *,
        store: EvidenceStore,
        archive: BundleArchive,
        judge: Judge,
        clock: Clock,
        allowlist: AllowlistHolder,
        recipes: RecipeReading,
    ) -> None:
        self._store = store
        self._archive = archive
        self._judge = judge
        self._clock = clock
        self._allowlist = allowlist
        self._recipes = recipes
        self._standings = RecordStandings(store=store, clock=clock, recipes=recipes)

    # --- records -----------------------------------------------------------------------------------

    def key(self) -> tuple[object, ...]:
        """All that an answer about records depends on beside its filters."""
        return self._recipes.list_key()

    def records(self, where: RecordFilter, *, staleness: str | None, after: int | None, limit: int) -> RecordPage:
        """A page of records, newest first; `staleness` keeps those that have the reason (or `current`: none).

        The party of `where` is what is shown of it, so that nothing hidden can be guessed by asking. A page ends early,
        with a cursor, before it looks at more than `MAX_SCANNED` records or `MAX_RECIPES` recipes.
        """
        found: list[RecordView] = []
        changes: list[datetime] = []
        recipes: set[str] = set()
        scanned = 0
        party, narrowed = where.party, self._narrowed(where)

        def page(following: int | None) -> RecordPage:
            return RecordPage(tuple(found), following, min(changes, default=None))

        while narrowed is not None:
            size = limit if staleness is None and party is None else min(max(limit, _AT_ONCE), MAX_SCANNED - scanned)
            records, following = self._store.records(narrowed, after=after, limit=size)
            for record in records:
                if party is not None and self._signer_of(record).party != party:
                    after = record.id
                    continue
                recipes.add(record.run.recipe)
                if len(recipes) > MAX_RECIPES:
                    return page(after)
                view = self._view(record)
                changes += [view.next_change] if view.next_change else []
                after = record.id
                if staleness is None or _has(view.staleness, staleness):
                    found.append(view)
                    if len(found) == limit:
                        return page(following if record is records[-1] else after)
            scanned += len(records)
            if following is None or scanned >= MAX_SCANNED:
                return page(following)
            after = following
        return page(None)

    def _narrowed(self, where: RecordFilter) -> RecordFilter | None:
        """The filter for the store, which knows no labels; None when no party can be shown as the one asked for."""
        if where.party is None:
            return where
        if any(entry.label == where.party for entry in self._allowlist.current().allowlist.entries):
            return replace(where, party=None)
        return where if MASK.text(where.party) == where.party else None

    def bundle(self, digest: Digest) -> BundleView:
        """A digest with all its records; raises `NotFoundError`."""
        views = tuple(self._view(record) for record in self._known(digest))
        locations = {place.reference: place for view in views for place in view.record.locations}
        changes = [view.next_change for view in views if view.next_change is not None]
        return BundleView(digest, views, tuple(locations.values()), min(changes, default=None))

    def record(self, digest: Digest, source: str) -> Record:
        """The record of one source, by slug or canonical id; raises `NotFoundError`."""
        for record in self._known(digest):
            if source in (record.run.source, record.run.source_id):
                return record
        raise NotFoundError(f"no record of {digest} by the source {source[:64]!r} is known")

    def require(self, digest: Digest) -> None:
        """Raise `NotFoundError` for a digest without evidence: only what was accepted is served."""
        self._known(digest)

    def shown(self, record: Record) -> RecordView:
        """One record as it may be shown."""
        return self._view(record)

    def _known(self, digest: Digest) -> tuple[Record, ...]:
        records = self._store.records_of(digest)
        if not records:
            raise NotFoundError(f"no evidence with the digest {digest} is known")
        return records

    def _view(self, record: Record) -> RecordView:
        standing = self._standings.standing(record)
        return RecordView(
            record=record,
            signer=self._signer_of(record),
            remarks=masked_remarks(standing.remarks),
            staleness=masked_reasons(standing.staleness),
            next_change=standing.next_change,
        )

    def _signer_of(self, record: Record) -> SignerView:
        signer = record.run.signer
        return self._signer(
            signer.issuer,
            signer.identity,
            source_class=record.source_class,
            allowlisted=record.allowlisted,
            party=record.party,
        )

    def _signer(self, issuer: str, identity: str, *, source_class: str, allowlisted: bool, party: str) -> SignerView:
        masking = Masking(self._allowlist.current().allowlist)
        shown = masking.signer(issuer, identity)
        source_id = canonical_source_id(issuer, identity)
        return SignerView(
            source=source_id[:32],
            source_id=source_id,
            identity=shown.identity,
            issuer=issuer,
            label=shown.label,
            source_class=source_class,
            allowlisted=allowlisted,
            party=masking.party(party, shown),
        )

    # --- signed bytes and the report ---------------------------------------------------------------

    def signature(self, record: Record) -> RawSignature:
        """The exact Sigstore bundle of a record."""
        return self._archive.signature(record.run.digest, record.run.signature_sha256)

    def payload(self, record: Record) -> bytes:
        """The exact signed payload: the statement as the signature covers it."""
        try:
            envelope = json.loads(self.signature(record).bundle)["dsseEnvelope"]
            return base64.b64decode(envelope["payload"], validate=True)
        except (ValueError, KeyError, TypeError, binascii.Error) as err:
            raise StoreError(f"the archived signature of {record.run.digest} can not be read") from err

    def report(self, record: Record) -> Report:
        """The verification report, judged anew from the archived bytes; exact, see `shown_report`."""
        run = record.run
        with self._archive.open(run.digest) as pulled:
            verdict = self._judge.judge(
                JudgeJob(
                    directory=pulled.directory,
                    input=InputKind.OCI,
                    received_at=run.received_at,
                    digest=run.digest,
                    signatures=(self.signature(record),),
                    public=run.public,
                )
            )
        match verdict:
            case Accepted(report=report) | Rejected(report=report):
                return report

    # --- attempts ----------------------------------------------------------------------------------

    def attempts(
        self, *, after: int | None, limit: int, outcome: str | None, digest: str | None
    ) -> tuple[tuple[Attempt, ...], int | None]:
        """A page of attempts, newest first, texts masked."""
        items, following = self._store.attempts(after=after, limit=limit, outcome=outcome, digest=digest)
        return tuple(masked_attempt(item) for item in items), following

    def attempt(self, attempt_id: int) -> Attempt:
        """One attempt; raises `NotFoundError`."""
        found = self._store.attempt(attempt_id)
        if found is None:
            raise NotFoundError(f"no attempt {attempt_id} is known")
        return masked_attempt(found)

    # --- sources -----------------------------------------------------------------------------------

    def sources(self, *, after: str | None, limit: int) -> tuple[tuple[SourceView, ...], str | None]:
        """A page of sources in order of their canonical id."""
        items, following = self._store.sources(after=after, limit=limit)
        return tuple(self._source(item) for item in items), following

    def source(self, source: str) -> SourceView:
        """One source by slug or canonical id; raises `NotFoundError`."""
        found = self._store.source(source)
        if found is None:
            raise NotFoundError(f"no source {source[:64]!r} is known")
        return self._source(found)

    def _source(self, known: KnownSource) -> SourceView:
        signer = self._signer(
            known.issuer,
            known.identity,
            source_class=known.source_class,
            allowlisted=known.allowlisted,
            party=known.party,
        )
        entry = self._allowlist.current().allowlist.classify(known.issuer, known.identity).entry
        if entry is None:
            why = "no entry of the allowlist in force names this signer: its results are shown and weigh nothing"
        elif entry.pattern is not None:
            why = f"the {entry.source_class.value} entry {entry.name!r} admits this workflow identity"
        else:
            why = f"the {entry.source_class.value} entry {entry.name!r} lists this signer by its slug"
        return SourceView(known, signer, why)


def shown_report(report: Report, masking: Masking) -> Report:
    """The report with every address masked; the signer's own is replaced by its label where it has one."""
    signer = report.signer
    told = masking.replacements(signer.issuer, signer.identity) if signer is not None else MASK
    cause = report.failure_cause
    return replace(
        report,
        pointer=told.mapping(report.pointer),
        predicate=told.mapping(report.predicate),
        signer=None if signer is None else replace(signer, identity=told.text(signer.identity)),
        steps=tuple(
            replace(
                step,
                detail=told.text(step.detail),
                sub_rows=tuple(
                    replace(row, key=told.text(row.key), value=told.text(row.value)) for row in step.sub_rows
                ),
            )
            for step in report.steps
        ),
        failure_cause=None
        if cause is None
        else replace(cause, detail=told.text(cause.detail), hint=None if cause.hint is None else told.text(cause.hint)),
        findings=tuple(replace(finding, message=told.text(finding.message)) for finding in report.findings),
    )


def masked_attempt(attempt: Attempt) -> Attempt:
    """An attempt whose cause quotes no address."""
    return replace(attempt, cause=MASK.mapping(attempt.cause) or {})


def _has(reasons: tuple[StaleReason, ...], wanted: str) -> bool:
    return not reasons if wanted == "current" else any(reason.reason.value == wanted for reason in reasons)
