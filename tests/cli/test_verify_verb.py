"""`verify`: the report of evidence-format 8.6 on stdout, cures on stderr, exits 0, 2, 5 and 9."""

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
import pytest

from app.adapters.oci.pack import describe_bundle, describe_signature
from app.client import ApiClient
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


def test_a_report_that_can_not_be_written_is_no_success_and_no_other_verdict(
    stage: Stage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = str(tmp_path / "missing" / "report")
    said = f"error: {target} can not be written: No such file or directory\n"
    valid = cli("verify", str(stage.directory), *stage.root, "-o", target)
    assert (valid.code, valid.out, valid.err) == (2, "", said)
    monkeypatch.setenv("AICR_EVIDENCE_PRIVATE_REGISTRIES", "127.0.0.1:9")
    gone = cli("verify", f"127.0.0.1:9/x@sha256:{'a' * 64}", "--timeout", "1", "-o", target)
    assert (gone.code, gone.out, gone.err.startswith(said)) == (5, "", True)
    path = tmp_path / "bundle.json"
    path.write_bytes(stage.signature)
    facts = cli("verify", "--signature-only", str(path), *stage.root, "-o", target)
    assert (facts.code, facts.out, facts.err) == (2, "", said)


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
    pointer.write_bytes(pointer_of(bundle, published, OCTOCAT))
    assert cli("verify", str(pointer), *stage.root, "--registry-plain-http", "--strict").code == 0
    earlier = datetime(2020, 1, 1, tzinfo=UTC)
    pointer.write_bytes(pointer_of(bundle, published, OCTOCAT, attested_at=earlier))
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


@pytest.mark.parametrize("name", ["evidence.tar", "nofile.yaml", "out.d/bundle"])
def test_a_missing_file_is_told_as_one(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    said = f"{name!r} does not exist here, and is no reference: reference {name!r} has neither tag nor digest"
    run = cli("verify", name, "-t", "json")
    assert (run.code, run.json["failureCause"]["detail"]) == (2, said)
    asked = cli("verify", name, "--api", "http://127.0.0.1:9")
    assert (asked.code, asked.out, asked.err.splitlines()[0]) == (2, "", f"error: {said}")
    named = cli("verify", f"oci://{name}", "-t", "json")
    assert named.json["failureCause"]["detail"] == f"reference 'oci://{name}' has neither tag nor digest"


def test_an_empty_directory_involves_no_registry(tmp_path: Path) -> None:
    run = cli("verify", str(tmp_path), "-t", "json")
    assert (run.code, run.json["failureCause"]["class"]) == (2, "unknown")
    assert run.err == (
        "code: BUNDLE_NOT_READABLE\n"
        "cure: check that the reference or path is the one meant, that it may be read, and that the whole bundle is "
        "there\n"
    )


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


@pytest.mark.parametrize("content", ["zeros", "device"])
def test_an_archive_without_end_is_refused(content: str, tmp_path: Path) -> None:
    path = tmp_path / "layout.tar"
    if content == "device":
        path.symlink_to("/dev/zero")
    else:
        path.touch()
        os.truncate(path, 40 << 30)
    run = cli("verify", str(path), "-t", "json")
    code, said = {
        "device": ("LAYOUT_INVALID", "expected a regular file, got something else"),
        "zeros": ("BODY_TOO_LARGE", "the archive has more than 103415808 bytes"),
    }[content]
    assert (run.code, run.json["failureCause"]) == (2, {"class": "unknown", "detail": said})
    assert run.err.splitlines()[0] == f"code: {code}"


def test_a_port_that_is_none_is_no_reason_to_try_again() -> None:
    run = cli("verify", f"[::1]:99999/c@sha256:{'a' * 64}", "-t", "json")
    assert (run.code, run.json["exit"]) == (2, 2)
    assert run.json["failureCause"]["detail"] == "expected a port from 1 to 65535, got '99999'"


# --- what strangers wrote ------------------------------------------------------------------------------


def test_json_is_exact_for_every_character_of_a_bundle(stage: Stage, tmp_path: Path) -> None:
    files = dict(stage.bundle.files)
    statement = json.loads(files["statement.intoto.json"])
    odd = "v1 \xa0\xad\x7f\x9b\u202e\u2028\U000e0001 é \n\\xa0"
    statement["predicate"]["aicrVersion"] = odd
    files["statement.intoto.json"] = json.dumps(statement).encode()
    directory = str(write(tmp_path / "bundle", files))
    run = cli("verify", directory, *stage.root, "-t", "json")
    assert run.json["predicate"]["aicrVersion"] == odd
    assert '"v1 \\u00a0\\u00ad\\u007f\\u009b\\u202e\\u2028\\udb40\\udc01 é \\n\\\\xa0"' in run.out
    target = tmp_path / "report.json"
    cli("verify", directory, *stage.root, "-t", "json", "-o", str(target))
    assert target.read_text() == run.out


def test_a_file_name_with_line_breaks_is_one_line_of_a_finding(stage: Stage, tmp_path: Path) -> None:
    files = {**stage.bundle.files, "ctrf/a\n::error file=z::owned\n.json": b"{}"}
    for form in ("json", "text"):
        run = cli("verify", str(write(tmp_path / form, files)), *stage.root, "-t", form)
        assert "ctrf/a\\n::error file=z::owned\\n.json" in run.err
        assert [line for line in (run.out + run.err).splitlines() if line.startswith("::")] == []


# --- a signature alone ---------------------------------------------------------------------------------


def test_signature_only_prints_who_signed_what(stage: Stage, tmp_path: Path) -> None:
    path = tmp_path / "bundle.json"
    path.write_bytes(stage.signature)
    run = cli("verify", "--signature-only", str(path), *stage.root, "-t", "json")
    assert (run.code, run.err, run.json["identity"]) == (0, "", OCTOCAT.signer.identity)
    assert run.json["subject"]["digest"] == {"sha256": stage.ref.digest.hex if stage.ref.digest else ""}
    text = cli("verify", "--signature-only", str(path), *stage.root)
    assert text.out.splitlines()[0] == f"identity:      {OCTOCAT.signer.identity}"
    assert cli("verify", "--signature-only", str(tmp_path / "none"), *stage.root).code == 3


def test_a_refused_signature_is_told_where_a_good_one_would_be(stage: Stage, tmp_path: Path) -> None:
    path, target = tmp_path / "bundle.json", tmp_path / "facts.json"
    path.write_bytes(stage.signature.replace(b'"payload":"', b'"payload":"AAAA'))
    words = ("verify", "--signature-only", str(path), *stage.root)
    shown = cli(*words, "-t", "json")
    assert (shown.code, list(shown.json)) == (2, ["verified", "rule", "code", "message"])
    assert (shown.json["verified"], shown.json["rule"]) == (False, "S5")
    assert shown.err.startswith("refused: S5 S5_BASE64_NOT_CANONICAL: ")
    filed = cli(*words, "-t", "json", "-o", str(target))
    assert (filed.code, filed.out, target.read_text()) == (2, "", shown.out)
    text = cli(*words)
    assert (text.code, text.out.splitlines()[:2]) == (2, ["verified:      False", "rule:          S5"])
    assert cli(*words, "-o", str(target)).out == ""
    assert target.read_text() == text.out


def test_a_signature_in_a_device_is_named_as_it_was_given(stage: Stage) -> None:
    run = cli("verify", "--signature-only", "/dev/zero", *stage.root)
    assert (run.code, run.out, run.err) == (2, "", "error: expected a regular file at /dev/zero\n")


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


def test_a_service_is_asked_once_whatever_the_format(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    """The words and the exit come of one judging, and are those that the service would have written."""
    sent: list[str] = []
    send = ApiClient._send

    def counted(self: ApiClient, method: str, path: str, **rest: Any) -> httpx.Response:
        sent.append(f"{method} {path}")
        return send(self, method, path, **rest)

    monkeypatch.setattr(ApiClient, "_send", counted)
    text = cli("verify", str(stage.ref), "--api", stage.service.url)
    assert (text.code, sent) == (0, ["POST /verify"])
    written = stage.service.http.post("/verify", params={"format": "markdown"}, json={"bundle": str(stage.ref)}).text
    assert text.out == written


@pytest.mark.parametrize(
    ("words", "named"),
    [
        pytest.param(["--expected-issuer", "https://x"], "--expected-issuer", id="issuer"),
        pytest.param(["--expected-issuer", ""], "--expected-issuer", id="empty-issuer"),
        pytest.param(["--expected-identity-regexp", "("], "--expected-identity-regexp", id="identity"),
        pytest.param(["--strict"], "--strict", id="strict"),
        pytest.param(["--trusted-root", "/nonexistent"], "--trusted-root", id="root"),
        pytest.param(["--bundle", "ghcr.io/x/y:z"], "--bundle", id="bundle"),
        pytest.param(["--registry-plain-http"], "--registry-plain-http", id="plain-http"),
        pytest.param(["--registry-insecure-tls"], "--registry-insecure-tls", id="insecure-tls"),
        pytest.param(["--allow-unpinned-tag"], "--allow-unpinned-tag", id="tag"),
        pytest.param(["--signature-only"], "--signature-only", id="signature-only"),
        pytest.param(["--bundle", "x", "--strict"], "--strict, --bundle", id="two"),
    ],
)
def test_what_a_service_can_not_keep_is_refused_with_api(words: list[str], named: str) -> None:
    """Nobody is asked: that would be exit 6, since nobody serves there."""
    run = cli("verify", f"ghcr.io/nvidia/x@sha256:{'a' * 64}", "--api", "http://127.0.0.1:9", *words)
    assert (run.code, run.out) == (2, "")
    assert run.err == (
        f"error: --api lets the service judge by its own settings and can not be given with {named}\n"
        "hint: leave --api out to judge it here with these options, or leave them out\n"
    )


@pytest.mark.parametrize(
    ("report", "code"),
    [
        pytest.param({"exit": 0, "pending": True}, 0, id="pending"),
        pytest.param({"exit": 1}, 2, id="phase-failures"),
        pytest.param({"exit": 2, "failureCause": {"class": "signature", "detail": "x"}}, 2, id="invalid"),
        pytest.param({"exit": 3, "failureCause": {"class": "transient", "detail": "x"}}, 5, id="no-verdict"),
        pytest.param({"exit": 3, "failureCause": {"class": "canceled", "detail": "x"}}, 9, id="aborted"),
        pytest.param({"exit": 7}, 6, id="no-exit-of-ours"),
        pytest.param({"exit": 2}, 6, id="no-cause"),
        pytest.param({}, 6, id="no-report"),
    ],
)
def test_what_a_service_answers_is_the_exit(
    report: dict[str, object], code: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    body = {"input": "oci", "steps": [], **report}
    monkeypatch.setattr(ApiClient, "verify", lambda *_, **__: body)
    for form in ("json", "text"):
        run = cli("verify", f"ghcr.io/x/y@sha256:{'a' * 64}", "--api", "http://127.0.0.1:9", "-t", form)
        assert run.code == code
        assert (run.out == "") is (code == 6)
    assert ("answered with no report" in run.err) is (code == 6)
