"""Connections and transactions; the only place that knows how the two databases differ in locking.

| | SQLite | PostgreSQL |
|---|---|---|
| read | one WAL snapshot | `REPEATABLE READ`, read-only |
| write | `BEGIN IMMEDIATE`: one writer at a time | `READ COMMITTED` and advisory locks by name, see `Database.lock` |
| durable | `synchronous=FULL`; `relaxed` writes wait for the next full one | `synchronous_commit`, off when `relaxed` |

What only one process may do to an SQLite file is in `serve_lock`.
"""

import hashlib
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

import sqlalchemy as sa
from sqlalchemy import Connection, Engine, event
from sqlalchemy.engine import URL, make_url
from sqlalchemy.engine.interfaces import DBAPIConnection
from sqlalchemy.exc import DBAPIError, IntegrityError, SQLAlchemyError
from sqlalchemy.pool import ConnectionPoolEntry

from app.adapters.db.types import dump_json, load_json
from app.core.errors import InputError, StoreError
from app.core.urls import masked_url

BUSY_SECONDS = 30
"""How long a writer waits for another one before `StoreError`."""

STATEMENT_SECONDS = 60
"""How long PostgreSQL may work on one statement; a rebuild has no limit."""

RETRIES = 5
"""How often a transaction that lost a race is tried again."""

_PG_OPTIONS = (
    f"-c timezone=UTC -c lock_timeout={BUSY_SECONDS * 1000} -c statement_timeout={STATEMENT_SECONDS * 1000}"
    f" -c idle_in_transaction_session_timeout={STATEMENT_SECONDS * 1000}"
)
_LOST_RACE = {"40001", "40P01"}  # serialization failure, deadlock

Result = TypeVar("Result")


class Database:
    """One engine; every error of the driver leaves as `StoreError`."""

    def __init__(self, url: str, *, pool_size: int = 8) -> None:
        self.url = parse_url(url)
        self.sqlite = self.url.get_backend_name() == "sqlite"
        self.engine = _sqlite_engine(self.url, pool_size) if self.sqlite else _postgres_engine(self.url, pool_size)
        self._writer = threading.Lock()

    def close(self) -> None:
        """Close every idle connection."""
        self.engine.dispose()

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """A consistent snapshot."""
        options: dict[str, object] = (
            {} if self.sqlite else {"isolation_level": "REPEATABLE READ", "postgresql_readonly": True}
        )
        with store_errors(), self.engine.connect() as plain:
            connection = plain.execution_options(**options)
            with connection.begin():
                yield connection

    def write(
        self,
        work: Callable[[Connection], Result],
        *,
        relaxed: bool = False,
        patient: bool = False,
        tries: int = RETRIES,
    ) -> Result:
        """Run `work` in one transaction and commit; again from the start when it lost a race.

        `relaxed` gives up durability of this transaction alone; `patient` lifts the limits on waiting.
        """
        with store_errors():
            for left in reversed(range(tries)):
                try:
                    with self._transaction(relaxed=relaxed, patient=patient) as connection:
                        return work(connection)
                except DBAPIError as err:
                    lost = isinstance(err, IntegrityError) or getattr(err.orig, "sqlstate", None) in _LOST_RACE
                    if not left or not lost:
                        raise
        raise AssertionError("unreachable: the last try returns or raises")

    @contextmanager
    def _transaction(self, *, relaxed: bool, patient: bool) -> Iterator[Connection]:
        if not self.sqlite:
            with self.engine.connect() as connection, connection.begin():
                if relaxed:
                    connection.execute(sa.text("SET LOCAL synchronous_commit = off"))
                if patient:
                    connection.execute(sa.text("SET LOCAL statement_timeout = 0"))
                    connection.execute(sa.text("SET LOCAL lock_timeout = 0"))
                    connection.execute(sa.text("SET LOCAL idle_in_transaction_session_timeout = 0"))
                yield connection
            return
        # Threads of one process queue here; SQLite's own busy handler, which sleeps between tries, is for others.
        if not self._writer.acquire(timeout=BUSY_SECONDS * (20 if patient else 1)):
            raise StoreError(f"the database was busy for {BUSY_SECONDS} s", hint="try again in a moment")
        try:
            with self.engine.connect() as plain:
                connection = plain.execution_options(aicr_write="NORMAL" if relaxed else "FULL")
                with connection.begin():
                    yield connection
        finally:
            self._writer.release()

    def lock(self, connection: Connection, names: Sequence[str], *, whole: bool = False) -> None:
        """Hold back every other write of one of `names`, or with `whole` every other write, until the commit.

        Names are taken in one order, so two transactions that call this once never wait for each other. On SQLite a
        write transaction is alone anyway.
        """
        if self.sqlite:
            return
        mode = "" if whole else "_shared"
        connection.execute(sa.text(f"SELECT pg_advisory_xact_lock{mode}(:key)"), {"key": _lock_key("store")})
        keys = sorted({_lock_key(name) for name in names})
        if keys:
            connection.execute(
                sa.text("SELECT pg_advisory_xact_lock(key) FROM unnest(CAST(:keys AS bigint[])) AS key"),
                {"keys": keys},
            )

    def next_seq(self, connection: Connection) -> int:
        """The `seq` of an event that this transaction will append."""
        if self.sqlite:
            return int(connection.scalar(sa.text("SELECT coalesce(max(seq), 0) + 1 FROM events")) or 1)
        return int(connection.scalar(sa.text("SELECT nextval(pg_get_serial_sequence('events', 'seq'))")) or 0)


def parse_url(text: str) -> URL:
    """A database URL of one of the two kinds; raises `InputError`."""
    try:
        url = make_url(text)
        backend = url.get_backend_name()
    except (SQLAlchemyError, ValueError) as err:  # a port that is no number is a bare ValueError
        raise InputError(
            f"AICR_EVIDENCE_DATABASE_URL: expected a database URL, got {masked_url(text)[:80]!r}",
            hint="write sqlite:/// and a file, or postgresql+psycopg://user:password@host:port/database",
        ) from err
    if backend == "sqlite":
        if url.database in {None, "", ":memory:"}:
            raise InputError("expected a file in the SQLite URL", hint="sqlite:///./var/evidence.db")
        return url.set(drivername="sqlite+pysqlite")
    if backend == "postgresql":
        return url.set(drivername="postgresql+psycopg")
    raise InputError(f"expected a sqlite or postgresql URL, got {backend!r}", hint="postgresql+psycopg://host/database")


@contextmanager
def store_errors() -> Iterator[None]:
    """Turn whatever the driver raises into `StoreError`; nothing was acknowledged."""
    try:
        yield
    except IntegrityError as err:
        refused = StoreError("the database refused a row that breaks one of its constraints")
        refused.retryable = False
        raise refused from err
    except SQLAlchemyError as err:
        kind = type(getattr(err, "orig", None) or err).__name__
        raise StoreError(
            f"the database did not answer as expected ({kind})",
            hint="check that AICR_EVIDENCE_DATABASE_URL names a database that runs and lets this user in; try again",
        ) from err
    except (OverflowError, UnicodeError) as err:
        refused = StoreError("the database can not hold one of the values")
        refused.retryable = False
        raise refused from err


def _lock_key(name: str) -> int:
    return int.from_bytes(
        hashlib.sha256(f"aicr-evidence/{name}".encode("utf-8", "surrogatepass")).digest()[:8], signed=True
    )


def _postgres_engine(url: URL, pool_size: int) -> Engine:
    return sa.create_engine(
        url,
        pool_size=pool_size,
        max_overflow=pool_size,
        pool_timeout=BUSY_SECONDS,
        pool_pre_ping=True,
        json_serializer=dump_json,
        json_deserializer=load_json,
        connect_args={"connect_timeout": 10, "options": _PG_OPTIONS, "application_name": "aicr-evidence"},
    )


def _sqlite_engine(url: URL, pool_size: int) -> Engine:
    path = Path(str(url.database))
    with store_errors():
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as err:
            raise StoreError(f"can not make the directory of {path.name}: {err.strerror}") from err
    engine = sa.create_engine(
        url,
        pool_size=pool_size,
        max_overflow=pool_size * 2,
        pool_timeout=BUSY_SECONDS,
        json_serializer=dump_json,
        json_deserializer=load_json,
        connect_args={"timeout": BUSY_SECONDS, "check_same_thread": False},
    )
    event.listen(engine, "connect", _sqlite_connect)
    event.listen(engine, "begin", _sqlite_begin)
    return engine


def _sqlite_connect(connection: DBAPIConnection, _entry: ConnectionPoolEntry) -> None:
    # The driver's own transaction handling would begin late and commit early; `_sqlite_begin` does it instead.
    connection.isolation_level = None
    cursor = connection.cursor()
    # Asked first: changing the mode needs the file alone, and SQLite does not wait for that.
    if cursor.execute("PRAGMA journal_mode").fetchone() != ("wal",):
        cursor.execute("PRAGMA journal_mode=WAL")
    for pragma in ("synchronous=FULL", "foreign_keys=ON", "temp_store=MEMORY"):
        cursor.execute(f"PRAGMA {pragma}")
    cursor.close()


def _sqlite_begin(connection: Connection) -> None:
    durability = connection.get_execution_options().get("aicr_write")
    if durability is None:
        connection.exec_driver_sql("BEGIN")
        return
    connection.exec_driver_sql(f"PRAGMA synchronous={durability}")
    connection.exec_driver_sql("BEGIN IMMEDIATE")
