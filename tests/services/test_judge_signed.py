"""The judge over really signed bundles: private Sigstore, real verifier, real directory (trust 1, 2)."""

import json
from pathlib import Path

import pytest

from app.adapters.files import DirectoryReader
from app.core.bundle import Accepted, Pins, RawSignature, Rejected, Verdict
from app.core.report import CauseClass, InputKind, StepName
from app.ports import JudgeJob
from app.sandbox.identities import OCTOCAT, UAT_AWS, SandboxIdentity, caller_of, upstream_workflow
from app.services.judge import JudgeService
from tests.support.bundles import NAME, Sample, profiled, sha256, statement_of, write
from tests.support.signatures import ARTIFACT, NOW, edited, minted, verifier


def artifact_statement(sample: Sample, subject: str = ARTIFACT.hex) -> bytes:
    """What a producer signs: the sample's predicate about a pushed artifact."""
    predicate = json.loads(sample.files()["statement.intoto.json"])["predicate"]
    return statement_of(predicate, sample.predicate_type, "registry.example.org/evidence:v1", subject)


def judge(directory: Path, bundle: bytes, *, pins: Pins | None = None, as_directory: bool = False) -> Verdict:
    """Judge strictly: the artifact `ARTIFACT` in `directory` with one signature, or the directory with it inside."""
    if as_directory:
        write(directory, {"attestation.intoto.jsonl": bundle})
    job = JudgeJob(
        directory=str(directory),
        input=InputKind.DIRECTORY if as_directory else InputKind.OCI,
        received_at=NOW,
        digest=None if as_directory else ARTIFACT,
        signatures=() if as_directory else (RawSignature(bundle),),
        pins=pins or Pins(),
    )
    return JudgeService(DirectoryReader(), verifier()).judge(job)


@pytest.mark.parametrize("log", ["v1", "v2"])
@pytest.mark.parametrize("sample", [Sample(), profiled()], ids=["plain", "profiled"])
def test_a_signed_artifact_is_evidence(tmp_path: Path, sample: Sample, log: str) -> None:
    bundle = minted(log=log, statement=artifact_statement(sample))
    verdict = judge(write(tmp_path, sample.files()), bundle)
    assert isinstance(verdict, Accepted), verdict
    assert verdict.report.exit == 0
    assert verdict.run.recipe == sample.name
    assert (verdict.run.signer.identity, verdict.run.signer.issuer) == (OCTOCAT.value, OCTOCAT.issuer)
    assert verdict.run.signature_sha256 == sha256(bundle)
    assert verdict.signature.statement.payload == artifact_statement(sample)


def test_a_directory_that_carries_its_signature_verifies(tmp_path: Path) -> None:
    verdict = judge(
        write(tmp_path, Sample().files()), minted(statement=artifact_statement(Sample())), as_directory=True
    )
    assert (verdict.report.exit, verdict.report.pending, verdict.report.bundle_digest) == (0, False, None)
    assert verdict.report.signer is not None
    assert isinstance(verdict, Rejected)  # valid, but a directory is no artifact and so no evidence


def test_one_changed_byte_of_the_signed_bundle_fails_step_2(tmp_path: Path) -> None:
    bundle = edited(
        minted(statement=artifact_statement(Sample())),
        lambda document: document["dsseEnvelope"].__setitem__(
            "payload", document["dsseEnvelope"]["payload"].replace("A", "B", 1)
        ),
    )
    verdict = judge(write(tmp_path, Sample().files()), bundle)
    assert isinstance(verdict, Rejected)
    assert (verdict.step, verdict.cause.cause) == (StepName.SIGNATURE, CauseClass.SIGNATURE)


def test_a_signature_over_another_artifact_fails_step_2(tmp_path: Path) -> None:
    bundle = minted(statement=artifact_statement(Sample(), subject="00" * 32))
    verdict = judge(write(tmp_path, Sample().files()), bundle)
    assert isinstance(verdict, Rejected)
    assert verdict.code == "S16_SUBJECT_MISMATCH"
    assert "does not match pulled artifact digest" in verdict.cause.detail


def test_one_bundle_replayed_under_another_recipe_fails_step_4(tmp_path: Path) -> None:
    other = Sample(recipe=Sample().recipe.replace(b"h100", b"h200"), name="h200-eks-ubuntu-training")
    verdict = judge(write(tmp_path, other.files()), minted(statement=artifact_statement(Sample())))
    assert isinstance(verdict, Rejected)
    assert (verdict.step, verdict.report.recipe_name) == (StepName.MANIFEST, NAME)


def test_foreign_signed_payloads_are_no_evidence(tmp_path: Path) -> None:
    statement = statement_of({}, "https://slsa.dev/provenance/v1", "x", ARTIFACT.hex)
    verdict = judge(write(tmp_path, Sample().files()), minted(statement=statement))
    assert isinstance(verdict, Rejected)
    assert verdict.code == "PREDICATE_INCOHERENT"


@pytest.mark.parametrize(
    ("pins", "exit_value"),
    [
        pytest.param(Pins(issuer=OCTOCAT.issuer, identity_regexp="octocat@"), 0, id="fits"),
        pytest.param(Pins(issuer="https://i.example.org"), 2, id="other-issuer"),
        pytest.param(Pins(identity_regexp="^alice"), 2, id="other-identity"),
    ],
)
def test_pins_are_held_against_the_certificate(tmp_path: Path, pins: Pins, exit_value: int) -> None:
    bundle = minted(statement=artifact_statement(Sample()))
    assert judge(write(tmp_path, Sample().files()), bundle, pins=pins).report.exit == exit_value


@pytest.mark.parametrize(
    ("identity", "why"),
    [
        pytest.param(
            upstream_workflow(event="pull_request"),
            "S18_PULL_REQUEST: the certificate was issued to a run on pull_request",
            id="pull-request",
        ),
        pytest.param(
            caller_of(UAT_AWS, "evil/repo"),
            f"S18_OTHER_REPOSITORY: the certificate names {UAT_AWS.value}, "
            "but a run of https://github.com/evil/repo asked for it",
            id="called-by-another-repository",
        ),
    ],
)
def test_a_signature_for_somebody_else_is_evidence_and_a_finding(
    tmp_path: Path, identity: SandboxIdentity, why: str
) -> None:
    bundle = minted(identity=identity, statement=artifact_statement(Sample()))
    verdict = judge(write(tmp_path, Sample().files()), bundle)
    assert isinstance(verdict, Accepted), verdict
    assert [(found.rule, found.message) for found in verdict.report.findings] == [("S18", why)]
    assert verdict.report.exit == 0
