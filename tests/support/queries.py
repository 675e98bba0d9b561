"""Counts the statements that a piece of work sends to a database."""

from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy import event

from app.adapters.db.session import Database

_CONTROL = ("BEGIN", "PRAGMA", "SET LOCAL", "SAVEPOINT", "COMMIT")


@contextmanager
def recorded(database: Database) -> Iterator[list[str]]:
    """The statements sent while the context is open, transaction control left out."""
    statements: list[str] = []

    def note(_connection: object, _cursor: object, statement: str, *_rest: object) -> None:
        if not statement.startswith(_CONTROL):
            statements.append(statement)

    event.listen(database.engine, "before_cursor_execute", note)
    try:
        yield statements
    finally:
        event.remove(database.engine, "before_cursor_execute", note)
