"""Maintained tables: what a new record changes in them, and the state of a recipe made from them.

The same functions serve an ingest, with one run, and a rebuild, with batches of them.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from typing import Any

import sqlalchemy as sa
from sqlalchemy import Connection

from app.adapters.db import codec
from app.adapters.db.events import insert_for, keep_texts
from app.adapters.db.inputs import recipe_inputs
from app.adapters.db.records import RUN_COLUMNS
from app.adapters.db.tables import (
    figures,
    latest,
    locations,
    name_claims,
    recipe_sources,
    recipe_state,
    records,
    results,
    run_prints,
    sources,
)
from app.core.bundle import Run
from app.core.identity import SignerIdentity
from app.core.summary import summarize
from app.core.verdict import RecipeVerdict
from app.ports import Classify, Project, RecipeSummary

_CHUNK = 500
CLAIM_ORDER = ("logged_at", "log_id", "log_index", "digest")
"""The order of `core.bundle.LogPlace`, then the digest."""

PartyOf = Callable[[SignerIdentity], str]

_STATE = sa.select(recipe_state).where(recipe_state.c.recipe == sa.bindparam("recipe"))
_SHARING = (
    sa.select(run_prints.c.recipe)
    .distinct()
    .where(
        run_prints.c.value.in_(sa.bindparam("values", expanding=True)),
        run_prints.c.weighs,
        run_prints.c.recipe != sa.bindparam("recipe"),
    )
)
_RUNS_OF_SOURCE = (
    sa.select(*RUN_COLUMNS)
    .join(sources, sources.c.id == records.c.source_id)
    .where(records.c.source_id == sa.bindparam("source_id"))
    .order_by(records.c.id)
)
_STORED_SOURCES = sa.select(sources.c.id, sources.c.known).where(sources.c.id.in_(sa.bindparam("ids", expanding=True)))


@dataclass(frozen=True, slots=True)
class Arrival:
    """A run under the id of the event that acknowledges it."""

    id: int
    run: Run
    reference: str


def add_records(connection: Connection, arrivals: Sequence[Arrival], *, classify: Classify, party_of: PartyOf) -> None:
    """Rows of every table that follows from the runs alone."""
    runs = [arrival.run for arrival in arrivals]
    keep_texts(connection, (codec.encode_text(run.recipe_text) for run in runs if run.recipe_text))
    known = _add_sources(connection, runs, classify)
    connection.execute(
        _plain(records),
        [codec.record_values(a.id, a.run, a.reference, party_of(a.run.signer)) for a in arrivals],
    )
    _insert_all(connection, results, (row for a in arrivals for row in codec.result_values(a.id, a.run)))
    _insert_all(connection, figures, (row for a in arrivals for row in codec.figure_values(a.id, a.run)))
    _show(connection, [_Weighed(a.id, a.run, known[a.run.source_id]) for a in arrivals])
    counted = Counter((run.recipe, run.source_id) for run in runs)
    connection.execute(
        _counting(connection.dialect.name),
        [{"recipe": recipe, "source_id": source, "runs": runs} for (recipe, source), runs in sorted(counted.items())],
    )


def see_location(connection: Connection, digest: str, reference: str, at: datetime, *, public: bool) -> None:
    """Add a location, or note that it was seen again; once public, it stays so."""
    row = {
        "digest": digest,
        "reference": reference,
        "first_seen": at,
        "last_seen": at,
        "public_since": at if public else None,
    }
    connection.execute(_sighting(connection.dialect.name), row)


def refresh(connection: Connection, recipe: str, project: Project) -> None:
    """Compute one recipe anew from its inputs and keep its line."""
    restate(connection, project(recipe_inputs(connection, recipe)))


def restate(connection: Connection, verdict: RecipeVerdict) -> RecipeSummary:
    """Keep the line of a verdict; the recipe's revision grows."""
    summary = summarize(verdict)
    row = {"recipe": verdict.recipe, "revision": 1, "summary": summary}
    revision = connection.execute(_restating(connection.dialect.name), row).scalar_one()
    return RecipeSummary(verdict.recipe, revision, summary)


def summary_of(connection: Connection, recipe: str) -> RecipeSummary | None:
    """The line of one recipe as it is kept."""
    row = connection.execute(_STATE, {"recipe": recipe}).one_or_none()
    return None if row is None else RecipeSummary(row.recipe, row.revision, row.summary)


def touch(connection: Connection, digest: str) -> None:
    """Raise the revision of the recipes of a digest: something that is shown beside them changed."""
    mine = sa.select(records.c.recipe).where(records.c.digest == digest)
    connection.execute(
        recipe_state.update().where(recipe_state.c.recipe.in_(mine)).values(revision=recipe_state.c.revision + 1)
    )


def sharing_prints(connection: Connection, run: Run) -> frozenset[str]:
    """The other recipes that hold a run of weight with a print of this one: their verdicts depend on it too."""
    values = sorted({value for _, value in run.prints})
    if not values:
        return frozenset()
    return frozenset(connection.scalars(_SHARING, {"values": values, "recipe": run.recipe}))


def become_known(connection: Connection, source_id: str) -> None:
    """From now on this source is never left out: a list has it. What it showed and claimed before counts as well."""
    rows = connection.execute(_RUNS_OF_SOURCE, {"source_id": source_id}).mappings().all()
    ids = [row["id"] for row in rows]
    for table in (latest, name_claims, run_prints):
        for first in range(0, len(ids), _CHUNK):
            connection.execute(table.delete().where(table.c.record_id.in_(ids[first : first + _CHUNK])))
    _show(connection, [_Weighed(row["id"], codec.run_of(row), known=True) for row in rows])


def known_recipes(connection: Connection) -> tuple[str, ...]:
    """Every recipe that has a state, sorted."""
    return tuple(sorted(connection.scalars(sa.select(recipe_state.c.recipe))))


def _add_sources(connection: Connection, runs: Iterable[Run], classify: Classify) -> Mapping[str, bool]:
    """Add those that are new; which of all of them a list knows."""
    by_id: Mapping[str, Run] = {run.source_id: run for run in runs}
    stored = connection.execute(_STORED_SOURCES, {"ids": sorted(by_id)})
    known: dict[str, bool] = {row.id: row.known for row in stored}
    rows = []
    for source_id, run in sorted(by_id.items()):
        if source_id not in known:
            listing = classify(run)
            known[source_id] = listing.known
            rows.append(
                {
                    "id": source_id,
                    "issuer": run.signer.issuer,
                    "identity": run.signer.identity,
                    **listing._asdict(),
                }
            )
    if rows:
        connection.execute(_new_sources(connection.dialect.name), rows)
    return known


@dataclass(frozen=True, slots=True)
class _Weighed:
    """A (light) run under its record's id, and whether a list knows its source."""

    id: int
    run: Run
    known: bool

    @property
    def weighs(self) -> bool:
        return self.known and not self.run.weightless


def _show(connection: Connection, runs: Sequence[_Weighed]) -> None:
    """What verdicts look at: prints, newest runs, claims of names, apart for what has weight and what has none."""
    prints = (row for w in runs for row in codec.print_values(w.id, w.run, weighs=w.weighs))
    _insert_all(connection, run_prints, prints)
    _advance_latest(connection, [row for w in runs for row in codec.latest_values(w.id, w.run, weighs=w.weighs)])
    _advance_claims(connection, [codec.claim_values(w.id, w.run, weighs=w.weighs) for w in runs])


def _advance_latest(connection: Connection, rows: Sequence[codec.Values]) -> None:
    connection.execute(_newer(connection.dialect.name), rows)


def _advance_claims(connection: Connection, rows: Sequence[codec.Values]) -> None:
    """Keep of each claim the record logged first."""
    connection.execute(_earlier(connection.dialect.name), rows)


def _insert_all(connection: Connection, table: sa.Table, rows: Iterable[codec.Values]) -> None:
    if listed := list(rows):
        connection.execute(_plain(table), listed)


# Statements, made once for each dialect: building one costs more than running it.


@cache
def _plain(table: sa.Table) -> sa.Insert:
    return table.insert()


@cache
def _new_sources(dialect: str) -> sa.Insert:
    return insert_for(dialect, sources).on_conflict_do_nothing()


@cache
def _counting(dialect: str) -> sa.Insert:
    statement = insert_for(dialect, recipe_sources)
    return statement.on_conflict_do_update(
        index_elements=["recipe", "source_id"],
        set_={"runs": recipe_sources.c.runs + statement.excluded.runs},
    )


@cache
def _sighting(dialect: str) -> sa.Insert:
    statement = insert_for(dialect, locations)
    new, old = statement.excluded, locations.c
    return statement.on_conflict_do_update(
        index_elements=["digest", "reference"],
        set_={
            "first_seen": sa.case((new.first_seen < old.first_seen, new.first_seen), else_=old.first_seen),
            "last_seen": sa.case((new.last_seen > old.last_seen, new.last_seen), else_=old.last_seen),
            "public_since": sa.case(
                (old.public_since.is_(None), new.public_since),
                (new.public_since < old.public_since, new.public_since),
                else_=old.public_since,
            ),
        },
    )


@cache
def _restating(dialect: str) -> "sa.sql.dml.ReturningInsert[Any]":
    statement = insert_for(dialect, recipe_state)
    return statement.on_conflict_do_update(
        index_elements=["recipe"],
        set_={"revision": recipe_state.c.revision + 1, "summary": statement.excluded.summary},
    ).returning(recipe_state.c.revision)


@cache
def _newer(dialect: str) -> sa.Insert:
    statement = insert_for(dialect, latest)
    new, old = statement.excluded, latest.c
    return statement.on_conflict_do_update(
        index_elements=["recipe", "scope", "weighs", "source_id", "key"],
        set_={name: new[name] for name in ("record_id", "attested_at", "logged_at", "digest")},
        where=sa.tuple_(new.attested_at, new.logged_at, new.digest)
        > sa.tuple_(old.attested_at, old.logged_at, old.digest),
    )


@cache
def _earlier(dialect: str) -> sa.Insert:
    statement = insert_for(dialect, name_claims)
    new, old = statement.excluded, name_claims.c
    return statement.on_conflict_do_update(
        index_elements=["recipe", "weighs", "key"],
        set_={name: new[name] for name in ("record_id", *CLAIM_ORDER)},
        where=sa.tuple_(*(new[name] for name in CLAIM_ORDER)) < sa.tuple_(*(old[name] for name in CLAIM_ORDER)),
    )
