"""What would make a recipe CONFIRMED: sentences and data."""

import pytest

from app.core.explain import fewest_passes, headline, k_of_n
from app.core.verdict import ConfirmBy, ConfirmRule, Missing, RecipeVerdict
from tests.support.runs import (
    CHECK,
    OLDER,
    PATTERN,
    make_run,
    person,
    row_of,
    verdict_of,
    version,
    workflow,
)

ANN, BOB, CY = person("ann"), person("bob"), person("cy")
STRANGER = person("stranger")
DRA = ("conformance", "dra-support")
NAME = "`deployment/operator-health`"


def only(verdict: RecipeVerdict) -> Missing:
    (found,) = verdict.missing
    return found


def called(signer: object, kind: str = "community") -> str:
    return f"{kind} source {signer.slug[:8]}…"  # type: ignore[attr-defined]


def test_a_confirmed_recipe_misses_nothing() -> None:
    assert verdict_of([make_run(ANN), make_run(BOB)], ANN, BOB).missing == ()
    current = verdict_of([make_run(ANN), make_run(BOB)], ANN, BOB, catalogue=[version(declared=[CHECK])])
    assert current.missing == ()


def test_nobody_ran_it() -> None:
    assert verdict_of([], ANN).missing == (
        Missing("no-evidence", "no listed signer has run this recipe: two are needed", needed=2, have=0),
    )


def test_nobody_ran_todays_recipe() -> None:
    found = only(verdict_of([make_run(ANN, days=41, recipe_digest=OLDER)], ANN, catalogue=[version(OLDER), version()]))
    assert found.message == (
        "no listed signer has run today's recipe: two are needed; "
        f"{called(ANN)} is 41 days old and attests an older digest"
    )
    assert (found.code, found.source) == ("no-evidence", ANN.slug)


def test_one_more_signer_is_asked_for_and_the_nearest_one_is_named() -> None:
    old = make_run(BOB, {DRA: "passed"}, days=41, recipe_digest=OLDER)
    runs = [make_run(ANN, {DRA: "passed"}), old]
    found = only(verdict_of(runs, ANN, BOB, catalogue=[version(OLDER), version()]))
    assert found == Missing(
        code="more-signers",
        message=(
            "one more signer for `conformance/dra-support` (1 of 2); "
            f"{called(BOB)} is 41 days old and attests an older digest"
        ),
        phase="conformance",
        name="dra-support",
        needed=1,
        have=1,
        source=BOB.slug,
        digest=str(old.digest),
    )


def test_a_digest_that_was_never_published_is_called_that() -> None:
    runs = [make_run(ANN), make_run(BOB, recipe_digest=OLDER)]
    message = only(verdict_of(runs, ANN, BOB, catalogue=[version()])).message
    assert message.endswith(f"{called(BOB)} is 1 day old and attests a digest that was never published")


def test_hardware_that_does_not_match_is_named() -> None:
    runs = [make_run(ANN), make_run(BOB, days=2, hardware_matched=False)]
    message = only(verdict_of(runs, ANN, BOB, catalogue=[version()])).message
    assert message.endswith(f"{called(BOB)} is 2 days old and ran on hardware that does not match")


@pytest.mark.parametrize(
    ("by", "threshold", "words"),
    [
        (ConfirmBy.SIGNER, 2, "one more signer for"),
        (ConfirmBy.SIGNER, 4, "three more signers for"),
        (ConfirmBy.PARTY, 2, "one more party for"),
        (ConfirmBy.PARTY, 9, "8 more parties for"),
    ],
)
def test_the_rule_decides_what_is_asked_for(by: ConfirmBy, threshold: int, words: str) -> None:
    found = only(verdict_of([make_run(ANN)], ANN, by=by, threshold=threshold))
    assert found.message == f"{words} {NAME} (1 of {threshold})"
    assert (found.needed, found.have) == (threshold - 1, 1)


def test_a_stranger_that_passed_is_named_last() -> None:
    found = only(verdict_of([make_run(ANN), make_run(STRANGER)], ANN))
    assert found.message == (
        f"one more signer for {NAME} (1 of 2); source {STRANGER.slug[:8]}… passed and is not on the allowlist"
    )


@pytest.mark.parametrize(
    ("weight", "why"),
    [
        ("copy", "its run shares its data with another source's"),
        ("branch", "another ref of the same workflow speaks"),
    ],
)
def test_a_pass_without_weight_says_why(weight: str, why: str) -> None:
    if weight == "copy":
        prints = [("ctrf", "one")]
        found = only(verdict_of([make_run(ANN, days=5, prints=prints), make_run(BOB, prints=prints)], ANN, BOB))
        who = called(BOB)
    else:
        branch = workflow("refs/heads/x")
        found = only(verdict_of([make_run(workflow()), make_run(branch)], patterns=[PATTERN]))
        who = called(branch, "first-party")
    assert found.message == f"one more signer for {NAME} (1 of 2); {who} passed, not counted: {why}"


def test_a_row_that_every_source_skipped_says_why_and_asks_for_nobody() -> None:
    runs = [make_run(ANN, "skipped", skip_reason="no-gpu-nodes"), make_run(BOB, "skipped")]
    assert only(verdict_of(runs, ANN, BOB)) == Missing(
        code="skipped",
        message=f"every source skipped {NAME}: no-gpu-nodes, reason not recorded; nobody is asked for it",
        phase="deployment",
        name="operator-health",
    )


def test_a_declared_check_that_nobody_ran_is_asked_for() -> None:
    runs = [make_run(ANN), make_run(BOB)]
    found = only(verdict_of(runs, ANN, BOB, catalogue=[version(declared=[CHECK, DRA])]))
    assert (found.code, found.needed, found.message) == (
        "untested",
        2,
        "no listed signer has a result for `conformance/dra-support`: two are needed",
    )


def test_a_failing_row_names_who_has_to_pass() -> None:
    found = only(verdict_of([make_run(ANN, "failed")], ANN))
    assert found.message == (
        f"{NAME} fails for everyone who ran it: a newer passing run by {called(ANN)}, and one more signer"
    )
    assert (found.code, found.needed, found.have, found.source) == ("failing", 2, 0, ANN.slug)
    both = only(verdict_of([make_run(ANN, "failed"), make_run(BOB, "failed")], ANN, BOB))
    names = [called(who) for who in sorted((ANN, BOB), key=lambda who: who.slug)]
    assert both.message == f"{NAME} fails for everyone who ran it: a newer passing run by {names[0]} and {names[1]}"


def test_a_contested_row_names_who_failed() -> None:
    found = only(verdict_of([make_run(ANN), make_run(BOB), make_run(CY, "failed")], ANN, BOB, CY))
    assert found.message == f"{NAME} is contested, 2 passed and 1 failed: a newer passing run by {called(CY)}"
    assert (found.code, found.needed, found.have, found.source) == ("contested", 1, 2, CY.slug)


def test_many_failing_sources_are_counted_not_listed() -> None:
    people = [person(f"p{index}") for index in range(6)]
    found = only(verdict_of([make_run(one, "failed") for one in people], *people))
    assert found.message.count("source") == 3
    assert found.message.endswith(" and 3 more")


def test_rows_of_strangers_are_not_asked_for() -> None:
    runs = [make_run(ANN), make_run(BOB), make_run(STRANGER, {DRA: "passed"})]
    assert verdict_of(runs, ANN, BOB).missing == ()


def test_no_sentence_quotes_an_address() -> None:
    runs = [make_run(ANN, "failed"), make_run(STRANGER), make_run(BOB, {DRA: "passed"}, recipe_digest=OLDER)]
    verdict = verdict_of(runs, ANN, BOB, catalogue=[version(declared=[CHECK, DRA])])
    assert verdict.missing
    assert not any("@" in item.message for item in verdict.missing)


def test_headline_counts_confirmed_checks() -> None:
    runs = [make_run(ANN, {CHECK: "passed", DRA: "passed"}), make_run(BOB, recipe_digest=OLDER)]
    assert headline(verdict_of([], ANN)) == "UNTESTED: no listed signer has run this recipe"
    assert headline(verdict_of(runs, ANN, BOB)) == "SINGLE: 1 of 2 checks are confirmed"
    runs = [make_run(ANN), make_run(BOB, recipe_digest=OLDER)]
    assert headline(verdict_of(runs, ANN, BOB, catalogue=[version()])) == (
        "CONFIRMED: 1 of 1 checks are confirmed; for today's recipe it is SINGLE"
    )


def test_k_of_n() -> None:
    found = verdict_of([make_run(ANN, {CHECK: "passed", DRA: "passed"}), make_run(BOB)], ANN, BOB)
    assert k_of_n(row_of(found), ConfirmRule()) == "2 of 2"
    assert k_of_n(row_of(found, DRA), ConfirmRule(threshold=3)) == "1 of 3"
    assert fewest_passes(found.combined) == 1
    assert fewest_passes(verdict_of([]).combined) == 0
