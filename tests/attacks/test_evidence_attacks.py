"""Attacks with evidence that is really signed, on a running service; each is named after its kind."""

import copy
import hashlib
import json
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import pytest

from app.core.cross_check import SignerClaim
from app.core.pointer import Pointer, dump_pointer
from app.sandbox.identities import (
    DEV_TWO,
    OCTOCAT,
    STRANGER,
    UAT_AWS,
    SanKind,
    caller_of,
    email_identity,
)
from app.sandbox.sigstore import Faults, PrivateSigstore
from app.sandbox.sigstore.log import LogVersion
from tests.support.arena import NOW, REPOSITORY, Arena, Pushed, recipe_named, report_of, sample_of, time_text
from tests.support.bundles import V1, V3, check, go_json, profiled

GITHUB_OAUTH = "https://github.com/login/oauth"


def pointer_to(pushed: Pushed, recipe: str, **changes: Any) -> bytes:
    """The pointer of a bundle as an honest writer makes it."""
    index = int(json.loads(pushed.signature)["verificationMaterial"]["tlogEntries"][0]["logIndex"])
    fields: dict[str, Any] = {
        "recipe": recipe,
        "predicate_type": V3,
        "oci": f"{pushed.ref.registry}/{pushed.ref.repository}",
        "digest": pushed.digest,
        "signer": SignerClaim(OCTOCAT.value, OCTOCAT.issuer, index),
        "attested_at": NOW - timedelta(days=1),
    }
    return dump_pointer(Pointer(**{**fields, **changes}))


def refused_pointer(arena: Arena, pointer: bytes) -> str:
    answer = arena.service.submit_pointer(pointer)
    assert answer.status_code == 422, answer.text
    return str(answer.json()["details"]["code"])


# --- vacuous pass on empty input ---------------------------------------------------------------------


def test_vacuous_pass_without_phases(attacked: Arena) -> None:
    """A run that recorded nothing is kept as that, and confirms nothing."""
    body = attacked.accepted(attacked.push(sample_of("no-phases", reports={})))
    assert body["state"]["after"] == "UNTESTED"
    assert attacked.recipe("no-phases")["rows"] == []


def test_vacuous_pass_with_an_empty_phase(attacked: Arena) -> None:
    """A phase without a test is nothing recorded: never passed, neither here nor in the roll-up."""
    empty = {"deployment": report_of(attested=NOW - timedelta(days=1))}
    assert attacked.accepted(attacked.push(sample_of("empty-phase", reports=empty)))["state"]["after"] == "UNTESTED"
    assert set(attacked.recipe("empty-phase")["phaseStates"].values()) == {"UNTESTED"}


def test_vacuous_pass_with_counts_and_no_tests(attacked: Arena) -> None:
    """The summary claims three passes that no test stands for."""
    claimed = {"deployment": report_of(attested=NOW - timedelta(days=1), tests=3, passed=3)}
    phases = {"deployment": {"passed": 3}}
    assert attacked.code(attacked.push(sample_of("claimed", reports=claimed, phases=phases))).startswith(("E3_", "E9_"))


def test_vacuous_pass_with_an_empty_manifest(attacked: Arena) -> None:
    """A manifest that lists nothing covers nothing, however well it is signed."""
    sample = sample_of("empty-manifest")
    manifest = go_json({"schemaVersion": "1.0.0", "files": []})
    pushed = attacked.push(sample, edit=lambda files: files.update({"manifest.json": manifest}))
    assert attacked.code(pushed) == "MANIFEST_INVENTORY"


@pytest.mark.parametrize(
    "subjects", [pytest.param([], id="none"), pytest.param([{"name": "x", "digest": {}}], id="no digest")]
)
def test_vacuous_pass_without_a_subject(attacked: Arena, subjects: list[object]) -> None:
    pushed = attacked.push(sample_of("no-subject"), statement=lambda s: s.update(subject=subjects))
    assert attacked.code(pushed) == "STATEMENT_MALFORMED"


def test_vacuous_pass_when_everything_was_skipped(attacked: Arena) -> None:
    attested = NOW - timedelta(days=1)
    skipped = {"deployment": report_of(check("operator-health", "skipped", 0), attested=attested)}
    assert attacked.accepted(attacked.push(sample_of("all-skipped", reports=skipped)))["state"]["after"] == "UNTESTED"


# --- replay, type confusion, one entry for two -------------------------------------------------------


def test_replay_of_one_bundle_under_another_recipe_by_its_signature(attacked: Arena) -> None:
    """The signature of a good run is attached to a bundle about another recipe."""
    honest = attacked.push(sample_of("replay-source"))
    stolen = attacked.push(sample_of("replay-target"), signature=honest.signature)
    assert attacked.code(stolen) == "S16_SUBJECT_MISMATCH"


def test_replay_of_one_bundle_under_another_recipe_by_its_pointer(attacked: Arena) -> None:
    pushed = attacked.push(sample_of("replay-pointer"))
    pointer = pointer_to(pushed, "h100-eks-ubuntu-training-better")
    assert refused_pointer(attacked, pointer) == "PREDICATE_MALFORMED"


def test_replay_of_one_bundle_under_another_recipe_by_its_predicate(attacked: Arena) -> None:
    """The signer himself reuses a predicate for a bundle whose recipe is another."""
    borrowed = json.loads(sample_of("replay-source").files()["statement.intoto.json"])["predicate"]
    pushed = attacked.push(sample_of("replay-predicate"), statement=lambda s: s.update(predicate=borrowed))
    assert attacked.code(pushed) == "MANIFEST_INVENTORY"


def test_replay_of_results_under_another_recipe_text(attacked: Arena) -> None:
    """Manifest and phases fit, the name in the predicate is of another recipe."""
    sample = sample_of("replay-name")
    sample.predicate["recipe"] = {"name": "h100-eks-ubuntu-training-better", "digest": "0" * 64}
    assert attacked.code(attacked.push(sample)) == "RECIPE_IDENTITY_MISMATCH"


@pytest.mark.parametrize(
    ("predicate_type", "code"),
    [
        pytest.param("https://slsa.dev/provenance/v1", "PREDICATE_INCOHERENT", id="build provenance"),
        pytest.param("https://aicr.nvidia.com/recipe-evidence/v1", "PREDICATE_INCOHERENT", id="older host"),
        pytest.param("https://aicr.run/recipe-evidence/v9", "PREDICATE_INCOHERENT", id="unknown version"),
        pytest.param("https://aicr.run/recipe-evidence/v2", "PREDICATE_INCOHERENT", id="v2 without profile"),
        pytest.param("https://aicr.run/recipe-evidence/v1", "RECIPE_IDENTITY_MISMATCH", id="digest of the other type"),
    ],
)
def test_attestation_type_confusion(attacked: Arena, predicate_type: str, code: str) -> None:
    pushed = attacked.push(sample_of("confused"), statement=lambda s: s.update(predicateType=predicate_type))
    assert attacked.code(pushed) == code


def test_attestation_type_confusion_by_the_local_statement(attacked: Arena) -> None:
    """The bundle's own unsigned statement, signed: its subject is the recipe, not the artifact."""
    sample = sample_of("local-statement")
    local = json.loads(sample.files()["statement.intoto.json"])["subject"]
    assert attacked.code(attacked.push(sample, statement=lambda s: s.update(subject=local))) == "S16_SUBJECT_MISMATCH"


def test_two_subjects_in_one_statement(attacked: Arena) -> None:
    """One signature that claims two artifacts."""
    other = {"name": "x", "digest": {"sha256": "1" * 64}}
    pushed = attacked.push(sample_of("two-subjects"), statement=lambda s: s["subject"].append(other))
    assert attacked.code(pushed) == "E9_STATEMENT_INCOMPLETE"


@contextmanager
def forked_log(sigstore: PrivateSigstore) -> Iterator[None]:
    """What is logged inside never happened for those who look afterwards: the log shows two faces."""
    log = sigstore.logs[LogVersion.V2]
    kept = (log._tree, log._entries, log._by_leaf)
    log._tree, log._entries, log._by_leaf = copy.deepcopy(kept)
    yield
    log._tree, log._entries, log._by_leaf = kept


def test_one_log_entry_for_two_bundles(attacked: Arena) -> None:
    """A log that shows two faces gives the same index twice; only the first bundle keeps it."""
    with forked_log(attacked.sigstore):
        first = attacked.push(sample_of("one-entry", salt=1))
    second = attacked.push(sample_of("one-entry", salt=2))
    indices = [json.loads(p.signature)["verificationMaterial"]["tlogEntries"][0]["logIndex"] for p in (first, second)]
    assert indices[0] == indices[1]
    attacked.accepted(first)
    details = attacked.refused(second)
    assert (details["code"], details["cause"]["class"], details["step"]) == (
        "LOG_ENTRY_REUSED",
        "signature",
        "signature-verify",
    )
    assert attacked.recipe("one-entry")["state"] == "SINGLE"


# --- JSON that two readers read differently ----------------------------------------------------------


def test_json_case_variant_keys_in_the_predicate(attacked: Arena) -> None:
    def hide(statement: dict[str, Any]) -> None:
        statement["predicate"]["Phases"] = {"deployment": {"passed": 0, "failed": 3, "skipped": 0, "ctrfDigest": ""}}

    assert attacked.code(attacked.push(sample_of("case-predicate"), statement=hide)) == "S2_JSON_NOT_STRICT"


@pytest.mark.parametrize("key", ["Files", "FILES"])
def test_json_case_variant_keys_in_the_manifest(attacked: Arena, key: str) -> None:
    """Go would take the second list of files, which leaves out what was changed."""
    sample = sample_of("case-manifest")
    files = sample.files()
    manifest = json.loads(files["manifest.json"])
    double = go_json({**manifest, key: manifest["files"][:1]})
    pushed = attacked.push(_with_manifest(sample, double), edit=lambda held: held.update({"manifest.json": double}))
    assert attacked.code(pushed) == "MANIFEST_INVENTORY"


def test_json_duplicate_keys_in_the_manifest(attacked: Arena) -> None:
    sample = sample_of("twice-manifest")
    double = sample.files()["manifest.json"].replace(b'"files": [', b'"files": [],\n  "files": [', 1)
    pushed = attacked.push(_with_manifest(sample, double), edit=lambda held: held.update({"manifest.json": double}))
    assert attacked.code(pushed) == "MANIFEST_INVENTORY"


def _with_manifest(sample: Any, manifest: bytes) -> Any:
    """The sample whose predicate vouches for another manifest."""
    sample.predicate["manifest"] = {
        "digest": f"sha256:{hashlib.sha256(manifest).hexdigest()}",
        "fileCount": len(sample.body()),
    }
    return sample


def test_json_case_variant_keys_in_a_report(attacked: Arena) -> None:
    """`Status` beside `status`: one reader sees a pass, the other a failure."""
    attested = NOW - timedelta(days=1)
    tricky = {"deployment": report_of(check("operator-health", Status="failed"), attested=attested)}
    assert attacked.code(attacked.push(sample_of("case-report", reports=tricky))) == "E3_PHASE_COUNTS_MISMATCH"


# --- who it is ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "value"),
    [
        pytest.param("email-case", "Dev-Two@example.org", id="e-mail case"),
        pytest.param("email-dot", "dev-two@example.org.", id="final dot"),
        pytest.param("email-plus", "dev-two+1@example.org", id="plus tag"),
        pytest.param("email-longer", "dev-two@example.org.evil.example", id="longer domain"),
    ],
)
def test_email_case_and_other_spellings_are_strangers(attacked: Arena, name: str, value: str) -> None:
    body = attacked.accepted(attacked.push(sample_of(name), email_identity(value)))
    assert (body["allowlisted"], body["state"]["after"]) == (False, "UNTESTED")


def test_identity_of_the_right_name_from_another_issuer(attacked: Arena) -> None:
    impostor = email_identity(DEV_TWO.value, "https://login.stranger.example")
    body = attacked.accepted(attacked.push(sample_of("other-issuer"), impostor))
    assert (body["allowlisted"], body["state"]["after"]) == (False, "UNTESTED")


@pytest.mark.parametrize(
    "identity",
    [
        pytest.param("dev-tw\u043e@example.org", id="homoglyph"),
        pytest.param("dev-two\u200b@example.org", id="zero-width"),
        pytest.param("dev-two@example.org\nx", id="newline"),
    ],
)
def test_identity_by_homoglyph_zero_width_and_newline(attacked: Arena, identity: str) -> None:
    sample = sample_of("homoglyph")
    honest = attacked.push(sample)
    statement = json.dumps(
        {
            "_type": "https://in-toto.io/Statement/v1",
            "subject": [{"name": "x", "digest": {"sha256": honest.artifact.digest.hex}}],
            "predicateType": V3,
            "predicate": json.loads(sample.files()["statement.intoto.json"])["predicate"],
        }
    ).encode()
    forged = attacked.sigstore.mint(statement, DEV_TWO, faults=Faults(names=((SanKind.URI, identity),)))
    assert (
        attacked.code(attacked.push(sample, signature=forged, repository="aicr/homoglyph")) == "S14_IDENTITY_NOT_PLAIN"
    )


def test_another_owners_repository_calls_a_trusted_reusable_workflow(attacked: Arena) -> None:
    body = attacked.accepted(attacked.push(sample_of("borrowed"), caller_of(UAT_AWS, "mallory/borrower")))
    assert body["state"]["after"] == "UNTESTED"
    assert "weightless" in [remark["code"] for remark in body["remarks"]]


def test_squatting_a_recipe_name_by_a_stranger(attacked: Arena) -> None:
    """A stranger reaches the name first, with other criteria that spell the same; the listed owner gets it."""
    twisted = recipe_named("squatted").replace(b"intent: training", b"intent: training-squatted")
    twisted = twisted.replace(b"    platform: squatted\n", b"")
    stolen = sample_of("squatted", recipe=twisted)
    rows = stolen.predicate["criteriaMatch"]["perDimension"]  # type: ignore[index]
    rows[3]["recipeRequires"] = "training-squatted"
    rows[4] = {"dimension": "platform", "match": "matched"}
    first = attacked.accepted(attacked.push(stolen, STRANGER))
    assert first["recipe"] == "h100-eks-ubuntu-training-squatted"
    attacked.accepted(attacked.push(sample_of("squatted")))
    found = attacked.recipe("squatted")
    assert found["state"] == "SINGLE"
    assert found["criteria"]["platform"] == "squatted"
    assert [one["code"] for one in found["setAside"]] == ["CRITERIA_CONFLICT"]


def test_sybils_confirm_nothing(attacked: Arena) -> None:
    for number in range(5):
        body = attacked.accepted(
            attacked.push(sample_of("sybils", salt=number), email_identity(f"sybil{number}@example.org"))
        )
    assert body["state"]["after"] == "UNTESTED"
    assert attacked.recipe("sybils")["parties"] == 0


def test_a_flood_of_invented_checks(attacked: Arena) -> None:
    """A stranger's report with a thousand made-up names: the page stays small, a larger one is refused."""
    attested = NOW - timedelta(days=1)
    attacked.accepted(attacked.push(sample_of("flooded", salt=90)))

    def flood(count: int) -> dict[str, dict[str, object]]:
        names = (f"{number:05d}-" + hashlib.sha512(str(number).encode()).hexdigest() for number in range(count))
        return {"deployment": report_of(*map(check, names), attested=attested)}

    attacked.accepted(attacked.push(sample_of("flooded", reports=flood(1000)), STRANGER))
    found = attacked.recipe("flooded")
    assert found["state"] == "SINGLE"
    assert len(found["rows"]) == 204
    assert "strangers-left-out" in [remark["code"] for remark in found["remarks"]]
    assert len(attacked.get("/ui/recipes/h100-eks-ubuntu-training-flooded").content) < 1 << 20
    code = attacked.code(attacked.push(sample_of("flooded", reports=flood(1001), salt=91), STRANGER))
    assert code == "E3_PHASE_COUNTS_MISMATCH"


def test_copied_runs(attacked: Arena) -> None:
    """A second listed signer publishes the first one's reports as his own."""
    attacked.accepted(attacked.push(sample_of("copied"), OCTOCAT))
    body = attacked.accepted(attacked.push(sample_of("copied", predicate={"aicrVersion": "v0.42.1"}), DEV_TWO))
    assert body["state"]["after"] == "SINGLE"
    assert "copy-of" in [remark["code"] for remark in attacked.recipe("copied")["remarks"]]


def test_a_strangers_front_run_signature(attacked: Arena) -> None:
    """A stranger signs somebody's artifact and submits first; the owner's record is his own, with its weight."""
    sample = sample_of("front-run")
    first = attacked.accepted(attacked.push(sample, STRANGER, repository="aicr/mirror"))
    second = attacked.accepted(attacked.push(sample, OCTOCAT))
    assert first["digest"] == second["digest"]
    assert (first["state"]["after"], second["state"]["after"]) == ("UNTESTED", "SINGLE")
    assert first["source"] != second["source"]


# --- times -------------------------------------------------------------------------------------------


def test_future_attested_at_pins_nothing_as_latest(attacked: Arena) -> None:
    later = sample_of("future", predicate={"attestedAt": time_text(NOW + timedelta(days=300))})
    assert attacked.code(attacked.push(later)) == "E6_ATTESTED_IN_FUTURE"


def test_a_late_signature_is_remarked(attacked: Arena) -> None:
    body = attacked.accepted(attacked.push(sample_of("late", days=9)))
    assert "signed-late" in [remark["code"] for remark in body["remarks"]]


def test_an_older_pass_does_not_hide_a_newer_failure(attacked: Arena) -> None:
    """Submitted last, attested first."""
    attested = NOW - timedelta(days=1)
    failed = {"deployment": report_of(check("operator-health", "failed"), attested=attested)}
    attacked.accepted(attacked.push(sample_of("rewind", reports=failed)))
    body = attacked.accepted(attacked.push(sample_of("rewind", days=3, salt=3)))
    assert body["state"]["after"] == "FAILING"


def test_reports_that_stop_before_they_start_or_after_the_attestation(attacked: Arena) -> None:
    attested = NOW - timedelta(days=1)
    later = int((attested + timedelta(hours=2)).timestamp() * 1000)
    for start, stop in ((later, later + 1), (later - 7_300_000, later - 7_400_000)):
        odd = {"deployment": report_of(check("operator-health"), attested=attested, start=start, stop=stop)}
        assert attacked.code(attacked.push(sample_of("odd-times", reports=odd))) == "E10_TIMES_OUT_OF_ORDER"


# --- profiles and pointers ---------------------------------------------------------------------------


def test_profile_suffix_trick(attacked: Arena) -> None:
    """The name ends as if `ubuntu=training` were its profile; the recipe has none."""
    plain = sample_of("x")
    plain.recipe, plain.name = plain.recipe.replace(b"    platform: x\n", b""), "h100-eks-ubuntu-training"
    plain.predicate["criteriaMatch"]["perDimension"][4] = {  # type: ignore[index]
        "dimension": "platform",
        "match": "matched",
    }
    pushed = attacked.push(plain)
    honest = pointer_to(pushed, plain.name)
    assert attacked.service.submit_pointer(honest).status_code == 201
    trick = pointer_to(pushed, plain.name, profile="ubuntu=training")
    assert refused_pointer(attacked, trick) == "RECIPE_IDENTITY_MISMATCH"


def test_profile_of_another_stack(attacked: Arena) -> None:
    """The block in the predicate selects another value than the recipe."""
    sample = profiled(profile={"selection": "gpuStack=azure-managed", "policyDescriptorIdentity": "0" * 64})
    sample.predicate = {"attestedAt": time_text(NOW)}
    assert attacked.code(attacked.push(sample)) == "RECIPE_IDENTITY_MISMATCH"


@pytest.mark.parametrize(
    ("change", "code"),
    [
        pytest.param({"attested_at": NOW}, "E5_POINTER_MISMATCH", id="another time"),
        pytest.param({"predicate_type": V1}, "E5_POINTER_MISMATCH", id="another type"),
        pytest.param({"signer": SignerClaim(DEV_TWO.value, GITHUB_OAUTH)}, "S17_IDENTITY_MISMATCH", id="identity"),
        pytest.param({"signer": SignerClaim(OCTOCAT.value, "https://a.example")}, "S17_ISSUER_MISMATCH", id="issuer"),
        pytest.param({"signer": SignerClaim(OCTOCAT.value, GITHUB_OAUTH, 0)}, "S17_LOG_INDEX_MISMATCH", id="index 0"),
    ],
)
def test_a_pointer_that_claims_something_else(attacked: Arena, change: dict[str, Any], code: str) -> None:
    attacked.push(sample_of("claims-before"))
    pushed = attacked.push(sample_of("claims"))
    assert refused_pointer(attacked, pointer_to(pushed, "h100-eks-ubuntu-training-claims", **change)) == code


def test_cache_keyed_by_tag(attacked: Arena) -> None:
    """The tag moves after the first submission; the digest decides, and a tag alone is never taken."""
    first = attacked.push(sample_of("tagged", salt=1))
    pinned = f"{first.ref.registry}/{REPOSITORY}:moving@{first.digest}"
    attacked.registry.store.put_manifest(
        REPOSITORY, "moving", "application/vnd.oci.image.manifest.v1+json", first.artifact.manifest
    )
    stored = attacked.submit(pinned)
    assert stored.status_code == 201
    failed = {"deployment": report_of(check("operator-health", "failed"), attested=NOW - timedelta(days=1))}
    second = attacked.push(sample_of("tagged", salt=2, reports=failed))
    attacked.registry.store.put_manifest(
        REPOSITORY, "moving", "application/vnd.oci.image.manifest.v1+json", second.artifact.manifest
    )
    again = attacked.submit(pinned)
    assert (again.status_code, again.json()["digest"]) == (200, first.digest)
    assert attacked.submit(f"{first.ref.registry}/{REPOSITORY}:moving").status_code == 400


# --- results that say two things ---------------------------------------------------------------------


def test_a_pass_hides_a_failure_of_the_same_name(attacked: Arena) -> None:
    attested = NOW - timedelta(days=1)
    tests = (check("operator-health", "failed"), check("operator-health", "passed"))
    twice = {"deployment": report_of(*tests, attested=attested)}
    assert attacked.code(attacked.push(sample_of("same-name", reports=twice))) == "E4_DUPLICATE_TEST"


def test_a_failure_that_the_predicate_does_not_count(attacked: Arena) -> None:
    attested = NOW - timedelta(days=1)
    failed = {"deployment": report_of(check("operator-health", "failed"), attested=attested)}
    counts = {"deployment": {"passed": 1, "failed": 0}}
    assert attacked.code(attacked.push(sample_of("uncounted", reports=failed, phases=counts))) == (
        "E3_PHASE_COUNTS_MISMATCH"
    )


@pytest.mark.parametrize("count", [10**18, 2**63, 2**70, -1, 1e300])
def test_huge_counts(attacked: Arena, count: float) -> None:
    sample = sample_of("huge", phases={"deployment": {"passed": count}})
    assert attacked.code(attacked.push(sample)) in {
        "E3_PHASE_COUNTS_MISMATCH",
        "PREDICATE_MALFORMED",
        "S2_JSON_NOT_STRICT",
    }


def test_a_file_that_nobody_signed_for(attacked: Arena) -> None:
    stray = attacked.push(sample_of("stray"), edit=lambda files: files.update({"ctrf/conformance.json": b"{}"}))
    assert attacked.code(stray) == "MANIFEST_INVENTORY"


def test_a_result_changed_after_the_signature(attacked: Arena) -> None:
    def better(files: dict[str, bytes]) -> None:
        files["ctrf/deployment.json"] = files["ctrf/deployment.json"].replace(b"1001", b"1002")

    assert attacked.code(attacked.push(sample_of("changed"), edit=better)) == "MANIFEST_INVENTORY"


@pytest.mark.parametrize(
    ("commit", "kept"),
    [
        pytest.param("ABC1234", "abc1234", id="G08"),
        pytest.param("<script>alert(1)</script>", "", id="G08-markup"),
        pytest.param("g" * 40, "", id="G08-no-hex"),
    ],
)
def test_markup_in_a_commit(attacked: Arena, commit: str, kept: str) -> None:
    """The run stays, the commit is dropped."""
    name = f"commit-{len(commit)}"
    attacked.accepted(attacked.push(sample_of(name, predicate={"aicrCommit": commit})))
    grid = attacked.recipe(name)
    assert {signer["aicrCommit"] for row in grid["rows"] for signer in row["signers"]} == {kept}
