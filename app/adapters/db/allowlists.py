"""Allowlist versions, and what a change of the list does to every recipe."""

from collections.abc import Mapping
from datetime import datetime

import sqlalchemy as sa
from sqlalchemy import Connection

from app.adapters.db import events
from app.adapters.db.codec import run_of, text_sha256
from app.adapters.db.projection import become_known, known_recipes, refresh
from app.adapters.db.records import RUN_COLUMNS
from app.adapters.db.session import Database
from app.adapters.db.tables import allowlist_versions, records, sources, texts
from app.core.errors import ConflictError, InputError
from app.ports import AllowlistVersion, Classify, Listing, Project

IN_FORCE = sa.select(allowlist_versions.c.text_sha256).order_by(allowlist_versions.c.seq.desc()).limit(1)
"""The sha256 of the newest version."""


def activate(
    database: Database, connection: Connection, version: AllowlistVersion, *, project: Project, classify: Classify
) -> bool:
    """Append the version and compute everything anew, while every other write waits."""
    if version.sha256 != text_sha256(version.text):
        raise InputError(f"expected the sha256 of the allowlist's text, got {version.sha256[:64]!r}")
    database.lock(connection, [], whole=True)
    if in_force(connection) == version.sha256:
        return False
    events.keep_texts(connection, [version.text])
    data = {"text": version.sha256}
    seq = events.append(database, connection, events.ALLOWLIST, version.since, data)
    add_version(connection, seq, version.since, data)
    classify_all(connection, classify)
    for recipe in known_recipes(connection):
        refresh(connection, recipe, project)
    return True


def add_version(connection: Connection, seq: int, since: datetime, data: Mapping[str, object]) -> None:
    """The row of one event."""
    connection.execute(allowlist_versions.insert().values(seq=seq, since=since, text_sha256=data["text"]))


def classify_all(connection: Connection, classify: Classify) -> None:
    """Give every source its class; one (light) run stands for each."""
    one = sa.select(sa.func.max(records.c.id)).group_by(records.c.source_id)
    query = (
        sa.select(*RUN_COLUMNS, sources.c.source_class, sources.c.allowlisted, sources.c.known)
        .join(sources, sources.c.id == records.c.source_id)
        .where(records.c.id.in_(one))
        .order_by(records.c.id)
    )
    for row in connection.execute(query).mappings().all():
        found, held = classify(run_of(row)), Listing(row["source_class"], row["allowlisted"], row["known"])
        listing = found._replace(known=found.known or held.known)
        if listing != held:
            mine = sources.update().where(sources.c.id == row["source_id"])
            connection.execute(mine.values(**listing._asdict()))
        if listing.known and not held.known:
            become_known(connection, row["source_id"])


def in_force(connection: Connection) -> str | None:
    """The sha256 of the newest version."""
    return connection.scalar(IN_FORCE)


def require_in_force(connection: Connection, sha256: str | None) -> None:
    """Raise ALLOWLIST_CHANGED when what is about to be computed would be by another list than the one in force.

    To be asked under the locks of what is written: an activation waits for all of them, or was before them.
    """
    if sha256 is None:
        return
    found = in_force(connection)
    if found != sha256:
        raise ConflictError(
            f"expected allowlist {sha256[:12]} in force, found {(found or 'none')[:12]}",
            code="ALLOWLIST_CHANGED",
            hint="load the allowlist in force and try again",
        )


def all_versions(connection: Connection) -> tuple[AllowlistVersion, ...]:
    """Every version that was in force, oldest first."""
    query = (
        sa.select(allowlist_versions, texts.c.data)
        .join(texts, texts.c.sha256 == allowlist_versions.c.text_sha256)
        .order_by(allowlist_versions.c.seq)
    )
    return tuple(
        AllowlistVersion(row.text_sha256, row.since, bytes(row.data), row.seq) for row in connection.execute(query)
    )
