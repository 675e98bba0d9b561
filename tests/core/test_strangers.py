"""A crowd of strangers fills no page and hides nobody (trust 6)."""

import pytest

from app.core.strangers import MAX_REPORTED_ROWS, MAX_STRANGERS
from app.core.verdict import RecipeVerdict, State
from tests.support.runs import CHECK, listing, make_run, person, verdict_of, version

ANN, BOB = person("ann"), person("bob")
CROWD = [make_run(person(f"stranger{number}"), days=1 + number / 100) for number in range(MAX_STRANGERS + 7)]


def left_out(verdict: RecipeVerdict) -> dict[str, str]:
    return next((dict(one.data) for one in verdict.remarks if one.code == "strangers-left-out"), {})


def test_only_the_newest_strangers_are_shown_and_the_rest_is_told() -> None:
    found = verdict_of([*CROWD, make_run(ANN, days=400)], ANN)
    slugs = {source.source for source in found.sources}
    assert slugs == {ANN.slug, *(run.source for run in CROWD[:MAX_STRANGERS])}
    assert (found.state, found.reported) == (State.SINGLE, MAX_STRANGERS)
    assert left_out(found) == {"sources": "7", "checks": "0"}


def test_as_many_as_are_shown_leave_nobody_out() -> None:
    assert left_out(verdict_of(CROWD[:MAX_STRANGERS])) == {}


def test_the_order_of_a_crowd_changes_nothing() -> None:
    assert verdict_of(CROWD) == verdict_of(list(reversed(CROWD)))


def test_a_crowd_hides_no_failure_of_a_signer_that_was_removed() -> None:
    failed = make_run(BOB, "failed", days=300)
    found = verdict_of([*CROWD, failed, make_run(ANN)], ANN, earlier=[listing(ANN, BOB)])
    assert BOB.slug in {source.source for source in found.sources}
    assert "failure-of-removed-signer" in {remark.code for remark in found.remarks}


def test_checks_that_only_strangers_report_are_bounded() -> None:
    """Declared checks and those of listed sources are shown whatever their names sort after."""
    invented = {("deployment", f"a-{number:04d}"): "passed" for number in range(MAX_REPORTED_ROWS + 30)}
    flood = make_run(person("flood"), {**invented, CHECK: "passed"})
    own = make_run(ANN, {CHECK: "passed", ("deployment", "zz-own"): "passed"})
    found = verdict_of([flood, own], ANN, catalogue=[version(declared=[("performance", "zz-declared")])])
    names = [row.name for row in found.combined.rows]
    assert len(names) == MAX_REPORTED_ROWS + 3
    assert {CHECK[1], "zz-own", "zz-declared"} <= set(names)
    assert left_out(found) == {"sources": "0", "checks": "30"}
    assert next(row.reported for row in found.combined.rows if row.name == CHECK[1]) == 1


@pytest.mark.parametrize("listed", [True, False])
def test_a_list_decides_who_is_of_the_crowd(*, listed: bool) -> None:
    """A change of the list alone brings everybody back."""
    everybody = [run.signer for run in CROWD]
    found = verdict_of(CROWD, *(everybody if listed else ()))
    assert len(found.sources) == (len(CROWD) if listed else MAX_STRANGERS)
