"""What people and the recheck say about evidence afterwards: retracted, withdrawn, bundle gone, bundle found.

Nothing is removed: an act is an event, and a row that holds from `since` until another act ends it.
"""

from collections.abc import Mapping
from datetime import datetime

import sqlalchemy as sa
from sqlalchemy import Connection

from app.adapters.db import events
from app.adapters.db.allowlists import require_in_force
from app.adapters.db.projection import refresh
from app.adapters.db.session import Database
from app.adapters.db.tables import disappearances, records, retractions
from app.core.errors import NotFoundError
from app.core.refs import Digest
from app.ports import Act, Project


def retract(
    database: Database,
    connection: Connection,
    digest: Digest,
    source_id: str,
    act: Act,
    *,
    retracted: bool,
    project: Project,
    allowlist_sha256: str | None,
) -> bool:
    """Take a record's passes away, or give them back; False when that was so already."""
    recipe = connection.scalar(
        sa.select(records.c.recipe).where(records.c.digest == digest.hex, records.c.source_id == source_id)
    )
    if recipe is None:
        raise NotFoundError(f"no record of {digest} by source {source_id[:64]!r}")
    database.lock(connection, [f"recipe:{recipe}"])
    require_in_force(connection, allowlist_sha256)
    open_row = sa.select(retractions.c.seq).where(
        retractions.c.recipe == recipe,
        retractions.c.digest == digest.hex,
        retractions.c.source_id == source_id,
        retractions.c.until.is_(None),
    )
    if (connection.scalar(open_row) is not None) == retracted:
        return False
    data = {
        "digest": digest.hex,
        "source": source_id,
        "recipe": recipe,
        "reason": act.reason,
        "actor": act.actor,
    }
    kind = events.RETRACTED if retracted else events.WITHDRAWN
    apply(connection, events.append(database, connection, kind, act.at, data), act.at, kind, data)
    refresh(connection, recipe, project)
    return True


def set_gone(
    database: Database,
    connection: Connection,
    digest: Digest,
    at: datetime,
    *,
    gone: bool,
    project: Project,
    allowlist_sha256: str | None,
) -> bool:
    """Note that no location of a digest is left, or that one is again; False when that was so already."""
    names = sorted(connection.scalars(sa.select(records.c.recipe).distinct().where(records.c.digest == digest.hex)))
    if not names:
        raise NotFoundError(f"no record of {digest}")
    database.lock(connection, [f"recipe:{name}" for name in names])
    require_in_force(connection, allowlist_sha256)
    open_row = sa.select(disappearances.c.seq).where(
        disappearances.c.digest == digest.hex, disappearances.c.until.is_(None)
    )
    if (connection.scalar(open_row) is not None) == gone:
        return False
    data = {"digest": digest.hex}
    kind = events.GONE if gone else events.FOUND
    apply(connection, events.append(database, connection, kind, at, data), at, kind, data)
    for name in names:
        refresh(connection, name, project)
    return True


def apply(connection: Connection, seq: int, at: datetime, kind: str, data: Mapping[str, object]) -> None:
    """The rows that follow from one act's event."""
    match kind:
        case events.RETRACTED:
            connection.execute(
                retractions.insert().values(
                    seq=seq,
                    digest=data["digest"],
                    source_id=data["source"],
                    recipe=data["recipe"],
                    reason=data["reason"],
                    since=at,
                )
            )
        case events.WITHDRAWN:
            connection.execute(
                retractions.update()
                .where(
                    retractions.c.digest == data["digest"],
                    retractions.c.source_id == data["source"],
                    retractions.c.recipe == data["recipe"],
                    retractions.c.until.is_(None),
                )
                .values(until=at)
            )
        case events.GONE:
            connection.execute(disappearances.insert().values(seq=seq, digest=data["digest"], since=at))
        case events.FOUND:
            connection.execute(
                disappearances.update()
                .where(disappearances.c.digest == data["digest"], disappearances.c.until.is_(None))
                .values(until=at)
            )
