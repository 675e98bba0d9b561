"""What one more listed signer could do to a recipe."""

import pytest

from app.core.allowlist_diff import Reach, reach_of
from app.core.verdict import State
from tests.support.runs import CHECK, RECIPE, make_run, person, verdict_of, version

ANN, BOB, EVE = person("ann"), person("bob"), person("eve")
OTHER = ("conformance", "dra-support")


@pytest.mark.parametrize(
    ("statuses", "state", "if_passed", "if_failed"),
    [
        pytest.param([], State.UNTESTED, State.SINGLE, State.FAILING, id="nobody-ran-it"),
        pytest.param(["passed"], State.SINGLE, State.CONFIRMED, State.CONTESTED, id="single"),
        pytest.param(["passed", "passed"], State.CONFIRMED, State.CONFIRMED, State.CONTESTED, id="confirmed"),
        pytest.param(["failed"], State.FAILING, State.CONTESTED, State.FAILING, id="failing"),
        pytest.param(["passed", "failed"], State.CONTESTED, State.CONTESTED, State.CONTESTED, id="contested"),
        pytest.param(["skipped"], State.UNTESTED, State.SINGLE, State.FAILING, id="skipped"),
    ],
)
def test_one_more_run_is_added_to_every_row(
    statuses: list[str], state: State, if_passed: State, if_failed: State
) -> None:
    runs = [make_run(signer, status) for signer, status in zip((ANN, BOB), statuses, strict=False)]
    assert reach_of(verdict_of(runs, ANN, BOB)) == Reach(RECIPE, state, if_passed, if_failed)


def test_a_row_that_only_the_catalogue_declares_is_in_reach() -> None:
    runs = [make_run(ANN, "passed"), make_run(BOB, "passed")]
    reach = reach_of(verdict_of(runs, ANN, BOB, catalogue=[version(declared=[CHECK, OTHER])]))
    assert (reach.state, reach.if_passed) == (State.PARTIAL, State.SINGLE)


def test_rows_of_strangers_and_a_higher_threshold_are_as_in_the_verdict() -> None:
    runs = [make_run(ANN, "passed"), make_run(EVE, {OTHER: "failed"})]
    reach = reach_of(verdict_of(runs, ANN, threshold=3))
    assert (reach.state, reach.if_passed, reach.confirms, reach.contests) == (State.SINGLE, State.SINGLE, False, True)


def test_a_recipe_that_only_strangers_ran_is_in_reach() -> None:
    reach = reach_of(verdict_of([make_run(EVE)], ANN))
    after = verdict_of([make_run(EVE), make_run(ANN)], ANN)
    assert (reach.state, reach.if_passed, reach.if_failed) == (State.UNTESTED, State.SINGLE, State.FAILING)
    assert reach.if_passed is after.state
