"""An in-memory store behind the same port: every run is kept, everything else is derived when asked.

One lock makes each call a transaction. What the port bounds for a database's sake (text lengths) is not bounded here.
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

from app.core.bundle import Run
from app.core.catalogue import CatalogueVersion
from app.core.errors import ConflictError, InputError, NotFoundError, StoreError
from app.core.refs import Digest
from app.core.summary import state_at_ingest
from app.ports import (
    Acknowledged,
    AllowlistVersion,
    Classify,
    Event,
    Kept,
    Project,
    Received,
)
from tests.support.memory_changes import MemoryChanges
from tests.support.memory_reads import MemoryReads
from tests.support.memory_state import LOCATION_FRESH, State, with_seq


class MemoryStore(MemoryReads, MemoryChanges):
    """Implements `app.ports.EvidenceStore`."""

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
            self._require_list(allowlist_sha256)
            before = self._summary(run.recipe) if run.recipe in self._state.lines else None
            others = set()
            if classify(run).known:
                sharing = [r for r in self._runs() if set(r.prints) & set(run.prints)]
                others = {r.recipe for r in sharing if self._state.standing[r.source_id].known} - {run.recipe}
            number = len(self._events) + 1
            self._add(number, run, received.reference, classify)
            if received.reference:
                self._locate(run.digest, received)
            verdict = self._refresh(run.recipe, project)
            for other_recipe in sorted(others):
                self._refresh(other_recipe, project)
            was = None if before is None else str(before.verdict["state"])
            state = state_at_ingest(run, was, verdict, self._inputs(run.recipe, None))
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
            old, self._state = self._state, State()
            try:
                return self._rebuild(old, runs, project, classify, allow_missing=allow_missing)
            except BaseException:
                self._state = old
                raise

    def _rebuild(
        self,
        old: State,
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
                self._state.catalogue.append(with_seq(data["version"], event.seq))
            case "evidence-retracted" | "bundle-gone":
                self._span(event.at, data, on=True)
            case "retraction-withdrawn" | "bundle-found":
                self._span(event.at, data, on=False)

    def ping(self) -> None:
        return
