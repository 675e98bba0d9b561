"""What only passes by: attempts with their counters, and the leases by which processes share one fetch.

Neither is evidence, so neither is an event; their writes are relaxed, since a crash may forget them.
"""

import hashlib
import json
from collections.abc import Mapping
from datetime import datetime, timedelta
from functools import cache
from typing import Any

import sqlalchemy as sa
from sqlalchemy import Connection, RowMapping

from app.adapters.db.events import insert_for
from app.adapters.db.tables import attempts, leases
from app.adapters.db.types import Instant
from app.core.refs import MAX_REFERENCE_CHARS, Digest
from app.ports import Attempt

MAX_TEXT_CHARS = 512
MAX_CAUSE_BYTES = 8192

_RELEASE = leases.delete().where(leases.c.digest == sa.bindparam("digest"), leases.c.holder == sa.bindparam("holder"))


def record(connection: Connection, attempt: Attempt) -> Attempt:
    """Insert, or raise the counter of the twin."""
    reference, digest = attempt.reference[:MAX_REFERENCE_CHARS], attempt.digest[:MAX_TEXT_CHARS]
    values = {
        "key": _key(attempt.outcome, attempt.code, digest or reference, attempt.source),
        "reference": reference,
        "digest": digest,
        "outcome": attempt.outcome,
        "step": attempt.step[:MAX_TEXT_CHARS],
        "code": attempt.code[:MAX_TEXT_CHARS],
        "cause": bounded_cause(attempt.cause),
        "first_at": attempt.last_at,
        "last_at": attempt.last_at,
        "count": 1,
        "source": attempt.source[:MAX_TEXT_CHARS],
        "recipe": attempt.recipe[:MAX_TEXT_CHARS],
    }
    row = connection.execute(_recording(connection.dialect.name), values)
    return _attempt(row.mappings().one())


@cache
def _recording(dialect: str) -> "sa.sql.dml.ReturningInsert[Any]":
    statement = insert_for(dialect, attempts)
    new = statement.excluded
    return statement.on_conflict_do_update(
        index_elements=["key"],
        set_={
            "count": attempts.c.count + 1,
            **{name: new[name] for name in ("reference", "step", "cause", "last_at", "recipe")},
        },
    ).returning(*attempts.c)


def prune(connection: Connection, before: datetime) -> int:
    """Forget what was last seen before then."""
    return connection.execute(attempts.delete().where(attempts.c.last_at < before)).rowcount


def page(
    connection: Connection, after: int | None, limit: int, outcome: str | None, digest: str | None
) -> tuple[tuple[Attempt, ...], int | None]:
    """A page, newest first."""
    query = sa.select(attempts).order_by(attempts.c.id.desc()).limit(limit + 1)
    if after is not None:
        query = query.where(attempts.c.id < after)
    if outcome is not None:
        query = query.where(attempts.c.outcome == outcome)
    if digest is not None:
        query = query.where(attempts.c.digest == digest)
    found = tuple(_attempt(row) for row in connection.execute(query).mappings())
    return found[:limit], found[limit - 1].id if len(found) > limit else None


def one(connection: Connection, attempt_id: int) -> Attempt | None:
    """One attempt."""
    row = connection.execute(sa.select(attempts).where(attempts.c.id == attempt_id)).mappings().one_or_none()
    return None if row is None else _attempt(row)


def bounded_cause(cause: Mapping[str, object]) -> dict[str, object]:
    """A cause as it is kept: whole, or with its longest texts cut until it fits."""
    kept = dict(cause)
    for limit in (MAX_CAUSE_BYTES // 4, MAX_TEXT_CHARS, 64):
        if len(json.dumps(kept)) <= MAX_CAUSE_BYTES:
            return kept
        kept = {
            key: f"{value[:limit]}…" if isinstance(value, str) and len(value) > limit else value
            for key, value in cause.items()
        }
    if len(json.dumps(kept)) <= MAX_CAUSE_BYTES:
        return kept
    return {key: value for key, value in kept.items() if key in {"class", "detail", "hint", "httpStatus"}}


def lease(connection: Connection, digest: Digest, holder: str, now: datetime, seconds: float) -> bool:
    """Take a free or expired lease, or prolong one's own; one statement, so two never both succeed."""
    row = {"digest": digest.hex, "holder": holder, "expires_at": now + timedelta(seconds=seconds), "at": now}
    return connection.execute(_leasing(connection.dialect.name), row).first() is not None


@cache
def _leasing(dialect: str) -> "sa.sql.dml.ReturningInsert[Any]":
    statement = insert_for(dialect, leases)
    new = statement.excluded
    return (
        statement.values({name: sa.bindparam(name) for name in ("digest", "holder", "expires_at")})
        .on_conflict_do_update(
            index_elements=["digest"],
            set_={"holder": new.holder, "expires_at": new.expires_at},
            where=(leases.c.holder == new.holder) | (leases.c.expires_at <= sa.bindparam("at", type_=Instant)),
        )
        .returning(leases.c.holder)
    )


def release(connection: Connection, digest: Digest, holder: str) -> None:
    """Give back one's own lease; somebody else's stays."""
    connection.execute(_RELEASE, {"digest": digest.hex, "holder": holder})


def release_all(connection: Connection) -> None:
    """Give back every lease, when nobody is left who could hold one."""
    connection.execute(leases.delete())


def _key(outcome: str, code: str, subject: str, source: str) -> str:
    parts = [outcome, code, subject, source if outcome == "accepted" else ""]
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


def _attempt(row: RowMapping) -> Attempt:
    return Attempt(
        id=row["id"],
        reference=row["reference"],
        digest=row["digest"],
        outcome=row["outcome"],
        step=row["step"],
        code=row["code"],
        cause=row["cause"],
        first_at=row["first_at"],
        last_at=row["last_at"],
        count=row["count"],
        source=row["source"],
        recipe=row["recipe"],
    )
