"""Real production signatures verify under the embedded root, and are no evidence; strangers' bundles are not believed.

The bundles are not part of this repository: `AICR_EVIDENCE_TEST_BUNDLES` names a folder with an `expected.json`.
"""

import json
import os
from datetime import UTC, datetime
from pathlib import Path

from app.adapters.sigstore.roots import TrustRoots
from app.adapters.sigstore.verifier import SignatureOnly, SigstoreVerifier
from app.core.bundle import Pins, SignatureRefused
from app.core.refs import Digest
from tests.support.signatures import minted, refused

FOLDER = "AICR_EVIDENCE_TEST_BUNDLES"
WEIGHTLESS = frozenset(
    {"bazel-module.sigstore.json", "bazel-rules.sigstore.json", "github-reusable-workflow.sigstore.json"}
)
"""Signed by reusable workflows of other owners (S18)."""

PUBLIC_GOOD = SigstoreVerifier(TrustRoots.from_setting("public-good"))


def _check_signature(folder: Path, expected: dict[str, object]) -> None:
    name = str(expected["file"])
    said = PUBLIC_GOOD.verify_signature_only((folder / name).read_bytes())
    assert isinstance(said, SignatureOnly), (name, said)
    log = said.signature.log
    found = {
        "file": name,
        "identity": said.signature.signer.identity,
        "issuer": said.signature.signer.issuer,
        "log": log.log,
        "logIndex": log.index,
        "proofIndex": log.proof_index,
        "time": said.signature.logged_at.isoformat(),
        "predicateType": said.signature.statement.predicate_type,
        "subject": said.subject,
    }
    assert found == expected
    assert said.signature.root == "public-good"
    assert bool(said.signature.weightless) is (name in WEIGHTLESS), name


def _check_no_evidence(folder: Path, expected: dict[str, object]) -> None:
    subject = expected["subject"]
    assert isinstance(subject, dict)
    verdict = PUBLIC_GOOD.verify(
        (folder / str(expected["file"])).read_bytes(),
        artifact=Digest(subject["digest"]["sha256"]),
        pins=Pins(),
        now=datetime(2026, 11, 30, tzinfo=UTC),
    )
    assert isinstance(verdict, SignatureRefused)
    assert verdict.code == "PREDICATE_INCOHERENT"
    assert "unexpected predicateType 'https://slsa.dev/provenance/v1'" in verdict.message


def test_production_bundles_verify_with_exactly_the_expected_facts() -> None:
    assert refused(minted(), by=PUBLIC_GOOD).code == "S10_LOG_UNKNOWN"
    assert refused(minted(log="v1"), by=PUBLIC_GOOD).code == "S10_LOG_UNKNOWN"
    assert [log.name for log in PUBLIC_GOOD.roots.roots[0].logs.values()] == [
        "rekor.sigstore.dev",
        "log2025-1.rekor.sigstore.dev",
    ]
    if FOLDER not in os.environ:
        return
    folder = Path(os.environ[FOLDER])
    expected = json.loads((folder / "expected.json").read_text(encoding="utf-8"))
    assert expected
    assert {entry["file"] for entry in expected} == {path.name for path in folder.glob("*.sigstore.json")}
    for entry in expected:
        _check_signature(folder, entry)
        _check_no_evidence(folder, entry)
