"""Today's recipes: append-only versions, one event each, and what a push changes."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime

import sqlalchemy as sa
from sqlalchemy import Connection

from app.adapters.db import events
from app.adapters.db.allowlists import require_in_force
from app.adapters.db.codec import catalogue_data, catalogue_of, catalogue_values, encode_text
from app.adapters.db.projection import refresh
from app.adapters.db.session import Database
from app.adapters.db.tables import catalogue_versions
from app.core.catalogue import CatalogueVersion, completed
from app.ports import Project


def put(
    database: Database,
    connection: Connection,
    versions: Sequence[CatalogueVersion],
    *,
    replace_all: bool,
    project: Project,
    allowlist_sha256: str | None,
) -> tuple[str, ...]:
    """Append what is new and compute the recipes that it touches; returns their names, sorted."""
    by_name = {version.recipe: version for version in versions}
    database.lock(connection, [f"recipe:{name}" for name in by_name], whole=replace_all)
    require_in_force(connection, allowlist_sha256)
    before = _newest(connection, None if replace_all else by_name)
    changed: list[CatalogueVersion] = []
    for version in versions:
        fresh = completed(version, before.get(version.recipe))
        if fresh is not None:
            changed.append(fresh)
            before[version.recipe] = fresh
    if replace_all:
        recorded_at = max(version.recorded_at for version in versions)
        changed.extend(
            replace(old, retired=True, recorded_at=recorded_at)
            for name, old in sorted(before.items())
            if name not in by_name and not old.retired
        )
    events.keep_texts(connection, (encode_text(version.text) for version in changed if version.text))
    for version in changed:
        data = catalogue_data(version)
        seq = events.append(database, connection, events.CATALOGUE, version.recorded_at, data)
        add_version(connection, seq, version.recorded_at, data)
    names = tuple(sorted({version.recipe for version in changed}))
    for name in names:
        refresh(connection, name, project)
    return names


def add_version(connection: Connection, seq: int, recorded_at: datetime, data: Mapping[str, object]) -> None:
    """The row of one event."""
    connection.execute(catalogue_versions.insert().values(**catalogue_values(seq, recorded_at, data)))


def _newest(connection: Connection, names: Iterable[str] | None) -> dict[str, CatalogueVersion]:
    """The newest version of each recipe (of `names`), with its text."""
    last = sa.select(sa.func.max(catalogue_versions.c.seq)).group_by(catalogue_versions.c.recipe)
    if names is not None:
        last = last.where(catalogue_versions.c.recipe.in_(sorted(names)))
    query = sa.select(catalogue_versions).where(catalogue_versions.c.seq.in_(last))
    rows = connection.execute(query).mappings().all()
    texts = events.read_texts(connection, (row["text_sha256"] for row in rows if row["text_sha256"]))
    return {
        row["recipe"]: catalogue_of(row, texts.get(row["text_sha256"], b"").decode("utf-8", "surrogatepass"))
        for row in rows
    }
