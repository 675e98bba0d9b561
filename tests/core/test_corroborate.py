"""The verdict of a recipe: corroboration 2, trust 6, service 5."""

from dataclasses import replace
from datetime import timedelta

import pytest

from app.core.bundle import Run
from app.core.coordinate import Coordinate, Criteria
from app.core.identity import GithubClaims, SignerIdentity
from app.core.latest import sightings_of
from app.core.summary import summarize
from app.core.verdict import Bucket, ConfirmBy, Grid, RecipeVerdict, State
from tests.support.runs import (
    CHECK,
    CRITERIA,
    GHA,
    GHO,
    LEGACY,
    NOW,
    OLDER,
    PATTERN,
    RECIPE,
    V1,
    V2,
    WORKFLOW,
    listing,
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
BANDWIDTH = ("performance", "nccl-all-reduce-bw")
CTRF = ("ctrf", "sha256:" + "c" * 64)
SNAPSHOT = ("snapshot", "sha256:" + "5" * 64)


def states(grid: Grid) -> dict[str, str]:
    return {f"{row.phase}/{row.name}": row.consensus.value for row in grid.rows}


def weights(verdict: RecipeVerdict, check: tuple[str, str] = CHECK) -> dict[str, str]:
    return {result.source: result.weight for result in row_of(verdict, check).signers}


def codes(verdict: RecipeVerdict, signer: SignerIdentity) -> list[str]:
    """Remarks of a source; all people here sign with an address of their own."""
    standing = next(one for one in verdict.sources if one.source == signer.slug)
    return [remark.code for remark in standing.remarks if remark.code != "personal-address"]


# --- upstream's scenarios --------------------------------------------------------------------------

FIRST_PARTY = workflow()


def g01_runs() -> list[Run]:
    return [
        make_run(
            FIRST_PARTY,
            {CHECK: "passed", ("deployment", "expected-resources"): "skipped", BANDWIDTH: "passed"},
            days=0.4,
            version="v1.0.0",
        ),
        make_run(FIRST_PARTY, {CHECK: "failed", DRA: "passed"}, days=9, version="v0.14.0"),
        make_run(ANN, {CHECK: "passed", BANDWIDTH: "failed"}, days=2, version="v1.0.0"),
        make_run(STRANGER, {CHECK: "passed"}, days=1, version="v1.0.0"),
    ]


@pytest.fixture
def g01() -> RecipeVerdict:
    return verdict_of(g01_runs(), ANN, patterns=[PATTERN])


def test_g01_strict_grids_of_two_versions(g01: RecipeVerdict) -> None:
    newest, older = g01.versions
    assert (newest.aicr_version, older.aicr_version) == ("v1.0.0", "v0.14.0")
    assert states(newest) == {
        "deployment/expected-resources": "UNTESTED",
        "deployment/operator-health": "CONFIRMED",
        "performance/nccl-all-reduce-bw": "CONTESTED",
    }
    row = newest.rows[1]
    assert (row.passes, row.fails, row.reported) == (2, 0, 1)
    assert states(older) == {"deployment/operator-health": "FAILING", "conformance/dra-support": "SINGLE"}
    assert newest.phase_states == {
        "deployment": State.PARTIAL,
        "conformance": State.UNTESTED,
        "performance": State.CONTESTED,
    }


def test_g02_combined_grid_takes_each_latest_run(g01: RecipeVerdict) -> None:
    assert g01.combined.aicr_version == ""
    row = row_of(g01)
    assert (row.consensus, row.reported) == (State.CONFIRMED, 1)
    assert "conformance/dra-support" not in states(g01.combined)
    assert g01.state is State.CONTESTED
    assert (g01.confirming, g01.failing, g01.reported, g01.parties) == (2, 1, 1, 2)


def test_g03_bare_intent_has_no_platform() -> None:
    bare = Criteria("gke", "h100", "cos", "training")
    runs = [
        make_run(ANN, {CHECK: "failed", DRA: "passed"}, criteria=bare),
        make_run(STRANGER, "passed", criteria=bare),
    ]
    found = verdict_of(runs, ANN, recipe="h100-gke-cos-training")
    assert states(found.combined) == {"deployment/operator-health": "FAILING", "conformance/dra-support": "SINGLE"}
    assert found.coordinate == Coordinate("gke", "h100-cos", "training")
    assert found.criteria is not None
    assert found.criteria.platform == ""


def test_g06_one_identity_counts_once() -> None:
    found = verdict_of([make_run(ANN, days=1), make_run(ANN, days=2)], ANN)
    assert (found.state, len(found.sources), found.sources[0].runs) == (State.SINGLE, 1, 2)


def test_g07_versions_agree_only_in_the_combined_grid() -> None:
    found = verdict_of([make_run(ANN, version="v0.14.0"), make_run(BOB, version="v1.0.0")], ANN, BOB)
    assert [(grid.aicr_version, grid.state) for grid in found.versions] == [
        ("v1.0.0", State.SINGLE),
        ("v0.14.0", State.SINGLE),
    ]
    assert found.state is State.CONFIRMED
    assert {result.aicr_version for result in row_of(found).signers} == {"v0.14.0", "v1.0.0"}


def test_g13_profiled_recipe_keeps_selection_and_platform_apart() -> None:
    aks = Criteria("aks", "h100", "ubuntu", "training")
    run = make_run(ANN, criteria=aks, selection="gpuStack=operator-managed")
    found = verdict_of([run], ANN, recipe=run.recipe)
    assert (found.profile, found.profile_selection) == ("gpustack-operator-managed", "gpuStack=operator-managed")
    assert found.coordinate == Coordinate("aks", "h100-ubuntu", "training-gpustack-operator-managed")
    assert found.criteria == aks


def test_g15_colliding_selections_do_not_count_together() -> None:
    """Upstream drops the whole coordinate; here only the newcomer goes, with a reason."""
    aks = Criteria("aks", "h100", "ubuntu", "training")
    first = make_run(ANN, criteria=aks, selection="gpu-stack=operator", days=5)
    second = make_run(BOB, criteria=aks, selection="gpu=stack-operator", days=1)
    found = verdict_of([second, first], ANN, BOB, recipe=first.recipe)
    assert found.profile_selection == "gpu-stack=operator"
    assert [(one.source, one.code) for one in found.set_aside] == [(BOB.slug, "PROFILE_CONFLICT")]


@pytest.mark.parametrize(("anns", "bobs"), [("a" * 64, "b" * 64), ("b" * 64, "a" * 64)])
def test_within_one_second_the_index_in_the_log_says_who_owns_the_name(anns: str, bobs: str) -> None:
    aks = Criteria("aks", "h100", "ubuntu", "training")
    first = make_run(ANN, criteria=aks, selection="gpu-stack=operator", index=8, digest=anns)
    second = make_run(BOB, criteria=aks, selection="gpu=stack-operator", index=9, digest=bobs)
    found = verdict_of([second, first], ANN, BOB, recipe=first.recipe)
    assert found.profile_selection == "gpu-stack=operator"
    assert found.set_aside[0].reason == (
        "allowlisted evidence owns this name with gpu-stack=operator, the run has gpu=stack-operator"
    )
    assert found.state is State.SINGLE


@pytest.mark.parametrize(
    ("change", "code"),
    [
        pytest.param({"profile": "gpustack-azure-managed"}, "PROFILE_MISMATCH", id="G16"),
        pytest.param({"coordinate": Coordinate("aks", "h100-ubuntu", "training")}, "COORDINATE_MISMATCH", id="G17"),
        pytest.param({"profile_selection": "a=b=c"}, "PROFILE_INVALID", id="selection-without-segment"),
        pytest.param({"coordinate": Coordinate("aks", "nohyphen", "training")}, "COORDINATE_MISMATCH", id="G12-place"),
        pytest.param({"recipe": "../evil"}, "OTHER_RECIPE", id="G12-slug"),
    ],
)
def test_one_bad_run_is_set_aside_and_hides_no_other(change: dict[str, object], code: str) -> None:
    aks = Criteria("aks", "h100", "ubuntu", "training")
    good = make_run(ANN, criteria=aks, selection="gpuStack=operator-managed", days=9)
    bad = replace(make_run(BOB, criteria=aks, selection="gpuStack=operator-managed"), **change)  # type: ignore[arg-type]
    found = verdict_of([bad, good], ANN, BOB, recipe=good.recipe)
    assert [one.code for one in found.set_aside] == [code]
    assert (found.state, found.confirming) == (State.SINGLE, 1)


def test_no_runs_give_an_empty_verdict() -> None:
    """G18."""
    found = verdict_of([])
    assert (found.state, found.current_state, found.criteria, found.sources) == (State.UNTESTED, None, None, ())
    assert (found.newest, found.next_change, found.versions) == (None, None, ())


# --- latest runs -----------------------------------------------------------------------------------


def test_latest_run_is_taken_whole() -> None:
    runs = [make_run(ANN, {CHECK: "passed", DRA: "passed"}, days=5), make_run(ANN, {CHECK: "skipped"}, days=1)]
    found = verdict_of(runs, ANN)
    assert states(found.combined) == {"deployment/operator-health": "UNTESTED"}


def test_attestation_time_decides_then_log_time_then_digest() -> None:
    early = make_run(ANN, "failed", days=3, logged_days=1, digest="a" * 64)
    late = make_run(ANN, "passed", days=2, logged_days=2, digest="b" * 64)
    assert verdict_of([early, late], ANN).state is State.SINGLE
    same = replace(early, attested_at=late.attested_at)
    assert verdict_of([same, late], ANN).state is State.FAILING
    twin = replace(late, logged_at=same.logged_at)
    assert verdict_of([same, twin], ANN).state is State.SINGLE


def test_repeated_name_keeps_its_worst_result() -> None:
    run = make_run(ANN)
    twice = replace(run, results=(replace(run.results[0], status="failed"), run.results[0]))
    assert verdict_of([twice], ANN).state is State.FAILING


def test_builds_are_grouped_by_version_and_commit() -> None:
    runs = [
        make_run(ANN, version="main", commit="aaaaaaa"),
        make_run(BOB, version="main", commit="bbbbbbb"),
        make_run(CY, version="main", commit="aaaaaaa"),
        make_run(ANN, version="v1.0.0", commit="ccccccc", days=3),
        make_run(BOB, version="v1.0.0", commit="ddddddd", days=3),
    ]
    found = verdict_of(runs, ANN, BOB, CY)
    assert [(grid.aicr_version, grid.aicr_commit, grid.state) for grid in found.versions] == [
        ("v1.0.0", "", State.CONFIRMED),
        ("main", "bbbbbbb", State.SINGLE),
        ("main", "aaaaaaa", State.CONFIRMED),
    ]


# --- strangers -------------------------------------------------------------------------------------


def test_strangers_are_shown_and_weigh_nothing() -> None:
    found = verdict_of([make_run(ANN), make_run(STRANGER, {CHECK: "failed", DRA: "failed"})], ANN)
    assert found.state is State.SINGLE
    assert weights(found) == {ANN.slug: "counted", STRANGER.slug: "reported"}
    dra = row_of(found, DRA)
    assert (dra.consensus, dra.counted, dra.reported) == (State.UNTESTED, False, 1)
    assert found.combined.phase_states["conformance"] is State.UNTESTED
    assert [one.allowlisted for one in found.sources] == [True, False]


def test_a_stranger_owns_no_name_and_sets_nobody_aside() -> None:
    other = replace(CRITERIA, platform="slurm")
    odd = replace(make_run(STRANGER, criteria=other, days=30), recipe=RECIPE)
    found = verdict_of([odd, make_run(ANN)], ANN)
    assert [(one.source, one.code) for one in found.set_aside] == [(STRANGER.slug, "CRITERIA_CONFLICT")]
    assert found.set_aside[0].reason == (
        "allowlisted evidence owns this name with other criteria: platform slurm instead of kubeflow"
    )
    alone = verdict_of([odd, make_run(STRANGER)])
    assert alone.set_aside == ()


def test_catalogue_owns_the_name_before_any_evidence() -> None:
    other = replace(CRITERIA, platform="slurm")
    first = replace(make_run(ANN, criteria=other, days=30), recipe=RECIPE)
    found = verdict_of([first, make_run(BOB)], ANN, BOB, catalogue=[version(criteria=CRITERIA)])
    assert [(one.source, one.code) for one in found.set_aside] == [(ANN.slug, "CRITERIA_CONFLICT")]
    assert found.criteria == CRITERIA
    without = verdict_of([first, make_run(BOB)], ANN, BOB)
    assert [one.source for one in without.set_aside] == [BOB.slug]


def test_a_retraction_frees_no_name_and_so_hides_no_failure() -> None:
    other = replace(CRITERIA, platform="slurm")
    first = replace(make_run(ANN, "failed", criteria=other, days=30), recipe=RECIPE)
    found = verdict_of([first, make_run(BOB)], ANN, BOB, retracted={(first.digest, first.source_id): "wrong recipe"})
    assert [one.source for one in found.set_aside] == [BOB.slug]
    assert found.state is State.FAILING


def test_any_and_empty_criteria_mean_the_same() -> None:
    loose = Criteria("kind", "h100", "any", "training", "kubeflow")
    runs = [make_run(ANN, criteria=loose), make_run(BOB, criteria=replace(loose, os="", nodes=4))]
    found = verdict_of(runs, ANN, BOB, recipe="h100-kind-training-kubeflow")
    assert (found.set_aside, found.state) == ((), State.CONFIRMED)


# --- weightless records (S18) ----------------------------------------------------------------------

CALLED = "signed for another repository"


def test_weightless_record_is_reported_and_replaces_nothing() -> None:
    real = make_run(workflow(), "passed", days=5)
    called = make_run(workflow(), "failed", days=1, weightless=CALLED)
    found = verdict_of([real, called, make_run(ANN)], ANN, patterns=[PATTERN])
    assert (found.state, found.reported) == (State.CONFIRMED, 1)
    assert [(one.weightless, one.allowlisted) for one in found.sources] == [("", True), ("", True), (CALLED, False)]
    assert found.sources[2].remarks[0].code == "weightless"
    assert found.sources[2].remarks[0].message == f"has no weight: {CALLED}"


def test_of_what_anybody_may_have_signed_in_a_listed_name_the_newest_is_shown() -> None:
    called = [make_run(workflow(), days=days, version=f"v9.0.{days}", weightless=CALLED) for days in range(1, 40)]
    found = verdict_of([make_run(workflow(), days=50), *called], patterns=[PATTERN])
    assert [grid.aicr_version for grid in found.versions] == ["v1.0.0"]
    assert [(one.weightless, one.aicr_version) for one in found.sources] == [("", "v1.0.0"), (CALLED, "v9.0.1")]
    assert found.state is State.SINGLE


def test_weightless_record_alone_confirms_nothing() -> None:
    found = verdict_of([make_run(workflow(), weightless=CALLED), make_run(ANN)], ANN, patterns=[PATTERN])
    assert (found.state, found.confirming, found.reported) == (State.SINGLE, 1, 1)


# --- refs of one workflow --------------------------------------------------------------------------

BRANCH, RELEASE, TAG = (workflow(f"refs/{ref}") for ref in ("heads/x", "heads/release/1.0", "tags/v1.0.0"))


def test_two_refs_of_one_workflow_do_not_confirm() -> None:
    found = verdict_of([make_run(workflow()), make_run(BRANCH)], patterns=[PATTERN])
    assert (found.state, found.confirming, len(found.sources)) == (State.SINGLE, 1, 2)
    assert len({one.signer_key for one in found.sources}) == 1
    assert weights(found) == {workflow().slug: "counted", BRANCH.slug: "same-signer"}


@pytest.mark.parametrize("main", [workflow(), RELEASE, TAG, workflow("refs/heads/master")])
def test_a_later_branch_never_replaces_the_main_line(main: SignerIdentity) -> None:
    found = verdict_of([make_run(main, "failed", days=20), make_run(BRANCH, "passed", days=1)], patterns=[PATTERN])
    assert found.state is State.FAILING
    assert {one.source: one.speaks for one in found.sources} == {main.slug: True, BRANCH.slug: False}


def test_a_branch_that_imitates_main_is_a_branch() -> None:
    forged = workflow("refs/heads/x@refs/heads/main")
    found = verdict_of([make_run(workflow(), "failed", days=20), make_run(forged, days=1)], patterns=[PATTERN])
    assert found.state is State.FAILING


def test_failures_on_a_branch_stay_visible() -> None:
    found = verdict_of([make_run(workflow()), make_run(BRANCH, "failed")], patterns=[PATTERN])
    assert found.state is State.SINGLE
    assert {(result.result, result.counts) for result in row_of(found).signers} == {
        (Bucket.PASS, True),
        (Bucket.FAIL, False),
    }
    assert "branch-failure" in codes(found, BRANCH)
    assert "branch-failure" not in codes(found, workflow())


@pytest.mark.parametrize(
    "main",
    [
        pytest.param(make_run(workflow(), "failed", days=20, recipe_digest=OLDER), id="older digest"),
        pytest.param(make_run(workflow(), "failed", days=20, hardware_matched=False), id="other hardware"),
        pytest.param(make_run(workflow(), "passed", days=20, recipe_digest=OLDER), id="older digest, passed"),
    ],
)
def test_a_branch_beside_main_speaks_in_no_current_grid(main: Run) -> None:
    """Main said nothing about today's recipe; a branch does not speak for it."""
    runs = [main, make_run(BRANCH, days=1), make_run(ANN)]
    found = verdict_of(runs, ANN, patterns=[PATTERN], catalogue=[version()])
    assert found.current is not None
    assert found.current_state is State.SINGLE
    assert {one.source: one.weight for one in found.current.rows[0].signers} == {
        ANN.slug: "counted",
        BRANCH.slug: "same-signer",
    }


def test_a_branch_beside_main_confirms_no_version_of_its_own() -> None:
    runs = [
        make_run(workflow(), "failed", days=20),
        make_run(BRANCH, version="v2.0.0"),
        make_run(ANN, version="v2.0.0"),
    ]
    found = verdict_of(runs, ANN, patterns=[PATTERN])
    assert [(grid.aicr_version, grid.state) for grid in found.versions] == [
        ("v2.0.0", State.SINGLE),
        ("v1.0.0", State.FAILING),
    ]


def test_a_branch_alone_speaks() -> None:
    found = verdict_of([make_run(BRANCH)], patterns=[PATTERN])
    assert (found.state, found.sources[0].speaks) == (State.SINGLE, True)


def test_a_branch_adds_no_row_to_the_roll_up() -> None:
    found = verdict_of([make_run(workflow()), make_run(BRANCH, {CHECK: "passed", DRA: "skipped"})], patterns=[PATTERN])
    assert row_of(found, DRA).counted is False
    assert found.state is State.SINGLE


def test_newest_of_main_release_and_tags_speaks() -> None:
    runs = [
        make_run(workflow(), "failed", days=9),
        make_run(RELEASE, "passed", days=3),
        make_run(TAG, "failed", days=5),
    ]
    found = verdict_of(runs, patterns=[PATTERN])
    assert found.state is State.SINGLE
    assert {one.source for one in found.sources if one.speaks} == {RELEASE.slug}


def test_two_workflows_are_two_signers() -> None:
    other = WORKFLOW.replace("aws", "gcp")
    runs = [make_run(workflow()), make_run(workflow(path=other))]
    found = verdict_of(runs, patterns=[PATTERN, PATTERN.replace("aws", "gcp")])
    assert found.state is State.CONFIRMED
    assert found.parties == 1


# --- parties ---------------------------------------------------------------------------------------

OCTOCAT = SignerIdentity(GHO, "1234567+octocat@users.noreply.github.com")
OCTOCATS_WORKFLOW = SignerIdentity(
    GHA,
    "https://github.com/octocat/lab/.github/workflows/attest.yaml@refs/heads/main",
    GithubClaims(source_owner="https://github.com/octocat", source_owner_id="1234567"),
)


def test_two_signers_of_one_party_are_remarked_and_both_count() -> None:
    found = verdict_of([make_run(OCTOCAT), make_run(OCTOCATS_WORKFLOW)], OCTOCAT, OCTOCATS_WORKFLOW)
    assert (found.state, found.confirming, found.parties) == (State.CONFIRMED, 2, 1)
    assert [one.party for one in found.sources] == ["github:octocat", "github:octocat"]
    assert codes(found, OCTOCAT) == ["same-party"]
    remark = next(one for one in found.remarks if one.code == "same-party")
    assert remark.data["sources"] == ", ".join(sorted((OCTOCAT.slug, OCTOCATS_WORKFLOW.slug)))
    assert "octocat" not in remark.message


def test_by_party_they_count_once() -> None:
    runs = [make_run(OCTOCAT, days=1), make_run(OCTOCATS_WORKFLOW, days=2)]
    found = verdict_of(runs, OCTOCAT, OCTOCATS_WORKFLOW, by=ConfirmBy.PARTY)
    assert (found.state, found.confirming) == (State.SINGLE, 1)
    assert weights(found) == {OCTOCAT.slug: "same-party", OCTOCATS_WORKFLOW.slug: "counted"}
    three = verdict_of([*runs, make_run(ANN)], OCTOCAT, OCTOCATS_WORKFLOW, ANN, by=ConfirmBy.PARTY)
    assert (three.state, three.confirming, three.parties) == (State.CONFIRMED, 2, 2)


def test_a_party_that_disagrees_with_itself_contests() -> None:
    runs = [make_run(OCTOCAT, "failed"), make_run(OCTOCATS_WORKFLOW), make_run(ANN)]
    found = verdict_of(runs, OCTOCAT, OCTOCATS_WORKFLOW, ANN, by=ConfirmBy.PARTY)
    row = row_of(found)
    assert (row.consensus, row.passes, row.fails) == (State.CONTESTED, 2, 1)


def test_a_stranger_splits_no_party() -> None:
    bare = SignerIdentity(GHO, "octocat@users.noreply.github.com")
    liar = SignerIdentity(GHA, "https://github.com/octocat/x/.github/workflows/w.yaml@refs/heads/main")
    liar = replace(liar, claims=GithubClaims(source_owner="https://github.com/octocat", source_owner_id="666"))
    listed = (bare, OCTOCATS_WORKFLOW)
    runs = [make_run(bare), make_run(OCTOCATS_WORKFLOW)]
    assert verdict_of(runs, *listed, by=ConfirmBy.PARTY).state is State.SINGLE
    assert verdict_of([*runs, make_run(liar)], *listed, by=ConfirmBy.PARTY).state is State.SINGLE


@pytest.mark.parametrize(("threshold", "state"), [(0, State.CONFIRMED), (2, State.CONFIRMED), (3, State.SINGLE)])
def test_threshold_is_a_setting_of_at_least_two(threshold: int, state: State) -> None:
    found = verdict_of([make_run(ANN), make_run(BOB)], ANN, BOB, threshold=threshold)
    assert found.state is state
    assert found.rule.threshold == max(2, threshold)


# --- copied runs -----------------------------------------------------------------------------------


@pytest.mark.parametrize("shared", [CTRF, SNAPSHOT, ("durations", "sha256:" + "d" * 64)])
def test_a_copied_run_does_not_confirm(shared: tuple[str, str]) -> None:
    original = make_run(ANN, days=5, prints=[shared])
    copy = make_run(BOB, days=1, prints=[shared])
    found = verdict_of([original, copy], ANN, BOB)
    assert (found.state, found.confirming) == (State.SINGLE, 1)
    assert weights(found) == {ANN.slug: "counted", BOB.slug: "copy-of"}
    remark = next(one for one in found.remarks if one.code == "copy-of")
    assert remark.data == {"digest": str(original.digest), "source": ANN.slug, "kind": shared[0], "copier": BOB.slug}
    assert codes(found, BOB) == ["copy-of"]


def test_log_time_says_which_run_is_the_copy_not_the_claimed_time() -> None:
    honest = make_run(ANN, days=2, prints=[CTRF])
    backdated = make_run(BOB, days=9, logged_days=1, prints=[CTRF])
    assert weights(verdict_of([honest, backdated], ANN, BOB))[BOB.slug] == "copy-of"


@pytest.mark.parametrize(("anns", "bobs"), [("a" * 64, "b" * 64), ("b" * 64, "a" * 64)])
def test_within_one_second_the_index_in_the_log_says_which_run_is_the_copy(anns: str, bobs: str) -> None:
    """Log times are whole seconds; which digest is lower says nothing about who came first."""
    runs = [make_run(BOB, prints=[CTRF], index=9, digest=bobs), make_run(ANN, prints=[CTRF], index=8, digest=anns)]
    assert weights(verdict_of(runs, ANN, BOB)) == {ANN.slug: "counted", BOB.slug: "copy-of"}
    elsewhere = sightings_of(runs[0])
    found = verdict_of(runs[1:], ANN, BOB, sightings=elsewhere)
    assert (found.state, weights(found)) == (State.SINGLE, {ANN.slug: "counted"})


def test_a_strangers_copy_takes_nothing_away() -> None:
    first = make_run(STRANGER, days=9, prints=[CTRF])
    found = verdict_of([first, make_run(ANN, prints=[CTRF]), make_run(BOB)], ANN, BOB)
    assert found.state is State.CONFIRMED
    assert weights(found)[ANN.slug] == "counted"


def test_a_weightless_copy_takes_nothing_away() -> None:
    first = make_run(workflow(), days=9, prints=[CTRF], weightless=CALLED)
    found = verdict_of([first, make_run(ANN, prints=[CTRF]), make_run(BOB)], ANN, BOB, patterns=[PATTERN])
    assert found.state is State.CONFIRMED


def test_a_run_seen_under_another_recipe_is_an_original_too() -> None:
    elsewhere = sightings_of(make_run(CY, days=30, prints=[SNAPSHOT]))
    runs = [make_run(ANN), make_run(BOB, prints=[SNAPSHOT])]
    assert verdict_of(runs, ANN, BOB, sightings=elsewhere).state is State.CONFIRMED
    found = verdict_of(runs, ANN, BOB, CY, sightings=elsewhere)
    assert (found.state, weights(found)[BOB.slug]) == (State.SINGLE, "copy-of")


def test_a_chain_of_copies_is_one_run() -> None:
    runs = [
        make_run(ANN, days=9, prints=[CTRF]),
        make_run(BOB, days=5, prints=[CTRF, SNAPSHOT]),
        make_run(CY, days=1, prints=[SNAPSHOT]),
    ]
    found = verdict_of(runs, ANN, BOB, CY)
    assert (found.state, found.confirming) == (State.SINGLE, 1)


def test_a_copy_in_between_takes_nothing_from_the_owner_of_the_original() -> None:
    """Ann showed the snapshot first, under another recipe; Bob's copy of it here makes no copy of Ann's next run."""
    elsewhere = sightings_of(make_run(ANN, days=30, prints=[SNAPSHOT]))
    runs = [make_run(BOB, days=5, prints=[SNAPSHOT]), make_run(ANN, days=1, prints=[SNAPSHOT])]
    found = verdict_of(runs, ANN, BOB, sightings=elsewhere)
    assert (found.state, weights(found)) == (State.SINGLE, {ANN.slug: "counted", BOB.slug: "copy-of"})


def test_a_chain_that_leads_back_to_its_signer_is_no_copy() -> None:
    """Bob's run copies Ann's report from elsewhere and her snapshot from a run that she publishes later."""
    elsewhere = sightings_of(make_run(ANN, days=30, prints=[CTRF]))
    bobs = make_run(BOB, days=5, prints=[CTRF, SNAPSHOT])
    found = verdict_of([bobs, make_run(ANN, days=1, prints=[SNAPSHOT])], ANN, BOB, sightings=elsewhere)
    assert (found.state, weights(found)) == (State.SINGLE, {ANN.slug: "counted", BOB.slug: "copy-of"})


def test_refs_of_one_workflow_are_no_copies_of_one_another() -> None:
    runs = [make_run(BRANCH, days=9, prints=[CTRF]), make_run(workflow(), prints=[CTRF]), make_run(ANN)]
    assert verdict_of(runs, ANN, patterns=[PATTERN]).state is State.CONFIRMED


def test_a_copy_hides_no_failure() -> None:
    """Two runs can share a snapshot and differ in a result."""
    runs = [make_run(ANN, days=5, prints=[SNAPSHOT]), make_run(BOB, "failed", prints=[SNAPSHOT])]
    found = verdict_of(runs, ANN, BOB)
    assert (found.state, found.failing) == (State.CONTESTED, 1)


def test_a_copied_failure_counts_once() -> None:
    runs = [make_run(who, "failed", days=days, prints=[CTRF]) for who, days in ((ANN, 5), (BOB, 3), (CY, 1))]
    row = row_of(verdict_of(runs, ANN, BOB, CY))
    assert (row.consensus, row.fails) == (State.FAILING, 1)


def test_delisting_the_original_lets_the_copy_count() -> None:
    runs = [make_run(ANN, days=5, prints=[CTRF]), make_run(BOB, prints=[CTRF])]
    assert weights(verdict_of(runs, BOB)) == {ANN.slug: "reported", BOB.slug: "counted"}


# --- retraction and removal ------------------------------------------------------------------------


def test_retraction_takes_passes_and_keeps_failures() -> None:
    run = make_run(ANN, {CHECK: "passed", DRA: "failed"})
    retracted = {(run.digest, run.source_id): "wrong cluster"}
    found = verdict_of([run, make_run(BOB)], ANN, BOB, catalogue=[version()], retracted=retracted)
    assert states(found.combined) == {"deployment/operator-health": "SINGLE", "conformance/dra-support": "FAILING"}
    assert weights(found)[ANN.slug] == "retracted"
    standing = next(one for one in found.sources if one.source == ANN.slug)
    assert [(one.reason.value, one.message) for one in standing.staleness] == [
        ("RETRACTED", "retracted: wrong cluster")
    ]


def test_retraction_brings_no_older_pass_back() -> None:
    latest = make_run(ANN, "failed", days=1)
    found = verdict_of([make_run(ANN, days=5), latest], ANN, retracted={(latest.digest, latest.source_id): "x"})
    assert found.state is State.FAILING


def test_a_newer_run_ends_a_retraction() -> None:
    old = make_run(ANN, days=5)
    found = verdict_of([old, make_run(ANN, days=1)], ANN, retracted={(old.digest, old.source_id): "x"})
    assert found.state is State.SINGLE


def test_removed_failing_signer_leaves_a_trace_and_no_weight() -> None:
    runs = [make_run(ANN), make_run(BOB, {CHECK: "failed", DRA: "failed"})]
    before, never = verdict_of(runs, ANN, BOB), verdict_of(runs, ANN)
    after = verdict_of(runs, ANN, earlier=[listing(ANN, BOB)])
    assert (before.state, after.state) == (State.CONTESTED, State.SINGLE)
    assert (after.combined, after.versions, after.confirming) == (never.combined, never.versions, never.confirming)
    remark = next(one for one in after.remarks if one.code == "failure-of-removed-signer")
    assert remark.data == {
        "source": BOB.slug,
        "digest": str(runs[1].digest),
        "checks": "conformance/dra-support, deployment/operator-health",
    }
    assert [one.value for one in after.staleness] == ["UNKNOWN_CURRENT", "SIGNER_REMOVED"]


@pytest.mark.parametrize(
    ("newer", "contested"),
    [
        pytest.param({"version": "v1.1.0"}, "v1.0.0", id="in-the-grid-of-a-version"),
        pytest.param({"recipe_digest": OLDER}, "today's recipe", id="for-todays-recipe"),
    ],
)
def test_a_removed_signers_failure_leaves_a_trace_wherever_it_counted(newer: dict[str, str], contested: str) -> None:
    """The newest run of the signer passed, so `state` alone never showed it."""
    failed = make_run(ANN, "failed", days=5)
    runs = [failed, make_run(ANN, days=1, **newer), make_run(BOB), make_run(CY)]  # type: ignore[arg-type]
    catalogue = (version(OLDER, legacy=OLDER), version())

    def contested_in(found: RecipeVerdict) -> list[str]:
        states = {"combined": found.state, "today's recipe": found.current_state}
        states |= {grid.aicr_version: grid.state for grid in found.versions}
        return [name for name, state in states.items() if state is State.CONTESTED]

    assert contested_in(verdict_of(runs, ANN, BOB, CY, catalogue=catalogue)) == [contested]
    after = verdict_of(runs, BOB, CY, catalogue=catalogue, earlier=[listing(ANN, BOB, CY)])
    assert contested_in(after) == []
    assert [(one.code, one.data["digest"]) for one in after.remarks] == [
        ("failure-of-removed-signer", str(failed.digest))
    ]


def test_what_others_did_in_a_removed_signers_name_makes_no_recipe_stale() -> None:
    called = make_run(workflow(), "failed", days=50, recipe_digest=OLDER, weightless="called by another repository")
    earlier = [listing(ANN, BOB, patterns=[PATTERN])]
    found = verdict_of([make_run(ANN), make_run(BOB), called], ANN, BOB, catalogue=[version()], earlier=earlier)
    assert (found.state, found.staleness, found.remarks) == (State.CONFIRMED, (), ())
    assert summarize(found)["agesAt"] == "2026-07-20T12:00:00Z"  # of what counts, attested on 2026-06-19


def test_a_removed_owner_of_the_name_leaves_its_failure_behind() -> None:
    """Without its first signer the name means the other recipe; the failure that vanishes from the grid is told."""
    aks = Criteria("aks", "h100", "ubuntu", "training")
    failed = make_run(ANN, "failed", criteria=aks, selection="gpu-stack=operator", days=5)
    passed = [make_run(who, criteria=aks, selection="gpu=stack-operator", days=1) for who in (BOB, CY)]
    before = verdict_of([failed, *passed], ANN, BOB, CY, recipe=failed.recipe)
    after = verdict_of([failed, *passed], BOB, CY, recipe=failed.recipe, earlier=[listing(ANN, BOB, CY)])
    assert (before.state, after.state) == (State.FAILING, State.CONFIRMED)
    assert [one.source for one in after.set_aside] == [ANN.slug]
    assert [one.data["source"] for one in after.remarks if one.code == "failure-of-removed-signer"] == [ANN.slug]


# --- catalogue and current state -------------------------------------------------------------------


def test_no_stranger_says_what_a_catalogued_recipe_is() -> None:
    """The catalogue may know a recipe by its digests alone."""
    other = Criteria("eks-ubuntu", "h100", "", "training", "kubeflow")
    run = make_run(STRANGER, criteria=other, recipe=RECIPE)
    assert verdict_of([run], ANN).criteria == other
    found = verdict_of([run], ANN, catalogue=[version()])
    assert (found.criteria, found.coordinate, found.state) == (None, None, State.UNTESTED)


def test_the_digests_that_a_state_rests_on_are_those_of_counted_runs() -> None:
    retracted = make_run(ANN, recipe_digest=OLDER)
    found = verdict_of(
        [retracted, make_run(BOB)], ANN, BOB, retracted={(retracted.digest, retracted.source_id): "wrong cluster"}
    )
    assert (found.state, found.digests) == (State.SINGLE, 1)


def test_a_version_that_only_strangers_ran_has_no_grid() -> None:
    runs = [make_run(STRANGER, days=days, version=f"v9.0.{days}") for days in range(1, 40)]
    found = verdict_of([*runs, make_run(ANN)], ANN)
    assert [grid.aicr_version for grid in found.versions] == ["v1.0.0"]
    assert [one.aicr_version for one in found.sources] == ["v1.0.0", "v9.0.1"]
    assert "strangers-left-out" not in [remark.code for remark in found.remarks]


@pytest.mark.parametrize(
    ("listed", "stranger", "reasons"),
    [
        pytest.param("passed", "skipped", (), id="a stranger's reason speaks for nobody"),
        pytest.param("skipped", "failed", ("no such driver",), id="the listed source's does"),
    ],
)
def test_why_a_check_was_skipped_is_said_by_those_who_count(
    listed: str, stranger: str, reasons: tuple[str, ...]
) -> None:
    runs = [
        make_run(ANN, {CHECK: "passed", DRA: listed}, skip_reason="no such driver"),
        make_run(STRANGER, {DRA: stranger}, skip_reason="do not run this"),
    ]
    assert row_of(verdict_of(runs, ANN), DRA).skip_reasons == reasons


def test_declared_check_that_nobody_ran_is_untested() -> None:
    found = verdict_of([make_run(ANN), make_run(BOB)], ANN, BOB, catalogue=[version(declared=[CHECK, DRA])])
    assert states(found.combined) == {"deployment/operator-health": "CONFIRMED", "conformance/dra-support": "UNTESTED"}
    assert (found.state, found.current_state) == (State.PARTIAL, State.PARTIAL)
    assert row_of(found, DRA).declared


def test_a_declared_row_that_only_strangers_ran_is_untested_and_counted() -> None:
    found = verdict_of([make_run(STRANGER)], catalogue=[version(declared=[CHECK])])
    row = row_of(found)
    assert (row.consensus, row.counted, row.reported) == (State.UNTESTED, True, 1)


def test_current_state_takes_only_todays_digest() -> None:
    runs = [make_run(ANN), make_run(BOB, recipe_digest=OLDER)]
    found = verdict_of(runs, ANN, BOB, catalogue=[version(OLDER), version()])
    assert (found.state, found.current_state, found.digests) == (State.CONFIRMED, State.SINGLE, 2)
    remark = next(one for one in found.remarks if one.code == "stale-digest")
    assert remark.message == "CONFIRMED rests on 2 attested digests; for today's recipe it is SINGLE"
    assert remark.data == {"state": "CONFIRMED", "currentState": "SINGLE", "digests": "2"}


@pytest.mark.parametrize("kind", [V1, V2])
def test_old_predicates_compare_by_the_old_algorithm(kind: str) -> None:
    runs = [make_run(ANN), make_run(BOB, predicate_type=kind, recipe_digest=LEGACY)]
    found = verdict_of(runs, ANN, BOB, catalogue=[version()])
    assert (found.current_state, found.digests) == (State.CONFIRMED, 1)
    wrong = make_run(BOB, predicate_type=kind)
    assert verdict_of([runs[0], wrong], ANN, BOB, catalogue=[version()]).current_state is State.SINGLE


def test_current_state_uses_an_older_run_of_todays_recipe() -> None:
    runs = [make_run(ANN, days=9), make_run(ANN, "failed", days=1, recipe_digest=OLDER)]
    found = verdict_of(runs, ANN, catalogue=[version(OLDER), version()])
    assert (found.state, found.current_state) == (State.FAILING, State.SINGLE)


def test_mismatched_hardware_never_counts_for_the_current_state() -> None:
    runs = [make_run(ANN), make_run(BOB, hardware_matched=False)]
    found = verdict_of(runs, ANN, BOB, catalogue=[version()])
    assert (found.state, found.current_state) == (State.CONFIRMED, State.SINGLE)
    assert codes(found, BOB) == ["mismatched-hardware"]


def test_current_grid_has_only_declared_checks() -> None:
    runs = [make_run(who, {CHECK: "passed", DRA: "failed"}) for who in (ANN, BOB)]
    found = verdict_of(runs, ANN, BOB, catalogue=[version(declared=[CHECK])])
    assert (found.state, found.current_state) == (State.FAILING, State.CONFIRMED)
    assert found.current is not None
    assert states(found.current) == {"deployment/operator-health": "CONFIRMED"}


@pytest.mark.parametrize("catalogue", [[], [version(), version(retired=True)]], ids=["none", "retired"])
def test_without_a_version_in_force_there_is_no_current_state(catalogue: list[object]) -> None:
    found = verdict_of([make_run(ANN)], ANN, catalogue=catalogue)  # type: ignore[arg-type]
    assert (found.current_state, found.current) == (None, None)
    assert [one.value for one in found.staleness] == ["UNKNOWN_CURRENT"]


def test_strangers_make_no_recipe_stale() -> None:
    runs = [make_run(ANN), make_run(STRANGER, recipe_digest=OLDER, days=99)]
    assert verdict_of(runs, ANN, catalogue=[version()]).staleness == ()


# --- skips, order, time ----------------------------------------------------------------------------


def test_skipped_row_says_why() -> None:
    runs = [make_run(ANN, "skipped", skip_reason="no-gpu-nodes"), make_run(BOB, "skipped")]
    row = row_of(verdict_of(runs, ANN, BOB))
    assert (row.consensus, row.counted) == (State.UNTESTED, True)
    assert row.skip_reasons == ("no-gpu-nodes", "reason not recorded")


def test_rows_sources_and_results_have_one_order() -> None:
    results = {BANDWIDTH: "passed", DRA: "passed", CHECK: "passed", ("deployment", "Z"): "passed"}
    found = verdict_of(
        [make_run(STRANGER, results), make_run(ANN, results), make_run(workflow(), results)], ANN, patterns=[PATTERN]
    )
    assert list(states(found.combined)) == [
        "deployment/Z",
        "deployment/operator-health",
        "conformance/dra-support",
        "performance/nccl-all-reduce-bw",
    ]
    assert [one.source_class for one in found.sources] == ["first-party", "community", "community"]
    assert [one.allowlisted for one in found.sources] == [True, True, False]
    ids = [result.source_id for result in row_of(found).signers]
    assert ids == sorted(ids)


def test_ages_say_when_they_change() -> None:
    found = verdict_of([make_run(ANN, days=3.5), make_run(BOB, days=2.75)], ANN, BOB)
    assert [one.age_days for one in sorted(found.sources, key=lambda one: one.age_days)] == [2, 3]
    assert found.next_change == NOW + timedelta(days=0.25)
    assert found.newest == NOW - timedelta(days=2.75)


def test_a_date_in_the_future_is_age_zero() -> None:
    found = verdict_of([make_run(ANN, days=-0.005)], ANN)
    assert found.sources[0].age_days == 0
    assert found.next_change is not None
    assert found.next_change > NOW


# --- the worked example of docs/corroboration.md ---------------------------------------------------

TRY = workflow("refs/heads/try")


def example_runs() -> list[Run]:
    return [
        make_run(workflow(), days=5),
        make_run(TRY, days=1),
        make_run(ANN, "failed", days=20),
        make_run(ANN, days=3, prints=[SNAPSHOT]),
        make_run(BOB, days=2, prints=[SNAPSHOT]),
        make_run(STRANGER, "failed", days=0),
    ]


def test_worked_example_is_confirmed_by_two_of_six_records() -> None:
    found = verdict_of(example_runs(), ANN, BOB, patterns=[PATTERN])
    row = row_of(found)
    assert (found.state, row.passes, row.fails, row.reported) == (State.CONFIRMED, 2, 0, 1)
    assert weights(found) == {
        workflow().slug: "counted",
        TRY.slug: "same-signer",
        ANN.slug: "counted",
        BOB.slug: "copy-of",
        STRANGER.slug: "reported",
    }


def test_worked_example_goes_on() -> None:
    without_ann = verdict_of(example_runs(), BOB, patterns=[PATTERN])
    assert (without_ann.state, weights(without_ann)[BOB.slug]) == (State.CONFIRMED, "counted")
    moved_on = verdict_of(example_runs(), ANN, BOB, patterns=[PATTERN], catalogue=[version(), version(OLDER)])
    assert (moved_on.state, moved_on.current_state) == (State.CONFIRMED, State.UNTESTED)
    assert [(item.code, item.needed) for item in moved_on.missing] == [("no-evidence", 2)]
    failing = verdict_of([*example_runs(), make_run(ANN, "failed", days=0.5)], ANN, BOB, patterns=[PATTERN])
    assert (failing.state, failing.missing[0].source) == (State.CONTESTED, ANN.slug)
    assert weights(failing)[BOB.slug] == "copy-of"
