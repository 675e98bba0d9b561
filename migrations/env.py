"""How Alembic meets the database: one transaction a revision, bounded waits, one migrator at a time.

`app.adapters.db.migrate` hands a connection in; from the `alembic` command the URL is AICR_EVIDENCE_DATABASE_URL.
"""

import os

import sqlalchemy as sa
from alembic import context
from sqlalchemy import Connection

from app.adapters.db.session import Database
from app.adapters.db.tables import metadata

LOCK_TIMEOUT = "4s"
"""A revision that can not have its lock soon gives up, so that it does not queue all readers behind it."""

STATEMENT_TIMEOUT = "10min"

ADVISORY_LOCK = 0x6169_6372  # any constant of our own


def run(connection: Connection) -> None:
    """Run the revisions over `connection`, which has no transaction yet."""
    postgres = connection.dialect.name == "postgresql"
    if postgres:
        connection.execute(sa.text("SELECT set_config('lock_timeout', '0', false)"))
        connection.execute(sa.text("SELECT set_config('statement_timeout', '0', false)"))
        connection.execute(sa.text("SELECT pg_advisory_lock(:key)"), {"key": ADVISORY_LOCK})
        connection.execute(sa.text("SELECT set_config('lock_timeout', :limit, false)"), {"limit": LOCK_TIMEOUT})
        connection.execute(
            sa.text("SELECT set_config('statement_timeout', :limit, false)"), {"limit": STATEMENT_TIMEOUT}
        )
        connection.commit()
    else:
        connection.execution_options(aicr_write="FULL")
    context.configure(
        connection=connection,
        target_metadata=metadata,
        transaction_per_migration=True,
        compare_type=True,
        compare_server_default=True,
        render_as_batch=not postgres,
    )
    try:
        with context.begin_transaction():
            context.run_migrations()
    finally:
        if postgres:
            connection.rollback()
            connection.execute(sa.text("SELECT pg_advisory_unlock(:key)"), {"key": ADVISORY_LOCK})
            connection.commit()


if context.is_offline_mode():
    context.configure(
        dialect_name=os.environ.get("AICR_EVIDENCE_DIALECT", "postgresql"), target_metadata=metadata, literal_binds=True
    )
    with context.begin_transaction():
        context.run_migrations()
elif (given := context.config.attributes.get("connection")) is not None:
    run(given)
else:
    database = Database(os.environ.get("AICR_EVIDENCE_DATABASE_URL", "sqlite:///./var/evidence.db"))
    with database.engine.connect() as own:
        run(own)
    database.close()
