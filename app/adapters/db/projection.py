"""Maintained tables: what a new record changes in them, and the state of a recipe made from them.

The same functions serve an ingest, with one run, and a rebuild, with batches of them.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

import sqlalchemy as sa
from sqlalchemy import Connection

from app.adapters.db import codec
from app.adapters.db.events import insert, keep_texts
from app.adapters.db.inputs import recipe_inputs
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

PartyOf = Callable[[SignerIdentity], str]


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
    _add_sources(connection, runs, classify)
    connection.execute(
        records.insert(),
        [codec.record_values(a.id, a.run, a.reference, party_of(a.run.signer)) for a in arrivals],
    )
    _insert_all(connection, results, (row for a in arrivals for row in codec.result_values(a.id, a.run)))
    _insert_all(connection, figures, (row for a in arrivals for row in codec.figure_values(a.id, a.run)))
    _insert_all(connection, run_prints, (row for a in arrivals for row in codec.print_values(a.id, a.run)))
    _advance_latest(connection, [row for a in arrivals for row in codec.latest_values(a.id, a.run)])
    _advance_claims(connection, [codec.claim_values(a.id, a.run) for a in arrivals])
    counted = Counter((run.recipe, run.source_id) for run in runs)
    statement = insert(connection, recipe_sources)
    connection.execute(
        statement.on_conflict_do_update(
            index_elements=["recipe", "source_id"],
            set_={"runs": recipe_sources.c.runs + statement.excluded.runs},
        ),
        [{"recipe": recipe, "source_id": source, "runs": runs} for (recipe, source), runs in sorted(counted.items())],
    )


def see_location(connection: Connection, digest: str, reference: str, at: datetime, *, public: bool) -> None:
    """Add a location, or note that it was seen again; once public, it stays so."""
    statement = insert(connection, locations)
    later = sa.case(
        (statement.excluded.last_seen > locations.c.last_seen, statement.excluded.last_seen),
        else_=locations.c.last_seen,
    )
    earlier = sa.case(
        (statement.excluded.first_seen < locations.c.first_seen, statement.excluded.first_seen),
        else_=locations.c.first_seen,
    )
    connection.execute(
        statement.on_conflict_do_update(
            index_elements=["digest", "reference"],
            set_={
                "first_seen": earlier,
                "last_seen": later,
                "public": sa.or_(locations.c.public, statement.excluded.public),
            },
        ).values(digest=digest, reference=reference, first_seen=at, last_seen=at, public=public)
    )


def refresh(connection: Connection, recipe: str, project: Project) -> tuple[RecipeVerdict, RecipeSummary]:
    """Compute one recipe anew from its inputs and keep its line; the revision grows."""
    verdict = project(recipe_inputs(connection, recipe))
    summary = summarize(verdict)
    statement = insert(connection, recipe_state)
    revision = connection.execute(
        statement.on_conflict_do_update(
            index_elements=["recipe"],
            set_={"revision": recipe_state.c.revision + 1, "summary": statement.excluded.summary},
        )
        .values(recipe=recipe, revision=1, summary=summary)
        .returning(recipe_state.c.revision)
    ).scalar_one()
    return verdict, RecipeSummary(recipe, revision, summary)


def summary_of(connection: Connection, recipe: str) -> RecipeSummary | None:
    """The line of one recipe as it is kept."""
    row = connection.execute(sa.select(recipe_state).where(recipe_state.c.recipe == recipe)).one_or_none()
    return None if row is None else RecipeSummary(row.recipe, row.revision, row.summary)


def touch(connection: Connection, digest: str) -> None:
    """Raise the revision of the recipes of a digest: something that is shown beside them changed."""
    mine = sa.select(records.c.recipe).where(records.c.digest == digest)
    connection.execute(
        recipe_state.update().where(recipe_state.c.recipe.in_(mine)).values(revision=recipe_state.c.revision + 1)
    )


def sharing_prints(connection: Connection, run: Run) -> frozenset[str]:
    """The other recipes that hold a run with a print of this one: their verdicts depend on it too."""
    values = sorted({value for _, value in run.prints})
    if not values:
        return frozenset()
    query = (
        sa.select(run_prints.c.recipe)
        .distinct()
        .where(run_prints.c.value.in_(values), run_prints.c.recipe != run.recipe)
    )
    return frozenset(connection.scalars(query))


def known_recipes(connection: Connection) -> tuple[str, ...]:
    """Every recipe that has a state, sorted."""
    return tuple(sorted(connection.scalars(sa.select(recipe_state.c.recipe))))


def _add_sources(connection: Connection, runs: Iterable[Run], classify: Classify) -> None:
    by_id: Mapping[str, Run] = {run.source_id: run for run in runs}
    known = set(connection.scalars(sa.select(sources.c.id).where(sources.c.id.in_(sorted(by_id)))))
    rows = []
    for source_id, run in sorted(by_id.items()):
        if source_id not in known:
            source_class, allowlisted = classify(run)
            rows.append(
                {
                    "id": source_id,
                    "issuer": run.signer.issuer,
                    "identity": run.signer.identity,
                    "source_class": source_class,
                    "allowlisted": allowlisted,
                }
            )
    if rows:
        connection.execute(insert(connection, sources).on_conflict_do_nothing(), rows)


def _advance_latest(connection: Connection, rows: Sequence[codec.Values]) -> None:
    statement = insert(connection, latest)
    new, old = statement.excluded, latest.c
    connection.execute(
        statement.on_conflict_do_update(
            index_elements=["recipe", "scope", "source_id", "key"],
            set_={name: new[name] for name in ("record_id", "attested_at", "logged_at", "digest")},
            where=sa.tuple_(new.attested_at, new.logged_at, new.digest)
            > sa.tuple_(old.attested_at, old.logged_at, old.digest),
        ),
        rows,
    )


def _advance_claims(connection: Connection, rows: Sequence[codec.Values]) -> None:
    """Keep of each claim the record logged first."""
    statement = insert(connection, name_claims)
    new, old = statement.excluded, name_claims.c
    connection.execute(
        statement.on_conflict_do_update(
            index_elements=["recipe", "key"],
            set_={name: new[name] for name in ("record_id", "logged_at", "digest")},
            where=sa.tuple_(new.logged_at, new.digest) < sa.tuple_(old.logged_at, old.digest),
        ),
        rows,
    )


def _insert_all(connection: Connection, table: sa.Table, rows: Iterable[codec.Values]) -> None:
    if listed := list(rows):
        connection.execute(table.insert(), listed)
