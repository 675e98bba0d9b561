"""Transactions, locks, errors and constraints of the two databases."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import sqlalchemy as sa
from sqlalchemy import Connection
from sqlalchemy.exc import IntegrityError

from app.adapters.db.serve_lock import exclusive
from app.adapters.db.session import Database, parse_url
from app.adapters.db.store import SqlEvidenceStore
from app.adapters.db.tables import events, leases, locations, records, texts
from app.adapters.db.types import escape, unescape
from app.core.errors import ConflictError, InputError, StoreError
from app.ports import RecordFilter
from tests.support.stored_runs import T0, at, hexed, make_run, received
from tests.support.stores import RULES, SQL_KINDS, open_database


@pytest.fixture(params=SQL_KINDS)
def database(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Database]:
    with open_database(request.param, tmp_path) as opened:
        yield opened


def add_event(connection: Connection) -> None:
    connection.execute(events.insert().values(at=T0, kind="evidence-received", data={}))


class TestTransactions:
    def test_a_failed_write_leaves_nothing(self, database: Database) -> None:
        def work(connection: Connection) -> None:
            add_event(connection)
            raise ConflictError("changed my mind")

        with pytest.raises(ConflictError):
            database.write(work)
        with database.read() as connection:
            assert connection.scalar(sa.select(sa.func.count()).select_from(events)) == 0

    def test_a_reader_keeps_its_snapshot_while_a_writer_commits(self, database: Database) -> None:
        count = sa.select(sa.func.count()).select_from(events)
        with database.read() as reader:
            assert reader.scalar(count) == 0
            database.write(add_event)
            assert reader.scalar(count) == 0
        with database.read() as later:
            assert later.scalar(count) == 1

    def test_a_read_can_not_write_on_a_server(self, database: Database) -> None:
        if database.sqlite:  # SQLite has no such mode per transaction; nothing in this package writes in a read
            return
        with pytest.raises(StoreError), database.read() as connection:
            add_event(connection)

    def test_a_transaction_that_lost_a_race_is_run_again_from_the_start(self, database: Database) -> None:
        add_lease = leases.insert().values(digest=hexed("x"), holder="one", expires_at=T0)
        database.write(lambda connection: connection.execute(add_lease))
        tries = []

        def work(connection: Connection) -> int:
            add_event(connection)
            tries.append(1)
            if len(tries) < 3:  # what a twin that committed first looks like
                connection.execute(add_lease)
            return len(tries)

        assert database.write(work) == 3
        with database.read() as connection:
            assert connection.scalar(sa.select(sa.func.count()).select_from(events)) == 1

    def test_acknowledged_writes_are_synced_and_relaxed_ones_wait(self, tmp_path: Path) -> None:
        with open_database("sqlite", tmp_path) as database:

            def level(connection: Connection) -> object:
                return connection.scalar(sa.text("PRAGMA synchronous"))

            assert database.write(level) == 2
            assert database.write(level, relaxed=True) == 1
            assert database.write(level) == 2
            with database.read() as connection:
                assert connection.scalar(sa.text("PRAGMA journal_mode")) == "wal"
                assert connection.scalar(sa.text("PRAGMA foreign_keys")) == 1


class TestErrors:
    def test_a_server_that_is_away_is_a_retryable_store_error(self) -> None:
        database = Database("postgresql://nobody@127.0.0.1:1/none")
        store = SqlEvidenceStore(database)
        for ask in (store.ping, store.summaries, lambda: store.records(RecordFilter(), after=None, limit=1)):
            with pytest.raises(StoreError) as failed:
                ask()
            assert failed.value.retryable
            assert "127.0.0.1" not in failed.value.message

    def test_a_file_that_is_no_database_is_a_store_error(self, tmp_path: Path) -> None:
        path = tmp_path / "evidence.db"
        path.write_bytes(b"not a database, " * 100)
        database = Database(f"sqlite:///{path}")
        with pytest.raises(StoreError):
            SqlEvidenceStore(database).ping()
        database.close()

    def test_a_broken_constraint_is_not_worth_a_retry(self, database: Database) -> None:
        def work(connection: Connection) -> None:
            connection.execute(leases.insert().values(digest="not hex", holder="x", expires_at=T0))

        with pytest.raises(StoreError) as failed:
            database.write(work)
        assert not failed.value.retryable

    @pytest.mark.parametrize(
        "url",
        [
            pytest.param("mysql://host/db", id="another-database"),
            pytest.param("sqlite://", id="memory"),
            pytest.param("sqlite:///:memory:", id="memory-by-name"),
            pytest.param("no url", id="no-url"),
        ],
    )
    def test_other_urls_are_refused(self, url: str) -> None:
        with pytest.raises(InputError):
            parse_url(url)

    @pytest.mark.parametrize(
        ("url", "driver"),
        [
            ("sqlite:///./var/evidence.db", "sqlite+pysqlite"),
            ("postgresql://host/db", "postgresql+psycopg"),
            ("postgresql+psycopg://host/db", "postgresql+psycopg"),
        ],
    )
    def test_the_driver_is_ours_to_choose(self, url: str, driver: str) -> None:
        assert parse_url(url).drivername == driver


class TestConstraints:
    @pytest.mark.parametrize("table", [events, texts], ids=lambda table: str(table.name))
    @pytest.mark.parametrize("verb", ["UPDATE {} SET data = data", "DELETE FROM {}"], ids=["update", "delete"])
    def test_what_is_true_is_never_edited(self, database: Database, table: sa.Table, verb: str) -> None:
        SqlEvidenceStore(database).activate_allowlist(RULES.version(T0), project=RULES.project, classify=RULES.classify)
        with pytest.raises(StoreError) as failed:
            database.write(lambda connection: connection.execute(sa.text(verb.format(table.name))))
        assert f"{table.name} is append-only" in str(failed.value.__cause__)

    @pytest.mark.parametrize(
        "change",
        [
            pytest.param({"digest": "A" * 64}, id="digest-in-capitals"),
            pytest.param({"digest": "a" * 63}, id="short-digest"),
            pytest.param({"signature_sha256": ""}, id="no-signature"),
            pytest.param({"recipe_digest": "x"}, id="recipe-digest"),
            pytest.param({"exit": 2}, id="exit-of-a-refused-bundle"),
            pytest.param({"log_index": -1}, id="negative-log-index"),
            pytest.param({"recipe": ""}, id="no-recipe"),
            pytest.param({"source_id": "f" * 64}, id="unknown-source"),
        ],
    )
    def test_a_record_that_breaks_a_rule_is_refused(self, database: Database, change: dict[str, object]) -> None:
        run = make_run(1)
        SqlEvidenceStore(database).keep(run, received(run), project=RULES.project, classify=RULES.classify)
        with pytest.raises(StoreError) as failed:
            database.write(lambda connection: connection.execute(records.update().values(**change)))
        assert isinstance(failed.value.__cause__, IntegrityError)

    def test_a_record_needs_its_event(self, database: Database) -> None:
        run = make_run(1)
        SqlEvidenceStore(database).keep(run, received(run), project=RULES.project, classify=RULES.classify)
        with database.read() as connection:
            row = connection.execute(sa.select(records)).mappings().one()
        changes = {"id": 99, "digest": "b" * 64, "signature_sha256": "c" * 64, "log_index": 99}
        with pytest.raises(StoreError) as failed:
            database.write(lambda connection: connection.execute(records.insert().values(**{**row, **changes})))
        assert isinstance(failed.value.__cause__, IntegrityError)

    def test_a_time_without_a_zone_is_a_mistake(self, database: Database) -> None:
        with pytest.raises(StoreError):
            database.write(
                lambda connection: connection.execute(
                    locations.insert().values(
                        digest=hexed("x"),
                        reference="r",
                        first_seen=T0.replace(tzinfo=None),
                        last_seen=at(1),
                        public=True,
                    )
                )
            )


class TestText:
    @pytest.mark.parametrize(
        ("text", "stored"),
        [
            ("plain, ünïcode \U0001f600", "plain, ünïcode \U0001f600"),
            ("a\x00b", "a\x1b0000b"),
            ("\x1b0000", "\x1b001b0000"),
            ("\ud800\udfff", "\x1bd800\x1bdfff"),
        ],
    )
    def test_escaping_is_reversible(self, text: str, stored: str) -> None:
        assert escape(text) == stored
        assert unescape(stored) == text


class TestServeLock:
    def test_a_second_holder_learns_who_the_first_one_is(self, tmp_path: Path) -> None:
        url = f"sqlite:///{tmp_path / 'var' / 'evidence.db'}"
        with exclusive(url, "serve"):
            with pytest.raises(ConflictError) as refused, exclusive(url, "rebuild"):
                pass
            assert refused.value.code == "DATABASE_IN_USE"
            assert refused.value.details == {"holder": f"serve (pid {os.getpid()})"}
            assert refused.value.message == f"the database evidence.db is in use by serve (pid {os.getpid()})"
        with exclusive(url, "rebuild"):
            pass

    def test_a_killed_holder_leaves_nothing_behind(self, tmp_path: Path) -> None:
        url = f"sqlite:///{tmp_path / 'evidence.db'}"
        script = (
            "import sys, time\nfrom app.adapters.db.serve_lock import exclusive\n"
            "with exclusive(sys.argv[1], 'serve'):\n    print('held', flush=True)\n    time.sleep(60)\n"
        )
        with subprocess.Popen([sys.executable, "-c", script, url], stdout=subprocess.PIPE) as holder:
            assert holder.stdout is not None
            assert holder.stdout.readline() == b"held\n"
            with pytest.raises(ConflictError) as refused, exclusive(url, "export"):
                pass
            assert refused.value.details == {"holder": f"serve (pid {holder.pid})"}
            holder.kill()
        with exclusive(url, "export"):
            pass

    def test_a_server_database_is_not_locked(self) -> None:
        with exclusive("postgresql://host/db", "serve"), exclusive("postgresql://host/db", "rebuild"):
            pass
