"""The five steps: what stops, what goes on, what a verdict is (evidence-format 8.3, 11.9-11.11; trust 2)."""

import json
import os
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from app.adapters.files import DirectoryReader
from app.core.bundle import (
    Accepted,
    Content,
    Pins,
    RawSignature,
    ReadFault,
    Rejected,
    SignatureRefused,
    Verdict,
    VerifiedSignature,
)
from app.core.cross_check import SignerClaim
from app.core.documents import Predicate, parse_time
from app.core.errors import FetchError
from app.core.pointer import Pointer, dump_pointer
from app.core.recipe_identity import check_identity
from app.core.refs import Digest
from app.core.report import CauseClass, InputKind, Report, Step, StepName, StepStatus
from app.ports import JudgeJob
from app.services.judge import JudgeService
from tests.support.bundles import (
    ATTESTED_AT,
    NAME,
    PROFILE_BLOCK,
    PROFILED_NAME,
    RECIPE,
    V1,
    V2,
    V3,
    Sample,
    check,
    criteria_match,
    ctrf,
    fingerprint,
    go_json,
    manifest_of,
    profiled,
    sha256,
    statement_of,
    write,
)
from tests.support.verifiers import ALICE, DIGEST, LOGGED_AT, OCTOCAT, RECEIVED_AT, FakeVerifier, signed

FULL_DESCRIPTOR = "cafd61f00de1871f6a23c8ea9205ed52dce03304fe179bca733a9f976bf3e247"


def judge_directory(
    directory: Path, *, strict: bool = False, pins: Pins | None = None, pointer: Pointer | None = None
) -> Verdict:
    """Judge an unsigned directory."""
    job = JudgeJob(
        directory=str(directory),
        input=InputKind.POINTER if pointer else InputKind.DIRECTORY,
        received_at=RECEIVED_AT,
        pointer=dump_pointer(pointer) if pointer else None,
        pins=pins or Pins(),
        strict=strict,
    )
    return JudgeService(DirectoryReader(), FakeVerifier()).judge(job)


def judge_signed(
    directory: Path,
    sample: Sample,
    *outcomes: VerifiedSignature | SignatureRefused,
    strict: bool = True,
    pins: Pins | None = None,
    pointer: Pointer | None = None,
    pointer_name: str = "",
) -> Verdict:
    """Judge `sample` as an artifact with one signature, or with one a given outcome."""
    files = sample.files()
    predicate = json.loads(files["statement.intoto.json"])["predicate"]
    given = outcomes or (signed(predicate, sample.predicate_type),)
    bundles = {b"signature-%d" % n: outcome for n, outcome in enumerate(given)}
    job = JudgeJob(
        directory=str(write(directory, files)),
        input=InputKind.POINTER if pointer else InputKind.OCI,
        received_at=RECEIVED_AT,
        digest=DIGEST,
        signatures=tuple(RawSignature(bundle, Digest(f"{n:064x}")) for n, bundle in enumerate(bundles)),
        pointer=dump_pointer(pointer) if pointer else None,
        pointer_name=pointer_name,
        pins=pins or Pins(),
        strict=strict,
    )
    return JudgeService(DirectoryReader(), FakeVerifier(bundles)).judge(job)


def predicate_of(sample: Sample) -> dict[str, object]:
    """The predicate as a verifier would hand it on."""
    predicate: dict[str, object] = json.loads(sample.files()["statement.intoto.json"])["predicate"]
    return predicate


def step(report: Report, name: StepName) -> Step:
    """One step of a report."""
    return next(found for found in report.steps if found.name is name)


def statuses(report: Report) -> list[str]:
    """Every step's status, in order."""
    return [found.status.value for found in report.steps]


def refused(verdict: Verdict) -> Rejected:
    """The verdict, which must be a rejection."""
    assert isinstance(verdict, Rejected)
    return verdict


# --- 11.9: verdicts and exits ------------------------------------------------------------------------


def test_v1_a_clean_unsigned_directory_is_valid_and_pending(tmp_path: Path) -> None:
    report = judge_directory(write(tmp_path, Sample().files())).report
    assert (report.exit, report.pending) == (0, True)
    assert statuses(report) == ["passed", "skipped", "passed", "passed", "informational"]
    assert report.recipe_name == NAME
    assert report.findings == ()
    assert report.failure_cause is None


def test_v2_a_recorded_failure_is_exit_1_and_not_pending(tmp_path: Path) -> None:
    sample = Sample(reports={"deployment": ctrf([check("operator-health", "failed")])})
    report = judge_directory(write(tmp_path, sample.files())).report
    assert (report.exit, report.pending, report.failure_cause) == (1, False, None)


def test_v3_a_recipe_that_was_changed_after_the_manifest_fails_step_4(tmp_path: Path) -> None:
    files = Sample().files() | {"recipe.yaml": RECIPE.replace(b"h100", b"h200")}
    report = judge_directory(write(tmp_path, files)).report
    assert report.exit == 2
    assert step(report, StepName.MANIFEST).status is StepStatus.FAILED
    assert step(report, StepName.MANIFEST).sub_rows[0].key == "recipe.yaml"
    assert "sha256 mismatch (got " in step(report, StepName.MANIFEST).sub_rows[0].value
    assert report.steps[-1].name is StepName.SUMMARY


def test_v4_a_stray_file_is_named_in_a_sub_row(tmp_path: Path) -> None:
    report = judge_directory(write(tmp_path, Sample().files() | {"stray.txt": b"x"})).report
    assert report.exit == 2
    rows = step(report, StepName.MANIFEST).sub_rows
    assert [(row.key, row.value) for row in rows] == [("stray.txt", "file not in manifest.json (unsigned)")]


def test_v5_another_manifest_than_the_predicates_stops_at_manifest_json(tmp_path: Path) -> None:
    sample = Sample(predicate={"manifest": {"digest": f"sha256:{'0' * 64}", "fileCount": 6}})
    report = judge_directory(write(tmp_path, sample.files() | {"stray.txt": b"x"})).report
    rows = step(report, StepName.MANIFEST).sub_rows
    assert [row.key for row in rows] == ["manifest.json"]
    assert "sha256 mismatch" in rows[0].value


def with_manifest(sample: Sample, manifest: bytes) -> dict[str, bytes]:
    """The bundle of `sample` under another manifest, which the predicate names."""
    predicate = sample.predicate_of(sample.body(), manifest)
    statement = statement_of(predicate, sample.predicate_type, f"recipe:{sample.name}", "0" * 64)
    return {**sample.body(), "manifest.json": manifest, "statement.intoto.json": statement}


def test_v6_a_path_out_of_the_bundle_is_not_a_local_path(tmp_path: Path) -> None:
    manifest = json.loads(manifest_of(Sample().body()))
    manifest["files"].append({"path": "../../../etc/passwd", "size": 0, "sha256": "sha256:00"})
    report = judge_directory(write(tmp_path, with_manifest(Sample(), go_json(manifest)))).report
    rows = step(report, StepName.MANIFEST).sub_rows
    assert [(row.key, row.value) for row in rows] == [("../../../etc/passwd", "not a local path")]


def test_v7_a_manifest_of_another_schema_is_named_so(tmp_path: Path) -> None:
    manifest = json.loads(manifest_of(Sample().body())) | {"schemaVersion": "2.0.0"}
    report = judge_directory(write(tmp_path, with_manifest(Sample(), go_json(manifest)))).report
    assert report.exit == 2
    assert "schemaVersion" in step(report, StepName.MANIFEST).detail


def test_v8_a_statement_that_is_no_json_fails_step_3_and_stops(tmp_path: Path) -> None:
    report = judge_directory(write(tmp_path, Sample().files() | {"statement.intoto.json": b"not json"})).report
    assert report.exit == 2
    assert statuses(report) == ["passed", "skipped", "failed"]
    assert report.failure_cause is not None
    assert report.failure_cause.cause is CauseClass.SCHEMA
    assert report.predicate is None


def test_v18_a_real_verdict_replaces_a_storage_fault(tmp_path: Path) -> None:
    class Faulty:
        def read(self, directory: str, /) -> Content:
            content = DirectoryReader().read(directory)
            return Content(content.entries, {**content.captured, "attestation.intoto.jsonl": ReadFault.UNAVAILABLE})

    files = Sample().files() | {"stray.txt": b"x"}
    job = JudgeJob(str(write(tmp_path, files)), InputKind.DIRECTORY, RECEIVED_AT, strict=False)
    report = JudgeService(Faulty(), FakeVerifier()).judge(job).report
    assert report.exit == 2
    assert report.failure_cause is not None
    assert report.failure_cause.cause is CauseClass.INTEGRITY
    assert "retry" not in (report.failure_cause.hint or "")


def test_v16_a_storage_fault_alone_is_no_verdict(tmp_path: Path) -> None:
    class Broken:
        def read(self, directory: str, /) -> Content:
            raise FetchError("can not read it: input/output error")

    job = JudgeJob(str(tmp_path), InputKind.DIRECTORY, RECEIVED_AT, strict=False)
    report = JudgeService(Broken(), FakeVerifier()).judge(job).report
    assert (report.exit, statuses(report)) == (3, ["failed"])
    assert report.failure_cause is not None
    assert report.failure_cause.cause is CauseClass.TRANSIENT


# --- 11.11: the worked bundle ------------------------------------------------------------------------

WORKED_CTRF = """{
  "reportFormat": "",
  "specVersion": "",
  "timestamp": "",
  "generatedBy": "",
  "results": {
    "tool": {
      "name": ""
    },
    "summary": {
      "tests": 1,
      "passed": 1,
      "failed": 0,
      "skipped": 0,
      "pending": 0,
      "other": 0,
      "start": 0,
      "stop": 0
    },
    "tests": null
  }
}
"""
WORKED_RECIPE = b"apiVersion: aicr.run/v1\nkind: RecipeResult\n"
WORKED_RECIPE_SHA256 = "7025c6686635f218c8960bf9b813321f0e13dd5f5ad1059aabb9ff5f0a87c27e"


def worked_bundle(*, failed: bool, predicate_type: str = V1) -> dict[str, bytes]:
    """The files of 11.11, byte for byte, with a statement around them."""
    report = WORKED_CTRF
    if failed:
        report = report.replace('"passed": 1,\n      "failed": 0', '"passed": 0,\n      "failed": 1')
    bom = b'{"bomFormat":"CycloneDX","specVersion":"1.6","components":[{"name":"a"},{"name":"b"}]}'
    body = {
        "bom.cdx.json": bom,
        "ctrf/deployment.json": report.encode(),
        "recipe.yaml": WORKED_RECIPE,
        "snapshot.yaml": b"measurements: []\n",
    }
    media = {
        "bom.cdx.json": "application/vnd.cyclonedx+json",
        "ctrf/deployment.json": "application/json",
        "recipe.yaml": "application/yaml",
        "snapshot.yaml": "application/yaml",
    }
    entries = [
        {"path": path, "size": len(data), "sha256": f"sha256:{sha256(data)}", "mediaType": media[path]}
        for path, data in body.items()
    ]
    manifest = go_json({"schemaVersion": "1.0.0", "files": entries})
    predicate = {
        "schemaVersion": "1.0.0",
        "attestedAt": ATTESTED_AT,
        "aicrVersion": "v0.0.0",
        "validatorCatalogVersion": "",
        "validatorImages": None,
        "recipe": {"name": "any-name-at-all", "digest": WORKED_RECIPE_SHA256},
        "fingerprint": {},
        "criteriaMatch": {"matched": True, "perDimension": []},
        "phases": {
            "deployment": {
                "passed": int(not failed),
                "failed": int(failed),
                "skipped": 0,
                "ctrfDigest": f"sha256:{sha256(report.encode())}",
            }
        },
        "bom": {"format": "CycloneDX", "version": "1.6", "digest": f"sha256:{sha256(bom)}", "imageCount": 2},
        "manifest": {"digest": f"sha256:{sha256(manifest)}", "fileCount": 4},
    }
    statement = statement_of(predicate, predicate_type, "recipe:any-name-at-all", WORKED_RECIPE_SHA256)
    return {**body, "manifest.json": manifest, "statement.intoto.json": statement}


def test_the_worked_bundle_has_the_stated_bytes() -> None:
    files = worked_bundle(failed=False)
    assert {path: (len(files[path]), sha256(files[path])) for path in files if path != "statement.intoto.json"} == {
        "recipe.yaml": (43, WORKED_RECIPE_SHA256),
        "snapshot.yaml": (17, "8076987aa71d39db7f64728ccda26890a808c302ee4eff78d77bf35a01a0a465"),
        "bom.cdx.json": (86, "4e2ea38f2a4f8a6fe1036c1575fa52d18ba82934e3efb8fe315dd1c44d71983b"),
        "ctrf/deployment.json": (334, "c754f922d3869e21607f8b1f7f430b352ebc9a58c026918c4fe7aa20401c5046"),
        "manifest.json": (831, "a8c3364f96aee9f1d06282283fc48262d6c3fed7edc2bb9553d67932148a55ad"),
    }
    changed = worked_bundle(failed=True)
    assert sha256(changed["ctrf/deployment.json"]) == "57c7be0b81d20271df74bcc535c02c3a5976344afcd705b0b9e9d809c3dd7bfe"
    assert sha256(changed["manifest.json"]) == "0c5a00968698a207aad7c712943883bfd09565c80a0dd2ad8399bafd9638bcf5"


@pytest.mark.parametrize("predicate_type", [V1, V3])
def test_the_worked_bundle_verifies_under_any_name(tmp_path: Path, predicate_type: str) -> None:
    files = worked_bundle(failed=False, predicate_type=predicate_type)
    report = judge_directory(write(tmp_path, files)).report
    assert (report.exit, report.pending, report.recipe_name) == (0, True, "any-name-at-all")
    assert {finding.rule for finding in report.findings} == {"E3", "E8"}


def test_the_worked_bundle_with_a_failure_is_exit_1(tmp_path: Path) -> None:
    report = judge_directory(write(tmp_path, worked_bundle(failed=True))).report
    assert (report.exit, report.pending) == (1, False)


def test_the_worked_bundle_fails_strictly(tmp_path: Path) -> None:
    report = judge_directory(write(tmp_path, worked_bundle(failed=False)), strict=True).report
    assert report.exit == 2
    assert report.failure_cause is not None
    assert report.failure_cause.cause is CauseClass.INTEGRITY


# --- 11.10: recipe identity --------------------------------------------------------------------------

GB200 = RECIPE.replace(b"h100", b"gb200")


@pytest.mark.parametrize(
    ("sample", "pointer", "text"),
    [
        pytest.param(
            Sample(recipe=GB200, name="gb200-eks-ubuntu-training"),
            Pointer("gb200-eks-ubuntu-training", V3, profile="ubuntu=training"),
            "selection",
            id="I1",
        ),
        pytest.param(Sample(predicate={"recipe": {"name": NAME, "digest": "0" * 64}}), None, "digest", id="I2"),
        pytest.param(Sample(name="h200-eks-ubuntu-training"), None, "name derived from the bundle recipe", id="I3"),
        pytest.param(Sample(profile=dict(PROFILE_BLOCK)), None, "unprofiled", id="I4"),
        pytest.param(profiled(profile=None), None, "no profile block", id="I5"),
        pytest.param(
            profiled(profile=PROFILE_BLOCK | {"selection": "gpuStack=azure-managed"}),
            None,
            "selection",
            id="I6-selection",
        ),
        pytest.param(profiled(profile=PROFILE_BLOCK | {"advertiser": ""}), None, "advertiser", id="I6-advertiser"),
        pytest.param(
            profiled(profile=PROFILE_BLOCK | {"policyDescriptorIdentity": FULL_DESCRIPTOR}),
            None,
            "historical-only",
            id="I7",
        ),
        pytest.param(profiled(), Pointer(PROFILED_NAME, V3), "selection", id="pointer-leaves-the-selection-out"),
        pytest.param(Sample(recipe=b"a: [\n"), None, "recipe.yaml can not be read", id="recipe-is-no-yaml"),
        pytest.param(
            Sample(recipe=RECIPE.replace(b"aicr.run/v1", b"aicr.run/v9")), None, "apiVersion", id="unknown-track"
        ),
    ],
)
def test_the_recipe_must_be_the_one_that_is_named(
    tmp_path: Path, sample: Sample, pointer: Pointer | None, text: str
) -> None:
    report = judge_directory(write(tmp_path, sample.files()), pointer=pointer).report
    assert report.exit == 2
    assert report.failure_cause is not None
    assert report.failure_cause.cause is CauseClass.INTEGRITY
    assert text in report.failure_cause.detail


def test_i8_a_recipe_that_the_manifest_does_not_list_is_not_captured(tmp_path: Path) -> None:
    sample = Sample()
    listed = {path: data for path, data in sample.body().items() if path != "recipe.yaml"}
    report = judge_directory(write(tmp_path, with_manifest(sample, manifest_of(listed)))).report
    assert report.exit == 2
    identity = check_identity(None, Predicate.read(predicate_of(sample)), V3)
    assert identity.fault is not None
    assert "was not captured" in identity.fault.message


def test_i9_v3_evidence_does_not_depend_on_the_version_in_the_recipe(tmp_path: Path) -> None:
    digest = predicate_of(Sample())["recipe"]
    sample = Sample(recipe=RECIPE.replace(b"v0.42.0", b"v0.43.1"), predicate={"recipe": digest})
    assert judge_directory(write(tmp_path / "v3", sample.files())).report.exit == 0
    legacy = predicate_of(Sample(predicate_type=V1))["recipe"]
    sample = Sample(recipe=RECIPE.replace(b"v0.42.0", b"v0.43.1"), predicate={"recipe": legacy}, predicate_type=V1)
    assert judge_directory(write(tmp_path / "v1", sample.files())).report.exit == 2


@pytest.mark.parametrize("predicate_type", [V2, V3])
def test_a_profiled_bundle_is_valid(tmp_path: Path, predicate_type: str) -> None:
    sample = profiled(predicate_type=predicate_type)
    pointer = Pointer(PROFILED_NAME, predicate_type, profile="gpuStack=operator-managed")
    assert judge_directory(write(tmp_path, sample.files()), pointer=pointer).report.exit == 0


# --- pins, pointers, signatures ----------------------------------------------------------------------


@pytest.mark.parametrize("pins", [Pins(issuer="https://i.example.org"), Pins(identity_regexp="^a$")])
def test_a_pin_on_an_unsigned_bundle_fails_step_2(tmp_path: Path, pins: Pins) -> None:
    verdict = refused(judge_directory(write(tmp_path, Sample().files()), pins=pins))
    assert (verdict.step, verdict.code, verdict.report.exit) == (StepName.SIGNATURE, "SIGNATURE_MISSING", 2)
    assert verdict.cause.cause is CauseClass.SIGNATURE
    assert not verdict.report.pending


def test_x2_a_pointer_that_claims_a_signer_wants_a_signature(tmp_path: Path) -> None:
    pointer = Pointer(NAME, V3, signer=SignerClaim("a@example.org", "https://i.example.org"))
    verdict = refused(judge_directory(write(tmp_path, Sample().files()), pointer=pointer))
    assert "no signature" in verdict.cause.detail
    assert verdict.cause.cause is CauseClass.SIGNATURE


def test_a_pointer_to_another_recipe_fails_step_3(tmp_path: Path) -> None:
    verdict = refused(judge_directory(write(tmp_path, Sample().files()), pointer=Pointer("other", V3)))
    assert (verdict.step, verdict.cause.cause) == (StepName.PREDICATE, CauseClass.SCHEMA)
    assert verdict.report.recipe_name == NAME


def test_an_unsigned_bundle_is_no_evidence_although_it_is_valid(tmp_path: Path) -> None:
    verdict = refused(judge_directory(write(tmp_path, Sample().files()), strict=True))
    assert (verdict.step, verdict.code, verdict.report.exit) == (StepName.SIGNATURE, "SIGNATURE_MISSING", 0)


def test_a_bad_signature_is_recorded_and_the_run_goes_on(tmp_path: Path) -> None:
    bad = SignatureRefused("S5", "S5_BASE64_NOT_CANONICAL", "expected canonical base64")
    verdict = refused(judge_signed(tmp_path, Sample(), bad, strict=False))
    assert statuses(verdict.report) == ["passed", "failed", "passed", "passed", "informational"]
    assert (verdict.step, verdict.code) == (StepName.SIGNATURE, "S5_BASE64_NOT_CANONICAL")
    assert verdict.report.signer is None
    assert verdict.report.predicate is not None


def test_a_signature_over_another_predicate_type_is_refused_and_the_unsigned_statement_is_read(tmp_path: Path) -> None:
    foreign = signed({}, "https://slsa.dev/provenance/v1")
    verdict = refused(judge_signed(tmp_path, Sample(), foreign))
    assert (verdict.step, verdict.code) == (StepName.SIGNATURE, "PREDICATE_INCOHERENT")
    assert "unexpected predicateType" in verdict.cause.detail


def test_a_signature_that_lies_in_the_directory_is_judged(tmp_path: Path) -> None:
    files = Sample().files() | {"attestation.intoto.jsonl": b"forged"}
    verdict = refused(judge_directory(write(tmp_path, files)))
    assert verdict.code == "SIGNATURE_VERIFICATION_FAILED"


def test_a_signature_that_is_a_link_is_refused_not_taken_for_missing(tmp_path: Path) -> None:
    directory = write(tmp_path, Sample().files())
    (directory / "attestation.intoto.jsonl").symlink_to("manifest.json")
    assert refused(judge_directory(directory)).step is StepName.SIGNATURE


@pytest.mark.parametrize("root", [".", "summary-bundle"])
def test_a_directory_where_the_signature_belongs_is_no_missing_signature(tmp_path: Path, root: str) -> None:
    bundle = write(tmp_path / root, Sample().files())
    (bundle / "attestation.intoto.jsonl").mkdir()
    verdict = refused(judge_directory(tmp_path))
    assert (verdict.step, verdict.cause.detail) == (
        StepName.SIGNATURE,
        "attestation.intoto.jsonl is no regular file: not-regular",
    )
    assert not verdict.report.pending


@pytest.mark.parametrize(
    ("predicate", "detail"),
    [
        pytest.param(
            {"criteriaMatch": {"matched": True, "perDimension": [{}] * 200_000}},
            "statement.intoto.json: statement: expected at most 200000 JSON tokens, got more",
            id="too-many-tokens",
        ),
        pytest.param(
            {"phases": {f"{n:x}": {} for n in range(1001)}},
            "predicate: phases: expected at most 1000 items, got 1001",
            id="too-many-phases",
        ),
    ],
)
@pytest.mark.parametrize("signature", ["none", "bad"])
def test_an_unsigned_statement_that_would_cost_gigabytes_is_a_verdict(
    tmp_path: Path, signature: str, predicate: dict[str, object], detail: str
) -> None:
    sample = Sample(predicate=predicate)
    bad = SignatureRefused("S5", "S5_BASE64_NOT_CANONICAL", "expected canonical base64")
    if signature == "bad":
        verdict = judge_signed(tmp_path, sample, bad)
    else:
        verdict = judge_directory(write(tmp_path, sample.files()), strict=True)
    step_3 = step(refused(verdict).report, StepName.PREDICATE)
    assert (step_3.status, step_3.detail, verdict.report.exit) == (StepStatus.FAILED, detail, 2)


@pytest.mark.parametrize(
    ("files", "rule", "message"),
    [
        pytest.param(
            lambda many: {"ctrf/deployment.json": many}, "E3", "ctrf/deployment.json: expected at most", id="report"
        ),
        pytest.param(lambda many: {"bom.cdx.json": many}, "E2", "bom.cdx.json: expected at most", id="bom"),
    ],
)
def test_a_document_of_too_many_tokens_is_a_finding(
    tmp_path: Path, files: Callable[[bytes], dict[str, bytes]], rule: str, message: str
) -> None:
    many = b'{"results":{"summary":{},"tests":[]},"x":[' + b"[]," * 1_000_000 + b"0]}"
    content = {**Sample().files(), **files(many)}
    findings = judge_directory(write(tmp_path, content)).report.findings
    assert [found.message[: len(message)] for found in findings if found.rule == rule][-1] == message


def test_a_signature_without_weight_is_evidence_with_a_finding(tmp_path: Path) -> None:
    why = "S18_PULL_REQUEST: the certificate was issued to a run on pull_request"
    verdict = judge_signed(tmp_path, Sample(), signed(predicate_of(Sample()), V3, weightless=why))
    assert isinstance(verdict, Accepted)
    assert [found.to_json() for found in verdict.report.findings] == [
        {"rule": "S18", "code": "S18_CALLER_NOT_SIGNER", "message": why}
    ]
    assert (verdict.report.exit, verdict.run.weightless) == (0, why)


def pointer_to(sample: Sample, **signer: object) -> Pointer:
    """A signed pointer to `DIGEST`."""
    claim = SignerClaim(**({"identity": OCTOCAT.identity, "issuer": OCTOCAT.issuer, "rekor_log_index": 42} | signer))
    return Pointer(
        sample.name,
        sample.predicate_type,
        oci="ghcr.io/octocat/aicr-evidence:v1",
        digest=str(DIGEST),
        signer=claim,
        attested_at=parse_time(ATTESTED_AT),
    )


def test_a_signed_bundle_with_its_pointer_is_evidence(tmp_path: Path) -> None:
    verdict = judge_signed(tmp_path, Sample(), pointer=pointer_to(Sample()))
    assert isinstance(verdict, Accepted)
    assert verdict.report.exit == 0
    assert verdict.report.to_json()["signer"] == {
        "identity": "1234567+octocat@users.noreply.github.com",
        "issuer": "https://github.com/login/oauth",
        "rekorLogIndex": 42,
    }
    assert step(verdict.report, StepName.SIGNATURE).sub_rows[0].value == "42"
    assert verdict.report.bundle_digest == str(DIGEST)


@pytest.mark.parametrize(
    ("claim", "code"),
    [
        pytest.param({"identity": "x@example.org"}, "S17_IDENTITY_MISMATCH", id="identity"),
        pytest.param({"issuer": "https://i.example.org"}, "S17_ISSUER_MISMATCH", id="issuer"),
        pytest.param({"rekor_log_index": 0}, "S17_LOG_INDEX_MISMATCH", id="index"),
    ],
)
def test_a_pointer_that_claims_another_signer_fails_step_2(tmp_path: Path, claim: dict[str, object], code: str) -> None:
    verdict = refused(judge_signed(tmp_path, Sample(), pointer=pointer_to(Sample(), **claim)))
    assert (verdict.step, verdict.code) == (StepName.SIGNATURE, code)


def two_signatures(sample: Sample) -> tuple[VerifiedSignature, VerifiedSignature]:
    """A stranger's signature first, the owner's second."""
    predicate = predicate_of(sample)
    return signed(predicate, V3, signer=ALICE, index=7), signed(predicate, V3, signer=OCTOCAT, index=42)


def test_e7_the_pointers_signer_chooses_among_signatures(tmp_path: Path) -> None:
    verdict = judge_signed(tmp_path, Sample(), *two_signatures(Sample()), pointer=pointer_to(Sample()))
    assert isinstance(verdict, Accepted)
    assert (verdict.signature_index, verdict.run.signer) == (1, OCTOCAT)
    assert [finding.rule for finding in verdict.report.findings] == ["E7"]


def test_e7_without_a_pointer_a_strict_judgement_lists_the_signatures(tmp_path: Path) -> None:
    verdict = refused(judge_signed(tmp_path, Sample(), *two_signatures(Sample())))
    assert (verdict.code, verdict.report.exit) == ("E7_SIGNATURE_AMBIGUOUS", 2)
    assert [(row["source"], row["rekorLogIndex"]) for row in verdict.details["signatures"]] == [  # type: ignore[attr-defined]
        (ALICE.slug, 7),
        (OCTOCAT.slug, 42),
    ]
    assert "alice" not in json.dumps(verdict.details)


def test_e7_several_signatures_of_one_signer_are_no_question_and_the_earliest_is_taken(tmp_path: Path) -> None:
    predicate = predicate_of(Sample())
    later = signed(predicate, V3, index=9, logged_at=LOGGED_AT + timedelta(hours=1))
    verdict = judge_signed(tmp_path, Sample(), later, signed(predicate, V3, index=11))
    assert isinstance(verdict, Accepted)
    assert (verdict.signature_index, verdict.run.log.index) == (1, 11)


def test_e7_an_unverifiable_signature_beside_a_good_one_is_a_question(tmp_path: Path) -> None:
    bad = SignatureRefused("S5", "S5_BASE64_NOT_CANONICAL", "expected canonical base64")
    verdict = refused(judge_signed(tmp_path, Sample(), bad, two_signatures(Sample())[1]))
    assert verdict.code == "E7_SIGNATURE_AMBIGUOUS"
    assert verdict.details["signatures"][0]["code"] == "S5_BASE64_NOT_CANONICAL"  # type: ignore[index]


def test_e7_pins_say_which_signer_is_meant(tmp_path: Path) -> None:
    elsewhere = signed(predicate_of(Sample()), V3, signer=type(ALICE)("https://i.example.org", "bob@example.org"))
    pins = Pins(issuer=OCTOCAT.issuer)
    verdict = judge_signed(tmp_path, Sample(), elsewhere, two_signatures(Sample())[1], pins=pins)
    assert isinstance(verdict, Accepted)
    assert verdict.run.signer == OCTOCAT


def test_e7_without_strictness_the_first_signature_is_judged(tmp_path: Path) -> None:
    report = judge_signed(tmp_path, Sample(), *two_signatures(Sample()), strict=False).report
    assert report.exit == 0
    assert report.signer is not None
    assert report.signer.identity == "alice@example.org"
    assert [finding.rule for finding in report.findings] == ["E7"]


# --- findings ----------------------------------------------------------------------------------------


def duplicate_in_manifest(sample: Sample) -> dict[str, bytes]:
    manifest = json.loads(manifest_of(sample.body()))
    manifest["files"].append(manifest["files"][0])
    predicate = sample.predicate_of(sample.body(), go_json(manifest))
    predicate["manifest"] = {"digest": f"sha256:{sha256(go_json(manifest))}", "fileCount": len(manifest["files"])}
    statement = statement_of(predicate, V3, f"recipe:{sample.name}", "0" * 64)
    return {**sample.body(), "manifest.json": go_json(manifest), "statement.intoto.json": statement}


def twice(status: str) -> dict[str, dict[str, object]]:
    return {"deployment": ctrf([check("a", "failed"), check("a", status)])}


def count_off() -> dict[str, bytes]:
    sample = Sample(extra={"a.log": b"x"})
    manifest = manifest_of(sample.body())
    return Sample(
        extra={"a.log": b"x"}, predicate={"manifest": {"digest": f"sha256:{sha256(manifest)}", "fileCount": 99}}
    ).files()


def worked_without_count_trouble() -> dict[str, bytes]:
    rows = criteria_match()
    for row in rows["perDimension"]:  # type: ignore[attr-defined]
        row["match"] = "matched"
    return Sample(recipe=WORKED_RECIPE, name="x", predicate={"criteriaMatch": rows}).files()


def without_bom() -> dict[str, bytes]:
    sample = Sample(predicate={"bom": {"format": "CycloneDX", "version": "1.6", "digest": "", "imageCount": 5}})
    body = {path: data for path, data in sample.body().items() if path != "bom.cdx.json"}
    manifest = manifest_of(body)
    predicate = sample.predicate_of(body, manifest)
    return {**body, "manifest.json": manifest, "statement.intoto.json": statement_of(predicate, V3, "r", "0" * 64)}


def unsigned_statement(**changes: object) -> dict[str, bytes]:
    """A bundle whose unsigned statement is changed around the predicate; None takes a key out."""
    files = Sample().files()
    document = {**json.loads(files["statement.intoto.json"]), **changes}
    kept = {key: value for key, value in document.items() if value is not None}
    return {**files, "statement.intoto.json": json.dumps(kept).encode()}


BREAKS: dict[str, Callable[[], dict[str, bytes]]] = {
    "S16-no-type": lambda: unsigned_statement(_type=None),
    "S16-another-type": lambda: unsigned_statement(_type="evil"),
    "E1-duplicate": lambda: duplicate_in_manifest(Sample()),
    "E1-count": count_off,
    "E1-case": lambda: Sample(extra={"A.log": b"x", "a.log": b"x"}).files(),
    "E1-unicode": lambda: Sample(extra={"\u00e9.log": b"x", "e\u0301.log": b"x"}).files(),
    "E2-digest": lambda: Sample(predicate={"bom": {"digest": f"sha256:{'0' * 64}", "imageCount": 2}}).files(),
    "E2-count": lambda: Sample(bom=b'{"components": [1]}').files(),
    "E2-no-file": without_bom,
    "E2-no-json": lambda: Sample(bom=b"{").files(),
    "E3-predicate": lambda: Sample(phases={"deployment": {"passed": 3}}).files(),
    "E3-summary": lambda: Sample(reports={"deployment": ctrf([check("a")], passed=2)}).files(),
    "E3-other-hidden": lambda: Sample(reports={"deployment": ctrf([check("a", "other")], other=0)}).files(),
    "E3-unreadable": lambda: Sample(extra={}, reports={"deployment": ctrf([check("")])}).files(),
    "E3-strange-status": lambda: Sample(reports={"deployment": ctrf([check("a", "great")])}).files(),
    "E4-pass-over-failure": lambda: Sample(reports=twice("passed")).files(),
    "E6-none": lambda: Sample(predicate={"attestedAt": None}).files(),
    "E8-no-criteria": worked_without_count_trouble,
    "E8-no-coordinate": lambda: Sample(
        recipe=RECIPE.replace(b"    intent: training\n", b""),
        name="h100-eks-ubuntu",
        predicate={"criteriaMatch": criteria_match(intent="matched")},
    ).files(),
    "E8-name-that-looks-like-another": lambda: Sample(
        recipe=RECIPE.replace(b"eks", "\u0435ks".encode()), name="h100-\u0435ks-ubuntu-training", service="\u0435ks"
    ).files(),
    "E8-name-with-a-line-break": lambda: Sample(
        recipe=RECIPE.replace(b"eks", b'"e\\nks"'), name="h100-e\nks-ubuntu-training", service="e\nks"
    ).files(),
    "E8-match": lambda: Sample(predicate={"criteriaMatch": criteria_match(accelerator="unknown")}).files(),
    "E8-mismatch-hidden": lambda: Sample(predicate={"fingerprint": fingerprint(accelerator="a100")}).files(),
    "E9-no-subject": lambda: unsigned_statement(subject=None),
    "E9-report-without-phase": lambda: Sample(extra={"ctrf/other.json": b"{}"}).files(),
    "E10-backwards": lambda: Sample(reports={"deployment": ctrf([check("a")], stop=1)}).files(),
    "E10-future": lambda: Sample(reports={"deployment": ctrf([check("a")], stop=1778239999000)}).files(),
}


@pytest.mark.parametrize("case", BREAKS)
def test_a_finding_is_reported_and_fails_only_strictly(tmp_path: Path, case: str) -> None:
    rule = case.partition("-")[0]
    directory = write(tmp_path, BREAKS[case]())
    lax = judge_directory(directory).report
    assert {finding.rule for finding in lax.findings} == {rule}
    assert lax.exit in {0, 1}
    strict = judge_directory(directory, strict=True)
    assert strict.report.exit == 2
    assert refused(strict).code.startswith(f"{rule}_")
    assert refused(strict).cause.cause is CauseClass.INTEGRITY
    assert [found.name for found in strict.report.steps] == list(StepName)


def test_e1_a_link_is_a_finding_and_an_inventory_fault(tmp_path: Path) -> None:
    directory = write(tmp_path, Sample(extra={"a.log": b"x"}).files())
    (directory / "a.log").unlink()
    (directory / "a.log").symlink_to("/etc/hostname")
    report = judge_directory(directory).report
    assert report.exit == 2
    assert ("a.log", "is a symbolic link, not a regular file") in [
        (row.key, row.value) for row in step(report, StepName.MANIFEST).sub_rows
    ]
    assert "E1" in {finding.rule for finding in report.findings}


def test_e1_a_special_file_is_refused_without_being_opened(tmp_path: Path) -> None:
    directory = write(tmp_path, Sample().files())
    os.mkfifo(directory / "pipe")
    report = judge_directory(directory).report
    assert report.exit == 2
    assert {finding.rule for finding in report.findings} == {"E1"}


def test_e8_older_evidence_may_say_mismatched_for_a_service_that_can_not_be_inferred(tmp_path: Path) -> None:
    sample = Sample(
        recipe=RECIPE.replace(b"service: eks", b"service: generic"),
        name="h100-generic-ubuntu-training",
        predicate={
            "fingerprint": fingerprint("eks"),
            "criteriaMatch": criteria_match("generic", {"service": "eks"}, service="mismatched"),
        },
    )
    assert judge_directory(write(tmp_path, sample.files())).report.findings == ()


@pytest.mark.parametrize(
    ("change", "text"),
    [
        pytest.param({"predicate_type": V1}, "predicateType", id="type"),
        pytest.param({"attested_at": datetime(2026, 5, 9, tzinfo=UTC)}, "attestedAt", id="time"),
    ],
)
def test_e5_a_pointer_that_says_otherwise_is_a_finding(tmp_path: Path, change: dict[str, object], text: str) -> None:
    pointer = replace(pointer_to(Sample()), **change)  # type: ignore[arg-type]
    report = judge_signed(tmp_path, Sample(), pointer=pointer, strict=False).report
    assert [finding.rule for finding in report.findings] == ["E5"]
    assert text in report.findings[0].message
    assert report.exit == 0


def test_e5_a_file_name_that_looks_like_a_digest_must_be_the_bundles(tmp_path: Path) -> None:
    right, wrong = f"sha256-{DIGEST.hex}.yaml", f"sha256-{'0' * 64}.yaml"
    pointer = pointer_to(Sample())
    assert isinstance(judge_signed(tmp_path, Sample(), pointer=pointer, pointer_name=right), Accepted)
    assert isinstance(judge_signed(tmp_path, Sample(), pointer=pointer, pointer_name="pointer.yaml"), Accepted)
    verdict = refused(judge_signed(tmp_path, Sample(), pointer=pointer, pointer_name=wrong))
    assert verdict.code == "E5_POINTER_MISMATCH"


def test_e6_a_date_after_the_log_entry_is_refused(tmp_path: Path) -> None:
    attested = parse_time(ATTESTED_AT)
    predicate = predicate_of(Sample())
    fits = signed(predicate, V3, logged_at=attested - timedelta(minutes=10))
    assert isinstance(judge_signed(tmp_path, Sample(), fits), Accepted)
    early = signed(predicate, V3, logged_at=attested - timedelta(minutes=10, seconds=1))
    assert refused(judge_signed(tmp_path, Sample(), early)).code == "E6_ATTESTED_IN_FUTURE"


def test_e9_two_subjects_are_refused(tmp_path: Path) -> None:
    verdict = refused(judge_signed(tmp_path, Sample(), signed(predicate_of(Sample()), V3, subjects=2)))
    assert verdict.code == "E9_STATEMENT_INCOMPLETE"


# --- what is accepted --------------------------------------------------------------------------------


def test_the_run_holds_what_was_judged(tmp_path: Path) -> None:
    verdict = judge_signed(tmp_path, Sample())
    assert isinstance(verdict, Accepted)
    run = verdict.run
    assert (run.digest, run.recipe, run.coordinate.path) == (DIGEST, NAME, "eks/h100-ubuntu/training")
    assert (run.k8s_version, run.k8s_constraint) == ("1.33.4", ">= 1.32.4")
    assert (run.attested_at, run.logged_at, run.received_at) == (parse_time(ATTESTED_AT), LOGGED_AT, RECEIVED_AT)
    assert [summary.phase for summary in run.phases] == ["deployment", "performance", "conformance"]
    assert [(test.phase, test.name, test.status, test.duration_ms) for test in run.results] == [
        ("deployment", "operator-health", "passed", 1501),
        ("deployment", "expected-resources", "passed", 2203),
        ("performance", "nccl-all-reduce-bw", "passed", 61007),
        ("conformance", "gpu-operator-health", "passed", 904),
        ("conformance", "dra-support", "skipped", 0),
    ]
    assert run.recipe_text == RECIPE.decode()
    assert (run.hardware_matched, run.remarks, run.exit) == (True, (), 0)
    assert [kind for kind, _ in run.prints] == ["ctrf", "ctrf", "ctrf", "snapshot", "durations"]


def test_what_a_recipe_asks_of_kubernetes_is_kept_visibly(tmp_path: Path) -> None:
    verdict = judge_signed(tmp_path, Sample(recipe=RECIPE.replace(b"'>= 1.32.4'", b'">= 1\\0"')))
    assert isinstance(verdict, Accepted)
    assert verdict.run.k8s_constraint == ">= 1\\x00"


def test_a_profiled_run_keeps_selection_and_segment_apart(tmp_path: Path) -> None:
    verdict = judge_signed(tmp_path, profiled())
    assert isinstance(verdict, Accepted)
    assert verdict.run.recipe == PROFILED_NAME
    assert verdict.run.profile_selection == "gpuStack=operator-managed"
    assert verdict.run.profile == "gpustack-operator-managed"
    assert verdict.run.coordinate.path == "aks/h100-ubuntu/training-gpustack-operator-managed"


def test_recorded_failures_are_evidence(tmp_path: Path) -> None:
    verdict = judge_signed(tmp_path, Sample(reports={"deployment": ctrf([check("a", "failed")])}))
    assert isinstance(verdict, Accepted)
    assert (verdict.report.exit, verdict.run.exit) == (1, 1)


def provenance(*paths: str) -> dict[str, object]:
    return {"runtimeProvenance": {"shippedDigest": "a" * 64, "derivedDigest": "b" * 64, "overriddenPaths": list(paths)}}


@pytest.mark.parametrize(
    ("sample", "signature", "remark"),
    [
        pytest.param(Sample(), {"signer": ALICE}, "personal-address", id="personal-address"),
        pytest.param(
            Sample(), {"logged_at": parse_time(ATTESTED_AT) + timedelta(days=7, seconds=1)}, "signed-late", id="late"
        ),
        pytest.param(
            Sample(predicate={"validatorImages": [{"image": "ghcr.io/nvidia/validator:edge", "digest": ""}]}),
            {},
            "validator-mutable-tag",
            id="mutable-tag",
        ),
        pytest.param(
            Sample(reports={"deployment": ctrf([check("a", **provenance("driver.version", "b"))])}),
            {},
            "overridden",
            id="overridden",
        ),
        pytest.param(
            Sample(
                predicate={
                    "fingerprint": fingerprint(accelerator="a100"),
                    "criteriaMatch": criteria_match(captured={"accelerator": "a100"}, accelerator="mismatched"),
                }
            ),
            {},
            "mismatched-hardware",
            id="hardware",
        ),
    ],
)
def test_what_is_worth_a_remark_is_remarked_and_accepted(
    tmp_path: Path, sample: Sample, signature: dict[str, object], remark: str
) -> None:
    outcome = signed(predicate_of(sample), V3, **signature)  # type: ignore[arg-type]
    verdict = judge_signed(tmp_path, sample, outcome)
    assert isinstance(verdict, Accepted)
    assert verdict.run.remarks == (remark,)


def test_what_was_overridden_is_named(tmp_path: Path) -> None:
    report = ctrf([check("a", **provenance("b.c", "a")), check("d", **provenance("a"))])
    verdict = judge_signed(tmp_path, Sample(reports={"deployment": report}))
    assert isinstance(verdict, Accepted)
    assert verdict.run.overridden_paths == ("a", "b.c")


def test_signed_seven_days_later_is_not_late(tmp_path: Path) -> None:
    outcome = signed(predicate_of(Sample()), V3, logged_at=parse_time(ATTESTED_AT) + timedelta(days=7))
    verdict = judge_signed(tmp_path, Sample(), outcome)
    assert isinstance(verdict, Accepted)
    assert verdict.run.remarks == ()


def test_a_bundle_without_results_is_accepted_with_no_result(tmp_path: Path) -> None:
    verdict = judge_signed(tmp_path, Sample(reports={}))
    assert isinstance(verdict, Accepted)
    assert verdict.run.results == ()
    assert [kind for kind, _ in verdict.run.prints] == ["snapshot"]


# --- robustness --------------------------------------------------------------------------------------


def test_whatever_is_thrown_while_judging_is_a_rejection(tmp_path: Path) -> None:
    class Leaking:
        def verify(self, bundle: bytes, /, **_: object) -> VerifiedSignature:
            raise RecursionError

    job = JudgeJob(
        str(write(tmp_path, Sample().files())),
        InputKind.OCI,
        RECEIVED_AT,
        digest=DIGEST,
        signatures=(RawSignature(b"x"),),
    )
    verdict = refused(JudgeService(DirectoryReader(), Leaking()).judge(job))  # type: ignore[arg-type]
    assert (verdict.step, verdict.code, verdict.report.exit) == (StepName.SIGNATURE, "JUDGING_FAILED", 2)


@pytest.mark.parametrize("content", [{}, {"recipe.yaml": b"a: 1\n"}, {"manifest.json": b"{}"}])
def test_a_directory_without_both_marks_is_no_bundle(tmp_path: Path, content: dict[str, bytes]) -> None:
    verdict = refused(judge_directory(write(tmp_path, content)))
    assert (verdict.step, verdict.code) == (StepName.MATERIALIZE, "BUNDLE_NOT_READABLE")
    assert verdict.cause.cause is CauseClass.UNKNOWN
    assert statuses(verdict.report) == ["failed"]


def test_a_bundle_below_summary_bundle_is_found_and_what_lies_beside_it_is_not_read(tmp_path: Path) -> None:
    write(tmp_path / "summary-bundle", Sample().files())
    write(tmp_path, {"pointer.yaml": b"x"})
    assert judge_directory(tmp_path).report.exit == 0


def test_a_pointer_that_breaks_the_rules_is_a_rejection_in_a_worker(tmp_path: Path) -> None:
    job = JudgeJob(str(tmp_path), InputKind.POINTER, RECEIVED_AT, pointer=b"recipe: x\n")
    verdict = refused(JudgeService(DirectoryReader(), FakeVerifier()).judge(job))
    assert (verdict.step, verdict.code) == (StepName.MATERIALIZE, "POINTER_INVALID")
