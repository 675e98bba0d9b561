"""Revisions: up from nothing on both databases, in agreement with the tables, and never over the wrong database."""

import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import sqlalchemy as sa

from app.adapters.db import migrate
from app.adapters.db.session import Database
from app.adapters.db.tables import metadata
from app.core.errors import ConflictError
from tests.support.stores import SQL_KINDS, empty_url


@pytest.fixture(params=SQL_KINDS)
def empty(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Database]:
    database = Database(empty_url(request.param, tmp_path))
    yield database
    database.close()


def test_an_empty_database_comes_up_to_head(empty: Database) -> None:
    assert migrate.current(empty) is None
    assert migrate.upgrade(empty, sandbox=False) == migrate.head() == "0001"
    assert migrate.current(empty) == "0001"
    assert set(sa.inspect(empty.engine).get_table_names()) == {*metadata.tables, "alembic_version"}


def test_revisions_and_tables_agree(empty: Database) -> None:
    migrate.upgrade(empty, sandbox=False)
    assert migrate.differences(empty) == ()


def test_a_table_that_no_revision_makes_is_a_difference(empty: Database) -> None:
    migrate.upgrade(empty, sandbox=False)
    with empty.engine.begin() as connection:
        connection.execute(sa.text("DROP TABLE leases"))
    (difference,) = migrate.differences(empty)
    assert "add_table" in difference


def test_every_constraint_follows_the_naming_convention(empty: Database) -> None:
    migrate.upgrade(empty, sandbox=False)
    inspector = sa.inspect(empty.engine)
    for table in metadata.tables:
        names = [str(check["name"]) for check in inspector.get_check_constraints(table)]
        names += [str(unique["name"]) for unique in inspector.get_unique_constraints(table)]
        assert all(name.startswith((f"ck_{table}_", f"uq_{table}_")) for name in names)


def test_migrating_twice_changes_nothing(empty: Database) -> None:
    migrate.upgrade(empty, sandbox=True)
    assert migrate.upgrade(empty, sandbox=True) == migrate.head()


@pytest.mark.parametrize("sandbox", [True, False])
def test_either_mode_refuses_the_database_of_the_other(empty: Database, *, sandbox: bool) -> None:
    migrate.upgrade(empty, sandbox=sandbox)
    migrate.require_head(empty, sandbox=sandbox)
    for refuse in (migrate.upgrade, migrate.require_head):
        with pytest.raises(ConflictError) as refused:
            refuse(empty, sandbox=not sandbox)
        assert refused.value.code == "DATABASE_MODE"


def test_a_server_does_not_run_on_an_unmigrated_database(empty: Database) -> None:
    with pytest.raises(ConflictError) as refused:
        migrate.require_head(empty, sandbox=False)
    assert refused.value.code == "DATABASE_NOT_MIGRATED"
    assert refused.value.message == "the database is at revision none, expected 0001"


def test_a_database_of_a_newer_release_is_left_alone(empty: Database) -> None:
    migrate.upgrade(empty, sandbox=False)
    with empty.engine.begin() as connection:
        connection.execute(sa.text("UPDATE alembic_version SET version_num = '9999'"))
    with pytest.raises(ConflictError) as refused:
        migrate.upgrade(empty, sandbox=False)
    assert refused.value.code == "DATABASE_NEWER"


def test_threads_that_migrate_together_do_not_collide(empty: Database) -> None:
    with ThreadPoolExecutor(3) as pool:
        found = list(pool.map(lambda _: migrate.upgrade(empty, sandbox=False), range(3)))
    assert found == [migrate.head()] * 3
    assert migrate.differences(empty) == ()


@pytest.mark.postgres
def test_processes_that_migrate_a_server_together_do_not_collide(tmp_path: Path) -> None:
    url = empty_url("postgres", tmp_path)
    script = (
        "import sys\nfrom app.adapters.db import migrate\nfrom app.adapters.db.session import Database\n"
        "print(migrate.upgrade(Database(sys.argv[1]), sandbox=False))\n"
    )
    command = [sys.executable, "-c", script, url]
    migrators = [subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for _ in range(3)]
    ends = [migrator.communicate(timeout=60) for migrator in migrators]
    assert [(out, err) for out, err in ends] == [(f"{migrate.head()}\n", "")] * 3
