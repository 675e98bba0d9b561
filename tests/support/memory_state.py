"""What the in-memory store holds, and the parts that everything it does is made of."""

import hashlib
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from app.core import latest
from app.core.bundle import Run
from app.core.catalogue import CatalogueVersion
from app.core.errors import ConflictError, NotFoundError
from app.core.identity import SignerIdentity, canonical_source_id
from app.core.latest import precedence, sightings_of
from app.core.party import party_of
from app.core.refs import Digest
from app.core.strangers import reduced
from app.core.summary import summarize
from app.core.verdict import RecipeInputs
from app.ports import (
    AllowlistVersion,
    Classify,
    Event,
    KnownSource,
    Listing,
    Location,
    Project,
    Received,
    RecipeSummary,
    Record,
    Weighing,
)
from tests.support.memory_attempts import MemoryAttempts

LOCATION_FRESH = timedelta(hours=1)


@dataclass
class Line:
    revision: int
    summary: Mapping[str, object]


@dataclass
class State:
    """Everything that a rebuild drops."""

    records: dict[int, tuple[Run, str, dict[str, object]]] = field(default_factory=dict)
    standing: dict[str, Listing] = field(default_factory=dict)
    locations: dict[tuple[str, str], Location] = field(default_factory=dict)
    public_since: dict[tuple[str, str], datetime] = field(default_factory=dict)
    catalogue: list[CatalogueVersion] = field(default_factory=list)
    allowlists: list[AllowlistVersion] = field(default_factory=list)
    spans: list[dict[str, Any]] = field(default_factory=list)  # retractions and disappearances
    lines: dict[str, Line] = field(default_factory=dict)


class MemoryState(MemoryAttempts):
    """Runs, lines, spans and events; one lock makes each call a transaction."""

    def __init__(
        self, *, party: Callable[[SignerIdentity], str] = party_of, failpoint: Callable[[str], None] = lambda _: None
    ) -> None:
        super().__init__()
        self._party = party
        self._failpoint = failpoint
        self._events: list[Event] = []
        self._texts: dict[str, bytes] = {}
        self._state = State()
        self._projected_by = ""
        self._weighings: list[Weighing] = []

    def _add(self, number: int, run: Run, reference: str, classify: Classify) -> None:
        self._state.records[number] = (run, reference, {})
        if run.source_id not in self._state.standing:
            self._state.standing[run.source_id] = classify(run)

    def _reclassify(self, classify: Classify) -> None:
        for run in self._runs():
            known = self._state.standing[run.source_id].known
            listing = classify(run)
            self._state.standing[run.source_id] = listing._replace(known=known or listing.known)

    def _knows(self, issuer: str, identity: str) -> bool:
        source = canonical_source_id(issuer, identity)
        return source in self._state.standing and self._state.standing[source].known

    def _locate(self, digest: Digest, received: Received) -> None:
        key = (digest.hex, received.reference)
        if received.public:
            since = self._state.public_since.get(key, received.at)
            self._state.public_since[key] = min(since, received.at)
        held = self._state.locations.get(key)
        self._state.locations[key] = Location(
            received.reference,
            min(held.first_seen, received.at) if held else received.at,
            max(held.last_seen, received.at) if held else received.at,
            received.public or bool(held and held.public),
        )

    # --- parts ---

    def _runs(self) -> list[Run]:
        with self._lock:
            return [run for run, _, _ in self._state.records.values()]

    def _require(self, digest: Digest) -> None:
        if not any(run.digest == digest for run in self._runs()):
            raise NotFoundError(f"no record of {digest}")

    def _in_force(self) -> str | None:
        return self._state.allowlists[-1].sha256 if self._state.allowlists else None

    def _require_list(self, sha256: str | None) -> None:
        if sha256 not in {None, self._in_force()}:
            raise ConflictError("another allowlist is in force", code="ALLOWLIST_CHANGED")

    def _keep_text(self, data: bytes) -> str:
        key = hashlib.sha256(data).hexdigest()
        self._texts[key] = data
        return key

    def _append(self, kind: str, at: datetime, data: Mapping[str, object]) -> int:
        self._events.append(Event(len(self._events) + 1, at, kind, data))
        return len(self._events)

    def _inputs(
        self, recipe: str, as_of: datetime | None, *, strangers: bool = False, joined: Run | None = None
    ) -> RecipeInputs:
        then = instant(as_of)
        known = [run for run in self._runs() if run.received_at <= then]
        mine = tuple(run for run in known if run.recipe == recipe)
        if joined and not any((run.digest, run.source_id) == (joined.digest, joined.source_id) for run in mine):
            mine = (*mine, joined)
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
        theirs = (
            (joined.signer.issuer, joined.signer.identity) if joined else None
        )  # never left out before it is weighed
        thin = (
            latest.reduced(inputs)
            if strangers
            else reduced(inputs, lambda *signer: signer == theirs or self._knows(*signer))
        )
        seen = {digest for (digest, _), since in self._state.public_since.items() if since <= then}
        return replace(
            thin,
            gone=frozenset(run.digest for run in thin.runs if run.digest.hex in gone),
            public=frozenset(run.digest for run in thin.runs if not run.public and run.digest.hex in seen),
        )

    def _refresh(self, recipe: str, project: Project) -> Any:
        verdict = project(self._inputs(recipe, None))
        line = self._state.lines.setdefault(recipe, Line(0, {}))
        line.revision += 1
        line.summary = summarize(verdict)
        return verdict

    def _summary(self, recipe: str) -> RecipeSummary:
        line = self._state.lines[recipe]
        return RecipeSummary(recipe, line.revision, line.summary)

    def _record(self, number: int) -> Record:
        run, reference, state = self._state.records[number]
        listing = self._state.standing[run.source_id]
        seen = [location for (digest, _), location in self._state.locations.items() if digest == run.digest.hex]
        twins = [r for r in self._runs() if (r.recipe, r.source_id) == (run.recipe, run.source_id)]
        twins = [r for r in twins if bool(r.weightless) == bool(run.weightless)]
        return Record(
            run=run,
            id=number,
            reference=reference,
            source_class=listing.source_class,
            allowlisted=listing.allowlisted,
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

    def _open(self, data: Mapping[str, str]) -> list[dict[str, Any]]:
        key = (data["digest"], data.get("source"))
        return [s for s in self._state.spans if s["until"] is None and (s["digest"], s.get("source")) == key]

    def _span(self, at: datetime, data: Mapping[str, str], *, on: bool) -> None:
        if on:
            self._state.spans.append({**data, "since": at, "until": None})
            return
        for span in self._open(data):
            span["until"] = at


def with_seq(version: CatalogueVersion, seq: int) -> CatalogueVersion:
    return replace(version, seq=seq)


def instant(as_of: datetime | None) -> datetime:
    return datetime.max.replace(tzinfo=UTC) if as_of is None else as_of
