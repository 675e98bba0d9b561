"""`verify`: the report of evidence-format 8.6 on stdout, cures on stderr, exits 0, 2, 5 and 9."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from app.adapters.oci.pack import describe_bundle, describe_signature
from app.cli.verbs import verify as verb
from app.core.produce import ProducedBundle
from app.core.refs import OciRef
from app.sandbox.identities import OCTOCAT, STRANGER
from app.sandbox.registry import Hostility, SandboxRegistry
from tests.support.bundles import write
from tests.support.endtoend import (
    RECIPE,
    Service,
    Signing,
    StatusRegistry,
    bundle_of,
    cli,
    pointer_of,
    service,
    signing,
)

KEYS = ["predicate", "signer", "recipeName", "steps", "exit"]
STEPS = ["materialize-bundle", "signature-verify", "predicate-parse", "manifest-hash-check", "render-summary"]


@dataclass(frozen=True)
class Stage:
    """A signed bundle as a directory and in a registry, and a service that knows it."""

    sigstore: Signing
    registry: SandboxRegistry
    service: Service
    bundle: ProducedBundle
    directory: Path
    ref: OciRef
    signature: bytes

    @property
    def root(self) -> tuple[str, str]:
        return ("--trusted-root", self.sigstore.trusted_root)


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    scratch = tmp_path_factory.mktemp("verify")
    with (
        signing(scratch / "sigstore") as sigstore,
        SandboxRegistry() as registry,
        service(scratch / "service", sigstore.trusted_root, [registry.host], [OCTOCAT]) as up,
    ):
        bundle = bundle_of()
        published = sigstore.publish(bundle, registry.host, OCTOCAT)
        directory = write(scratch / "bundle", bundle.files)
        (directory / "attestation.intoto.jsonl").write_bytes(published.signature)
        yield Stage(sigstore, registry, up, bundle, directory, published.ref, published.signature)


@pytest.fixture(autouse=True)
def _reach_loopback(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AICR_EVIDENCE_PRIVATE_REGISTRIES", stage.registry.host)


def test_a_directory_gives_exactly_the_reports_keys(stage: Stage) -> None:
    run = cli("verify", str(stage.directory), *stage.root, "--format", "json")
    assert (run.code, run.err) == (0, "")
    assert list(run.json) == ["input", *KEYS]
    assert (run.json["input"], run.json["exit"], run.json["recipeName"]) == ("dir", 0, RECIPE)
    assert [step["name"] for step in run.json["steps"]] == STEPS
    assert [step["step"] for step in run.json["steps"]] == [1, 2, 3, 4, 5]
    assert set(run.json["signer"]) == {"identity", "issuer", "rekorLogIndex"}
    assert run.out.startswith('{\n  "input": "dir",\n')
    assert run.out.endswith("}\n")


def test_text_is_the_markdown_report(stage: Stage) -> None:
    text = cli("verify", str(stage.directory), *stage.root)
    assert (text.code, text.out.splitlines()[0]) == (0, f"## Evidence verification — {RECIPE}")
    assert f"**Signer:** {OCTOCAT.signer.identity} (issuer {OCTOCAT.issuer})" in text.out
    assert cli("verify", str(stage.directory), *stage.root, "--format", "markdown").out == text.out
    assert cli("verify", str(stage.directory), *stage.root, "-t", "text").out == text.out


def test_the_report_goes_to_a_file_when_one_is_named(stage: Stage, tmp_path: Path) -> None:
    target = tmp_path / "report.json"
    run = cli("verify", str(stage.directory), *stage.root, "-t", "json", "-o", str(target))
    assert (run.code, run.out) == (0, "")
    assert json.loads(target.read_text())["exit"] == 0
    assert target.read_bytes().endswith(b"}\n")
    refused = cli("verify", str(stage.directory), *stage.root, "-o", str(tmp_path / "missing" / "report"))
    assert (refused.code, refused.out) == (6, "")
    assert "can not write" in refused.err


def test_without_the_root_that_signed_nothing_is_believed(stage: Stage) -> None:
    run = cli("verify", str(stage.directory), "--trusted-root", "public-good", "--format", "json")
    assert (run.code, run.json["exit"], run.json["failureCause"]["class"]) == (2, 2, "signature")
    assert "signer" not in run.json
    assert run.err.splitlines()[0] == "code: S10_LOG_UNKNOWN"
    assert run.err.splitlines()[1].startswith("cure: ")


def test_several_roots_are_tried_together(stage: Stage) -> None:
    run = cli("verify", str(stage.directory), "--trusted-root", "public-good", *stage.root, "--format", "json")
    assert run.code == 0


@pytest.mark.parametrize(
    ("pins", "code"),
    [
        pytest.param(["--expected-issuer", OCTOCAT.issuer], 0, id="issuer"),
        pytest.param(["--expected-issuer", "https://login.example.org"], 2, id="other-issuer"),
        pytest.param(["--expected-issuer", OCTOCAT.issuer[:-1]], 2, id="issuer-is-exact"),
        pytest.param(["--expected-identity-regexp", "octocat@users"], 0, id="search"),
        pytest.param(["--expected-identity-regexp", "^octocat"], 2, id="anchored"),
        pytest.param(["--expected-identity-regexp", "["], 2, id="no-expression"),
    ],
)
def test_a_pin_decides_who_may_have_signed(stage: Stage, pins: list[str], code: int) -> None:
    run = cli("verify", str(stage.directory), *stage.root, *pins)
    assert run.code == code
    assert ("code: " in run.err) is (code == 2 and "[" not in pins)


def test_a_pin_on_an_unsigned_bundle_fails(stage: Stage, tmp_path: Path) -> None:
    directory = str(write(tmp_path / "bundle", stage.bundle.files))
    assert cli("verify", directory, *stage.root).code == 0
    run = cli("verify", directory, *stage.root, "--expected-issuer", OCTOCAT.issuer, "-t", "json")
    assert (run.code, run.json["failureCause"]["class"]) == (2, "signature")
    assert "code: SIGNATURE_MISSING\ncure: sign the pushed bundle" in run.err


def test_findings_fail_only_when_they_are_asked_to(stage: Stage, tmp_path: Path) -> None:
    """E5: the pointer says another time than the statement."""
    pointer = tmp_path / "pointer.yaml"
    bundle = bundle_of("two")
    published = stage.sigstore.publish(bundle, stage.registry.host, OCTOCAT, tag="two")
    pointer.write_bytes(pointer_of(bundle, published, OCTOCAT, attested_at=None))
    assert cli("verify", str(pointer), *stage.root, "--registry-plain-http", "--strict").code == 0
    text = pointer.read_bytes().replace(b"  - bundle:", b"  - attestedAt: 2020-01-01T00:00:00Z\n    bundle:")
    pointer.write_bytes(text)
    run = cli("verify", str(pointer), *stage.root, "--registry-plain-http", "-t", "json")
    assert (run.code, [finding["rule"] for finding in run.json["findings"]]) == (0, ["E5"])
    assert run.err.startswith("finding: E5 ")
    assert "\ncure: " in run.err
    strict = cli("verify", str(pointer), *stage.root, "--registry-plain-http", "-t", "json", "--strict")
    assert (strict.code, strict.json["failureCause"]["class"]) == (2, "integrity")
    assert "code: E5_" in strict.err


def test_a_changed_file_is_named_with_its_cure(stage: Stage, tmp_path: Path) -> None:
    files = {**stage.bundle.files, "ctrf/performance.json": b"{}"}
    run = cli("verify", str(write(tmp_path / "bundle", files)), *stage.root, "-t", "json")
    assert (run.code, run.json["failureCause"]["class"]) == (2, "integrity")
    (step,) = [step for step in run.json["steps"] if step["status"] == "failed"]
    assert step["name"] == "manifest-hash-check"
    assert any("ctrf/performance.json" in row["key"] + row["value"] for row in step["subRows"])
    assert "code: MANIFEST_INVENTORY\ncure: " in run.err


def test_recorded_failures_are_exit_2_of_the_process_and_1_of_the_report(stage: Stage, tmp_path: Path) -> None:
    failing = bundle_of("failing", results={"driver-version": "failed"})
    run = cli("verify", str(write(tmp_path / "bundle", failing.files)), *stage.root, "-t", "json")
    assert (run.code, run.json["exit"]) == (2, 1)
    assert "failureCause" not in run.json
    assert run.err == ""


# --- registries ----------------------------------------------------------------------------------------


def test_a_reference_is_read_from_the_registry_that_was_named(stage: Stage) -> None:
    run = cli("verify", str(stage.ref), *stage.root, "--registry-plain-http", "-t", "json")
    assert (run.code, list(run.json)) == (
        0,
        ["input", "predicate", "signer", "recipeName", "bundleDigest", "steps", "exit"],
    )
    assert run.json["bundleDigest"] == str(stage.ref.digest)
    assert cli("verify", f"oci://{stage.ref}", *stage.root, "--registry-plain-http").code == 0


def test_a_tag_needs_to_be_allowed(stage: Stage) -> None:
    tag = f"{stage.registry.host}/aicr/evidence:one"
    run = cli("verify", tag, *stage.root, "--registry-plain-http", "-t", "json")
    assert (run.code, "tag-only" in run.json["failureCause"]["detail"]) == (2, True)
    assert cli("verify", tag, *stage.root, "--registry-plain-http", "--allow-unpinned-tag").code == 0


def test_a_private_address_needs_to_be_named(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AICR_EVIDENCE_PRIVATE_REGISTRIES")
    run = cli("verify", str(stage.ref), *stage.root, "--registry-plain-http", "-t", "json")
    assert (run.code, run.json["exit"]) == (2, 2)
    assert "code: ADDRESS_REFUSED" in run.err
    assert "AICR_EVIDENCE_PRIVATE_REGISTRIES" in run.err


def test_what_can_not_be_read_now_is_exit_5(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    with StatusRegistry() as statuses:
        monkeypatch.setenv("AICR_EVIDENCE_PRIVATE_REGISTRIES", statuses.host)
        for status, code, said in ((503, 5, "transient"), (429, 5, "transient"), (404, 2, "not-found")):
            ref = f"{statuses.host}/aicr/status-{status}@sha256:{'a' * 64}"
            run = cli("verify", ref, *stage.root, "--registry-plain-http", "-t", "json", "--timeout", "3")
            assert (run.code, run.json["failureCause"]["class"]) == (code, said)
            assert "hint: " in run.err
        assert len(statuses.requests) > 3
    gone = cli("verify", ref, *stage.root, "--registry-plain-http", "-t", "json", "--timeout", "2")
    assert (gone.code, gone.json["exit"]) == (5, 3)


def test_an_abort_is_exit_9(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    def aborted(*_: object, **__: object) -> object:
        raise KeyboardInterrupt

    monkeypatch.setattr("app.adapters.oci.OciRegistry.resolve", aborted)
    run = cli("verify", str(stage.ref), *stage.root, "--registry-plain-http", "-t", "json")
    assert (run.code, run.json["exit"], run.json["failureCause"]["class"]) == (9, 3, "canceled")


def test_a_hostile_registry_is_a_refusal(stage: Stage) -> None:
    ref = stage.registry.plant(Hostility.SYMLINK, "aicr/symlink")
    run = cli("verify", str(ref), *stage.root, "--registry-plain-http", "-t", "json")
    assert (run.code, [step["name"] for step in run.json["steps"]]) == (2, ["materialize-bundle"])
    assert "code: LAYER_UNSAFE" in run.err


# --- inputs that are none ------------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["", "http://ghcr.io/x", "nothing here", "./missing", "README.txt"])
def test_an_input_of_no_known_form_gives_no_report(text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "README.txt").write_text("x")
    monkeypatch.chdir(tmp_path)
    run = cli("verify", text)
    assert (run.code, run.out) == (2, "")
    assert run.err.startswith("error: ")


def test_a_broken_pointer_gives_no_report(tmp_path: Path) -> None:
    pointer = tmp_path / "pointer.yaml"
    pointer.write_text("schemaVersion: 9\n")
    run = cli("verify", str(pointer))
    assert (run.code, run.out) == (2, "")
    assert "schemaVersion" in run.err


def test_a_root_that_is_none_is_told(stage: Stage, tmp_path: Path) -> None:
    (tmp_path / "root.json").write_text("{}")
    run = cli("verify", str(stage.directory), "--trusted-root", str(tmp_path / "root.json"))
    assert (run.code, run.out) == (2, "")
    missing = cli("verify", str(stage.directory), "--trusted-root", str(tmp_path / "none.json"))
    assert missing.code in {2, 3}
    assert missing.err.startswith("error: ")


# --- a signature alone ---------------------------------------------------------------------------------


def test_signature_only_prints_who_signed_what(stage: Stage, tmp_path: Path) -> None:
    path = tmp_path / "bundle.json"
    path.write_bytes(stage.signature)
    run = cli("verify", "--signature-only", str(path), *stage.root, "-t", "json")
    assert (run.code, run.err, run.json["identity"]) == (0, "", OCTOCAT.signer.identity)
    assert run.json["subject"]["digest"] == {"sha256": stage.ref.digest.hex if stage.ref.digest else ""}
    text = cli("verify", "--signature-only", str(path), *stage.root)
    assert text.out.splitlines()[0] == f"identity:      {OCTOCAT.signer.identity}"
    path.write_bytes(stage.signature.replace(b'"payload":"', b'"payload":"AAAA'))
    refused = cli("verify", "--signature-only", str(path), *stage.root)
    assert (refused.code, refused.out) == (2, "")
    assert refused.err.startswith("refused: S")
    assert cli("verify", "--signature-only", str(tmp_path / "none"), *stage.root).code == 3


# --- asking a service ----------------------------------------------------------------------------------


def test_a_service_judges_the_same(stage: Stage, tmp_path: Path) -> None:
    here = cli("verify", str(stage.ref), *stage.root, "--registry-plain-http", "-t", "json")
    there = cli("verify", str(stage.ref), "--api", stage.service.url, "-t", "json")
    assert (there.code, there.json["exit"], there.json["steps"]) == (0, 0, here.json["steps"])
    assert there.json["signer"]["identity"] == "1…t@users.noreply.github.com"
    text = cli("verify", str(stage.ref), "--api", stage.service.url)
    assert (text.code, text.out.splitlines()[0]) == (0, f"## Evidence verification — {RECIPE}")
    unsigned = describe_bundle(bundle_of("u").files, predicate_type=stage.bundle.predicate_type, version="v1")
    planted = stage.registry.seed("aicr/garbage", unsigned, [describe_signature(unsigned.descriptor, b"{}")])
    assert cli("verify", str(planted), "--api", stage.service.url).code == 2
    pointer = tmp_path / "pointer.yaml"
    bundle = bundle_of("three")
    published = stage.sigstore.publish(bundle, stage.registry.host, STRANGER, tag="three")
    pointer.write_bytes(pointer_of(bundle, published, STRANGER))
    assert cli("verify", str(pointer), "--api", stage.service.url).code == 0


def test_a_service_can_not_see_a_local_directory(stage: Stage) -> None:
    run = cli("verify", str(stage.directory), "--api", stage.service.url)
    assert (run.code, run.out) == (2, "")
    assert "can not see the local" in run.err
    gone = cli("verify", str(stage.ref), "--api", "http://127.0.0.1:9")
    assert (gone.code, gone.out) == (6, "")


def test_the_exit_of_a_report_is_that_of_the_process() -> None:
    assert verb._exit_of({"exit": 0}) == 0
    assert verb._exit_of({"exit": 1}) == 2
    assert verb._exit_of({"exit": 2, "failureCause": {"class": "signature"}}) == 2
    assert verb._exit_of({"exit": 3, "failureCause": {"class": "transient"}}) == 5
    assert verb._exit_of({"exit": 3}) == 5
    assert verb._exit_of({"exit": 3, "failureCause": {"class": "canceled"}}) == 9
