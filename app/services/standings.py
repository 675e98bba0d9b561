"""How single records stand today: as their recipe's verdict says, and by the same rules for older runs.

What is kept ready of a verdict holds no grids and no results, so that a list of records costs one recipe once.
"""

import threading
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime

from app.core.bundle import Run
from app.core.catalogue import CatalogueVersion
from app.core.latest import precedence
from app.core.refs import Digest
from app.core.remarks import run_remarks
from app.core.staleness import Standing, aged_from, next_birthday, staleness_of, today
from app.core.strangers import Lane, lane_of
from app.core.verdict import RecipeInputs, Remark, SourceStanding, StaleReason
from app.ports import Clock, EvidenceStore, Record
from app.services.report import RecipeReading

MAX_STANDINGS = 512
"""Recipes whose standings are kept ready; about ten kilobytes each."""


@dataclass(frozen=True, slots=True)
class RecordStanding:
    """How one record stands today; exact, the reader masks it."""

    remarks: tuple[Remark, ...]
    staleness: tuple[StaleReason, ...]
    next_change: datetime | None


@dataclass(frozen=True, slots=True)
class _Standings:
    """What is kept of one recipe's verdict to tell how its records stand; no grids, no results."""

    sources: Mapping[tuple[Digest, str], SourceStanding]
    newest: Mapping[Lane, Run]
    removed: frozenset[str]
    catalogue: tuple[CatalogueVersion, ...]
    gone: frozenset[Digest]
    retracted: Mapping[tuple[Digest, str], str]
    next_change: datetime | None


class RecordStandings:
    """Tells how records stand; safe between threads."""

    def __init__(self, *, store: EvidenceStore, clock: Clock, recipes: RecipeReading) -> None:
        self._store = store
        self._clock = clock
        self._recipes = recipes
        self._kept: OrderedDict[str, tuple[int | None, str, _Standings]] = OrderedDict()
        self._lock = threading.Lock()

    def standing(self, record: Record) -> RecordStanding:
        """How one record stands today: as its recipe's verdict says, or, for an older run, by the same rules."""
        run = record.run
        known = self._of(run.recipe)
        source = known.sources.get((run.digest, run.source_id))
        if source is not None:
            return RecordStanding(source.remarks, source.staleness, known.next_change)
        now = self._clock()
        newer = known.newest.get(lane_of(run))
        if newer is not None and precedence(newer) <= precedence(run):
            newer = None
        reasons = staleness_of(
            run,
            catalogue=known.catalogue,
            now=now,
            aged_after_days=self._recipes.rule.aged_after_days,
            standing=Standing(
                listed=record.allowlisted,
                was_listed=record.allowlisted or run.source_id in known.removed,
                superseded_by=newer,
                gone=run.digest in known.gone,
                retracted=known.retracted.get((run.digest, run.source_id)),
            ),
        )
        # Once it is aged the reason counts its days, so that it changes every day.
        aged = aged_from(run.attested_at, self._recipes.rule.aged_after_days)
        own = next_birthday(run, now) if aged is not None and aged <= now else aged
        changes = [at for at in (known.next_change, own) if at is not None and at > now]
        version = today(known.catalogue)
        seen_public = any(location.public for location in record.locations)
        remarks = run_remarks(run, version.floors if version else None, seen_public=seen_public)
        return RecordStanding(remarks, reasons, min(changes, default=None))

    def _of(self, recipe: str) -> _Standings:
        revision = self._store.revision(recipe)
        sha256 = self._recipes.list_in_force
        now = self._clock()
        with self._lock:
            kept = self._kept.get(recipe)
            if kept is not None:
                self._kept.move_to_end(recipe)
        if kept is not None and kept[:2] == (revision, sha256):
            until = kept[2].next_change
            if until is None or now < until:
                return kept[2]
        found = self._make_standings(self._store.inputs(recipe))
        with self._lock:
            self._kept[recipe] = (revision, sha256, found)
            self._kept.move_to_end(recipe)
            while len(self._kept) > MAX_STANDINGS:
                self._kept.popitem(last=False)
        return found

    def _make_standings(self, inputs: RecipeInputs | None) -> _Standings:
        if inputs is None:
            return _Standings({}, {}, frozenset(), (), frozenset(), {}, None)
        verdict = self._recipes.verdict(inputs)
        newest: dict[Lane, Run] = {}
        for run in inputs.runs:
            known = newest.get(lane_of(run))
            if known is None or precedence(run) > precedence(known):
                newest[lane_of(run)] = run
        return _Standings(
            sources={(source.digest, source.source_id): source for source in verdict.sources},
            newest={lane: replace(run, results=(), figures=(), recipe_text="") for lane, run in newest.items()},
            removed=verdict.removed,
            catalogue=inputs.catalogue,
            gone=inputs.gone,
            retracted=inputs.retracted,
            next_change=verdict.next_change,
        )
