"""Real production signatures through the command line: believed as signatures, refused as evidence.

The bundles are not part of this repository: `AICR_EVIDENCE_TEST_BUNDLES` names a folder with an `expected.json`. What
holds without them is shown too: the embedded root believes nobody whom the public-good instance did not certify.
"""

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.adapters.oci.pack import describe_bundle, describe_signature
from app.sandbox.identities import OCTOCAT
from app.sandbox.registry import SandboxRegistry
from tests.support.bundles import write
from tests.support.endtoend import Signing, bundle_of, cli, service
from tests.support.signatures import minted

FOLDER = "AICR_EVIDENCE_TEST_BUNDLES"
V3 = "https://aicr.run/recipe-evidence/v3"
UNEXPECTED = "unexpected predicateType 'https://slsa.dev/provenance/v1'"


@pytest.fixture
def local(tmp_path: Path) -> Path:
    """A bundle of another Sigstore, which the public-good root must refuse wherever the public ones pass."""
    path = tmp_path / "local.sigstore.json"
    path.write_bytes(minted())
    return path


def _public() -> Iterator[tuple[Path, dict[str, object]]]:
    if FOLDER in os.environ:
        folder = Path(os.environ[FOLDER])
        for expected in json.loads((folder / "expected.json").read_text(encoding="utf-8")):
            yield folder / expected["file"], expected


@pytest.fixture(autouse=True)
def _public_good_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AICR_EVIDENCE_TRUSTED_ROOT", raising=False)


def test_production_bundles_pass_with_exactly_the_expected_facts(local: Path) -> None:
    refused = cli("verify", "--signature-only", str(local), "--format", "json")
    assert (refused.code, refused.json["code"]) == (2, "S10_LOG_UNKNOWN")
    for path, expected in _public():
        run = cli("verify", "--signature-only", str(path), "--format", "json")
        assert run.code == 0, (path.name, run.err)
        said = run.json
        assert list(said) == [
            "identity",
            "issuer",
            "root",
            "log",
            "logId",
            "logIndex",
            "loggedAt",
            "payloadType",
            "predicateType",
            "subject",
        ]
        assert (said["identity"], said["issuer"]) == (expected["identity"], expected["issuer"])
        assert (said["log"], said["logIndex"]) == (expected["log"], expected["logIndex"])
        assert said["loggedAt"] == str(expected["time"]).replace("+00:00", "Z")
        assert (said["predicateType"], said["subject"]) == (expected["predicateType"], expected["subject"])
        assert (said["root"], said["payloadType"]) == ("public-good", "application/vnd.in-toto+json")


def test_a_pin_on_another_signer_refuses_a_production_bundle(local: Path) -> None:
    assert cli("verify", "--signature-only", str(local), "--expected-issuer", OCTOCAT.issuer).code == 2
    for path, expected in _public():
        right = cli("verify", "--signature-only", str(path), "--expected-issuer", str(expected["issuer"]))
        assert right.code == 0
        wrong = cli("verify", "--signature-only", str(path), "--expected-issuer", "https://login.example.org")
        assert (wrong.code, wrong.out) == (2, "")
        assert "issuer" in wrong.err


def test_production_bundles_are_no_evidence_in_a_directory(local: Path, tmp_path: Path) -> None:
    directory = write(tmp_path / "bundle", bundle_of().files)
    (directory / "attestation.intoto.jsonl").write_bytes(local.read_bytes())
    run = cli("verify", str(directory), "--format", "json")
    assert (run.code, run.json["failureCause"]["class"]) == (2, "signature")
    assert "code: S10_LOG_UNKNOWN" in run.err
    for path, _ in _public():
        (directory / "attestation.intoto.jsonl").write_bytes(path.read_bytes())
        run = cli("verify", str(directory), "--format", "json")
        assert (run.code, run.json["exit"], run.json["failureCause"]["class"]) == (2, 2, "signature")
        assert UNEXPECTED in run.json["failureCause"]["detail"]
        assert "code: PREDICATE_INCOHERENT" in run.err


def test_production_bundles_are_no_evidence_in_an_artifact(sigstore: Signing, tmp_path: Path) -> None:
    """The service trusts the public-good root here, as it does unless it is told otherwise."""
    with (
        SandboxRegistry() as registry,
        service(
            tmp_path,
            "public-good",
            [registry.host],
            [OCTOCAT],
            sandbox=False,
            database_url=f"sqlite:///{tmp_path}/x.db",
        ) as up,
    ):
        for path, _ in _public():
            artifact = describe_bundle(bundle_of(path.name).files, predicate_type=V3, version="v0.42.0")
            signature = describe_signature(artifact.descriptor, path.read_bytes())
            answer = up.submit(registry.seed("aicr/evidence", artifact, [signature]))
            details = answer.json()["details"]
            assert (answer.status_code, details["code"]) == (422, "PREDICATE_INCOHERENT")
            assert UNEXPECTED in details["cause"]["detail"]
        own = sigstore.publish(bundle_of("private"), registry.host, OCTOCAT)
        answer = up.submit(own.ref)
        assert (answer.status_code, answer.json()["details"]["code"]) == (422, "S10_LOG_UNKNOWN")


@pytest.mark.parametrize("log", ["v1", "v2"])
def test_the_embedded_root_believes_no_other_sigstore(log: str, tmp_path: Path) -> None:
    path = tmp_path / "artifact.sigstore.json"
    path.write_bytes(minted(log=log))
    run = cli("verify", "--signature-only", str(path), "--format", "json")
    assert (run.code, run.json["verified"], run.json["rule"], run.json["code"]) == (2, False, "S10", "S10_LOG_UNKNOWN")
    assert "hint: " in run.err


def test_the_root_that_made_it_believes_it(sigstore: Signing, tmp_path: Path) -> None:
    path = tmp_path / "artifact.sigstore.json"
    with SandboxRegistry() as registry:
        path.write_bytes(sigstore.publish(bundle_of(), registry.host, OCTOCAT).signature)
    run = cli("verify", "--signature-only", str(path), "--trusted-root", sigstore.trusted_root, "--format", "json")
    assert (run.code, run.json["identity"], run.json["predicateType"]) == (0, OCTOCAT.signer.identity, V3)
