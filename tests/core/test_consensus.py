"""Consensus of a row and roll-ups: corroboration 2.3, 2.8, 2.9."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.core.consensus import Vote, bucket, consensus, phase_rank, rollup, row_order
from app.core.verdict import Bucket, State


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        ("passed", Bucket.PASS),
        ("failed", Bucket.FAIL),
        ("other", Bucket.FAIL),
        ("skipped", Bucket.NOT_RUN),
        ("pending", Bucket.NOT_RUN),
        ("", Bucket.FAIL),
        ("Passed", Bucket.FAIL),
        ("passed ", Bucket.FAIL),
        ("unheard-of", Bucket.FAIL),
    ],
)
def test_statuses_fall_into_buckets_and_unknown_ones_fail(status: str, expected: Bucket) -> None:
    assert bucket(status) is expected


def votes(text: str) -> list[Vote]:
    """`A+ pass` is listed, `r fail` is not; `A pass` is the unlisted signer A."""
    found = []
    for item in filter(None, (part.strip() for part in text.split(","))):
        name, result = item.split(" ")
        found.append(Vote(name.rstrip("+"), name.endswith("+"), Bucket(result)))
    return found


K = [
    ("K01", "", "UNTESTED", 0, 0, 0),
    ("K02", "A+ pass", "SINGLE", 1, 0, 0),
    ("K03", "A+ pass, B+ pass", "CONFIRMED", 2, 0, 0),
    ("K04", "A+ pass, B+ pass, C+ pass", "CONFIRMED", 3, 0, 0),
    ("K05", "A+ pass, B+ pass, r pass", "CONFIRMED", 2, 0, 1),
    ("K06", "A+ pass, B+ pass, r fail", "CONFIRMED", 2, 0, 1),
    ("K07", "A+ pass, B+ pass, r not-run", "CONFIRMED", 2, 0, 0),
    ("K08", "A+ pass, B+ not-run", "SINGLE", 1, 0, 0),
    ("K09", "A+ pass, B+ not-run, C+ not-run", "SINGLE", 1, 0, 0),
    ("K10", "A+ pass, B+ pass, C+ not-run", "CONFIRMED", 2, 0, 0),
    ("K11", "A+ pass, B+ fail", "CONTESTED", 1, 1, 0),
    ("K12", "A+ pass, B+ fail, C+ not-run", "CONTESTED", 1, 1, 0),
    ("K13", "A+ pass, B+ pass, C+ fail", "CONTESTED", 2, 1, 0),
    ("K14", "A+ pass, B+ fail, C+ fail", "CONTESTED", 1, 2, 0),
    ("K15", "A+ fail", "FAILING", 0, 1, 0),
    ("K16", "A+ fail, B+ fail", "FAILING", 0, 2, 0),
    ("K17", "A+ fail, B+ not-run", "FAILING", 0, 1, 0),
    ("K18", "A+ fail, r pass", "FAILING", 0, 1, 1),
    ("K19", "A+ fail, r fail", "FAILING", 0, 1, 1),
    ("K20", "A+ not-run, B+ not-run", "UNTESTED", 0, 0, 0),
    ("K21", "A+ not-run", "UNTESTED", 0, 0, 0),
    ("K22", "A+ not-run, r pass", "UNTESTED", 0, 0, 1),
    ("K23", "r pass", "UNTESTED", 0, 0, 1),
    ("K24", "r fail", "UNTESTED", 0, 0, 1),
    ("K25", "r not-run", "UNTESTED", 0, 0, 0),
    ("K26", "r pass, s pass", "UNTESTED", 0, 0, 2),
    ("K27", "r pass, s fail, t not-run", "UNTESTED", 0, 0, 2),
    ("K28", "A+ pass, r pass", "SINGLE", 1, 0, 1),
    ("K29", "A+ pass, r pass, s pass, t pass", "SINGLE", 1, 0, 3),
    ("K30", "A+ pass, A+ pass, A+ pass", "SINGLE", 1, 0, 0),
    ("K31", "A+ pass, A+ fail", "SINGLE", 1, 0, 0),
    ("K32", "A+ fail, A+ pass, B+ pass", "CONTESTED", 1, 1, 0),
    ("K33", "A+ not-run, A+ pass, B+ pass", "SINGLE", 1, 0, 0),
    ("K34", "r pass, A+ pass, r fail", "SINGLE", 1, 0, 1),
    ("K35", "A+ pass, A pass", "SINGLE", 1, 0, 0),
]


@pytest.mark.parametrize(
    ("text", "state", "passes", "fails", "reported"), [pytest.param(*case[1:], id=case[0]) for case in K]
)
def test_consensus_of_a_row(text: str, state: str, passes: int, fails: int, reported: int) -> None:
    found = consensus(votes(text))
    assert (found.state.value, found.passes, found.fails, found.reported) == (state, passes, fails, reported)


R = [
    ("R01", "", "UNTESTED"),
    ("R02", "CONFIRMED", "CONFIRMED"),
    ("R03", "UNTESTED UNTESTED", "UNTESTED"),
    ("R04", "CONFIRMED SINGLE", "SINGLE"),
    ("R05", "CONFIRMED CONFIRMED UNTESTED", "PARTIAL"),
    ("R06", "SINGLE UNTESTED", "PARTIAL"),
    ("R07", "UNTESTED FAILING", "FAILING"),
    ("R08", "CONFIRMED UNTESTED FAILING", "FAILING"),
    ("R09", "CONFIRMED FAILING", "FAILING"),
    ("R10", "FAILING CONTESTED", "CONTESTED"),
    ("R11", "CONFIRMED SINGLE UNTESTED FAILING CONTESTED", "CONTESTED"),
    ("R12", "unknown CONFIRMED", "CONFIRMED"),
]


@pytest.mark.parametrize(("states", "expected"), [pytest.param(*case[1:], id=case[0]) for case in R])
def test_roll_up_is_the_worst_row(states: str, expected: str) -> None:
    assert rollup(states.split()).value == expected
    assert rollup(reversed(states.split())).value == expected


@pytest.mark.parametrize(("threshold", "state"), [(2, "CONFIRMED"), (3, "SINGLE"), (1, "CONFIRMED"), (0, "CONFIRMED")])
def test_fewer_passes_than_the_threshold_are_single(threshold: int, state: str) -> None:
    assert consensus(votes("A+ pass, B+ pass"), threshold).state.value == state


def test_a_threshold_below_two_is_two() -> None:
    assert consensus(votes("A+ pass"), 1).state is State.SINGLE


def test_phases_and_names_have_one_order() -> None:
    rows = [("performance", "a"), ("conformance", "b"), ("deployment", "z"), ("deployment", "Z"), ("extra", "a")]
    assert sorted(rows, key=row_order) == [
        ("deployment", "Z"),
        ("deployment", "z"),
        ("conformance", "b"),
        ("performance", "a"),
        ("extra", "a"),
    ]
    assert phase_rank("readiness") > phase_rank("performance")


_vote = st.builds(Vote, st.sampled_from("ABCDE"), st.booleans(), st.sampled_from(list(Bucket)))


@settings(deadline=None)
@given(st.lists(_vote), st.sampled_from(list(Bucket)))
def test_an_unlisted_vote_changes_no_state(cast: list[Vote], result: Bucket) -> None:
    before, after = consensus(cast), consensus([*cast, Vote("stranger", listed=False, result=result)])
    assert (before.state, before.passes, before.fails) == (after.state, after.passes, after.fails)
