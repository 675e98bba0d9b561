"""Writers at the same time: the end is what any order of them gives, and nobody waits for ever."""

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from app.adapters.db.session import Database
from app.adapters.db.store import SqlEvidenceStore
from app.core.bundle import Run
from app.core.errors import ConflictError
from app.core.refs import Digest
from app.ports import Kept
from tests.support.stored_runs import DEV_ONE, OCTOCAT, PASS, RECIPE, T0, WORKFLOW, hexed, make_run, received
from tests.support.stores import RULES, SQL_KINDS, Rules, allowlist_text, dump, open_database

SIGNERS = (WORKFLOW, OCTOCAT, DEV_ONE)
THREADS = 8


@pytest.fixture(params=SQL_KINDS)
def database(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Database]:
    with open_database(request.param, tmp_path) as opened:
        yield opened


def keep(store: SqlEvidenceStore, run: Run, rules: Rules = RULES) -> Kept:
    return store.keep(run, received(run), project=rules.project, classify=rules.classify)


def together(work: Sequence[Callable[[], object]]) -> list[object]:
    """Start every piece of work at the same moment; results, or the exceptions raised."""
    start = threading.Barrier(len(work))

    def run(one: Callable[[], object]) -> object:
        start.wait()
        try:
            return one()
        except Exception as err:  # noqa: BLE001 - handed to the test, which says what it expects
            return err

    with ThreadPoolExecutor(len(work)) as pool:
        return list(pool.map(run, work))


def test_ingests_of_one_recipe_end_in_the_state_of_a_rebuild(database: Database) -> None:
    store = SqlEvidenceStore(database)
    runs = [make_run(number, SIGNERS[number % 3], results=PASS) for number in range(THREADS * 3)]
    for start in range(0, len(runs), THREADS):
        kept = together([lambda run=run: keep(store, run) for run in runs[start : start + THREADS]])
        assert all(isinstance(one, Kept) and one.created for one in kept)
    assert store.revision(RECIPE) == len(runs)
    rows, line = dump(database), store.summaries()[0].verdict
    assert (line["state"], line["confirming"]) == ("CONFIRMED", 3)
    store.rebuild(((run, received(run)) for run in runs), project=RULES.project, classify=RULES.classify)
    assert dump(database) == rows


def test_the_same_bundle_many_times_is_one_record(database: Database) -> None:
    store = SqlEvidenceStore(database)
    run = make_run(1)
    kept = together([lambda: keep(store, run) for _ in range(THREADS)])
    assert sorted(one.created for one in kept if isinstance(one, Kept)) == [False] * (THREADS - 1) + [True]
    assert {one.record.id for one in kept if isinstance(one, Kept)} == {1}
    assert len(list(store.replay())) == 1


def test_one_log_entry_for_many_bundles_is_given_to_one(database: Database) -> None:
    store = SqlEvidenceStore(database)
    runs = [make_run(number, recipe=f"recipe-{number}", log=make_run(1).log) for number in range(THREADS)]
    ends = together([lambda run=run: keep(store, run) for run in runs])
    refused = [one for one in ends if isinstance(one, ConflictError)]
    assert len(refused) == THREADS - 1
    assert {one.code for one in refused} == {"LOG_ENTRY_REUSED"}
    assert len(store.summaries()) == 1


def test_copies_in_many_recipes_all_see_each_other(database: Database) -> None:
    store = SqlEvidenceStore(database)
    runs = [
        make_run(number, SIGNERS[number % 3], recipe=f"recipe-{number}", prints=make_run(1).prints, results=PASS)
        for number in range(THREADS)
    ]
    ends = together([lambda run=run: keep(store, run) for run in runs])
    assert all(isinstance(one, Kept) for one in ends)
    rows = dump(database)
    store.rebuild(((run, received(run)) for run in runs), project=RULES.project, classify=RULES.classify)
    assert dump(database) == rows


def test_an_allowlist_that_comes_between_ingests_counts_for_all(database: Database) -> None:
    store = SqlEvidenceStore(database)
    narrow = Rules(allowlist_text(), earlier=[RULES])
    store.activate_allowlist(RULES.version(T0), project=RULES.project, classify=RULES.classify)
    runs = [make_run(number, SIGNERS[number % 3], results=PASS) for number in range(THREADS)]

    def ingest(run: Run) -> object:
        """As the service does: with the list in force, again when it changed meanwhile."""
        while True:
            sha256 = store.allowlists()[-1].sha256
            rules = narrow if sha256 == narrow.version(T0).sha256 else RULES
            try:
                return store.keep(
                    run, received(run), project=rules.project, classify=rules.classify, allowlist_sha256=sha256
                )
            except ConflictError as err:
                if err.code != "ALLOWLIST_CHANGED":
                    raise

    ends = together(
        [
            *(lambda run=run: ingest(run) for run in runs),
            lambda: store.activate_allowlist(narrow.version(T0), project=narrow.project, classify=narrow.classify),
        ]
    )
    assert [one for one in ends if isinstance(one, Exception)] == []
    line = store.summaries()[0].verdict
    assert (line["state"], line["confirming"]) == ("SINGLE", 1)
    rows = dump(database)
    store.rebuild(((run, received(run)) for run in runs), project=narrow.project, classify=narrow.classify)
    assert dump(database) == rows


def test_one_of_many_gets_a_lease(database: Database) -> None:
    store = SqlEvidenceStore(database)
    digest = Digest(hexed("wanted"))
    taken = together([lambda name=name: store.lease(digest, f"holder {name}", now=T0, seconds=9) for name in range(6)])
    assert sorted(map(bool, taken)) == [False] * 5 + [True]


@pytest.mark.parametrize(("point", "kept"), [("db:row", 0), ("db:commit", 1)])
def test_a_failure_before_the_commit_leaves_nothing_and_one_after_it_everything(
    database: Database, point: str, kept: int
) -> None:
    def fail(name: str) -> None:
        if name == point:
            raise KeyboardInterrupt

    run = make_run(1)
    with pytest.raises(KeyboardInterrupt):
        keep(SqlEvidenceStore(database, failpoint=fail), run)
    store = SqlEvidenceStore(database)
    assert len(store.records_of(run.digest)) == kept
    assert len(store.summaries()) == kept
    assert len(list(store.replay())) == kept
    assert keep(store, run).created is not bool(kept)
