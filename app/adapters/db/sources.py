"""Reading sources: signers with what they brought in."""

from collections import defaultdict
from collections.abc import Sequence

import sqlalchemy as sa
from sqlalchemy import Connection, RowMapping

from app.adapters.db.records import source_is
from app.adapters.db.tables import recipe_sources, records, sources
from app.ports import KnownSource


def page(connection: Connection, after: str | None, limit: int) -> tuple[tuple[KnownSource, ...], str | None]:
    """A page in order of the canonical id."""
    query = sa.select(sources).order_by(sources.c.id).limit(limit + 1)
    if after is not None:
        query = query.where(sources.c.id > after)
    found = _complete(connection, connection.execute(query).mappings().all())
    return found[:limit], found[limit - 1].source_id if len(found) > limit else None


def one(connection: Connection, source: str) -> KnownSource | None:
    """A source by canonical id or slug."""
    rows = connection.execute(sa.select(sources).where(source_is(sources.c.id, source)).limit(1)).mappings().all()
    return next(iter(_complete(connection, rows)), None)


def _complete(connection: Connection, rows: Sequence[RowMapping]) -> tuple[KnownSource, ...]:
    ids = [row["id"] for row in rows]
    if not ids:
        return ()
    recipes: dict[str, dict[str, int]] = defaultdict(dict)
    for row in connection.execute(sa.select(recipe_sources).where(recipe_sources.c.source_id.in_(ids))):
        recipes[row.source_id][row.recipe] = row.runs
    ends = (
        sa.select(
            records.c.source_id, sa.func.min(records.c.id).label("first"), sa.func.max(records.c.id).label("last")
        )
        .where(records.c.source_id.in_(ids))
        .group_by(records.c.source_id)
        .subquery()
    )
    first, last = records.alias("first_record"), records.alias("last_record")
    query = (
        sa.select(ends.c.source_id, first.c.received_at.label("first"), last.c.received_at.label("last"), last.c.party)
        .join(first, first.c.id == ends.c.first)
        .join(last, last.c.id == ends.c.last)
    )
    seen = {row.source_id: row for row in connection.execute(query)}
    return tuple(
        KnownSource(
            source_id=row["id"],
            issuer=row["issuer"],
            identity=row["identity"],
            source_class=row["source_class"],
            allowlisted=row["allowlisted"],
            party=seen[row["id"]].party,
            records=sum(recipes[row["id"]].values()),
            recipes=tuple(sorted(recipes[row["id"]])),
            first_seen=seen[row["id"]].first,
            last_seen=seen[row["id"]].last,
        )
        for row in rows
    )
