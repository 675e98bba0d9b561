"""Reading records: one, those of a digest, a page, the runs of a recipe."""

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from datetime import datetime

import sqlalchemy as sa
from sqlalchemy import ColumnElement, Connection, RowMapping

from app.adapters.db.codec import WEIGHTLESS, decode_text, run_of
from app.adapters.db.events import read_texts
from app.adapters.db.tables import events, figures, latest, locations, records, results, sources
from app.core.bundle import Run
from app.core.versions import kubernetes_minor
from app.ports import Location, Record, RecordFilter

RUN_COLUMNS = (*records.c, sources.c.issuer, sources.c.identity)
_RECORD_COLUMNS = (
    *RUN_COLUMNS,
    sources.c.source_class,
    sources.c.allowlisted,
    events.c.data.label("event"),
    latest.c.record_id.label("latest_id"),
)
ID_OF = sa.select(records.c.id).where(
    records.c.digest == sa.bindparam("digest"), records.c.source_id == sa.bindparam("source_id")
)
"""The record of one source about one digest, if there is one."""

_CHUNK = 500  # how many ids one query names
_LIKE_SPECIAL = re.compile(r"[%_\\]")

_OF_RECORDS = {
    table: sa.select(table)
    .where(table.c.record_id.in_(sa.bindparam("ids", expanding=True)))
    .order_by(table.c.record_id, table.c.position)
    for table in (results, figures)
}
_OF_DIGESTS = (
    sa.select(locations)
    .where(locations.c.digest.in_(sa.bindparam("digests", expanding=True)))
    .order_by(locations.c.digest, locations.c.first_seen, locations.c.reference)
)


def find(connection: Connection, *where: ColumnElement[bool]) -> tuple[Record, ...]:
    """Records with everything, in order of receipt."""
    query = _select().where(*where).order_by(records.c.id)
    return _records(connection, connection.execute(query).mappings().all(), whole=True)


def of_source(connection: Connection, digest: str, source_id: str) -> Record | None:
    """The record of one source."""
    rows = connection.execute(_OF_SOURCE, {"digest": digest, "source_id": source_id}).mappings().all()
    return next(iter(_records(connection, rows, whole=True)), None)


def of_signature(connection: Connection, digest: str, signature_sha256: str) -> Record | None:
    """The record of exactly one bundle and signature."""
    named = {"digest": digest, "signature_sha256": signature_sha256}
    rows = connection.execute(_OF_SIGNATURE, named).mappings().all()
    return next(iter(_records(connection, rows, whole=True)), None)


def page(
    connection: Connection, where: RecordFilter, after: int | None, limit: int
) -> tuple[tuple[Record, ...], int | None]:
    """Light records, newest first, and the cursor of the next page."""
    query = _select().where(*_conditions(where)).order_by(records.c.id.desc()).limit(limit + 1)
    if after is not None:
        query = query.where(records.c.id < after)
    found = _records(connection, connection.execute(query).mappings().all(), whole=False)
    return found[:limit], found[limit - 1].id if len(found) > limit else None


def runs_of(connection: Connection, recipe: str, as_of: datetime | None, limit: int) -> tuple[Run, ...]:
    """The newest runs of a recipe with their results, newest attestation first."""
    query = (
        sa.select(*RUN_COLUMNS)
        .join(sources, sources.c.id == records.c.source_id)
        .where(records.c.recipe == recipe)
        .order_by(records.c.attested_at.desc(), records.c.logged_at.desc(), records.c.digest.desc())
        .limit(limit)
    )
    if as_of is not None:
        query = query.where(records.c.received_at <= as_of)
    return complete(connection, connection.execute(query).mappings().all())


def complete(connection: Connection, rows: Sequence[RowMapping]) -> tuple[Run, ...]:
    """Runs from rows of `RUN_COLUMNS`, with their results, figures and recipe texts."""
    ids = [row["id"] for row in rows]
    outcomes, measured = _by_record(connection, results, ids), _by_record(connection, figures, ids)
    texts = read_texts(connection, (row["recipe_text"] for row in rows if row["recipe_text"]))
    decoded = {key: decode_text(data) for key, data in texts.items()}
    return tuple(
        run_of(
            row,
            outcomes.get(row["id"], ()),
            decoded.get(row["recipe_text"], ""),
            measured.get(row["id"], ()),
        )
        for row in rows
    )


def _select() -> sa.Select[tuple[object, ...]]:
    newest = (
        (latest.c.recipe == records.c.recipe)
        & (latest.c.weighs == (sources.c.known & (records.c.weightless == "")))
        & (latest.c.source_id == records.c.source_id)
        & (latest.c.key == sa.case((records.c.weightless == "", ""), else_=WEIGHTLESS))
    )
    return (
        sa.select(*_RECORD_COLUMNS)
        .join(sources, sources.c.id == records.c.source_id)
        .join(events, events.c.seq == records.c.id)
        .outerjoin(latest, newest & (latest.c.scope == "source"))
    )


_OF_SIGNATURE = _select().where(
    records.c.digest == sa.bindparam("digest"), records.c.signature_sha256 == sa.bindparam("signature_sha256")
)
_OF_SOURCE = _select().where(
    records.c.digest == sa.bindparam("digest"), records.c.source_id == sa.bindparam("source_id")
)


def _records(connection: Connection, rows: Sequence[RowMapping], *, whole: bool) -> tuple[Record, ...]:
    runs = complete(connection, rows) if whole else tuple(run_of(row) for row in rows)
    seen = _locations(connection, {row["digest"] for row in rows})
    return tuple(
        Record(
            run=run,
            id=row["id"],
            reference=row["reference"],
            source_class=row["source_class"],
            allowlisted=row["allowlisted"],
            state_at_ingest=row["event"]["state"],
            locations=seen.get(row["digest"], ()),
            party=row["party"],
            latest=row["latest_id"] == row["id"],
        )
        for row, run in zip(rows, runs, strict=True)
    )


def _conditions(where: RecordFilter) -> list[ColumnElement[bool]]:
    conditions: list[ColumnElement[bool]] = []
    equal = (
        (records.c.digest, None if where.digest is None else where.digest.removeprefix("sha256:")),
        (records.c.recipe, where.recipe),
        (sources.c.source_class, where.source_class),
        (records.c.predicate_type, where.predicate_type),
        (records.c.aicr_version, where.aicr_version),
        (records.c.k8s_minor, None if where.k8s is None else kubernetes_minor(where.k8s)),
    )
    conditions.extend(column == value for column, value in equal if value is not None)
    if where.party is not None:
        conditions.append(_party_is(where.party))
    if where.source is not None:
        conditions.append(source_is(records.c.source_id, where.source))
    if where.outcome is not None:
        conditions.append(records.c.exit == (0 if where.outcome == "passed" else 1))
    if where.since is not None:
        conditions.append(records.c.received_at >= where.since)
    if where.until is not None:
        conditions.append(records.c.received_at < where.until)
    return conditions


def _party_is(shown: str) -> ColumnElement[bool]:
    """A party as it is shown, where `…` hides any characters of an address."""
    if "…" not in shown:
        return records.c.party == shown
    pattern = "%".join(_LIKE_SPECIAL.sub(r"\\\g<0>", part) for part in shown.split("…"))
    return records.c.party.like(pattern, escape="\\")


def source_is(column: "sa.Column[str]", source: str) -> ColumnElement[bool]:
    """A source by its canonical id or by its slug, the first 32 characters; a range, so that an index serves."""
    if len(source) == 32 and not set(source) - set("0123456789abcdef"):
        return (column >= source) & (column < f"{source}g")
    return column == source


def _by_record(connection: Connection, table: sa.Table, ids: Sequence[int]) -> dict[int, list[RowMapping]]:
    """The rows of `results` or `figures` that belong to records, in their order."""
    found: dict[int, list[RowMapping]] = defaultdict(list)
    for start in range(0, len(ids), _CHUNK):
        for row in connection.execute(_OF_RECORDS[table], {"ids": ids[start : start + _CHUNK]}).mappings():
            found[row["record_id"]].append(row)
    return found


def _locations(connection: Connection, digests: Iterable[str]) -> dict[str, tuple[Location, ...]]:
    wanted = sorted(digests)
    if not wanted:
        return {}
    found: dict[str, list[Location]] = defaultdict(list)
    for row in connection.execute(_OF_DIGESTS, {"digests": wanted}):
        found[row.digest].append(Location(row.reference, row.first_seen, row.last_seen, row.public_since is not None))
    return {digest: tuple(seen) for digest, seen in found.items()}
