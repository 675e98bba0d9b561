"""Who counts, seen over HTTP: grids, roll-ups, refs of one workflow, copies, parties, names, strangers, lenses."""

import time
from collections.abc import Iterator
from datetime import UTC, datetime

import pytest

from app.core.statement import RECIPE_EVIDENCE_V3
from app.sandbox.demo.samples import OCTOCAT_WORKFLOW
from app.sandbox.identities import (
    DEV_TWO,
    OCTOCAT,
    STRANGER,
    UAT_AWS,
    UAT_AWS_BRANCH,
    caller_of,
    email_identity,
)
from tests.support.live import Evidence, Live, living, name_of, recipe, variant
from tests.support.runs import allowlist_text

PATTERNS = tuple(
    rf"^https://github\.com/{workflow}@refs/.+$"
    for workflow in (
        r"NVIDIA/aicr/\.github/workflows/uat-aws\.yaml",
        r"octocat/aicr-attest/\.github/workflows/attest\.yaml",
    )
)
LIST = allowlist_text(OCTOCAT.signer, DEV_TWO.signer, patterns=PATTERNS, labels={OCTOCAT.signer.slug: "octocat"})
PASSED = {"deployment": {"operator-health": "passed"}}
FAILED = {"deployment": {"operator-health": "failed"}}


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    with living(tmp_path_factory.mktemp("corroboration"), LIST) as running:
        yield running


def now() -> str:
    return datetime.now(UTC).isoformat().replace("+00:00", "Z")  # noqa: TID251 - what a person would ask


class TestGrids:
    def test_agreement_counts_inside_one_version_in_strict_grids_and_across_them_in_the_combined_one(
        self, live: Live
    ) -> None:
        it = recipe("h100")
        live.submit(Evidence(it, OCTOCAT, version="v1.0.0"))
        live.submit(Evidence(it, UAT_AWS, version="v1.1.0"))
        body = live.recipe(it)
        assert body["state"] == "CONFIRMED"
        assert [(one["aicrVersion"], one["state"]) for one in body["versions"]] == [
            ("v1.1.0", "SINGLE"),
            ("v1.0.0", "SINGLE"),
        ]
        strict = live.row(it, aicrVersion="v1.0.0")
        assert (strict["consensus"], [one["source"] for one in strict["signers"]]) == ("SINGLE", [OCTOCAT.signer.slug])
        assert live.recipe(it, aicrVersion="v9")["rows"] == []

    def test_builds_that_are_no_releases_stand_by_their_commit(self, live: Live) -> None:
        it = recipe("h200")
        live.submit(Evidence(it, OCTOCAT, version="main", commit="a" * 40))
        live.submit(Evidence(it, UAT_AWS, version="main", commit="b" * 40))
        versions = live.recipe(it)["versions"]
        assert sorted((one["aicrVersion"], one["aicrCommit"][0]) for one in versions) == [("main", "a"), ("main", "b")]
        assert {one["state"] for one in versions} == {"SINGLE"}
        one = live.row(it, aicrVersion="main", aicrCommit="a" * 40)
        assert [result["source"] for result in one["signers"]] == [OCTOCAT.signer.slug]

    def test_another_kubernetes_dims_and_changes_no_state(self, live: Live) -> None:
        it = recipe("gb200")
        live.submit(Evidence(it, OCTOCAT, k8s="1.33.5"))
        live.submit(Evidence(it, UAT_AWS, k8s="1.34.1"))
        row = live.row(it, k8s="1.34.1")
        assert row["consensus"] == "CONFIRMED"
        assert {one["k8sVersion"]: one["dimmed"] for one in row["signers"]} == {"1.33.5": True, "1.34.1": False}

    def test_a_check_that_the_latest_run_skipped_is_not_carried_forward(self, live: Live) -> None:
        it = recipe("b200")
        live.submit(Evidence(it, OCTOCAT, days_ago=3))
        live.submit(Evidence(it, OCTOCAT, {"deployment": {"operator-health": "skipped"}}, days_ago=1))
        body = live.recipe(it)
        assert body["state"] == "UNTESTED"
        assert body["rows"][0]["skipReasons"] == ["nodes-busy"]
        assert [(one["code"], one["message"]) for one in body["missing"]] == [
            ("skipped", "every source skipped `deployment/operator-health`: nodes-busy; nobody is asked for it")
        ]

    def test_declared_checks_that_nobody_ran_make_a_phase_partial_and_are_asked_for(self, live: Live) -> None:
        it = recipe("a100")
        live.push(it, declared={"deployment": ["operator-health", "driver-version"]})
        for signer in (OCTOCAT, UAT_AWS):
            live.submit(Evidence(it, signer))
        body = live.recipe(it)
        assert (body["state"], body["phaseStates"]["deployment"]) == ("PARTIAL", "PARTIAL")
        assert [(one["name"], one["needed"], one["have"]) for one in body["missing"]] == [("driver-version", 2, 0)]


class TestRefsOfOneWorkflow:
    def test_a_branch_does_not_confirm_and_replaces_nothing(self, live: Live) -> None:
        it = recipe("l40")
        live.submit(Evidence(it, UAT_AWS, days_ago=3))
        live.submit(Evidence(it, UAT_AWS_BRANCH, FAILED, days_ago=1))
        body = live.recipe(it)
        assert (body["state"], body["confirming"]) == ("SINGLE", 1)
        assert live.remarks(it, UAT_AWS_BRANCH)["branch-failure"]["data"]["checks"] == "deployment/operator-health"
        assert {one["source"]: one["speaks"] for one in body["sources"]} == {
            UAT_AWS.signer.slug: True,
            UAT_AWS_BRANCH.signer.slug: False,
        }
        keys = {one["signerKey"] for one in body["sources"]}
        assert len(keys) == 1

    def test_a_newer_run_of_the_main_line_replaces_a_failing_one(self, live: Live) -> None:
        it = recipe("l40s")
        live.submit(Evidence(it, UAT_AWS, FAILED, days_ago=3))
        assert live.recipe(it)["state"] == "FAILING"
        answer = live.submit(Evidence(it, UAT_AWS, days_ago=1))
        assert answer["state"] == {"before": "FAILING", "after": "SINGLE"}

    def test_a_workflow_called_from_elsewhere_has_no_weight(self, live: Live) -> None:
        it = recipe("v100")
        live.submit(Evidence(it, UAT_AWS))
        live.submit(Evidence(it, caller_of(UAT_AWS, "mallory/borrow"), FAILED, days_ago=0.5))
        body = live.recipe(it)
        assert (body["state"], body["reported"]) == ("SINGLE", 1)
        assert any(one["weightless"] for one in body["sources"])


class TestPartiesAndCopies:
    def test_two_signers_of_one_account_are_marked_and_counted_as_the_lens_says(self, live: Live) -> None:
        it = recipe("rtx-pro-6000")
        live.submit(Evidence(it, OCTOCAT))
        live.submit(Evidence(it, OCTOCAT_WORKFLOW))
        body = live.recipe(it)
        assert (body["state"], body["parties"]) == ("CONFIRMED", 1)
        assert live.remarks(it, OCTOCAT)["same-party"]["data"] == {"sources": OCTOCAT_WORKFLOW.signer.slug}
        assert "same-party" in {remark["code"] for remark in body["remarks"]}
        by_party = live.recipe(it, confirmBy="party")
        assert (by_party["state"], by_party["view"]["confirmBy"]) == ("SINGLE", "party")

    def test_a_copied_run_counts_once_and_the_earlier_one_stands(self, live: Live) -> None:
        it = recipe("t4")
        original = Evidence(it, UAT_AWS, days_ago=2)
        live.submit(original)
        live.submit(Evidence(it, OCTOCAT, days_ago=1, number=original.number))
        body = live.recipe(it)
        assert (body["state"], body["confirming"]) == ("SINGLE", 1)
        data = live.remarks(it, OCTOCAT)["copy-of"]["data"]
        assert data["source"] == UAT_AWS.signer.slug
        assert "copy-of" not in live.remarks(it, UAT_AWS)


class TestNames:
    def test_a_profile_conflict_is_set_aside_with_its_reason_and_hides_nobody(self, live: Live) -> None:
        """`gpuStack=operator-managed` and `gpu=stack-operator-managed` would share a name; the first listed owns it."""
        it = recipe("p100", profiled=True)
        live.submit(Evidence(it, OCTOCAT, days_ago=3))
        other = it.text.replace(b"name: gpuStack", b"name: gpustack")
        live.submit(Evidence(it, UAT_AWS, text=other, days_ago=1))
        body = live.recipe(it)
        assert body["state"] == "SINGLE"
        (aside,) = body["setAside"]
        assert (aside["code"], aside["source"]) == ("PROFILE_CONFLICT", UAT_AWS.signer.slug)
        assert "gpuStack=operator-managed" in aside["reason"]

    def test_the_catalogue_settles_a_name(self, live: Live) -> None:
        it = recipe("p4", profiled=True)
        other = it.text.replace(b"name: gpuStack", b"name: gpustack")
        live.submit(Evidence(it, UAT_AWS, text=other, days_ago=3))
        live.submit(Evidence(it, OCTOCAT, days_ago=1))
        assert [one["source"] for one in live.recipe(it)["setAside"]] == [OCTOCAT.signer.slug]
        live.push(it)
        assert [one["source"] for one in live.recipe(it)["setAside"]] == [UAT_AWS.signer.slug]

    def test_a_stranger_who_came_first_claims_no_name(self, live: Live) -> None:
        it = recipe("p40", profiled=True)
        other = it.text.replace(b"name: gpuStack", b"name: gpustack")
        live.submit(Evidence(it, STRANGER, text=other, days_ago=3))
        live.submit(Evidence(it, OCTOCAT, days_ago=1))
        body = live.recipe(it)
        assert (body["state"], body["profileSelection"]) == ("SINGLE", "gpuStack=operator-managed")
        assert [one["source"] for one in body["setAside"]] == [STRANGER.signer.slug]


class TestStrangers:
    def test_their_rows_are_shown_and_rolled_up_nowhere(self, live: Live) -> None:
        it = recipe("a10")
        for signer in (OCTOCAT, UAT_AWS):
            live.submit(Evidence(it, signer))
        strange = {"deployment": {"operator-health": "failed", "invented": "failed"}}
        answer = live.submit(Evidence(it, STRANGER, strange))
        assert answer["state"] == {"before": "CONFIRMED", "after": "CONFIRMED"}
        assert (answer["class"], answer["allowlisted"]) == ("community", False)
        body = live.recipe(it)
        assert body["reported"] == 1
        rows = {row["name"]: (row["consensus"], row["reported"], row["counted"]) for row in body["rows"]}
        assert rows == {"operator-health": ("CONFIRMED", 1, True), "invented": ("UNTESTED", 1, False)}
        assert body["phaseStates"]["deployment"] == "CONFIRMED"

    def test_a_recipe_of_strangers_alone_is_untested(self, live: Live) -> None:
        it = recipe("a40")
        live.submit(Evidence(it, STRANGER))
        assert live.recipe(it)["state"] == "UNTESTED"


class TestAsOf:
    def test_it_says_what_was_known_then(self, live: Live) -> None:
        it = recipe("h20")
        live.submit(Evidence(it, OCTOCAT, days_ago=9))
        time.sleep(0.01)
        before = now()
        time.sleep(0.01)
        live.submit(Evidence(it, UAT_AWS, days_ago=8))
        live.push(it)
        assert live.recipe(it)["state"] == "CONFIRMED"
        then = live.recipe(it, asOf=before)
        assert (then["state"], then["catalogue"], then["currentState"]) == ("SINGLE", None, None)
        assert [one["source"] for one in then["sources"]] == [OCTOCAT.signer.slug]
        assert (
            live.service.http.get(f"/recipes/{name_of(it)}", params={"asOf": "2020-01-01T00:00:00Z"}).status_code == 404
        )

    def test_the_future_is_not_known(self, live: Live) -> None:
        it = recipe("h21")
        live.submit(Evidence(it, OCTOCAT))
        later = live.service.http.get(f"/recipes/{name_of(it)}", params={"asOf": "2999-01-01T00:00:00Z"})
        assert later.status_code == 400


def test_an_ingest_touches_only_its_own_recipe(live: Live) -> None:
    mine, other = recipe("b300"), recipe("gb300")
    live.submit(Evidence(mine, OCTOCAT))
    live.submit(Evidence(other, OCTOCAT))
    store = live.service.container.store
    known = [line.recipe for line in store.summaries()]
    before = {name: store.revision(name) for name in known}
    live.submit(Evidence(mine, UAT_AWS))
    assert {name for name in known if store.revision(name) != before[name]} == {name_of(mine)}


def test_evidence_of_other_shapes_is_the_same_bundle(live: Live) -> None:
    """The builder of these tests makes two bundles of two numbers and one bundle of one."""
    first = Evidence(recipe("x1"), OCTOCAT, predicate_type=RECIPE_EVIDENCE_V3)
    assert live.build(first).files == live.build(first).files
    assert live.build(first).files != live.build(variant(first)).files


def test_people_are_shown_masked_and_by_label(live: Live) -> None:
    someone = email_identity("somebody@example.org")
    it = recipe("mi300")
    live.submit(Evidence(it, OCTOCAT))
    live.submit(Evidence(it, someone))
    shown = {one["source"]: (one["identity"], one["label"]) for one in live.recipe(it)["sources"]}
    assert shown[someone.signer.slug] == ("s…y@example.org", "")
    assert "octocat" in shown[OCTOCAT.signer.slug][1]
