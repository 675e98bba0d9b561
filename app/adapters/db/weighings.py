"""The settings that weigh: what a change of them does to every recipe, and which ones weighed when.

A change is an event. `meta` names the events of this kind, so that a read finds them without going through all events;
no rebuild touches either.
"""

from collections.abc import Mapping

import sqlalchemy as sa
from sqlalchemy import Connection

from app.adapters.db import events
from app.adapters.db.allowlists import require_in_force
from app.adapters.db.projection import known_recipes, refresh
from app.adapters.db.session import Database
from app.adapters.db.tables import meta
from app.core.verdict import ConfirmBy, ConfirmRule
from app.ports import Project, Weighing

PROJECTED_BY = "projected-by"
"""The key in `meta` that says which rules and settings made the maintained states."""

NOTED = "weighing-events"
"""The key in `meta` whose value is the `seq` of each event, with spaces between."""


def reproject(
    database: Database,
    connection: Connection,
    mark: str,
    *,
    project: Project,
    weighing: Weighing,
    allowlist_sha256: str | None,
) -> bool:
    """Compute every recipe anew when other rules or settings made what is there; see the port."""
    database.lock(connection, [], whole=True)
    if _read(connection, PROJECTED_BY) == mark:
        return False
    require_in_force(connection, allowlist_sha256)
    data = {
        "mark": mark,
        "confirmBy": weighing.rule.by.value,
        "threshold": weighing.rule.threshold,
        "agedAfterDays": weighing.rule.aged_after_days,
    }
    seq = events.append(database, connection, events.WEIGHED, weighing.since, data)
    _write(connection, NOTED, " ".join((*_noted(connection), str(seq))))
    _write(connection, PROJECTED_BY, mark)
    for recipe in known_recipes(connection):
        refresh(connection, recipe, project)
    return True


def every(connection: Connection) -> tuple[Weighing, ...]:
    """The settings of each event, oldest first."""
    noted = [int(seq) for seq in _noted(connection)]
    return tuple(Weighing(_rule(event.data), event.at) for event in events.named(connection, noted))


def _rule(data: Mapping[str, object]) -> ConfirmRule:
    threshold, aged_after_days = (int(str(data[key])) for key in ("threshold", "agedAfterDays"))
    return ConfirmRule(ConfirmBy(str(data["confirmBy"])), threshold, aged_after_days)


def _noted(connection: Connection) -> list[str]:
    return (_read(connection, NOTED) or "").split()


def _read(connection: Connection, key: str) -> str | None:
    return connection.scalar(sa.select(meta.c.value).where(meta.c.key == key))


def _write(connection: Connection, key: str, value: str) -> None:
    statement = events.insert(connection, meta).values(key=key, value=value)
    connection.execute(
        statement.on_conflict_do_update(index_elements=["key"], set_={"value": statement.excluded.value})
    )
