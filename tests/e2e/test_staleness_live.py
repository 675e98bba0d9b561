"""Catalogue, staleness, remarks, answers over HTTP: what triggers each reason and what clears it."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from app.core.refs import Digest
from app.core.statement import RECIPE_EVIDENCE_V1, RECIPE_EVIDENCE_V2
from app.ports import Act
from app.sandbox.demo.recipes import SampleRecipe
from app.sandbox.identities import DEV_TWO, OCTOCAT, STRANGER, UAT_AWS
from tests.support.endtoend import cli
from tests.support.live import Evidence, Live, living, name_of, recipe
from tests.support.runs import allowlist_text

OLD_DRIVER = "570.172.08"
HEALTH = ["operator-health"]


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    text = allowlist_text(OCTOCAT.signer, DEV_TWO.signer, UAT_AWS.signer)
    with living(tmp_path_factory.mktemp("staleness"), text) as running:
        yield running


def at_ingest(live: Live, digest: str) -> dict[str, Any]:
    """What is kept about a record's staleness when it came."""
    kept = live.get(f"/evidence/{digest}")["records"][0]["staleness"]["atIngest"]
    return {name: kept[name] for name in ("staleness", "commit")}


class TestReasons:
    def test_unknown_current_until_a_catalogue_comes(self, live: Live) -> None:
        it = recipe("h100")
        digest = live.submit(Evidence(it, OCTOCAT))["digest"]
        assert set(live.reasons(it, OCTOCAT)) == {"UNKNOWN_CURRENT"}
        assert live.recipe(it)["currentState"] is None
        live.push(it)
        assert live.reasons(it, OCTOCAT) == {}
        assert live.recipe(it)["currentState"] == "SINGLE"
        assert at_ingest(live, digest) == {"staleness": ["UNKNOWN_CURRENT"], "commit": None}

    def test_drifted_says_both_digests_and_what_changed_until_a_new_run(self, live: Live) -> None:
        today = recipe("h200")
        earlier = replace(today, driver=OLD_DRIVER, kubernetes=">= 1.31")
        live.push(earlier, commit="aaaa111")
        digests = [live.submit(Evidence(earlier, signer, days_ago=5))["digest"] for signer in (OCTOCAT, UAT_AWS)]
        assert live.recipe(today)["currentState"] == "CONFIRMED"
        live.push(today, commit="bbbb222")
        body = live.recipe(today)
        assert (body["state"], body["currentState"], body["digests"]) == ("CONFIRMED", "UNTESTED", 1)
        assert "stale-digest" in {remark["code"] for remark in body["remarks"]}
        (reason,) = live.standing(today, OCTOCAT)["staleness"]
        attested = live.standing(today, OCTOCAT)["recipeDigest"].removeprefix("sha256:")
        current = body["catalogue"]["contentOnly"].removeprefix("sha256:")
        assert reason["message"] == f"stale ({attested[:12]}… vs current {current[:12]}…)"
        assert reason["difference"] == [
            f"component gpu-operator: overrides.driver.version {OLD_DRIVER} -> 580.105.08",
            "constraint K8s.server.version: >= 1.31 -> >= 1.32.4",
        ]
        assert at_ingest(live, digests[0]) == {"staleness": [], "commit": "aaaa111"}
        assert "older digest" in body["missing"][0]["message"]
        live.submit(Evidence(today, OCTOCAT, days_ago=1))
        assert "DRIFTED" not in live.reasons(today, OCTOCAT)
        assert live.recipe(today)["currentState"] == "SINGLE"

    def test_a_change_in_a_component_that_is_off_is_a_drift_too(self, live: Live) -> None:
        it = recipe("gb200")
        before, after = (
            it.text.replace(
                b"    version: v25.8.0\n", f"    version: {version}\n    overrides:\n      enabled: false\n".encode()
            )
            for version in ("v25.8.0", "v25.9.0")
        )
        live.submit(Evidence(it, OCTOCAT, text=before))
        live.put("/recipes", {"recipes": [{"recipe": before.decode()}], "commit": "aaaa111"})
        assert live.reasons(it, OCTOCAT) == {}
        live.put("/recipes", {"recipes": [{"recipe": after.decode()}], "commit": "bbbb222"})
        assert live.reasons(it, OCTOCAT)["DRIFTED"]["difference"] == [
            "component nvidia-dra-driver-gpu (off): version v25.8.0 -> v25.9.0"
        ]

    def test_never_published_until_that_recipe_is(self, live: Live) -> None:
        today = recipe("b200")
        forked = replace(today, driver="999.0.0")
        live.push(today)
        live.submit(Evidence(forked, OCTOCAT))
        assert set(live.reasons(today, OCTOCAT)) == {"DRIFTED", "NEVER_PUBLISHED"}
        live.push(forked)
        assert live.reasons(today, OCTOCAT) == {}
        live.push(today)
        assert set(live.reasons(today, OCTOCAT)) == {"DRIFTED"}

    @pytest.mark.parametrize("predicate_type", [RECIPE_EVIDENCE_V1, RECIPE_EVIDENCE_V2])
    def test_legacy_predicates_are_compared_by_their_own_algorithm(self, live: Live, predicate_type: str) -> None:
        profiled = predicate_type == RECIPE_EVIDENCE_V2
        it = recipe("a100", profiled=profiled)
        live.push(it)
        live.submit(Evidence(it, OCTOCAT, predicate_type=predicate_type, days_ago=2))
        assert set(live.reasons(it, OCTOCAT)) == {"LEGACY_PREDICATE"}
        assert live.recipe(it)["currentState"] == "SINGLE"
        live.submit(Evidence(it, OCTOCAT, days_ago=1))
        assert live.reasons(it, OCTOCAT) == {}

    def test_superseded_by_a_newer_run_of_the_same_source(self, live: Live) -> None:
        it = recipe("l40")
        live.push(it)
        old = live.submit(Evidence(it, OCTOCAT, days_ago=3))["digest"]
        new = live.submit(Evidence(it, OCTOCAT, days_ago=1))["digest"]
        now = {one["reason"]: one for one in live.get(f"/evidence/{old}")["records"][0]["staleness"]["now"]}
        assert set(now) == {"SUPERSEDED"}
        assert new.removeprefix("sha256:")[:12] in now["SUPERSEDED"]["message"]
        assert at_ingest(live, old)["staleness"] == []
        late = live.submit(Evidence(it, OCTOCAT, days_ago=2))["digest"]
        assert at_ingest(live, late)["staleness"] == ["SUPERSEDED"]
        listed = live.get("/evidence", recipe=name_of(it), staleness="SUPERSEDED")["items"]
        assert {one["digest"] for one in listed} == {old, late}

    def test_aged_until_a_new_run(self, live: Live) -> None:
        it = recipe("l40s")
        live.push(it)
        live.submit(Evidence(it, OCTOCAT, days_ago=41))
        assert live.reasons(it, OCTOCAT)["AGED"]["message"] == "attested 41 days ago, more than 30"
        assert live.standing(it, OCTOCAT)["ageDays"] == 41
        assert live.line(it)["staleness"] == ["AGED"]
        live.submit(Evidence(it, OCTOCAT))
        assert live.reasons(it, OCTOCAT) == {}

    def test_gone_and_retracted_as_the_store_says(self, live: Live) -> None:
        """Routes and commands for both come with later parts; the states are computed already."""
        it = recipe("v100")
        live.push(it)
        digest = Digest.parse(live.submit(Evidence(it, OCTOCAT))["digest"])
        store, project = live.service.container.store, live.service.container.allowlist.project
        now = live.service.container.clock()
        store.set_gone(digest, now, gone=True, project=project)
        act = Act(now, "ada", "measured on the wrong cluster")
        store.retract(digest, OCTOCAT.signer.canonical_id, act, retracted=True, project=project)
        assert set(live.reasons(it, OCTOCAT)) == {"BUNDLE_GONE", "RETRACTED"}
        assert "measured on the wrong cluster" in live.reasons(it, OCTOCAT)["RETRACTED"]["message"]
        assert live.recipe(it)["state"] == "UNTESTED"
        store.set_gone(digest, now, gone=False, project=project)
        store.retract(digest, OCTOCAT.signer.canonical_id, act, retracted=False, project=project)
        assert live.reasons(it, OCTOCAT) == {}
        assert live.recipe(it)["state"] == "SINGLE"


class TestCatalogue:
    def test_one_recipe_as_yaml_as_text_and_as_digests(self, live: Live) -> None:
        it = recipe("p100")
        path = f"/recipes/{name_of(it)}"
        yaml = {"content": it.text, "headers": {"Content-Type": "application/yaml"}}
        first = live.try_put(f"{path}?commit=abc1234&ref=main", **yaml).json()
        assert (first["recipe"], first["changed"]) == (name_of(it), True)
        digests = {"legacy": first["legacy"], "contentOnly": first["contentOnly"]}
        assert live.put(path, {"recipe": it.text.decode(), "commit": "abc1234", "ref": "main"})["changed"] is False
        assert live.put(path, {"digests": digests, "commit": "abc1234", "ref": "main"})["changed"] is False
        shown = live.recipe(it)["catalogue"]
        assert (shown["commit"], shown["ref"], shown["contentOnly"]) == ("abc1234", "main", first["contentOnly"])

    def test_a_text_that_is_another_recipe_is_refused(self, live: Live) -> None:
        it = recipe("p40")
        answer = live.try_put("/recipes/some-other-name", json={"recipe": it.text.decode()})
        assert (answer.status_code, answer.json()["code"]) == (400, "INVALID_REQUEST")
        assert answer.json()["details"]["derived"] == name_of(it)
        bulk = {"recipes": [{"name": "some-other-name", "recipe": it.text.decode()}, {"recipe": it.text.decode()}]}
        assert live.try_put("/recipes", json=bulk).status_code == 400
        assert live.service.http.get(f"/recipes/{name_of(it)}").status_code == 404

    def test_a_push_needs_the_token(self, live: Live) -> None:
        it = recipe("p4")
        body = {"recipes": [{"recipe": it.text.decode()}]}
        assert live.service.http.put("/recipes", json=body).status_code == 401
        wrong = {"Authorization": "Bearer something"}
        assert live.try_put("/recipes", json=body, headers=wrong).status_code == 401

    def test_versions_are_only_added_and_the_past_keeps_its_own(self, live: Live) -> None:
        it = recipe("t4")
        live.push(it, commit="aaaa111")
        recorded = live.recipe(it)["catalogue"]["recordedAt"]
        live.push(replace(it, driver="581.0"), commit="bbbb222")
        assert live.recipe(it)["catalogue"]["commit"] == "bbbb222"
        assert live.recipe(it, asOf=recorded)["catalogue"]["commit"] == "aaaa111"
        events = [event.kind for event in live.service.container.store.replay()]
        assert events.count("catalogue-pushed") >= 2

    def test_declared_checks_alone_make_the_current_state(self, live: Live) -> None:
        it = recipe("a10")
        live.push(it, declared={"deployment": HEALTH})
        results = {"deployment": {"operator-health": "passed", "of-my-own": "failed"}}
        for signer in (OCTOCAT, UAT_AWS):
            live.submit(Evidence(it, signer, results))
        body = live.recipe(it)
        assert (body["state"], body["currentState"]) == ("FAILING", "CONFIRMED")
        assert [row["name"] for row in body["current"]["rows"]] == ["operator-health"]


class TestRemarks:
    def test_a_validator_image_by_a_tag_that_can_move(self, live: Live) -> None:
        it = recipe("r1")
        live.submit(Evidence(it, OCTOCAT, images=(("ghcr.io/nvidia/aicr-validators:latest", ""),)))
        live.submit(Evidence(it, UAT_AWS, images=(("ghcr.io/nvidia/aicr-validators:v1.0.0", ""),)))
        assert "latest" in live.remarks(it, OCTOCAT)["validator-mutable-tag"]["data"]["images"]
        assert "validator-mutable-tag" not in live.remarks(it, UAT_AWS)

    def test_values_that_were_overridden_by_path(self, live: Live) -> None:
        it = recipe("r2")
        answer = live.submit(Evidence(it, OCTOCAT, overridden=("driver.version", "dcgm.enabled")))
        assert live.remarks(it, OCTOCAT)["overridden"]["data"] == {"paths": "dcgm.enabled, driver.version"}
        assert "overridden" in {remark["code"] for remark in answer["remarks"]}

    def test_hardware_that_does_not_match_counts_for_no_current_state(self, live: Live) -> None:
        it = recipe("h100", criteria={"service": "gke", "os": "cos"})
        live.push(it)
        live.submit(Evidence(it, OCTOCAT, accelerator="a100"))
        assert live.remarks(it, OCTOCAT)["mismatched-hardware"]["data"] == {"accelerator": "h100 required, a100 found"}
        body = live.recipe(it)
        assert (body["state"], body["currentState"]) == ("SINGLE", "UNTESTED")

    def test_signed_long_after_the_run(self, live: Live) -> None:
        it = recipe("r3")
        live.submit(Evidence(it, OCTOCAT, days_ago=8))
        live.submit(Evidence(it, UAT_AWS, days_ago=6))
        assert "signed-late" in live.remarks(it, OCTOCAT)
        assert "signed-late" not in live.remarks(it, UAT_AWS)

    def test_a_personal_address_in_a_public_log(self, live: Live) -> None:
        it = recipe("r4")
        live.submit(Evidence(it, DEV_TWO))
        live.submit(Evidence(it, OCTOCAT))
        remark = live.remarks(it, DEV_TWO)["personal-address"]
        assert "dev-two@example.org" not in str(remark)
        assert "personal-address" not in live.remarks(it, OCTOCAT)

    def test_figures_below_the_floor_of_the_catalogue(self, live: Live) -> None:
        it = recipe("r5")
        check = {"performance": {"nccl-all-reduce-bw": "passed"}}
        first = live.submit(
            Evidence(it, OCTOCAT, check, stdout=("NCCL All Reduce bandwidth: 231.50 GB/s",), days_ago=3)
        )["digest"]
        live.submit(Evidence(it, UAT_AWS, check, stdout=("NCCL All Reduce bandwidth: 488.37 GB/s",)))
        assert "below-floor" not in live.remarks(it, OCTOCAT)
        live.push(it, floors={"nccl-all-reduce-bw": ">= 300"})
        assert live.remarks(it, OCTOCAT)["below-floor"]["data"] == {"nccl-all-reduce-bw": "231.5 GB/s, asked >= 300"}
        assert "below-floor" not in live.remarks(it, UAT_AWS)
        live.submit(Evidence(it, OCTOCAT, check, stdout=("NCCL All Reduce bandwidth: 412.00 GB/s",)))
        assert "below-floor" not in live.remarks(it, OCTOCAT)
        older = live.get(f"/evidence/{first}")["records"][0]["remarks"]
        assert "below-floor" in {remark["code"] for remark in older}


FLEET = {"service": "lke", "accelerator": "h100", "intent": "training", "platform": "kubeflow"}


@pytest.fixture(scope="module")
def fleet(live: Live) -> SampleRecipe:
    """Confirmed for today's digest on a service that no other test uses."""
    it = recipe("h100", criteria={"service": "lke", "platform": "kubeflow"})
    live.push(it, declared={"deployment": HEALTH})
    for signer in (OCTOCAT, UAT_AWS):
        live.submit(Evidence(it, signer))
    return it


class TestAnswers:
    def test_criteria_that_fit_get_k_of_n_and_the_command(self, live: Live, fleet: SampleRecipe) -> None:
        body = live.get("/answer", **FLEET, os="ubuntu")
        assert body["state"] == "CONFIRMED"
        first = body["matches"][0]
        assert (first["recipe"], first["passes"], first["threshold"], first["differs"]) == (name_of(fleet), 2, 2, [])
        assert first["command"].startswith("aicr recipe ")
        for word in ("--service lke", "--accelerator h100", "--platform kubeflow"):
            assert word in first["command"]

    def test_the_nearest_recipe_names_exactly_what_differs(self, live: Live, fleet: SampleRecipe) -> None:
        body = live.get("/answer", **FLEET, os="rhel")
        assert (body["state"], body["matches"]) == (None, [])
        nearest = body["nearest"][0]
        assert nearest["recipe"] == name_of(fleet)
        assert nearest["differs"] == [{"dimension": "os", "asked": "rhel", "recipe": "ubuntu"}]
        assert nearest["command"]

    def test_a_fingerprint_and_a_snapshot_are_read(self, live: Live, fleet: SampleRecipe) -> None:
        produced = live.build(Evidence(fleet, STRANGER))
        fingerprint = produced.predicate["fingerprint"]
        for sent in (
            {"json": fingerprint, "params": {"intent": "training", "platform": "kubeflow"}},
            {"json": {"criteria": {"service": "lke", "accelerator": "h100", "intent": "training"}}},
        ):
            body = live.service.http.post("/answer", **sent).json()
            assert body["matches"][0]["recipe"] == name_of(fleet), body
        snapshot = live.service.http.post(
            "/answer",
            content=produced.files["snapshot.yaml"],
            headers={"Content-Type": "application/yaml"},
            params={"service": "lke", "intent": "training"},
        )
        assert snapshot.status_code == 200
        assert snapshot.json()["matches"] or snapshot.json()["nearest"]

    def test_no_question_is_left_without_an_answer(self, live: Live, fleet: SampleRecipe) -> None:
        body = live.get("/answer", service="moon", accelerator="abacus", os="dos", intent="play")
        assert body["state"] is None
        assert body["nearest"]
        assert body["sentence"]

    def test_an_answer_of_a_terminal_is_the_same(self, live: Live, fleet: SampleRecipe) -> None:
        words = ("--service", "lke", "--accelerator", "h100", "--os", "rhel", "--intent", "training")
        run = cli("answer", "--api", live.service.url, *words)
        assert run.code == 0
        assert name_of(fleet) in run.out
        assert "os" in run.out


class TestMissing:
    def test_one_more_signer_in_a_sentence_and_as_data(self, live: Live) -> None:
        it = recipe("m1")
        live.push(it)
        live.submit(Evidence(it, OCTOCAT))
        (item,) = live.recipe(it)["missing"]
        assert (item["needed"], item["have"], item["phase"], item["name"]) == (1, 1, "deployment", "operator-health")
        assert item["message"] == "one more signer for `deployment/operator-health` (1 of 2)"
        run = cli("why", name_of(it), "--api", live.service.url)
        assert (run.code, "one more signer for `deployment/operator-health`" in run.out.replace("\n", " ")) == (0, True)

    def test_it_names_who_is_closest(self, live: Live) -> None:
        today = recipe("m2")
        live.push(replace(today, driver=OLD_DRIVER))
        live.submit(Evidence(replace(today, driver=OLD_DRIVER), DEV_TWO, days_ago=41))
        live.push(today)
        live.submit(Evidence(today, OCTOCAT))
        (item,) = live.recipe(today)["missing"]
        slug = DEV_TWO.signer.slug
        assert item["message"] == (
            "one more signer for `deployment/operator-health` (1 of 2); "
            f"community source {slug[:8]}… is 41 days old and attests an older digest"
        )
        assert item["source"] == slug

    def test_nothing_is_missing_when_confirmed(self, live: Live) -> None:
        it = recipe("m3")
        live.push(it, declared={"deployment": HEALTH})
        for signer in (OCTOCAT, UAT_AWS):
            live.submit(Evidence(it, signer))
        assert live.recipe(it)["missing"] == []


def test_a_name_alone_is_a_recipe_and_a_retired_one_is_unknown_again(live: Live) -> None:
    """`?replace=true` retires what is absent; it stands last, since it touches every recipe of this module."""
    kept, gone = recipe("z1"), recipe("z2")
    live.push(kept, gone)
    live.submit(Evidence(gone, OCTOCAT))
    answer = live.push(kept, replace_all=True)
    assert name_of(gone) in answer["retired"]
    assert set(live.reasons(gone, OCTOCAT)) == {"UNKNOWN_CURRENT"}
    assert live.recipe(gone)["currentState"] is None
    assert live.line(kept)["published"] is True
    assert live.line(gone)["published"] is False
    live.push(gone)
    assert live.reasons(gone, OCTOCAT) == {}
