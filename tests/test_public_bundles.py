"""Real production signatures verify under the embedded root, and are no evidence; strangers' bundles are not believed.

The bundles are not part of this repository: `AICR_EVIDENCE_TEST_BUNDLES` names a folder with an `expected.json`. The
same checks run over a stand-in of the tests' own Sigstore first, so that no line of them waits for the folder.
"""

import json
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from app.adapters.sigstore.roots import TrustRoots
from app.adapters.sigstore.verifier import SignatureOnly, SigstoreVerifier
from app.core.bundle import Pins, SignatureRefused
from app.core.refs import Digest
from app.sandbox.identities import UAT_AWS
from tests.support.signatures import minted, refused, statement_json, verifier

FOLDER = "AICR_EVIDENCE_TEST_BUNDLES"
WEIGHTLESS = frozenset(
    {"bazel-module.sigstore.json", "bazel-rules.sigstore.json", "github-reusable-workflow.sigstore.json"}
)
"""Signed by reusable workflows of other owners (S18)."""

PUBLIC_GOOD = SigstoreVerifier(TrustRoots.from_setting("public-good"))
PROVENANCE = "https://slsa.dev/provenance/v1"


def _check_signature(judge: SigstoreVerifier, bundle: bytes, expected: dict[str, Any], root: str) -> None:
    said = judge.verify_signature_only(bundle)
    assert isinstance(said, SignatureOnly), (expected["file"], said)
    log = said.signature.log
    found = {
        "file": expected["file"],
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
    assert said.signature.root == root
    assert bool(said.signature.weightless) is (expected["file"] in WEIGHTLESS), expected["file"]


def _check_no_evidence(judge: SigstoreVerifier, bundle: bytes, expected: dict[str, Any]) -> None:
    verdict = judge.verify(
        bundle,
        artifact=Digest(expected["subject"]["digest"]["sha256"]),
        pins=Pins(),
        now=datetime(2026, 11, 30, tzinfo=UTC),
    )
    assert isinstance(verdict, SignatureRefused)
    assert verdict.code == "PREDICATE_INCOHERENT"
    assert "unexpected predicateType 'https://slsa.dev/provenance/v1'" in verdict.message


def test_a_bundle_of_another_predicate_verifies_with_exactly_the_expected_facts_and_is_no_evidence() -> None:
    subject = {"name": "dist/tool.whl", "digest": {"sha256": "5c" * 32}}
    bundle = minted(log="v1", identity=UAT_AWS, statement=statement_json(predicateType=PROVENANCE, subject=[subject]))
    entry = json.loads(bundle)["verificationMaterial"]["tlogEntries"][0]
    expected = {
        "file": "provenance.sigstore.json",
        "identity": "https://github.com/NVIDIA/aicr/.github/workflows/uat-aws.yaml@refs/heads/main",
        "issuer": "https://token.actions.githubusercontent.com",
        "log": "rekor.sandbox.example",
        "logIndex": int(entry["logIndex"]),
        "proofIndex": int(entry["inclusionProof"]["logIndex"]),
        "time": "2026-05-08T10:24:00+00:00",
        "predicateType": "https://slsa.dev/provenance/v1",
        "subject": subject,
    }
    _check_signature(verifier(), bundle, expected, "sandbox")
    _check_no_evidence(verifier(), bundle, expected)


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
    listed = json.loads((folder / "expected.json").read_text(encoding="utf-8"))
    assert listed
    assert {entry["file"] for entry in listed} == {path.name for path in folder.glob("*.sigstore.json")}
    for expected in listed:
        bundle = (folder / expected["file"]).read_bytes()
        _check_signature(PUBLIC_GOOD, bundle, expected, "public-good")
        _check_no_evidence(PUBLIC_GOOD, bundle, expected)
