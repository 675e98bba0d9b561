"""What reads and ingests cost, in statements and plans: neither grows with what is stored beside the recipe."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from app.adapters.db.session import Database
from app.adapters.db.store import SqlEvidenceStore
from app.core.bundle import Run
from app.core.catalogue import CatalogueVersion
from app.core.identity import GITHUB_OAUTH_ISSUER, SignerIdentity
from app.ports import RecordFilter
from tests.support.queries import full_scans, recorded
from tests.support.stored_runs import DEV_ONE, OCTOCAT, RECIPE, WORKFLOW, at, hexed, make_run, received
from tests.support.stores import RULES, SQL_KINDS, open_database

SIGNERS = (WORKFLOW, OCTOCAT, DEV_ONE)


@pytest.fixture(params=SQL_KINDS)
def database(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Database]:
    with open_database(request.param, tmp_path) as opened:
        yield opened


@pytest.fixture
def store(database: Database) -> SqlEvidenceStore:
    return SqlEvidenceStore(database)


def keep(store: SqlEvidenceStore, run: Run) -> None:
    store.keep(run, received(run), project=RULES.project, classify=RULES.classify)


def fill(store: SqlEvidenceStore, first: int, last: int) -> None:
    """Runs of the recipe and, for each, one of another recipe."""
    for number in range(first, last):
        keep(store, make_run(number, SIGNERS[number % 3]))
        keep(store, make_run(number + 1000, SIGNERS[number % 3], recipe=f"recipe-{number}"))


def cost(database: Database, work: Callable[[], object]) -> int:
    with recorded(database) as statements:
        work()
    return len(statements)


def test_reading_a_recipe_costs_the_same_after_a_longer_history(database: Database, store: SqlEvidenceStore) -> None:
    version = CatalogueVersion(RECIPE, hexed("legacy"), hexed("recipe"), at(1), text="name: x\n")
    store.put_catalogue([version], replace=False, project=RULES.project)
    fill(store, 1, 4)
    few = cost(database, lambda: store.inputs(RECIPE))
    fill(store, 4, 20)
    assert cost(database, lambda: store.inputs(RECIPE)) == few == 12
    found = store.inputs(RECIPE)
    assert found is not None
    assert len(found.runs) == 3


def test_an_ingest_costs_the_same_after_a_longer_history(database: Database, store: SqlEvidenceStore) -> None:
    fill(store, 1, 4)
    few = cost(database, lambda: keep(store, make_run(500)))
    fill(store, 4, 20)
    assert cost(database, lambda: keep(store, make_run(501))) == few
    assert few <= 37


def test_a_crowd_of_strangers_costs_the_others_nothing(database: Database, store: SqlEvidenceStore) -> None:
    """However many strangers report on a recipe, under whatever print: what is read stays the same."""
    fill(store, 1, 4)
    shared = make_run(1).prints

    def crowd(first: int, last: int) -> None:
        for number in range(first, last):
            stranger = SignerIdentity(GITHUB_OAUTH_ISSUER, f"stranger-{number}@example.org")
            recipe = RECIPE if number % 2 else f"recipe-{number}"
            keep(store, make_run(number, stranger, recipe=recipe, prints=shared))

    def read() -> tuple[int, int, int]:
        statements = cost(database, lambda: store.inputs(RECIPE))
        found = store.inputs(RECIPE)
        assert found is not None
        return statements, len(found.runs), len(found.sightings)

    crowd(100, 180)
    few, before = cost(database, lambda: keep(store, make_run(500, prints=shared))), read()
    crowd(200, 280)
    assert cost(database, lambda: keep(store, make_run(501, prints=shared))) == few
    assert read() == before
    assert before[1:] == (28, 6)
    found = store.inputs(RECIPE)
    assert found is not None
    assert found.strangers_left_out == 55


def test_a_repeat_reads_and_writes_nothing(database: Database, store: SqlEvidenceStore) -> None:
    keep(store, make_run(1))
    with recorded(database) as statements:
        keep(store, make_run(1))
    assert len(statements) <= 9
    assert all(statement.lstrip().startswith("SELECT") for statement, _ in statements)


def test_a_page_of_records_costs_two_statements(database: Database, store: SqlEvidenceStore) -> None:
    fill(store, 1, 6)
    for limit in (1, 10):
        assert cost(database, lambda limit=limit: store.records(RecordFilter(), after=None, limit=limit)) == 2


def test_revisions_cost_one_statement(database: Database, store: SqlEvidenceStore) -> None:
    fill(store, 1, 3)
    assert cost(database, lambda: store.revision(RECIPE)) == 1
    assert cost(database, store.state_revision) == 1
    assert cost(database, store.summaries) == 1


@pytest.mark.parametrize("database", ["sqlite"], indirect=True)
class TestPlans:
    def test_a_recipe_is_read_through_indexes(self, database: Database, store: SqlEvidenceStore) -> None:
        fill(store, 1, 6)
        with recorded(database) as statements:
            store.inputs(RECIPE)
            store.revision(RECIPE)
            store.records_of(make_run(1).digest)
            store.find_by_signature(make_run(1).digest, make_run(1).signature_sha256)
            store.knows(make_run(1).digest, make_run(1).signature_sha256)
            store.source(OCTOCAT.slug)
        assert full_scans(database, statements) == []

    def test_an_ingest_runs_through_indexes(self, database: Database, store: SqlEvidenceStore) -> None:
        fill(store, 1, 6)
        with recorded(database) as statements:
            keep(store, make_run(500))
            store.add_location(make_run(1).digest, received(make_run(1), at=at(99)))
        assert full_scans(database, statements) == []

    def test_lists_by_recipe_source_and_party_run_through_indexes(
        self, database: Database, store: SqlEvidenceStore
    ) -> None:
        fill(store, 1, 6)
        with recorded(database) as statements:
            for where in (
                RecordFilter(recipe=RECIPE),
                RecordFilter(source=OCTOCAT.slug),
                RecordFilter(party="github:octocat"),
                RecordFilter(digest=str(make_run(1).digest)),
            ):
                store.records(where, after=10, limit=2)
        assert full_scans(database, statements) == []

    def test_a_scan_is_seen(self, database: Database, store: SqlEvidenceStore) -> None:
        with recorded(database) as statements:
            store.records(RecordFilter(k8s="1.33"), after=None, limit=2)
            store.summaries()
        assert [line.partition(":")[0] for line in full_scans(database, statements)] == [
            "SCAN records",
            "SCAN recipe_state",
        ]
