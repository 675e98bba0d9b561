"""The catalogue line: how it reads at any moment without another verdict."""

from collections.abc import Sequence
from datetime import datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.core.bundle import Run
from app.core.summary import line_at, next_change, summarize
from app.core.verdict import RecipeVerdict
from tests.support.runs import NOW, listing, make_run, person, verdict_of, version

ANN, BOB, STRANGER = person("ann"), person("bob"), person("stranger")


def verdict(runs: Sequence[Run], now: datetime = NOW) -> RecipeVerdict:
    """Ann is listed, Bob was, the stranger never."""
    return verdict_of(runs, ANN, catalogue=[version()], now=now, earlier=[listing(ANN, BOB)])


@pytest.mark.parametrize(
    ("runs", "ages_at"),
    [
        pytest.param([make_run(ANN, days=30.5)], NOW + timedelta(days=0.5), id="listed"),
        pytest.param([make_run(ANN, days=31)], NOW, id="aged-to-the-moment"),
        pytest.param([make_run(ANN, days=1), make_run(BOB, days=20)], NOW + timedelta(days=11), id="removed"),
        pytest.param([make_run(ANN, days=1), make_run(STRANGER, days=20)], NOW + timedelta(days=30), id="stranger"),
        pytest.param([make_run(STRANGER, days=20)], None, id="strangers-alone"),
    ],
)
def test_a_line_says_when_its_evidence_ages(runs: list[Run], ages_at: datetime | None) -> None:
    line = summarize(verdict(runs))
    assert line["agesAt"] == (None if ages_at is None else ages_at.isoformat().replace("+00:00", "Z"))
    assert next_change(line, NOW) == (None if ages_at == NOW else ages_at)


def test_a_line_is_the_same_object_until_it_ages() -> None:
    line = summarize(verdict([make_run(ANN, days=30.5)]))
    assert line_at(line, NOW + timedelta(days=0.499)) is line
    aged = line_at(line, NOW + timedelta(days=0.5))
    assert (line["staleness"], aged["staleness"]) == ([], ["AGED"])
    assert next_change(aged, NOW + timedelta(days=0.5)) is None


def test_a_line_that_no_calendar_lets_age_never_does() -> None:
    line = summarize(verdict([make_run(ANN)]))
    assert line_at({**line, "agesAt": None}, NOW + timedelta(days=9999)) == {**line, "agesAt": None}


RUNS = st.lists(
    st.builds(
        lambda signer, quarters, old: make_run(
            signer, days=quarters / 4, **({"recipe_digest": "ab" * 32} if old else {})
        ),
        st.sampled_from([ANN, BOB, STRANGER, person("other")]),
        st.integers(0, 200),
        st.booleans(),
    ),
    max_size=5,
)


@settings(deadline=None)
@given(runs=RUNS, quarters=st.integers(-20, 250))
def test_a_kept_line_reads_at_any_moment_as_a_verdict_of_that_moment_would(runs: list[Run], quarters: int) -> None:
    then = NOW + timedelta(days=quarters / 4)
    assert line_at(summarize(verdict(runs)), then) == summarize(verdict(runs, then))
