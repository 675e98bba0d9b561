"""The append-only table, and the content-addressed texts that its rows name.

| kind | data |
|---|---|
| `evidence-received` | digest, source, signature, reference, public, pointer (sha256 of a text or null), state |
| `location-seen` | digest, reference, public |
| `allowlist-activated` | text (sha256) |
| `catalogue-pushed` | see `codec.catalogue_data` |
| `evidence-retracted`, `retraction-withdrawn` | digest, source, reason, actor |
| `bundle-gone`, `bundle-found` | digest |
| `weighing-changed` | mark, confirmBy, threshold, agedAfterDays: what weighs from then on |
"""

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from functools import cache

import sqlalchemy as sa
from sqlalchemy import Connection
from sqlalchemy.dialects import postgresql, sqlite

from app.adapters.db.codec import text_sha256
from app.adapters.db.session import Database
from app.adapters.db.tables import events, texts
from app.core.errors import NotFoundError
from app.ports import Event

RECEIVED = "evidence-received"
LOCATED = "location-seen"
ALLOWLIST = "allowlist-activated"
CATALOGUE = "catalogue-pushed"
RETRACTED = "evidence-retracted"
WITHDRAWN = "retraction-withdrawn"
GONE = "bundle-gone"
FOUND = "bundle-found"
WEIGHED = "weighing-changed"

PAGE = 500

_BY_KEY = sa.select(texts).where(texts.c.sha256.in_(sa.bindparam("keys", expanding=True)))
_APPEND = events.insert()


def insert(connection: Connection, table: sa.Table) -> "sqlite.Insert | postgresql.Insert":
    """An insert that can say what happens on a conflict."""
    return insert_for(connection.dialect.name, table)


def insert_for(dialect: str, table: sa.Table) -> "sqlite.Insert | postgresql.Insert":
    """The same by the dialect's name: what is made of it can be kept, which is most of a small statement's cost."""
    return sqlite.insert(table) if dialect == "sqlite" else postgresql.insert(table)


def append(
    database: Database,
    connection: Connection,
    kind: str,
    at: datetime,
    data: Mapping[str, object],
    *,
    seq: int | None = None,
) -> int:
    """Add one event, with the `seq` reserved for it if there is one; returns the `seq`."""
    number = database.next_seq(connection) if seq is None else seq
    connection.execute(_APPEND, {"seq": number, "at": at, "kind": kind, "data": data})
    return number


def keep_texts(connection: Connection, datas: Iterable[bytes]) -> None:
    """Add what is not there yet."""
    rows = [{"sha256": key, "data": data} for key, data in sorted({text_sha256(d): d for d in datas}.items())]
    if rows:
        connection.execute(_new_texts(connection.dialect.name), rows)


@cache
def _new_texts(dialect: str) -> "sqlite.Insert | postgresql.Insert":
    return insert_for(dialect, texts).on_conflict_do_nothing()


def read_texts(connection: Connection, keys: Iterable[str]) -> dict[str, bytes]:
    """The texts of `keys`."""
    wanted = sorted(set(keys))
    if not wanted:
        return {}
    rows = connection.execute(_BY_KEY, {"keys": wanted})
    return {row.sha256: bytes(row.data) for row in rows}


def text(connection: Connection, key: str) -> bytes:
    """One text; raises `NotFoundError`."""
    found = read_texts(connection, [key]).get(key)
    if found is None:
        raise NotFoundError(f"no text with sha256 {key[:64]!r} is kept")
    return found


def page(connection: Connection, after: int, kinds: Iterable[str] | None = None) -> tuple[Event, ...]:
    """The next events after `after`, oldest first, at most `PAGE`."""
    query = sa.select(events).where(events.c.seq > after).order_by(events.c.seq).limit(PAGE)
    if kinds is not None:
        query = query.where(events.c.kind.in_(sorted(kinds)))
    return tuple(Event(row.seq, row.at, row.kind, row.data) for row in connection.execute(query))


def named(connection: Connection, seqs: Iterable[int]) -> tuple[Event, ...]:
    """The events with these numbers, oldest first."""
    query = sa.select(events).where(events.c.seq.in_(sorted(seqs))).order_by(events.c.seq)
    return tuple(Event(row.seq, row.at, row.kind, row.data) for row in connection.execute(query))


def all_of(connection: Connection, kinds: Iterable[str] | None = None) -> Iterator[Event]:
    """Every event (of `kinds`), oldest first, a page at a time."""
    wanted = None if kinds is None else tuple(kinds)
    after = 0
    while found := page(connection, after, wanted):
        yield from found
        after = found[-1].seq
