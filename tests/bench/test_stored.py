"""A generated store holds what its shape says, and says the same after every projection was made anew."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from app.adapters.db.session import Database
from app.adapters.db.store import SqlEvidenceStore
from app.bench.stored import NEWEST_RUNS, SIGNERS, Shape, fill, generated_run, recipe_name
from app.ports import Received, RecordFilter
from tests.support.runs import NOW
from tests.support.stores import Rules, allowlist_text, open_database

*LISTED, _STRANGER = SIGNERS
RULES = Rules(allowlist_text(*LISTED))
SHAPE = Shape(recipes=2, depth=3, results=5)


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    with open_database("sqlite", tmp_path) as opened:
        fill(opened, SHAPE, project=RULES.project, classify=RULES.classify, tick=lambda: None, now=NOW)
        yield opened


def test_a_shape_counts_its_bundles_and_rows() -> None:
    assert (SHAPE.bundles, SHAPE.rows) == (108, 540)


def test_recipes_have_names_of_their_own() -> None:
    assert len({recipe_name(number) for number in range(1000)}) == 1000


def test_every_bundle_is_stored_under_its_recipe(database: Database) -> None:
    store = SqlEvidenceStore(database)
    assert [line.recipe for line in store.summaries()] == sorted([recipe_name(0), recipe_name(1)])
    found, _ = store.records(RecordFilter(recipe=recipe_name(0)), after=None, limit=500)
    assert len(found) == 54


def test_a_verdict_looks_at_as_many_runs_whatever_the_depth(database: Database) -> None:
    inputs = SqlEvidenceStore(database).inputs(recipe_name(1))
    assert inputs is not None
    assert len(inputs.runs) == NEWEST_RUNS == 16
    assert sum(inputs.run_counts.values()) == 54


def test_a_rebuild_from_the_runs_says_the_same(database: Database) -> None:
    store = SqlEvidenceStore(database)
    before = {line.recipe: line.verdict for line in store.summaries()}
    runs = [(generated_run(number, SHAPE, now=NOW), Received(NOW, "", public=True)) for number in range(SHAPE.bundles)]
    assert store.rebuild(runs, project=RULES.project, classify=RULES.classify) == 108
    assert {line.recipe: line.verdict for line in store.summaries()} == before
