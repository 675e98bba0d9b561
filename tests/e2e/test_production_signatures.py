"""Real production signatures through the command line: believed as signatures, refused as evidence.

The bundles are not part of this repository: `AICR_EVIDENCE_TEST_BUNDLES` names a folder with an `expected.json`.
Bundles that the tests' own Sigstore made over the same kind of statement go the same way first, so that every line here
is run with the folder and without it.
"""

import json
import os
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from app.adapters.oci.pack import describe_bundle, describe_signature
from app.sandbox.identities import OCTOCAT
from app.sandbox.registry import SandboxRegistry
from tests.support.bundles import write
from tests.support.endtoend import Service, Signing, bundle_of, cli, service
from tests.support.signatures import minted, statement_json
from tests.support.signatures import sigstore as private_sigstore

FOLDER = "AICR_EVIDENCE_TEST_BUNDLES"
V3 = "https://aicr.run/recipe-evidence/v3"
PROVENANCE = "https://slsa.dev/provenance/v1"
UNEXPECTED = "unexpected predicateType 'https://slsa.dev/provenance/v1'"
SUBJECT = {"name": "dist/tool.whl", "digest": {"sha256": "5c" * 32}}
PUBLIC_GOOD = "public-good"
LOGS = {"v1": "rekor.sandbox.example", "v2": "log2026-1.rekor.sandbox.example"}


@dataclass(frozen=True)
class Case:
    """A bundle that somebody signed, what must be read from it, and the root that believes it."""

    path: Path
    expected: dict[str, Any]
    root: str = PUBLIC_GOOD

    @property
    def trusting(self) -> tuple[str, ...]:
        return () if self.root == PUBLIC_GOOD else ("--trusted-root", self.root)


@pytest.fixture(scope="module")
def cases(tmp_path_factory: pytest.TempPathFactory) -> tuple[Case, ...]:
    """One stand-in of each log version, then the public bundles."""
    directory = tmp_path_factory.mktemp("bundles")
    root = directory / "trusted_root.json"
    root.write_bytes(private_sigstore().trusted_root_json())
    return *(_stand_in(directory, log, str(root)) for log in ("v1", "v2")), *_public()


def _stand_in(directory: Path, log: str, root: str) -> Case:
    path = directory / f"{log}.sigstore.json"
    path.write_bytes(minted(log=log, statement=statement_json(predicateType=PROVENANCE, subject=[SUBJECT])))
    expected = {
        "identity": "1234567+octocat@users.noreply.github.com",
        "issuer": "https://github.com/login/oauth",
        "log": LOGS[log],
        "logIndex": int(json.loads(path.read_bytes())["verificationMaterial"]["tlogEntries"][0]["logIndex"]),
        "time": "2026-05-08T10:24:00+00:00",
        "predicateType": PROVENANCE,
        "subject": SUBJECT,
    }
    return Case(path, expected, root)


def _public() -> tuple[Case, ...]:
    if FOLDER not in os.environ:
        return ()
    folder = Path(os.environ[FOLDER])
    listed = json.loads((folder / "expected.json").read_text(encoding="utf-8"))
    return tuple(Case(folder / expected["file"], expected) for expected in listed)


@pytest.fixture(autouse=True)
def _public_good_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AICR_EVIDENCE_TRUSTED_ROOT", raising=False)


def test_bundles_pass_with_exactly_the_expected_facts(cases: tuple[Case, ...]) -> None:
    for case in cases:
        run = cli("verify", "--signature-only", str(case.path), *case.trusting, "--format", "json")
        assert run.code == 0, (case.path.name, run.err)
        said, expected = run.json, case.expected
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
        assert (said["root"], said["payloadType"]) == (
            PUBLIC_GOOD if case.root == PUBLIC_GOOD else "trusted_root",
            "application/vnd.in-toto+json",
        )


def test_a_pin_on_another_signer_refuses_them(cases: tuple[Case, ...]) -> None:
    for case in cases:
        words = ("verify", "--signature-only", str(case.path), *case.trusting, "--expected-issuer")
        assert cli(*words, str(case.expected["issuer"])).code == 0
        wrong = cli(*words, "https://login.example.org")
        assert wrong.code == 2, case.path.name
        assert [line.split(maxsplit=1) for line in wrong.out.splitlines()[:3]] == [
            ["verified:", "False"],
            ["rule:", "PIN"],
            ["code:", "PIN_MISMATCH"],
        ]
        found = f"expected issuer 'https://login.example.org', the certificate says '{case.expected['issuer']}'"
        assert found in wrong.out
        assert found in wrong.err


def test_they_are_no_evidence_in_a_directory(cases: tuple[Case, ...], tmp_path: Path) -> None:
    directory = write(tmp_path / "bundle", bundle_of().files)
    for case in cases:
        (directory / "attestation.intoto.jsonl").write_bytes(case.path.read_bytes())
        run = cli("verify", str(directory), *case.trusting, "--format", "json")
        assert (run.code, run.json["exit"], run.json["failureCause"]["class"]) == (2, 2, "signature")
        assert UNEXPECTED in run.json["failureCause"]["detail"]
        assert "code: PREDICATE_INCOHERENT" in run.err


def test_they_are_no_evidence_in_an_artifact(cases: tuple[Case, ...], tmp_path: Path) -> None:
    for number, root in enumerate(dict.fromkeys(case.root for case in cases)):
        trusted = root if root == PUBLIC_GOOD else f"{root};issuer={OCTOCAT.issuer}"
        with SandboxRegistry() as registry, _trusting(trusted, registry, tmp_path / str(number)) as up:
            for case in (case for case in cases if case.root == root):
                artifact = describe_bundle(bundle_of(case.path.name).files, predicate_type=V3, version="v0.42.0")
                signature = describe_signature(artifact.descriptor, case.path.read_bytes())
                answer = up.submit(registry.seed("aicr/evidence", artifact, [signature]))
                details = answer.json()["details"]
                assert (answer.status_code, details["code"]) == (422, "PREDICATE_INCOHERENT")
                assert UNEXPECTED in details["cause"]["detail"]


def test_a_service_with_the_embedded_root_refuses_the_artifact_of_another_sigstore(
    sigstore: Signing, tmp_path: Path
) -> None:
    with SandboxRegistry() as registry, _trusting(PUBLIC_GOOD, registry, tmp_path) as up:
        own = sigstore.publish(bundle_of("private"), registry.host, OCTOCAT)
        answer = up.submit(own.ref)
        assert (answer.status_code, answer.json()["details"]["code"]) == (422, "S10_LOG_UNKNOWN")


def _trusting(root: str, registry: SandboxRegistry, directory: Path) -> AbstractContextManager[Service]:
    """A service outside the sandbox, which takes only such roots as a production service takes."""
    url = f"sqlite:///{directory}/x.db"
    return service(directory, root, [registry.host], [OCTOCAT], sandbox=False, database_url=url)


def test_the_embedded_root_alone_refuses_the_signature_of_another_sigstore_in_a_directory(tmp_path: Path) -> None:
    directory = write(tmp_path / "bundle", bundle_of().files)
    (directory / "attestation.intoto.jsonl").write_bytes(minted())
    run = cli("verify", str(directory), "--format", "json")
    assert (run.code, run.json["failureCause"]["class"]) == (2, "signature")
    assert "code: S10_LOG_UNKNOWN" in run.err


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
