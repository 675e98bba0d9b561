"""What a piece of work asks of a database: its statements, and how SQLite would run them."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from sqlalchemy import event

from app.adapters.db.session import Database

_CONTROL = ("BEGIN", "PRAGMA", "SET LOCAL", "EXPLAIN")

Statement = tuple[str, Any]


@contextmanager
def recorded(database: Database) -> Iterator[list[Statement]]:
    """The statements sent while the context is open with their parameters, transaction control left out."""
    statements: list[Statement] = []

    def note(_connection: object, _cursor: object, statement: str, parameters: Any, *_rest: object) -> None:
        if not statement.startswith(_CONTROL):
            statements.append((statement, parameters[0] if isinstance(parameters, list) else parameters))

    event.listen(database.engine, "before_cursor_execute", note)
    try:
        yield statements
    finally:
        event.remove(database.engine, "before_cursor_execute", note)


def full_scans(database: Database, statements: list[Statement]) -> list[str]:
    """The tables that SQLite would read from end to end, as `table: statement`."""
    found = []
    with database.read() as connection:
        for statement, parameters in statements:
            plan = connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}", parameters).all()
            lines = [str(row[3]) for row in plan]
            # A scan of `anon_1` is one of a subquery's few rows.
            found += [f"{line}: {statement}" for line in lines if line.startswith("SCAN") and "anon_" not in line]
    return found
