"""An in-memory store behind the same port: every run is kept, everything else is derived when asked.

One lock makes each call a transaction. What the port bounds for a database's sake (text lengths) is not bounded here.
"""

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from app.core.bundle import Run
from app.core.catalogue import CatalogueVersion, check_push, completed
from app.core.errors import ConflictError, InputError, NotFoundError, StoreError
from app.core.identity import SignerIdentity
from app.core.latest import precedence, reduced, sightings_of
from app.core.party import party_of
from app.core.refs import Digest
from app.core.summary import state_at_ingest, summarize
from app.core.verdict import RecipeInputs
from app.ports import (
    Acknowledged,
    Act,
    AllowlistVersion,
    Classify,
    Event,
    Kept,
    KnownSource,
    Location,
    Project,
    Received,
    RecipeSummary,
    Record,
    RecordFilter,
)
from tests.support.memory_attempts import MemoryAttempts

LOCATION_FRESH = timedelta(hours=1)


@dataclass
class _Line:
    revision: int
    summary: Mapping[str, object]


@dataclass
class _State:
    """Everything that a rebuild drops."""

    records: dict[int, tuple[Run, str, dict[str, object]]] = field(default_factory=dict)
    standing: dict[str, tuple[str, bool]] = field(default_factory=dict)
    locations: dict[tuple[str, str], Location] = field(default_factory=dict)
    catalogue: list[CatalogueVersion] = field(default_factory=list)
    allowlists: list[AllowlistVersion] = field(default_factory=list)
    spans: list[dict[str, Any]] = field(default_factory=list)  # retractions and disappearances
    lines: dict[str, _Line] = field(default_factory=dict)


class MemoryStore(MemoryAttempts):
    """Implements `app.ports.EvidenceStore`."""

    def __init__(
        self, *, party: Callable[[SignerIdentity], str] = party_of, failpoint: Callable[[str], None] = lambda _: None
    ) -> None:
        super().__init__()
        self._party = party
        self._failpoint = failpoint
        self._events: list[Event] = []
        self._texts: dict[str, bytes] = {}
        self._state = _State()
        self._projected_by = ""

    # --- keep ---

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
        run = replace(run, received_at=received.at, public=received.public)
        for name, value in {"recipe": run.recipe, "AICR version": run.aicr_version}.items():
            if len(value) > 512:
                raise InputError(f"{name} is too long", code="FIELD_TOO_LONG")
        with self._lock:
            for number, (other, _, _) in self._state.records.items():
                if (other.digest, other.source_id) == (run.digest, run.source_id):
                    self._see(run.digest, received)
                    line = self._summary(run.recipe)
                    return Kept(created=False, record=self._record(number), before=line, after=line)
            self._require_unused(run)
            if allowlist_sha256 is not None and allowlist_sha256 != self._in_force():
                raise ConflictError("another allowlist is in force", code="ALLOWLIST_CHANGED")
            before = self._summary(run.recipe) if run.recipe in self._state.lines else None
            others = {r.recipe for r in self._runs() if set(r.prints) & set(run.prints)} - {run.recipe}
            number = len(self._events) + 1
            self._add(number, run, received.reference, classify)
            if received.reference:
                self._locate(run.digest, received)
            verdict = self._refresh(run.recipe, project)
            for other_recipe in sorted(others):
                self._refresh(other_recipe, project)
            state = state_at_ingest(run, None if before is None else str(before.verdict["state"]), verdict)
            self._state.records[number] = (run, received.reference, state)
            self._append(
                "evidence-received",
                received.at,
                {
                    "digest": run.digest.hex,
                    "source": run.source_id,
                    "signature": run.signature_sha256,
                    "reference": received.reference,
                    "public": received.public,
                    "pointer": None if received.pointer is None else self._keep_text(received.pointer),
                    "state": state,
                },
            )
            self._failpoint("db:row")
            kept = Kept(created=True, record=self._record(number), before=before, after=self._summary(run.recipe))
        self._failpoint("db:commit")
        return kept

    def _require_unused(self, run: Run) -> None:
        for other in self._runs():
            if other.signature_sha256 == run.signature_sha256:
                raise ConflictError("signature is used", code="SIGNATURE_REUSED", details={"digest": str(other.digest)})
            if (other.log.log_id, other.log.index) == (run.log.log_id, run.log.index):
                raise ConflictError("entry is used", code="LOG_ENTRY_REUSED", details={"digest": str(other.digest)})

    def _add(self, number: int, run: Run, reference: str, classify: Classify) -> None:
        self._state.records[number] = (run, reference, {})
        if run.source_id not in self._state.standing:
            self._state.standing[run.source_id] = classify(run)

    def add_location(self, digest: Digest, received: Received, /) -> None:
        with self._lock:
            self._require(digest)
            self._see(digest, received)

    def _see(self, digest: Digest, received: Received) -> None:
        if not received.reference:
            return
        held = self._state.locations.get((digest.hex, received.reference))
        if held and received.at - held.last_seen < LOCATION_FRESH and (held.public or not received.public):
            return
        data = {"digest": digest.hex, "reference": received.reference, "public": received.public}
        self._append("location-seen", received.at, data)
        self._locate(digest, received)
        for recipe in {run.recipe for run in self._runs() if run.digest == digest}:
            self._state.lines[recipe].revision += 1

    def _locate(self, digest: Digest, received: Received) -> None:
        key = (digest.hex, received.reference)
        held = self._state.locations.get(key)
        self._state.locations[key] = Location(
            received.reference,
            min(held.first_seen, received.at) if held else received.at,
            max(held.last_seen, received.at) if held else received.at,
            received.public or bool(held and held.public),
        )

    # --- read ---

    def find_by_signature(self, digest: Digest, signature_sha256: str, /) -> Record | None:
        found = [r for r in self.records_of(digest) if r.run.signature_sha256 == signature_sha256]
        return found[0] if found else None

    def knows(self, digest: Digest, signature_sha256: str, /) -> bool:
        return self.find_by_signature(digest, signature_sha256) is not None

    def holds(self, digest: Digest, source_id: str, /) -> bool:
        return any((run.digest, run.source_id) == (digest, source_id) for run in self._runs())

    def held_by(self, source_id: str, /, *, weightless_only: bool = False) -> int:
        mine = [run for run in self._runs() if run.source_id == source_id]
        return sum(1 for run in mine if run.weightless or not weightless_only)

    def records_of(self, digest: Digest, /) -> tuple[Record, ...]:
        with self._lock:
            return tuple(
                self._record(n) for n, (run, _, _) in sorted(self._state.records.items()) if run.digest == digest
            )

    def records(
        self, where: RecordFilter, /, *, after: int | None, limit: int
    ) -> tuple[tuple[Record, ...], int | None]:
        with self._lock:
            found = [self._record(n) for n in sorted(self._state.records, reverse=True) if after is None or n < after]
        found = [record for record in found if _matches(record, where)]
        page = [replace(r, run=replace(r.run, results=(), figures=(), recipe_text="")) for r in found[:limit]]
        return tuple(page), page[-1].id if len(found) > limit else None

    def runs_of(self, recipe: str, /, *, as_of: datetime | None = None, limit: int = 1000) -> tuple[Run, ...]:
        runs = [r for r in self._runs() if r.recipe == recipe and (as_of is None or r.received_at <= as_of)]
        return tuple(sorted(runs, key=precedence, reverse=True)[:limit])

    def sources(self, *, after: str | None, limit: int) -> tuple[tuple[KnownSource, ...], str | None]:
        ids = sorted(source for source in self._state.standing if after is None or source > after)
        page = tuple(self._known(source) for source in ids[:limit])
        return page, page[-1].source_id if len(ids) > limit else None

    def source(self, source: str, /) -> KnownSource | None:
        ids = [known for known in self._state.standing if source in (known, known[:32])]
        return self._known(ids[0]) if ids else None

    def inputs(self, recipe: str, /, *, as_of: datetime | None = None) -> RecipeInputs | None:
        with self._lock:
            then = _instant(as_of)
            inputs = self._inputs(recipe, then)
            if as_of is None:
                return inputs if recipe in self._state.lines else None
            return inputs if inputs.runs or inputs.catalogue else None

    def revision(self, recipe: str, /) -> int | None:
        line = self._state.lines.get(recipe)
        return None if line is None else line.revision

    def state_revision(self) -> int:
        return sum(line.revision for line in self._state.lines.values())

    def summaries(self) -> tuple[RecipeSummary, ...]:
        return tuple(self._summary(recipe) for recipe in sorted(self._state.lines))

    # --- catalogue, allowlist, acts ---

    def put_catalogue(
        self, versions: Sequence[CatalogueVersion], /, *, replace: bool, project: Project
    ) -> tuple[str, ...]:
        check_push(versions, replace_all=replace)
        with self._lock:
            newest = {version.recipe: version for version in self._state.catalogue}
            changed = []
            for version in versions:
                if (fresh := completed(version, newest.get(version.recipe))) is not None:
                    changed.append(fresh)
                    newest[version.recipe] = fresh
            if replace:
                changed.extend(self._retired(newest, versions))
            for version in changed:
                number = self._append("catalogue-pushed", version.recorded_at, {"version": version})
                self._state.catalogue.append(_with_seq(version, number))
            names = tuple(sorted({version.recipe for version in changed}))
            for name in names:
                self._refresh(name, project)
            return names

    def _retired(
        self, newest: Mapping[str, CatalogueVersion], versions: Sequence[CatalogueVersion]
    ) -> list[CatalogueVersion]:
        at = max(version.recorded_at for version in versions)
        pushed = {version.recipe for version in versions}
        return [
            replace(old, retired=True, recorded_at=at)
            for name, old in sorted(newest.items())
            if name not in pushed and not old.retired
        ]

    def activate_allowlist(self, version: AllowlistVersion, /, *, project: Project, classify: Classify) -> bool:
        if version.sha256 != hashlib.sha256(version.text).hexdigest():
            raise InputError("not the sha256 of the text")
        with self._lock:
            if self._in_force() == version.sha256:
                return False
            number = self._append("allowlist-activated", version.since, {"text": self._keep_text(version.text)})
            self._state.allowlists.append(replace(version, seq=number))
            for run in self._runs():
                self._state.standing[run.source_id] = classify(run)
            for recipe in sorted(self._state.lines):
                self._refresh(recipe, project)
            return True

    def reproject(self, mark: str, /, *, project: Project) -> bool:
        with self._lock:
            if self._projected_by == mark:
                return False
            self._projected_by = mark
            for recipe in sorted(self._state.lines):
                self._refresh(recipe, project)
            return True

    def allowlists(self) -> tuple[AllowlistVersion, ...]:
        return tuple(self._state.allowlists)

    def retract(self, digest: Digest, source_id: str, act: Act, /, *, retracted: bool, project: Project) -> bool:
        with self._lock:
            found = [run for run in self._runs() if (run.digest, run.source_id) == (digest, source_id)]
            if not found:
                raise NotFoundError(f"no record of {digest}")
            data = {"digest": digest.hex, "source": source_id, "recipe": found[0].recipe}
            kind = "evidence-retracted" if retracted else "retraction-withdrawn"
            act_data = data | {"reason": act.reason, "actor": act.actor}
            return self._act(kind, act.at, act_data, on=retracted, project=project)

    def set_gone(self, digest: Digest, at: datetime, /, *, gone: bool, project: Project) -> bool:
        with self._lock:
            self._require(digest)
            kind = "bundle-gone" if gone else "bundle-found"
            return self._act(kind, at, {"digest": digest.hex}, on=gone, project=project)

    def _act(self, kind: str, at: datetime, data: dict[str, str], *, on: bool, project: Project) -> bool:
        if bool(self._open(data)) == on:
            return False
        self._append(kind, at, data)
        self._span(at, data, on=on)
        for recipe in sorted({run.recipe for run in self._runs() if run.digest.hex == data["digest"]}):
            self._refresh(recipe, project)
        return True

    def _open(self, data: Mapping[str, str]) -> list[dict[str, Any]]:
        key = (data["digest"], data.get("source"))
        return [s for s in self._state.spans if s["until"] is None and (s["digest"], s.get("source")) == key]

    def _span(self, at: datetime, data: Mapping[str, str], *, on: bool) -> None:
        if on:
            self._state.spans.append({**data, "since": at, "until": None})
            return
        for span in self._open(data):
            span["until"] = at

    # --- events ---

    def replay(self) -> Iterator[Event]:
        for event in tuple(self._events):
            data = {k: v for k, v in event.data.items() if k != "version"}
            version = event.data.get("version")
            if isinstance(version, CatalogueVersion):
                data = {"recipe": version.recipe, "commit": version.commit, "contentOnly": version.content_only}
            yield replace(event, data=data)

    def text(self, sha256: str, /) -> bytes:
        if sha256 not in self._texts:
            raise NotFoundError(f"no text {sha256!r}")
        return self._texts[sha256]

    def acknowledged(self) -> Iterator[Acknowledged]:
        for event in tuple(self._events):
            if event.kind == "evidence-received":
                data = event.data
                pointer = None if data["pointer"] is None else self._texts[str(data["pointer"])]
                came = Received(event.at, str(data["reference"]), bool(data["public"]), pointer)
                yield Acknowledged(Digest(str(data["digest"])), str(data["source"]), str(data["signature"]), came)

    def rebuild(
        self,
        runs: Iterable[tuple[Run, Received]],
        /,
        *,
        project: Project,
        classify: Classify,
        allow_missing: bool = False,
    ) -> int:
        with self._lock:
            old, self._state = self._state, _State()
            try:
                return self._rebuild(old, runs, project, classify, allow_missing=allow_missing)
            except BaseException:
                self._state = old
                raise

    def _rebuild(
        self,
        old: _State,
        runs: Iterable[tuple[Run, Received]],
        project: Project,
        classify: Classify,
        *,
        allow_missing: bool,
    ) -> int:
        given = {(run.digest.hex, run.signature_sha256): run for run, _ in runs}
        missing = []
        for event in self._events:
            data: Any = event.data
            if event.kind == "evidence-received":
                run = given.get((data["digest"], data["signature"]))
                if run is None:
                    missing.append(data["digest"])
                    continue
                came = Received(event.at, data["reference"], data["public"])
                self._add(event.seq, replace(run, received_at=came.at, public=came.public), came.reference, classify)
                self._state.records[event.seq] = (*self._state.records[event.seq][:2], data["state"])
                if came.reference:
                    self._locate(run.digest, came)
        if missing and not allow_missing:
            raise StoreError("bundles are missing", code="ARCHIVE_INCOMPLETE")
        for event in self._events:
            self._apply(event)
        names = {run.recipe for run in self._runs()} | {version.recipe for version in self._state.catalogue}
        for recipe in sorted(names):
            self._refresh(recipe, project)
            held = old.lines.get(recipe)
            self._state.lines[recipe].revision = (held.revision if held else 0) + 1
        return len(self._state.records)

    def _apply(self, event: Event) -> None:
        data: Any = event.data
        match event.kind:
            case "location-seen":
                self._locate(Digest(data["digest"]), Received(event.at, data["reference"], data["public"]))
            case "allowlist-activated":
                text = self._texts[data["text"]]
                self._state.allowlists.append(AllowlistVersion(data["text"], event.at, text, event.seq))
            case "catalogue-pushed":
                self._state.catalogue.append(_with_seq(data["version"], event.seq))
            case "evidence-retracted" | "bundle-gone":
                self._span(event.at, data, on=True)
            case "retraction-withdrawn" | "bundle-found":
                self._span(event.at, data, on=False)

    def ping(self) -> None:
        return

    # --- parts ---

    def _runs(self) -> list[Run]:
        with self._lock:
            return [run for run, _, _ in self._state.records.values()]

    def _require(self, digest: Digest) -> None:
        if not any(run.digest == digest for run in self._runs()):
            raise NotFoundError(f"no record of {digest}")

    def _in_force(self) -> str | None:
        return self._state.allowlists[-1].sha256 if self._state.allowlists else None

    def _keep_text(self, data: bytes) -> str:
        key = hashlib.sha256(data).hexdigest()
        self._texts[key] = data
        return key

    def _append(self, kind: str, at: datetime, data: Mapping[str, object]) -> int:
        self._events.append(Event(len(self._events) + 1, at, kind, data))
        return len(self._events)

    def _inputs(self, recipe: str, then: datetime) -> RecipeInputs:
        known = [run for run in self._runs() if run.received_at <= then]
        mine = tuple(run for run in known if run.recipe == recipe)
        catalogue = [v for v in self._state.catalogue if v.recipe == recipe and v.recorded_at <= then]
        catalogue = [*(replace(v, text="") for v in catalogue[:-1]), *catalogue[-1:]]
        holding = [s for s in self._state.spans if s["since"] <= then and (s["until"] is None or s["until"] > then)]
        gone = {s["digest"] for s in holding if "source" not in s}
        taken = [s for s in holding if s.get("recipe") == recipe]
        inputs = RecipeInputs(
            recipe=recipe,
            runs=mine,
            catalogue=tuple(catalogue),
            sightings=tuple(seen for run in known for seen in sightings_of(run)),
            retracted={(Digest(s["digest"]), s["source"]): s["reason"] for s in taken},
            run_counts=dict(Counter(run.source_id for run in mine)),
        )
        thin = reduced(inputs)
        return replace(thin, gone=frozenset(run.digest for run in thin.runs if run.digest.hex in gone))

    def _refresh(self, recipe: str, project: Project) -> Any:
        verdict = project(self._inputs(recipe, _instant(None)))
        line = self._state.lines.setdefault(recipe, _Line(0, {}))
        line.revision += 1
        line.summary = summarize(verdict)
        return verdict

    def _summary(self, recipe: str) -> RecipeSummary:
        line = self._state.lines[recipe]
        return RecipeSummary(recipe, line.revision, line.summary)

    def _record(self, number: int) -> Record:
        run, reference, state = self._state.records[number]
        source_class, allowlisted = self._state.standing[run.source_id]
        seen = [location for (digest, _), location in self._state.locations.items() if digest == run.digest.hex]
        twins = [r for r in self._runs() if (r.recipe, r.source_id) == (run.recipe, run.source_id)]
        return Record(
            run=run,
            id=number,
            reference=reference,
            source_class=source_class,
            allowlisted=allowlisted,
            state_at_ingest=state,
            locations=tuple(sorted(seen, key=lambda one: (one.first_seen, one.reference))),
            party=self._party(run.signer),
            latest=max(twins, key=precedence) == run,
        )

    def _known(self, source_id: str) -> KnownSource:
        mine = [self._record(n) for n, (run, _, _) in sorted(self._state.records.items()) if run.source_id == source_id]
        first, last = mine[0], mine[-1]
        return KnownSource(
            source_id=source_id,
            issuer=first.run.signer.issuer,
            identity=first.run.signer.identity,
            source_class=first.source_class,
            allowlisted=first.allowlisted,
            party=last.party,
            records=len(mine),
            recipes=tuple(sorted({record.run.recipe for record in mine})),
            first_seen=first.run.received_at,
            last_seen=last.run.received_at,
        )


def _with_seq(version: CatalogueVersion, seq: int) -> CatalogueVersion:
    return replace(version, seq=seq)


def _instant(as_of: datetime | None) -> datetime:
    return datetime.max.replace(tzinfo=UTC) if as_of is None else as_of


def _matches(record: Record, where: RecordFilter) -> bool:
    run = record.run
    outcome = "passed" if run.exit == 0 else "failed"
    digest = None if where.digest is None else where.digest.removeprefix("sha256:")
    return (
        digest in (None, run.digest.hex)
        and where.recipe in (None, run.recipe)
        and where.source in (None, run.source, run.source_id)
        and where.party in (None, record.party)
        and where.source_class in (None, record.source_class)
        and where.predicate_type in (None, run.predicate_type)
        and where.aicr_version in (None, run.aicr_version)
        and where.k8s in (None, run.k8s_version)
        and where.outcome in (None, outcome)
        and (where.since is None or run.received_at >= where.since)
        and (where.until is None or run.received_at < where.until)
    )
