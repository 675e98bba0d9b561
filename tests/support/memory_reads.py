"""The reading part of the in-memory store."""

import re
from dataclasses import replace
from datetime import datetime

from app.core.bundle import Run
from app.core.latest import precedence
from app.core.refs import Digest
from app.core.verdict import RecipeInputs
from app.core.versions import kubernetes_minor
from app.ports import (
    KnownSource,
    RecipeSummary,
    Record,
    RecordFilter,
)
from tests.support.memory_state import MemoryState


class MemoryReads(MemoryState):
    """Those methods of `app.ports.EvidenceStore` that change nothing."""

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

    def inputs(self, recipe: str, /, *, as_of: datetime | None = None, strangers: bool = False) -> RecipeInputs | None:
        with self._lock:
            inputs = self._inputs(recipe, as_of, strangers=strangers)
            if as_of is None:
                return inputs if recipe in self._state.lines else None
            return inputs if inputs.runs or inputs.catalogue else None

    def inputs_with(self, run: Run, /) -> RecipeInputs:
        with self._lock:
            return self._inputs(run.recipe, None, joined=run)

    def revision(self, recipe: str, /) -> int | None:
        line = self._state.lines.get(recipe)
        return None if line is None else line.revision

    def state_revision(self) -> int:
        return sum(line.revision for line in self._state.lines.values())

    def summaries(self) -> tuple[RecipeSummary, ...]:
        return tuple(self._summary(recipe) for recipe in sorted(self._state.lines))


def _shown_as(party: str, shown: str) -> bool:
    return re.fullmatch(".*".join(re.escape(part) for part in shown.split("…")), party, re.DOTALL) is not None


def _matches(record: Record, where: RecordFilter) -> bool:
    run = record.run
    outcome = "passed" if run.exit == 0 else "failed"
    digest = None if where.digest is None else where.digest.removeprefix("sha256:")
    return (
        digest in (None, run.digest.hex)
        and where.recipe in (None, run.recipe)
        and where.source in (None, run.source, run.source_id)
        and (where.party is None or _shown_as(record.party, where.party))
        and where.source_class in (None, record.source_class)
        and where.predicate_type in (None, run.predicate_type)
        and where.aicr_version in (None, run.aicr_version)
        and (where.k8s is None or kubernetes_minor(where.k8s) == kubernetes_minor(run.k8s_version))
        and where.outcome in (None, outcome)
        and (where.since is None or run.received_at >= where.since)
        and (where.until is None or run.received_at < where.until)
    )
