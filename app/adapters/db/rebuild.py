"""Every projection made anew from the archived runs and the event table, in one transaction (service 6).

Linear in what is stored. Record ids are event numbers, so they stay; revisions grow, so that nothing that was cached
under an old one is taken for the new state.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime

import sqlalchemy as sa
from sqlalchemy import Connection

from app.adapters.db import acts, allowlists, catalogue, events
from app.adapters.db.projection import Arrival, PartyOf, add_records, refresh, see_location
from app.adapters.db.session import Database
from app.adapters.db.tables import PROJECTIONS, catalogue_versions, recipe_state, records
from app.core.bundle import Run
from app.core.errors import StoreError
from app.core.refs import Digest
from app.ports import Classify, Event, Project, Received

_BATCH = 200
_REPLAYED = (
    events.LOCATED,
    events.ALLOWLIST,
    events.CATALOGUE,
    events.RETRACTED,
    events.WITHDRAWN,
    events.GONE,
    events.FOUND,
)
_NAMED = 5  # missing bundles that a message names


@dataclass(frozen=True, slots=True)
class _Acknowledged:
    """One evidence event, as far as its record follows from it."""

    seq: int
    at: datetime
    reference: str
    public: bool


def rebuild(
    database: Database,
    connection: Connection,
    runs: Iterable[tuple[Run, Received]],
    *,
    project: Project,
    classify: Classify,
    party_of: PartyOf,
    allow_missing: bool,
) -> int:
    """See the port."""
    database.lock(connection, [], whole=True)
    revisions = {row.recipe: row.revision for row in connection.execute(sa.select(recipe_state))}
    for table in PROJECTIONS:
        connection.execute(table.delete())
    due = {(str(e.data["digest"]), str(e.data["signature"])): _acknowledged(e) for e in _evidence(connection)}
    kept = 0
    for batch in _batches(_arrivals(runs, due)):
        add_records(connection, batch, classify=classify, party_of=party_of)
        for arrival in batch:
            if arrival.reference:
                run = arrival.run
                see_location(connection, run.digest.hex, arrival.reference, run.received_at, public=run.public)
        kept += len(batch)
    if due and not allow_missing:
        named = ", ".join(str(Digest(digest)) for digest, _ in sorted(due)[:_NAMED])
        raise StoreError(
            f"expected every acknowledged bundle in the archive, {len(due)} missing: {named}",
            code="ARCHIVE_INCOMPLETE",
            hint="restore the archive, or rebuild without what is missing",
        )
    _replay(connection)
    for recipe in sorted(_named(connection)):
        refresh(connection, recipe, project)
        connection.execute(
            recipe_state.update().where(recipe_state.c.recipe == recipe).values(revision=revisions.pop(recipe, 0) + 1)
        )
    return kept


def _acknowledged(event: Event) -> _Acknowledged:
    return _Acknowledged(event.seq, event.at, str(event.data["reference"]), bool(event.data["public"]))


def _evidence(connection: Connection) -> Iterator[Event]:
    return events.all_of(connection, [events.RECEIVED])


def _arrivals(runs: Iterable[tuple[Run, Received]], due: dict[tuple[str, str], _Acknowledged]) -> Iterator[Arrival]:
    """Runs that an event acknowledges, each once, as they came; takes them off `due`."""
    for run, _ in runs:
        known = due.pop((run.digest.hex, run.signature_sha256), None)
        if known is not None:
            yield Arrival(known.seq, replace(run, received_at=known.at, public=known.public), known.reference)


def _batches(arrivals: Iterable[Arrival]) -> Iterator[list[Arrival]]:
    batch: list[Arrival] = []
    for arrival in arrivals:
        batch.append(arrival)
        if len(batch) == _BATCH:
            yield batch
            batch = []
    if batch:
        yield batch


def _replay(connection: Connection) -> None:
    """Every other event, in its order."""
    stored = set(connection.scalars(sa.select(records.c.digest).distinct()))
    for event in events.all_of(connection, _REPLAYED):
        data = event.data
        match event.kind:
            case events.ALLOWLIST:
                allowlists.add_version(connection, event.seq, event.at, data)
            case events.CATALOGUE:
                catalogue.add_version(connection, event.seq, event.at, data)
            case _ if data["digest"] not in stored:
                continue  # its bundle is missing, and that was allowed
            case events.LOCATED:
                see_location(
                    connection, str(data["digest"]), str(data["reference"]), event.at, public=bool(data["public"])
                )
            case _:
                acts.apply(connection, event.seq, event.at, event.kind, data)


def _named(connection: Connection) -> set[str]:
    """Every recipe that evidence or the catalogue names."""
    return {
        *connection.scalars(sa.select(records.c.recipe).distinct()),
        *connection.scalars(sa.select(catalogue_versions.c.recipe).distinct()),
    }
