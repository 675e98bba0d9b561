"""Schema changes, only through Alembic; the revisions are in the `migrations` package, installed or not.

An embedded SQLite is brought up to date by `serve` itself, a server database by `migrate` alone (service 4).
"""

import importlib.util
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import sqlalchemy as sa
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from alembic.util import CommandError
from sqlalchemy import Connection

from app.adapters.db.session import Database, store_errors
from app.adapters.db.tables import meta, metadata
from app.core.errors import ConflictError, StoreError

MODE = "mode"
LIVE, SANDBOX = "live", "sandbox"

_one_at_a_time = threading.Lock()
"""Alembic keeps the running environment in a module; processes are kept apart by a lock of the database's own."""


def head() -> str:
    """The newest revision that this code knows."""
    revision = ScriptDirectory.from_config(_config()).get_current_head()
    if revision is None:
        raise StoreError("the migrations package has no revision")
    return revision


def current(database: Database) -> str | None:
    """The revision that the database is at; None when it is empty."""
    with _connection(database) as connection:
        return MigrationContext.configure(connection).get_current_revision()


def upgrade(database: Database, *, sandbox: bool) -> str:
    """Bring the database to `head()` and mark it as live or sandbox; returns the revision.

    Raises `ConflictError` when it is marked as the other kind or comes from a newer release.
    """
    with _one_at_a_time:
        return _upgrade(database, sandbox=sandbox)


def _upgrade(database: Database, *, sandbox: bool) -> str:
    before = current(database)
    if before is not None:
        require_mode(database, sandbox=sandbox)
    with _connection(database) as connection:
        config = _config()
        config.attributes["connection"] = connection
        try:
            command.upgrade(config, "head")
        except CommandError as err:
            raise ConflictError(
                f"the database is at revision {before}, which this release does not know",
                code="DATABASE_NEWER",
                hint="run the release that migrated it",
            ) from err
    _mark(database, SANDBOX if sandbox else LIVE)
    require_mode(database, sandbox=sandbox)
    return head()


def require_head(database: Database, *, sandbox: bool) -> None:
    """Raise `ConflictError` unless the database is at `head()` and of this kind; what a server process asks first."""
    found = current(database)
    if found != head():
        raise ConflictError(
            f"the database is at revision {found or 'none'}, expected {head()}",
            code="DATABASE_NOT_MIGRATED",
            hint="run: aicr evidence migrate",
        )
    require_mode(database, sandbox=sandbox)


def require_mode(database: Database, *, sandbox: bool) -> None:
    """Either mode refuses the other's database (service 2): `ConflictError` with the code DATABASE_MODE."""
    with database.read() as connection:
        found = connection.scalar(sa.select(meta.c.value).where(meta.c.key == MODE))
    expected = SANDBOX if sandbox else LIVE
    if found is not None and found != expected:
        raise ConflictError(
            f"expected a {expected} database, found a {found} one",
            code="DATABASE_MODE",
            hint="sandbox evidence and real evidence never share a database; set another AICR_EVIDENCE_DATABASE_URL",
        )


def differences(database: Database) -> tuple[str, ...]:
    """What autogenerate would change; empty when tables and revisions agree."""
    with _connection(database) as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": True, "compare_server_default": True})
        return tuple(repr(difference) for difference in compare_metadata(context, metadata))


def _mark(database: Database, mode: str) -> None:
    def insert(connection: Connection) -> None:
        if connection.scalar(sa.select(meta.c.value).where(meta.c.key == MODE)) is None:
            connection.execute(meta.insert().values(key=MODE, value=mode))

    database.write(insert)


@contextmanager
def _connection(database: Database) -> Iterator[Connection]:
    """A connection of its own, closed for good afterwards: the revisions change its limits."""
    with store_errors(), database.engine.connect() as connection:
        try:
            yield connection
        finally:
            connection.detach()


def _config() -> Config:
    spec = importlib.util.find_spec("migrations")
    if spec is None or not spec.submodule_search_locations:
        raise StoreError("the migrations package is not installed")
    config = Config()
    config.set_main_option("script_location", str(next(iter(spec.submodule_search_locations))).replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    return config
