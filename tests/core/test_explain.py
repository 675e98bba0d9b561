"""What would make a recipe CONFIRMED: sentences and data."""

from dataclasses import replace

import pytest

from app.core.bundle import Run
from app.core.coordinate import Criteria
from app.core.explain import fewest_passes, k_of_n, missing_for
from app.core.identity import GithubClaims, SignerIdentity
from app.core.latest import sightings_of
from app.core.verdict import ConfirmBy, ConfirmRule, Missing, RecipeVerdict
from tests.support.runs import (
    CHECK,
    GHO,
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
OCTO = SignerIdentity(GHO, "1234567+octocat@users.noreply.github.com")
OCTO_CI = workflow(
    path="https://github.com/octocat/x/.github/workflows/w.yaml",
    claims=GithubClaims(source_owner="https://github.com/octocat", source_owner_id="1234567"),
)
GKE = Criteria("gke", "h100", "cos", "training")
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


def test_a_copy_that_passed_would_count_with_a_run_of_its_own() -> None:
    prints = [("ctrf", "one")]
    found = only(verdict_of([make_run(ANN, days=5, prints=prints), make_run(BOB, prints=prints)], ANN, BOB))
    assert found.message == (
        f"one more signer for {NAME} (1 of 2); {called(BOB)} passed, not counted:"
        " its run shares its data with another source's"
    )


def test_a_retracted_pass_would_count_with_a_new_run() -> None:
    taken = make_run(BOB)
    found = only(
        verdict_of([make_run(ANN), taken], ANN, BOB, retracted={(taken.digest, taken.source_id): "wrong cluster"})
    )
    assert found.message.endswith(f"; {called(BOB)} passed, not counted: the record is retracted")


def test_nobody_is_called_close_who_is_counted_already() -> None:
    branch = workflow("refs/heads/x")
    runs = [make_run(workflow()), make_run(branch), make_run(STRANGER)]
    assert only(verdict_of(runs, patterns=[PATTERN])).message == (
        f"one more signer for {NAME} (1 of 2); source {STRANGER.slug[:8]}… passed and is not on the allowlist"
    )
    house = verdict_of([make_run(OCTO), make_run(OCTO_CI)], OCTO, OCTO_CI, by=ConfirmBy.PARTY)
    assert only(house).message == f"one more party for {NAME} (1 of 2)"


def test_of_several_that_are_close_the_newest_is_named() -> None:
    days = {ANN: 900, BOB: 1, CY: 500}
    runs = [make_run(who, days=age, recipe_digest=OLDER) for who, age in days.items()]
    found = only(verdict_of(runs, *days, catalogue=[version(OLDER), version()]))
    assert found.source == BOB.slug
    one = only(verdict_of([*runs, make_run(STRANGER)], *days, catalogue=[version(OLDER), version(declared=[CHECK])]))
    assert one.message.endswith(f": two are needed; {called(BOB)} is 1 day old and attests an older digest")


def test_a_row_that_every_source_skipped_says_why_and_asks_for_nobody() -> None:
    runs = [make_run(ANN, "skipped", skip_reason="no-gpu-nodes"), make_run(BOB, "skipped")]
    assert only(verdict_of(runs, ANN, BOB)) == Missing(
        code="skipped",
        message=f"every source skipped {NAME}: no-gpu-nodes, reason not recorded; nobody is asked for it",
        phase="deployment",
        name="operator-health",
    )


@pytest.mark.parametrize(
    ("runs", "why"),
    [
        pytest.param(
            [make_run(STRANGER, "skipped", skip_reason="keep out")],
            "no listed signer has a result",
            id="only-a-stranger",
        ),
        pytest.param(
            [make_run(ANN, "skipped"), make_run(STRANGER, "failed")], "no listed signer has a result", id="stranger-ran"
        ),
        pytest.param(
            [make_run(workflow(), "skipped"), make_run(workflow("refs/heads/x"), "failed")],
            "no result of a listed signer counts",
            id="branch-ran",
        ),
    ],
)
def test_a_check_that_somebody_ran_or_only_a_stranger_skipped_is_asked_for(runs: list[Run], why: str) -> None:
    found = only(verdict_of(runs, ANN, patterns=[PATTERN], catalogue=[version(declared=[CHECK])]))
    assert (found.code, found.needed) == ("untested", 2)
    assert found.message == f"{why} for {NAME}: two are needed"


@pytest.mark.parametrize(
    ("older", "code", "message"),
    [
        pytest.param(
            "passed",
            "untested",
            f"no listed signer has a result for {NAME}: two are needed;"
            f" {called(ANN)} is 9 days old and attests an older digest",
            id="passed-before",
        ),
        pytest.param(
            "skipped",
            "skipped",
            f"every source skipped {NAME}: no-gpu-nodes; nobody is asked for it",
            id="skipped-before",
        ),
    ],
)
def test_a_skipped_check_of_todays_recipe_is_asked_for_when_an_older_one_was_run(
    older: str, code: str, message: str
) -> None:
    runs = [
        make_run(ANN, older, days=9, recipe_digest=OLDER, skip_reason="no-gpu-nodes"),
        make_run(BOB, "skipped", skip_reason="no-gpu-nodes"),
    ]
    found = only(verdict_of(runs, ANN, BOB, catalogue=[version(OLDER, legacy=OLDER), version()]))
    assert (found.code, found.message) == (code, message)


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
        f"{NAME} fails for everyone who counts: a newer passing run by {called(ANN)}, and one more signer"
    )
    assert (found.code, found.needed, found.have, found.source) == ("failing", 2, 0, ANN.slug)
    both = only(verdict_of([make_run(ANN, "failed"), make_run(BOB, "failed")], ANN, BOB))
    names = [called(who) for who in sorted((ANN, BOB), key=lambda who: who.slug)]
    assert both.message == f"{NAME} fails for everyone who counts: a newer passing run by {names[0]} and {names[1]}"


def test_a_contested_row_names_who_failed() -> None:
    found = only(verdict_of([make_run(ANN), make_run(BOB), make_run(CY, "failed")], ANN, BOB, CY))
    assert found.message == f"{NAME} is contested, 2 passed and 1 failed: a newer passing run by {called(CY)}"
    assert (found.code, found.needed, found.have, found.source) == ("contested", 1, 2, CY.slug)


def test_failures_that_wait_behind_a_counted_one_are_named_too() -> None:
    prints = [("snapshot", "one")]
    copied = [make_run(ANN, "failed", days=5, prints=prints), make_run(BOB, "failed", days=4, prints=prints)]
    found = only(verdict_of([*copied, make_run(CY)], ANN, BOB, CY))
    first, second = sorted((ANN, BOB), key=lambda who: who.slug)
    assert found.message == (
        f"{NAME} is contested, 1 passed and 1 failed: a newer passing run by {called(first)} and {called(second)}"
    )
    assert (found.needed, found.have) == (2, 1)
    runs = [make_run(OCTO, "failed"), make_run(OCTO_CI, "failed"), make_run(BOB)]
    house = only(verdict_of(runs, OCTO, OCTO_CI, BOB, by=ConfirmBy.PARTY))
    first, second = sorted((OCTO, OCTO_CI), key=lambda who: who.slug)
    assert house.message.endswith(f"a newer passing run by {called(first)} and {called(second)}")
    assert (house.needed, house.have) == (2, 1)


def test_what_is_left_after_the_newer_runs_is_counted_as_the_rule_counts() -> None:
    house = only(verdict_of([make_run(OCTO), make_run(OCTO_CI, "failed")], OCTO, OCTO_CI, by=ConfirmBy.PARTY))
    assert house.message.endswith(f"a newer passing run by {called(OCTO_CI)}, and one more party")
    assert house.needed == 2
    three = only(verdict_of([make_run(ANN), make_run(BOB, "failed")], ANN, BOB, threshold=3))
    assert three.message.endswith(f"a newer passing run by {called(BOB)}, and one more signer")
    assert three.needed == 2


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


def test_runs_of_listed_signers_that_do_not_count_are_not_called_missing() -> None:
    earlier = make_run(ANN, days=3, criteria=GKE, prints=[("snapshot", "one")])
    copy = make_run(BOB, prints=[("snapshot", "one")])
    assert only(verdict_of([copy], ANN, BOB, sightings=sightings_of(earlier))) == Missing(
        "no-evidence",
        "no run of a listed signer counts for this recipe: two are needed; the run of "
        f"{called(BOB)} is not counted: its run shares its data with another source's",
        needed=2,
        source=BOB.slug,
        digest=str(copy.digest),
    )
    assert only(verdict_of([make_run(ANN, {})], ANN)).message == (
        "no run of a listed signer counts for this recipe: two are needed"
    )
    runs = [make_run(workflow(), recipe_digest=OLDER), make_run(workflow("refs/heads/x"))]
    assert only(verdict_of(runs, patterns=[PATTERN], catalogue=[version(OLDER), version()])).message == (
        "no run of a listed signer counts for today's recipe: two are needed; the run of "
        f"{called(workflow('refs/heads/x'), 'first-party')} is not counted: another ref speaks for its workflow"
    )


def test_a_recipe_of_which_the_catalogue_declares_no_check_can_not_be_confirmed() -> None:
    runs = [make_run(ANN), make_run(BOB)]
    assert verdict_of(runs, ANN, BOB, catalogue=[version(declared=[])]).missing == (
        Missing("nothing-declared", "the catalogue declares no check of today's recipe, so none can be confirmed"),
    )


def test_a_strict_grid_says_what_it_misses_itself() -> None:
    runs = [make_run(ANN, days=9), make_run(BOB), make_run(CY, days=2, version="v2.0.0")]
    verdict = verdict_of(runs, ANN, BOB, CY)
    newer, older = verdict.versions
    assert (verdict.missing, missing_for(verdict, older)) == ((), ())
    assert missing_for(verdict, newer)[0].message == (
        f"one more signer for {NAME} (1 of 2); {called(BOB)} is 1 day old and ran AICR v1.0.0"
    )
    empty = replace(newer, aicr_version="v3.0.0", rows=())
    assert missing_for(verdict, empty)[0].message == (
        "no listed signer has run this recipe with AICR v3.0.0: two are needed; "
        f"{called(BOB)} is 1 day old and ran AICR v1.0.0"
    )


def test_k_of_n() -> None:
    found = verdict_of([make_run(ANN, {CHECK: "passed", DRA: "passed"}), make_run(BOB)], ANN, BOB)
    assert k_of_n(row_of(found), ConfirmRule()) == "2 of 2"
    assert k_of_n(row_of(found, DRA), ConfirmRule(threshold=3)) == "1 of 3"
    assert fewest_passes(found.combined) == 1
    assert fewest_passes(verdict_of([]).combined) == 0
