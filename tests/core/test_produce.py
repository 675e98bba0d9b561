"""The producer: bundles whose every digest, count and key is what the format says."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone

import pytest

from app.core.canonical import canonicalize, recipe_digests
from app.core.errors import DocumentInvalid, InputError, RecipeInvalid
from app.core.produce import (
    Captured,
    Check,
    Counted,
    Fingerprint,
    ProducerInput,
    Report,
    RuntimeProvenance,
    Snapshot,
    artifact_statement,
    bom_reference,
    build_bundle,
    local_statement,
    manifest_json,
    media_type,
    normalized_commit,
    plain_yaml,
    status_of_exit_code,
    timestamp,
)
from app.core.statement import check_coherence
from tests.support.statements import parse_statement

V1 = "https://aicr.run/recipe-evidence/v1"
V2 = "https://aicr.run/recipe-evidence/v2"
V3 = "https://aicr.run/recipe-evidence/v3"
AT = datetime(2026, 5, 8, 10, 23, 11, 999, tzinfo=UTC)

RECIPE = b"""\
# resolved
kind: RecipeResult
apiVersion: aicr.run/v1
criteria: {service: eks, accelerator: h100, os: ubuntu, intent: training}
metadata:
  version: v0.42.0
componentRefs:
- name: gpu-operator
- name: network-operator
  overrides: {enabled: false}
"""
PROFILED = b"""\
apiVersion: aicr.run/v1beta2
kind: RecipeResult
criteria: {service: gke, accelerator: h100, os: cos, intent: training}
componentRefs: [{name: gpu-operator}]
metadata:
  selectedProfile: {name: gpuStack, value: gke-default, advertiser: external, ownedPaths: {gpu-operator: [enabled]}}
"""
CLUSTER = Fingerprint(
    service=Captured("eks", "k8s.node.provider"),
    accelerator=Captured("h100", "gpu.hardware.model"),
    gpu_model=Captured("NVIDIA H100", "gpu.hardware.model"),
    os=Captured("ubuntu", "os.release", version="24.04"),
    k8s_version=Captured("v1.33.4", "k8s.server.version"),
    region=Captured(note="multi-region"),
    node_count=Counted(4, "nodeTopology.summary.node-count"),
)
DEPLOYMENT = Report((Check("operator-health", duration_ms=1501), Check("expected-resources", "failed")), 1000, 2000)
CONFORMANCE = Report(
    (
        Check("a", "skipped", message="why", stdout=("line",), extra={"skipReason": "nodes-busy", "note": "secret"}),
        Check("b", "other"),
        Check("c"),
    )
)
SOURCE = ProducerInput(
    recipe=RECIPE,
    attested_at=AT,
    reports={"conformance": CONFORMANCE, "deployment": DEPLOYMENT},
    fingerprint=CLUSTER,
    aicr_version="v0.42.0",
    aicr_commit="ABC1234",
    validator_catalog_version="v1",
    validator_images=(("nvcr.io/b", ""), ("nvcr.io/a", "sha256:1")),
)


def sha(data: bytes) -> str:
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


# --- evidence-format 11.11 -------------------------------------------------------------------------

WORKED_RECIPE = b"apiVersion: aicr.run/v1\nkind: RecipeResult\n"
WORKED_BOM = b'{"bomFormat":"CycloneDX","specVersion":"1.6","components":[{"name":"a"},{"name":"b"}]}'


def worked(passed: int, failed: int) -> ProducerInput:
    counts = {"tests": 1, "passed": passed, "failed": failed}
    report = Report(None, tool="", generated_by="", report_format="", spec_version="", counts=counts)
    return ProducerInput(
        recipe=WORKED_RECIPE,
        attested_at=AT,
        reports={"deployment": report},
        snapshot=b"measurements: []\n",
        bom=WORKED_BOM,
        recipe_name="anything",
    )


WORKED = {
    "recipe.yaml": (43, "7025c6686635f218c8960bf9b813321f0e13dd5f5ad1059aabb9ff5f0a87c27e"),
    "snapshot.yaml": (17, "8076987aa71d39db7f64728ccda26890a808c302ee4eff78d77bf35a01a0a465"),
    "bom.cdx.json": (86, "4e2ea38f2a4f8a6fe1036c1575fa52d18ba82934e3efb8fe315dd1c44d71983b"),
    "ctrf/deployment.json": (334, "c754f922d3869e21607f8b1f7f430b352ebc9a58c026918c4fe7aa20401c5046"),
    "manifest.json": (831, "a8c3364f96aee9f1d06282283fc48262d6c3fed7edc2bb9553d67932148a55ad"),
}


@pytest.mark.parametrize("path", WORKED)
def test_the_worked_bundle_has_the_stated_files(path: str) -> None:
    data = build_bundle(worked(1, 0)).files[path]
    assert (len(data), hashlib.sha256(data).hexdigest()) == WORKED[path]


def test_the_worked_bundle_with_a_failure_has_the_stated_digests() -> None:
    files = build_bundle(worked(0, 1)).files
    assert sha(files["ctrf/deployment.json"]) == (
        "sha256:57c7be0b81d20271df74bcc535c02c3a5976344afcd705b0b9e9d809c3dd7bfe"
    )
    assert sha(files["manifest.json"]) == "sha256:0c5a00968698a207aad7c712943883bfd09565c80a0dd2ad8399bafd9638bcf5"


# --- predicate -------------------------------------------------------------------------------------


def test_the_predicate_has_every_key_and_describes_its_files() -> None:
    bundle = build_bundle(SOURCE)
    files = bundle.files
    assert bundle.predicate == {
        "schemaVersion": "1.0.0",
        "attestedAt": "2026-05-08T10:23:11Z",
        "aicrVersion": "v0.42.0",
        "aicrCommit": "abc1234",
        "validatorCatalogVersion": "v1",
        "validatorImages": [{"image": "nvcr.io/a", "digest": "sha256:1"}, {"image": "nvcr.io/b", "digest": ""}],
        "recipe": {"name": "h100-eks-ubuntu-training", "digest": recipe_digests(RECIPE)[1]},
        "fingerprint": {
            "service": {"value": "eks", "source": "k8s.node.provider"},
            "accelerator": {"value": "h100", "source": "gpu.hardware.model"},
            "gpuModel": {"value": "NVIDIA H100", "source": "gpu.hardware.model"},
            "os": {"value": "ubuntu", "version": "24.04", "source": "os.release"},
            "k8sVersion": {"value": "1.33.4", "source": "k8s.server.version"},
            "region": {"value": "", "note": "multi-region"},
            "nodeCount": {"value": 4, "source": "nodeTopology.summary.node-count"},
            "gpuNodeCount": {"value": 0},
        },
        "criteriaMatch": {
            "matched": True,
            "perDimension": [
                {"dimension": "service", "recipeRequires": "eks", "fingerprintProvides": "eks", "match": "matched"},
                {
                    "dimension": "accelerator",
                    "recipeRequires": "h100",
                    "fingerprintProvides": "h100",
                    "match": "matched",
                },
                {"dimension": "os", "recipeRequires": "ubuntu", "fingerprintProvides": "ubuntu", "match": "matched"},
                {"dimension": "intent", "recipeRequires": "training", "match": "unknown"},
                {"dimension": "platform", "match": "matched"},
                {"dimension": "nodes", "fingerprintProvides": "4", "match": "matched"},
            ],
        },
        "phases": {
            "deployment": {"passed": 1, "failed": 1, "skipped": 0, "ctrfDigest": sha(files["ctrf/deployment.json"])},
            "conformance": {"passed": 1, "failed": 0, "skipped": 1, "ctrfDigest": sha(files["ctrf/conformance.json"])},
        },
        "bom": {"format": "CycloneDX", "version": "1.6", "digest": sha(files["bom.cdx.json"]), "imageCount": 3},
        "manifest": {"digest": sha(files["manifest.json"]), "fileCount": 5},
        "redaction": {
            "policy": "minimal",
            "version": "v4",
            "applied": [
                "ctrf.tests.extra.allowlist",
                "ctrf.tests.omit:message",
                "ctrf.tests.omit:stdout",
                "ctrf.tests.runtimeProvenance.bound",
                "snapshot.header.allowlist",
                "snapshot.measurements.allowlist",
            ],
        },
    }
    assert bundle.manifest_digest == sha(files["manifest.json"])


def test_the_same_input_gives_the_same_bytes() -> None:
    assert dict(build_bundle(SOURCE).files) == dict(build_bundle(replace(SOURCE)).files)


def test_the_shipped_recipe_is_the_legacy_text_for_every_type() -> None:
    shipped = build_bundle(SOURCE).files["recipe.yaml"]
    assert shipped == canonicalize(RECIPE, content_only=False)
    assert b"version: v0.42.0" in shipped
    assert build_bundle(replace(SOURCE, predicate_type=V1)).files["recipe.yaml"] == shipped


@pytest.mark.parametrize(("predicate_type", "which"), [(V1, 0), (V3, 1)])
def test_the_recipe_digest_follows_the_type(predicate_type: str, which: int) -> None:
    predicate = build_bundle(replace(SOURCE, predicate_type=predicate_type)).predicate
    assert predicate["recipe"] == {"name": "h100-eks-ubuntu-training", "digest": recipe_digests(RECIPE)[which]}


def test_a_profiled_recipe_carries_its_block() -> None:
    for predicate_type in (V2, V3):
        bundle = build_bundle(replace(SOURCE, recipe=PROFILED, predicate_type=predicate_type))
        assert bundle.recipe_name == "h100-gke-cos-training-gpustack-gke-default"
        assert bundle.predicate["profile"] == {
            "selection": "gpuStack=gke-default",
            "advertiser": "external",
            "policyDescriptorIdentity": "993bfe01fc07ffa0a65353ace107d46218cb5d476fe40a845c5d5061ca453142",
        }
        check_coherence(predicate_type, bundle.predicate)


def test_a_block_without_advertiser_omits_the_key() -> None:
    recipe = PROFILED.replace(b"advertiser: external, ", b"")
    assert build_bundle(replace(SOURCE, recipe=recipe)).predicate["profile"] == {
        "selection": "gpuStack=gke-default",
        "policyDescriptorIdentity": "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    }


@pytest.mark.parametrize(
    ("recipe", "predicate_type", "message"),
    [
        pytest.param(PROFILED, V1, "cannot carry a profile block", id="v1-profiled"),
        pytest.param(RECIPE, V2, "requires the predicate profile block", id="v2-plain"),
        pytest.param(RECIPE, "https://aicr.run/recipe-evidence/v9", "unexpected predicateType", id="unknown-type"),
    ],
)
def test_an_incoherent_bundle_is_not_made(recipe: bytes, predicate_type: str, message: str) -> None:
    with pytest.raises(DocumentInvalid, match=message):
        build_bundle(replace(SOURCE, recipe=recipe, predicate_type=predicate_type))


def test_a_recipe_without_a_name_makes_no_bundle() -> None:
    with pytest.raises(RecipeInvalid, match="no criteria"):
        build_bundle(replace(SOURCE, recipe=WORKED_RECIPE))


def test_an_unknown_phase_makes_no_bundle() -> None:
    with pytest.raises(InputError, match="expected reports of deployment, performance, conformance, got 'smoke'"):
        build_bundle(replace(SOURCE, reports={"smoke": DEPLOYMENT}))


def test_without_reports_the_phases_are_empty_and_only_the_snapshot_is_redacted() -> None:
    predicate = build_bundle(replace(SOURCE, reports={}, validator_images=())).predicate
    assert predicate["phases"] == {}
    assert predicate["validatorImages"] is None
    assert predicate["redaction"] == {
        "policy": "minimal",
        "version": "v4",
        "applied": ["snapshot.header.allowlist", "snapshot.measurements.allowlist"],
    }


@pytest.mark.parametrize(
    ("text", "commit"),
    [
        pytest.param("0123456789abcdef0123456789abcdef01234567", "0123456789abcdef0123456789abcdef01234567", id="F1"),
        pytest.param("abc1234", "abc1234", id="F2"),
        pytest.param("ABC1234", "abc1234", id="F3"),
        pytest.param("unknown", "", id="F4-unknown"),
        pytest.param("", "", id="F4-empty"),
        pytest.param("abc12", "", id="F4-short"),
        pytest.param("zzzzzzz", "", id="F4-letters"),
        pytest.param("a" * 41, "", id="too-long"),
        pytest.param("abc1234\n", "", id="newline"),
    ],
)
def test_a_build_commit_is_hex_or_left_out(text: str, commit: str) -> None:
    assert normalized_commit(text) == commit
    predicate = build_bundle(replace(SOURCE, aicr_commit=text)).predicate
    assert predicate.get("aicrCommit", "") == commit
    assert ("aicrCommit" in predicate) is bool(commit)


@pytest.mark.parametrize(
    ("bom", "count", "version"),
    [
        pytest.param(b'{"components": [{}, {}]}', 2, "1.6", id="F5"),
        pytest.param(b"{}", 0, "1.6", id="F6"),
        pytest.param(b'{"components": null, "specVersion": "1.5"}', 0, "1.5", id="null"),
        pytest.param(b'{"specVersion": ""}', 0, "1.6", id="empty-version"),
    ],
)
def test_a_bom_is_counted_by_its_components(bom: bytes, count: int, version: str) -> None:
    assert bom_reference(bom) == {
        "format": "CycloneDX",
        "version": version,
        "digest": sha(bom),
        "imageCount": count,
    }


@pytest.mark.parametrize("bom", [b"<bom/>", b"", b"[]", b'{"components": [], "components": [1]}'])
def test_f7_a_bom_that_is_no_json_object_is_refused(bom: bytes) -> None:
    with pytest.raises(DocumentInvalid, match=r"^bom\.cdx\.json: "):
        build_bundle(replace(SOURCE, bom=bom))


def test_a_generated_bom_lists_enabled_components_and_images() -> None:
    components = json.loads(build_bundle(SOURCE).files["bom.cdx.json"])["components"]
    assert [part["name"] for part in components] == ["gpu-operator", "nvcr.io/a", "nvcr.io/b"]


@pytest.mark.parametrize(
    ("code", "status"),
    [(0, "passed"), (1, "failed"), (2, "skipped"), (3, "other"), (-1, "other"), (137, "other")],
)
def test_f10_an_exit_code_is_a_status(code: int, status: str) -> None:
    assert status_of_exit_code(code) == status


def test_a_time_is_utc_in_whole_seconds() -> None:
    assert timestamp(datetime(2026, 5, 8, 12, 23, 11, 999_999, tzinfo=timezone(timedelta(hours=2)))) == (
        "2026-05-08T10:23:11Z"
    )
    with pytest.raises(ValueError, match="zone"):
        timestamp(datetime(2026, 5, 8))  # noqa: DTZ001 - the refusal is what is tested


# --- reports ---------------------------------------------------------------------------------------

PROVENANCE = RuntimeProvenance("a" * 64, "b" * 64, ("z.b[*]", "a/c", "a/c"))


def _report(*checks: Check, full: bool = False) -> Mapping[str, object]:
    source = replace(SOURCE, reports={"performance": Report(checks, tool_version="1")}, full=full)
    report: Mapping[str, object] = json.loads(build_bundle(source).files["ctrf/performance.json"])
    return report


def test_a_report_has_its_parts_in_their_order() -> None:
    data = build_bundle(SOURCE).files["ctrf/deployment.json"]
    report = json.loads(data)
    assert list(report) == ["reportFormat", "specVersion", "timestamp", "generatedBy", "results"]
    assert report["results"] == {
        "tool": {"name": "aicr"},
        "summary": {
            "tests": 2,
            "passed": 1,
            "failed": 1,
            "skipped": 0,
            "pending": 0,
            "other": 0,
            "start": 1000,
            "stop": 2000,
        },
        "tests": [
            {"name": "operator-health", "status": "passed", "duration": 1501, "suite": ["deployment"]},
            {"name": "expected-resources", "status": "failed", "duration": 0, "suite": ["deployment"]},
        ],
    }
    assert data.endswith(b"\n  }\n}\n")


def test_other_is_in_the_summary_and_not_in_the_predicate() -> None:
    bundle = build_bundle(SOURCE)
    assert json.loads(bundle.files["ctrf/conformance.json"])["results"]["summary"]["other"] == 1
    phase = bundle.predicate["phases"]["conformance"]  # type: ignore[index]
    assert sorted(phase) == ["ctrfDigest", "failed", "passed", "skipped"]


MINIMAL = [
    pytest.param(Check("a", message="m", stdout=("x",)), {}, id="no-text"),
    pytest.param(
        Check("a", extra={"nodesValidated": "12", "nodesTotal": "99999"}),
        {"extra": {"nodesTotal": "99999", "nodesValidated": "12"}},
        id="counts",
    ),
    pytest.param(Check("a", extra={"nodesTotal": "100000"}), {}, id="count-too-long"),
    pytest.param(Check("a", extra={"nodesTotal": "\u0661"}), {}, id="count-of-other-digits"),
    pytest.param(
        Check("a", extra={"skipReason": "no-gpu-nodes", "runtimeSource": "cluster-capability"}),
        {"extra": {"runtimeSource": "cluster-capability", "skipReason": "no-gpu-nodes"}},
        id="codes",
    ),
    pytest.param(Check("a", extra={"skipReason": "because", "host": "x"}), {}, id="unknown-values"),
    pytest.param(
        Check("a", runtime_provenance=PROVENANCE),
        {
            "runtimeProvenance": {
                "shippedDigest": "a" * 64,
                "derivedDigest": "b" * 64,
                "overriddenPaths": ["a/c", "z.b[*]"],
            }
        },
        id="provenance",
    ),
    pytest.param(Check("a", runtime_provenance=replace(PROVENANCE, shipped_digest="x")), {}, id="provenance-digest"),
    pytest.param(
        Check("a", runtime_provenance=replace(PROVENANCE, inherited_paths=("a b",))), {}, id="provenance-path"
    ),
    pytest.param(
        Check("a", runtime_provenance=replace(PROVENANCE, inherited_paths=tuple(f"p{n}" for n in range(1025)))),
        {},
        id="provenance-many",
    ),
]


@pytest.mark.parametrize(("check", "kept"), MINIMAL)
def test_a_minimal_bundle_keeps_only_known_values(check: Check, kept: Mapping[str, object]) -> None:
    test = _report(check)["results"]["tests"][0]  # type: ignore[index]
    assert test == {"name": "a", "status": "passed", "duration": 0, "suite": ["performance"], **kept}


def test_a_full_bundle_keeps_everything_and_says_nothing_of_redaction() -> None:
    check = Check("a", message="m <1>", stdout=("x",), extra={"host": "h"})
    test = _report(check, full=True)["results"]["tests"][0]  # type: ignore[index]
    assert (test["message"], test["stdout"], test["extra"]) == ("m <1>", ["x"], {"host": "h"})
    assert "redaction" not in build_bundle(replace(SOURCE, full=True)).predicate


# --- snapshot --------------------------------------------------------------------------------------

SNAPSHOT = Snapshot(
    {
        "K8s.server": {"version": "v1.33.4", "secret": "x"},
        "OS.release": {"ID": "ubuntu", "VERSION_ID": "24.04"},
        "K8s.policy": {"name": "x"},
    },
    timestamp="2026-05-08T10:00:00Z",
    version="v0.42.0",
    metadata={"host": "node-1"},
)


def test_a_minimal_snapshot_keeps_known_measurements() -> None:
    text = SNAPSHOT.encode(Fingerprint(), full=False).decode()
    assert "secret" not in text
    assert "policy" not in text
    assert "node-1" not in text
    assert text.startswith("apiVersion: aicr.run/v1\nfingerprint:\n    accelerator:\n")
    assert text.endswith(
        "kind: Snapshot\n"
        "measurements:\n"
        "    - subtypes:\n"
        "        - data:\n"
        "            version: v1.33.4\n"
        "          subtype: server\n"
        "      type: K8s\n"
        "    - subtypes:\n"
        "        - data:\n"
        "            ID: ubuntu\n"
        '            VERSION_ID: "24.04"\n'
        "          subtype: release\n"
        "      type: OS\n"
        "metadata:\n"
        '    timestamp: "2026-05-08T10:00:00Z"\n'
        "    version: v0.42.0\n"
    )


def test_a_full_snapshot_keeps_everything() -> None:
    text = SNAPSHOT.encode(Fingerprint(), full=True).decode()
    assert all(part in text for part in ("secret: x", "subtype: policy", "host: node-1"))


PLAIN = [
    pytest.param("v1.33", "v1.33", id="word"),
    pytest.param("5.15.0-1048-aws", "5.15.0-1048-aws", id="kernel"),
    pytest.param("24.04", '"24.04"', id="number"),
    pytest.param("1_000", '"1_000"', id="underscores"),
    pytest.param("0x1F", '"0x1F"', id="hex"),
    pytest.param("1e3", '"1e3"', id="exponent"),
    pytest.param("1:20", '"1:20"', id="base-60"),
    pytest.param("yes", '"yes"', id="old-boolean"),
    pytest.param("Null", '"Null"', id="null"),
    pytest.param("", '""', id="empty"),
    pytest.param("2026-05-08", '"2026-05-08"', id="date"),
    pytest.param("2026-13-45", "2026-13-45", id="no-date"),
    pytest.param("_1", "_1", id="leading-underscore"),
    pytest.param(">= 1.32", "'>= 1.32'", id="indicator"),
    pytest.param("a\tb", '"a\\tb"', id="tab"),
    pytest.param("a\nb", "|-\n    a\n    b", id="lines"),
    pytest.param(True, "true", id="boolean"),
    pytest.param(None, "null", id="none"),
    pytest.param(-3, "-3", id="integer"),
    pytest.param([], "[]", id="empty-list"),
    pytest.param(("a", {"b": 1}), "\n    - a\n    - b: 1", id="nested"),
]


@pytest.mark.parametrize(("value", "text"), PLAIN)
def test_plain_data_is_written_as_go_writes_it(value: object, text: str) -> None:
    assert plain_yaml({"k": value}).decode() == f"k: {text}\n".replace("k: \n", "k:\n")


def test_only_plain_data_is_written() -> None:
    with pytest.raises(TypeError, match="float"):
        plain_yaml({"k": 1.5})


# --- manifest and statements -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("bom.cdx.json", "application/vnd.cyclonedx+json"),
        ("x.intoto.jsonl", "application/vnd.in-toto+jsonl"),
        ("ctrf/a.json", "application/json"),
        ("a.yaml", "application/yaml"),
        ("a.yml", "application/yaml"),
        ("logs/a.log", "text/plain"),
        ("README", ""),
        ("a.json.gz", ""),
    ],
)
def test_the_media_type_is_that_of_the_first_suffix(path: str, kind: str) -> None:
    assert media_type(path) == kind


def test_the_manifest_is_sorted_by_bytes_and_omits_an_unknown_type() -> None:
    manifest = json.loads(manifest_json({"b": b"", "a/b": b"x", "a-b": b"", "\u00e9<": b""}))
    assert [entry["path"] for entry in manifest["files"]] == ["a-b", "a/b", "b", "\u00e9<"]
    assert manifest["files"][2] == {"path": "b", "size": 0, "sha256": sha(b"")}
    assert b"\\u003c" in manifest_json({"\u00e9<": b""})


def test_extra_files_are_listed() -> None:
    bundle = build_bundle(replace(SOURCE, extra_files={"logs/a.log": b"x"}))
    assert bundle.files["logs/a.log"] == b"x"
    assert bundle.predicate["manifest"]["fileCount"] == 6  # type: ignore[index]
    listed = [entry["path"] for entry in json.loads(bundle.files["manifest.json"])["files"]]
    assert listed == [
        "bom.cdx.json",
        "ctrf/conformance.json",
        "ctrf/deployment.json",
        "logs/a.log",
        "recipe.yaml",
        "snapshot.yaml",
    ]


def test_c10_the_local_statement_is_about_the_recipe() -> None:
    bundle = build_bundle(SOURCE)
    statement = parse_statement(bundle.files["statement.intoto.json"])
    assert statement.type == "https://in-toto.io/Statement/v1"
    assert statement.predicate_type == V3
    assert [(subject.name, subject.sha256) for subject in statement.subjects] == [
        ("recipe:h100-eks-ubuntu-training", recipe_digests(RECIPE)[1])
    ]
    assert statement.predicate == bundle.predicate
    assert list(statement.predicate) == sorted(bundle.predicate)


def test_the_artifact_statement_is_about_the_manifest() -> None:
    bundle = build_bundle(SOURCE)
    payload = artifact_statement(V3, bundle.predicate, "oci://ghcr.io/octocat/aicr-evidence:v1", "a" * 64)
    statement = parse_statement(payload)
    assert [(subject.name, subject.sha256) for subject in statement.subjects] == [
        ("ghcr.io/octocat/aicr-evidence:v1", "a" * 64)
    ]
    assert statement.predicate == bundle.predicate


REFERENCE = "ghcr.io/octocat/aicr-evidence:v1"
GOOD: Mapping[str, object] = {"recipe": {"name": "recipe", "digest": "b" * 64}}

GUARDS = [
    pytest.param(GOOD, "", "a" * 64, "OCI reference is required", id="C11"),
    pytest.param(GOOD, "oci://", "a" * 64, "OCI reference is required", id="C11-prefix-only"),
    pytest.param(GOOD, REFERENCE, "", "artifact digest is required", id="C12-none"),
    pytest.param(GOOD, REFERENCE, "abc", "artifact digest must be 64 hex", id="C12-short"),
    pytest.param(GOOD, REFERENCE, "A" * 64, "artifact digest must be 64 hex", id="C12-upper-case"),
    pytest.param({}, REFERENCE, "a" * 64, "predicate is required", id="C13-none"),
    pytest.param(
        {"recipe": {"name": "", "digest": "b" * 64}}, REFERENCE, "a" * 64, r"recipe.\{name,digest\}", id="C13-name"
    ),
    pytest.param({"recipe": {"name": "x"}}, REFERENCE, "a" * 64, r"must be populated", id="C13-digest"),
    pytest.param({"recipe": None}, REFERENCE, "a" * 64, r"must be populated", id="C13-no-recipe"),
    pytest.param(
        {"recipe": {"name": "x", "digest": "b"}}, REFERENCE, "a" * 64, "digest must be 64 hex", id="recipe-digest"
    ),
    pytest.param({**GOOD, "profile": {}}, REFERENCE, "a" * 64, "policyDescriptorIdentity", id="incoherent"),
]


@pytest.mark.parametrize(("predicate", "reference", "digest", "message"), GUARDS)
def test_a_statement_is_made_only_of_complete_parts(
    predicate: Mapping[str, object], reference: str, digest: str, message: str
) -> None:
    with pytest.raises(InputError, match=message):
        artifact_statement(V3, predicate, reference, digest)


def test_a_local_statement_has_the_same_guards() -> None:
    with pytest.raises(InputError, match="predicate is required"):
        local_statement(V3, {})
    with pytest.raises(DocumentInvalid, match="requires the predicate profile block"):
        local_statement(V2, GOOD)
