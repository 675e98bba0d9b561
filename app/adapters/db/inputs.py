"""What one recipe's verdict depends on, gathered: today from the maintained tables, or as it was at some time.

Today costs a fixed number of queries over rows of this recipe's newest runs, of strangers over those that are shown
(of the others one number is read, from an index); a past time reads the whole history of those that have weight.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy import Connection

from app.adapters.db import codec
from app.adapters.db.events import read_texts
from app.adapters.db.records import ID_OF, RUN_COLUMNS, complete
from app.adapters.db.tables import (
    CROWD,
    catalogue_versions,
    disappearances,
    latest,
    locations,
    name_claims,
    recipe_sources,
    recipe_state,
    records,
    retractions,
    run_prints,
    sources,
)
from app.core.bundle import LogPlace, Run
from app.core.catalogue import CatalogueVersion
from app.core.latest import claim_of, earliest_claims, earliest_sightings, latest_runs
from app.core.refs import Digest
from app.core.strangers import MAX_STRANGERS
from app.core.verdict import PrintSighting, RecipeInputs

_CHUNK = 500

# Statements that an ingest runs are made once: building one costs more than running it.
_OF_RECIPE: sa.BindParameter[str] = sa.bindparam("recipe")
_NEWEST = (
    sa.select(*RUN_COLUMNS, latest.c.weighs)
    .join(latest, latest.c.record_id == records.c.id)
    .join(sources, sources.c.id == records.c.source_id)
    .where(latest.c.recipe == _OF_RECIPE, latest.c.scope == "run")
)
_CROWD_SHOWN = (
    sa.select(latest.c.record_id, latest.c.weighs)
    .where(latest.c.recipe == _OF_RECIPE, CROWD)
    .order_by(
        latest.c.attested_at.desc(),
        latest.c.logged_at.desc(),
        latest.c.digest.desc(),
        latest.c.source_id.desc(),
        latest.c.key.desc(),
    )
    .limit(MAX_STRANGERS)
    .subquery()
)
_NEWEST_SHOWN = sa.union_all(
    _NEWEST.where(latest.c.weighs.is_(sa.true())),
    sa.select(*RUN_COLUMNS, _CROWD_SHOWN.c.weighs)
    .join(_CROWD_SHOWN, _CROWD_SHOWN.c.record_id == records.c.id)
    .join(sources, sources.c.id == records.c.source_id),
)
_CROWD_COUNTED = sa.select(sa.func.count()).select_from(latest).where(latest.c.recipe == _OF_RECIPE, CROWD)
_COLUMN = sa.select(latest.c.record_id).where(
    latest.c.recipe == _OF_RECIPE,
    CROWD,
    latest.c.source_id == sa.bindparam("source_id"),
    latest.c.key == sa.bindparam("key"),
)
_COUNTS = sa.select(recipe_sources.c.source_id, recipe_sources.c.runs).where(
    recipe_sources.c.recipe == _OF_RECIPE,
    recipe_sources.c.source_id.in_(sa.bindparam("source_ids", expanding=True)),
)
_VERSIONS = (
    sa.select(catalogue_versions).where(catalogue_versions.c.recipe == _OF_RECIPE).order_by(catalogue_versions.c.seq)
)
_SIGHTED = (
    sa.select(
        run_prints.c.kind,
        run_prints.c.value,
        records.c.digest,
        records.c.source_owner,
        records.c.logged_at,
        records.c.log_id,
        records.c.log_index,
        records.c.weightless,
        sources.c.issuer,
        sources.c.identity,
    )
    .join(records, records.c.id == run_prints.c.record_id)
    .join(sources, sources.c.id == records.c.source_id)
    .where(run_prints.c.value.in_(sa.bindparam("values", expanding=True)))
)
_CLAIMED = (
    sa.select(*RUN_COLUMNS)
    .join(name_claims, name_claims.c.record_id == records.c.id)
    .join(sources, sources.c.id == records.c.source_id)
    .where(name_claims.c.recipe == _OF_RECIPE)
)
_BY_THEN = (records.c.recipe == _OF_RECIPE) & (records.c.received_at <= sa.bindparam("as_of"))
_WEIGHTY = sources.c.known & (records.c.weightless == "")
_PAST_WEIGHTY = sa.select(*RUN_COLUMNS).join(sources, sources.c.id == records.c.source_id).where(_BY_THEN, _WEIGHTY)
_PAST_CROWD = (
    sa.select(
        records.c.id,
        sa.func.row_number()
        .over(
            partition_by=(records.c.source_id, records.c.weightless != ""),
            order_by=(records.c.attested_at.desc(), records.c.logged_at.desc(), records.c.digest.desc()),
        )
        .label("age"),
    )
    .join(sources, sources.c.id == records.c.source_id)
    .where(_BY_THEN, sa.not_(_WEIGHTY))
    .subquery()
)
_PAST_CROWD_SHOWN = (
    sa.select(*RUN_COLUMNS)
    .join(_PAST_CROWD, _PAST_CROWD.c.id == records.c.id)
    .join(sources, sources.c.id == records.c.source_id)
    .where(_PAST_CROWD.c.age == 1)
    .order_by(
        records.c.attested_at.desc(),
        records.c.logged_at.desc(),
        records.c.digest.desc(),
        records.c.source_id.desc(),
        (records.c.weightless != "").desc(),
    )
    .limit(MAX_STRANGERS)
)
_PAST_CROWD_COUNTED = sa.select(sa.func.count()).select_from(_PAST_CROWD).where(_PAST_CROWD.c.age == 1)
_PAST_COUNTS = (
    sa.select(records.c.source_id, sa.func.count().label("runs"))
    .where(_BY_THEN, records.c.source_id.in_(sa.bindparam("source_ids", expanding=True)))
    .group_by(records.c.source_id)
)
_SIGHTED_WEIGHTY = _SIGHTED.where(run_prints.c.weighs)
_CLAIMED_WEIGHTY = _CLAIMED.where(name_claims.c.weighs)
_VANISHED = sa.select(disappearances.c.digest).where(
    disappearances.c.digest.in_(sa.bindparam("digests", expanding=True))
)
_WITHDRAWN = (
    sa.select(retractions.c.digest, retractions.c.source_id, retractions.c.reason)
    .where(retractions.c.recipe == _OF_RECIPE)
    .order_by(retractions.c.seq)
)
_OPEN = sa.select(locations.c.digest).where(
    locations.c.digest.in_(sa.bindparam("digests", expanding=True)), locations.c.public_since.is_not(None)
)
_VANISHED_NOW = _VANISHED.where(disappearances.c.until.is_(None))
_WITHDRAWN_NOW = _WITHDRAWN.where(retractions.c.until.is_(None))


def known_inputs(
    connection: Connection, recipe: str, as_of: datetime | None, *, strangers: bool
) -> RecipeInputs | None:
    """The inputs of a recipe that is known (by then); see the port."""
    if as_of is not None:
        return _past_inputs(connection, recipe, as_of)
    known = connection.scalar(sa.select(recipe_state.c.revision).where(recipe_state.c.recipe == recipe))
    if known is None:
        return None
    return _whole_inputs(connection, recipe) if strangers else recipe_inputs(connection, recipe)


def recipe_inputs(connection: Connection, recipe: str, *, joined: Run | None = None) -> RecipeInputs:
    """The inputs of a recipe now, thinned as `core.strangers.reduced` says; with `joined` as if it were kept."""
    named = {"recipe": recipe}
    rows = connection.execute(_NEWEST_SHOWN, named).mappings().all()
    left_out = 0
    if sum(not row["weighs"] for row in rows) == MAX_STRANGERS:
        left_out = int(connection.scalar(_CROWD_COUNTED, named) or 0) - MAX_STRANGERS
    if joined is not None and left_out and _is_left_out(connection, joined, rows):
        left_out -= 1
    inputs = _inputs(connection, recipe, rows, sighted=_SIGHTED_WEIGHTY, claimed=_CLAIMED_WEIGHTY, joined=joined)
    return replace(inputs, strangers_left_out=left_out)


def _is_left_out(connection: Connection, run: Run, shown: Sequence[sa.RowMapping]) -> bool:
    """Whether a run's column is in the crowd and not among those that are shown."""
    if any(row["source_id"] == run.source_id and bool(row["weightless"]) == bool(run.weightless) for row in shown):
        return False
    column = codec.column_of(run)
    return connection.scalar(_COLUMN, {"recipe": run.recipe, "source_id": run.source_id, "key": column}) is not None


def _whole_inputs(connection: Connection, recipe: str) -> RecipeInputs:
    """The inputs of a recipe now with every stranger, thinned as `core.latest.reduced` says."""
    rows = connection.execute(_NEWEST, {"recipe": recipe}).mappings().all()
    return _inputs(connection, recipe, rows, sighted=_SIGHTED, claimed=_CLAIMED)


def _inputs(
    connection: Connection,
    recipe: str,
    rows: Sequence[sa.RowMapping],
    *,
    sighted: sa.Select[Any],
    claimed: sa.Select[Any],
    joined: Run | None = None,
) -> RecipeInputs:
    runs = (*complete(connection, rows), *([joined] if joined else ()))
    counted = {"recipe": recipe, "source_ids": sorted({run.source_id for run in runs})}
    counts = {row.source_id: row.runs for row in connection.execute(_COUNTS, counted)}
    if (
        joined is not None
        and connection.scalar(ID_OF, {"digest": joined.digest.hex, "source_id": joined.source_id}) is None
    ):
        counts[joined.source_id] = counts.get(joined.source_id, 0) + 1
    return RecipeInputs(
        recipe=recipe,
        runs=latest_runs(runs),
        catalogue=_catalogue(connection, recipe, None),
        sightings=_sightings(connection, runs, sighted),
        gone=_gone(connection, runs, None),
        public=_public(connection, runs, None),
        retracted=_retracted(connection, recipe, None),
        run_counts=counts,
        claims=earliest_claims(
            claim_of(codec.run_of(row)) for row in connection.execute(claimed, {"recipe": recipe}).mappings()
        ),
    )


def _past_inputs(connection: Connection, recipe: str, as_of: datetime) -> RecipeInputs | None:
    then = {"recipe": recipe, "as_of": as_of}
    rows = list(connection.execute(_PAST_WEIGHTY, then).mappings())
    crowd = connection.execute(_PAST_CROWD_SHOWN, then).mappings().all()
    catalogue = _catalogue(connection, recipe, as_of)
    if not rows and not crowd and not catalogue:
        return None
    left_out = 0
    if len(crowd) == MAX_STRANGERS:
        left_out = int(connection.scalar(_PAST_CROWD_COUNTED, then) or 0) - MAX_STRANGERS
    light = {(Digest(row["digest"]), row["source_id"]): (codec.run_of(row), row) for row in (*rows, *crowd)}
    newest = [light[run.digest, run.source_id][1] for run in latest_runs(run for run, _ in light.values())]
    runs = complete(connection, newest)
    counted = then | {"source_ids": sorted({run.source_id for run in runs})}
    return RecipeInputs(
        recipe=recipe,
        runs=latest_runs(runs),
        catalogue=catalogue,
        sightings=_sightings(connection, runs, _SIGHTED_WEIGHTY.where(records.c.received_at <= as_of)),
        gone=_gone(connection, runs, as_of),
        public=_public(connection, runs, as_of),
        retracted=_retracted(connection, recipe, as_of),
        run_counts={row.source_id: row.runs for row in connection.execute(_PAST_COUNTS, counted)},
        claims=earliest_claims(claim_of(codec.run_of(row)) for row in rows),
        strangers_left_out=left_out,
    )


def _catalogue(connection: Connection, recipe: str, as_of: datetime | None) -> tuple[CatalogueVersion, ...]:
    query = _VERSIONS if as_of is None else _VERSIONS.where(catalogue_versions.c.recorded_at <= as_of)
    rows = connection.execute(query, {"recipe": recipe}).mappings().all()
    if not rows:
        return ()
    key = rows[-1]["text_sha256"]
    text = codec.decode_text(read_texts(connection, [key])[key]) if key else ""
    return (*(codec.catalogue_of(row) for row in rows[:-1]), codec.catalogue_of(rows[-1], text))


def _sightings(connection: Connection, runs: Iterable[Run], sighted: sa.Select[Any]) -> tuple[PrintSighting, ...]:
    wanted = {one for run in runs for one in run.prints}
    values = sorted({value for _, value in wanted})
    found: list[PrintSighting] = []
    for start in range(0, len(values), _CHUNK):
        found.extend(
            PrintSighting(
                kind=row["kind"],
                value=row["value"],
                digest=Digest(row["digest"]),
                issuer=row["issuer"],
                identity=row["identity"],
                source_repository_owner=row["source_owner"],
                place=LogPlace(row["logged_at"], row["log_id"], row["log_index"]),
                weightless=row["weightless"],
            )
            for row in connection.execute(sighted, {"values": values[start : start + _CHUNK]}).mappings()
            if (row["kind"], row["value"]) in wanted
        )
    return earliest_sightings(found)


def _gone(connection: Connection, runs: Sequence[Run], as_of: datetime | None) -> frozenset[Digest]:
    digests = sorted({run.digest.hex for run in runs})
    found: set[str] = set()
    query = _VANISHED_NOW if as_of is None else _VANISHED.where(_in_force(disappearances, as_of))
    for start in range(0, len(digests), _CHUNK):
        found.update(connection.scalars(query, {"digests": digests[start : start + _CHUNK]}))
    return frozenset(Digest(digest) for digest in found)


def _public(connection: Connection, runs: Sequence[Run], as_of: datetime | None) -> frozenset[Digest]:
    """Of the bundles that came in with credentials, those that were found at a place without."""
    digests = sorted({run.digest.hex for run in runs if not run.public})
    found: set[str] = set()
    query = _OPEN if as_of is None else _OPEN.where(locations.c.public_since <= as_of)
    for start in range(0, len(digests), _CHUNK):
        found.update(connection.scalars(query, {"digests": digests[start : start + _CHUNK]}))
    return frozenset(Digest(digest) for digest in found)


def _retracted(connection: Connection, recipe: str, as_of: datetime | None) -> dict[tuple[Digest, str], str]:
    query = _WITHDRAWN_NOW if as_of is None else _WITHDRAWN.where(_in_force(retractions, as_of))
    return {(Digest(row.digest), row.source_id): row.reason for row in connection.execute(query, {"recipe": recipe})}


def _in_force(table: sa.Table, as_of: datetime) -> sa.ColumnElement[bool]:
    """Whether a row with `since` and `until` held at `as_of`."""
    return (table.c.since <= as_of) & (table.c.until.is_(None) | (table.c.until > as_of))
