"""What the private Sigstore mints honestly: accepted by the engine and by our judge, with the identity it was given."""

import base64
import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec

from app.core.bundle import Pins, VerifiedSignature
from app.sandbox.identities import (
    DEV_TWO,
    OCTOCAT,
    PARTNER,
    SAMPLE_SIGNERS,
    STRANGER,
    UAT_AWS,
    UAT_AWS_BRANCH,
    UAT_GCP,
    caller_of,
)
from app.sandbox.sigstore import Curve, Faults, LogVersion, PrivateSigstore, Window, Windows
from tests.support.signatures import ARTIFACT, AT, NOW, STATEMENT
from tests.support.sigstore import engine, engine_says, judge

SIGSTORE = PrivateSigstore()
ENGINE = engine(SIGSTORE)


def entry_of(bundle: bytes) -> dict[str, Any]:
    entry: dict[str, Any] = json.loads(bundle)["verificationMaterial"]["tlogEntries"][0]
    return entry


def leaf_of(bundle: bytes) -> x509.Certificate:
    raw = json.loads(bundle)["verificationMaterial"]["certificate"]["rawBytes"]
    return x509.load_der_x509_certificate(base64.b64decode(raw))


@pytest.mark.parametrize("log", list(LogVersion))
@pytest.mark.parametrize("name", list(SAMPLE_SIGNERS))
def test_every_sample_signer_is_accepted_as_who_he_is(name: str, log: LogVersion) -> None:
    identity = SAMPLE_SIGNERS[name]

    bundle = SIGSTORE.mint(STATEMENT, identity, log=log, at=AT)

    assert engine_says(ENGINE, bundle) == "accepted"
    verdict = judge(SIGSTORE).verify(bundle, artifact=ARTIFACT, pins=Pins(), now=NOW)
    assert isinstance(verdict, VerifiedSignature), verdict
    assert verdict.signer == identity.signer
    assert verdict.logged_at == datetime(2026, 5, 8, 10, 24, tzinfo=UTC)
    assert verdict.weightless == ""


def test_identities_are_those_that_the_allowlist_rules_are_about() -> None:
    actions = "https://token.actions.githubusercontent.com"
    workflows = "https://github.com/NVIDIA/aicr/.github/workflows"
    oauth = "https://github.com/login/oauth"

    assert [(identity.issuer, identity.value) for identity in SAMPLE_SIGNERS.values()] == [
        (actions, f"{workflows}/uat-aws.yaml@refs/heads/main"),
        (actions, f"{workflows}/uat-gcp.yaml@refs/heads/main"),
        (actions, f"{workflows}/uat-aws.yaml@refs/heads/feature/x"),
        (oauth, "1234567+octocat@users.noreply.github.com"),
        (oauth, "dev-two@example.org"),
        ("https://oidc.partner-lab.example", "https://oidc.partner-lab.example/attest"),
        ("https://login.stranger.example", "somebody@stranger.example"),
    ]
    assert list(SAMPLE_SIGNERS.values()) == [UAT_AWS, UAT_GCP, UAT_AWS_BRANCH, OCTOCAT, DEV_TWO, PARTNER, STRANGER]


def test_a_workflow_certificate_has_the_extensions_of_public_fulcio() -> None:
    certificate = leaf_of(SIGSTORE.mint(STATEMENT, UAT_AWS, at=AT))
    fulcio = "1.3.6.1.4.1.57264.1."

    values = {
        int(extension.oid.dotted_string.removeprefix(fulcio)): extension.value.value
        for extension in certificate.extensions
        if extension.oid.dotted_string.startswith(fulcio) and isinstance(extension.value, x509.UnrecognizedExtension)
    }

    assert values[1] == b"https://token.actions.githubusercontent.com"
    assert values[8] == b"\x0c\x2bhttps://token.actions.githubusercontent.com"
    assert values[12] == b"\x0c\x1ehttps://github.com/NVIDIA/aicr"
    assert values[14] == b"\x0c\x0frefs/heads/main"
    assert values[20] == b"\x0c\x08schedule"
    assert sorted(values) == [1, 2, 3, 4, 5, 6, *range(8, 23)]


def test_a_leaf_is_a_keyless_certificate() -> None:
    certificate = leaf_of(SIGSTORE.mint(STATEMENT, OCTOCAT, at=AT))

    key = certificate.public_key()
    assert isinstance(key, ec.EllipticCurvePublicKey)
    assert key.curve.name == "secp256r1"
    assert certificate.not_valid_after_utc - certificate.not_valid_before_utc == timedelta(minutes=10)
    assert certificate.not_valid_before_utc <= AT <= certificate.not_valid_after_utc
    assert certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).critical
    assert not certificate.extensions.get_extension_for_class(x509.ExtendedKeyUsage).critical
    assert (
        len(list(certificate.extensions.get_extension_for_class(x509.PrecertificateSignedCertificateTimestamps).value))
        == 1
    )


def test_a_v1_entry_has_a_promise_a_time_and_a_global_index() -> None:
    bundle = PrivateSigstore().mint(STATEMENT, OCTOCAT, log="v1", at=AT)

    entry = entry_of(bundle)
    assert (entry["logIndex"], entry["inclusionProof"]["logIndex"]) == ("25580", "1")
    assert entry["kindVersion"] == {"kind": "dsse", "version": "0.0.1"}
    assert entry["integratedTime"] == "1778235840"
    assert "inclusionPromise" in entry
    assert entry["inclusionProof"]["checkpoint"]["envelope"].startswith(
        "rekor.sandbox.example - 1193050959916656506\n2\n"
    )
    assert json.loads(bundle)["verificationMaterial"]["timestampVerificationData"] == {"rfc3161Timestamps": []}


def test_a_v2_entry_has_a_timestamp_and_one_index() -> None:
    bundle = PrivateSigstore().mint(STATEMENT, OCTOCAT, log="v2", at=AT)

    entry = entry_of(bundle)
    assert (entry["logIndex"], entry["inclusionProof"]["logIndex"]) == ("1", "1")
    assert entry["kindVersion"] == {"kind": "hashedrekord", "version": "0.0.2"}
    assert entry.keys() & {"integratedTime", "inclusionPromise"} == set()
    assert entry["inclusionProof"]["checkpoint"]["envelope"].startswith("log2026-1.rekor.sandbox.example\n2\n")
    stamps = json.loads(bundle)["verificationMaterial"]["timestampVerificationData"]["rfc3161Timestamps"]
    assert len(stamps) == 1


def test_the_first_entry_of_an_empty_log_is_accepted_with_index_zero() -> None:
    sigstore = PrivateSigstore(empty_logs=True)

    bundle = sigstore.mint(STATEMENT, OCTOCAT, at=AT)

    proof = entry_of(bundle)["inclusionProof"]
    assert (proof["logIndex"], proof["treeSize"], proof["hashes"]) == ("0", "1", [])
    assert engine_says(engine(sigstore), bundle) == "accepted"


@pytest.mark.parametrize("log", list(LogVersion))
def test_entries_far_into_a_log_are_accepted(log: LogVersion) -> None:
    sigstore = PrivateSigstore()
    for filler in range(1000):
        sigstore.logs[log].append(b"filler %d" % filler, None)

    bundle = sigstore.mint(STATEMENT, OCTOCAT, log=log, at=AT)

    assert entry_of(bundle)["inclusionProof"]["treeSize"] == "1002"
    assert engine_says(engine(sigstore), bundle) == "accepted"


@pytest.mark.parametrize("log", list(LogVersion))
def test_a_p384_authority_is_accepted(log: LogVersion) -> None:
    sigstore = PrivateSigstore(curve=Curve.P384)

    bundle = sigstore.mint(STATEMENT, UAT_AWS, log=log, at=AT)

    assert engine_says(engine(sigstore), bundle) == "accepted"
    issuer = sigstore.ca.intermediate.public_key()
    assert isinstance(issuer, ec.EllipticCurvePublicKey)
    assert issuer.curve.name == "secp384r1"


def test_two_instances_do_not_trust_each_other() -> None:
    said = engine_says(ENGINE, PrivateSigstore().mint(STATEMENT, OCTOCAT, log="v1", at=AT))

    assert said.startswith("CertValidationError: failed to build timestamp certificate chain")


def test_windows_stand_in_the_trusted_root() -> None:
    end = datetime(2026, 5, 1, tzinfo=UTC)
    windows = Windows(ca=Window(end=end), rekor_v2=Window(start=datetime(2026, 1, 1, tzinfo=UTC), end=end))

    root = json.loads(SIGSTORE.trusted_root_json(windows))

    assert root["certificateAuthorities"][0]["validFor"] == {
        "start": "2020-01-01T00:00:00Z",
        "end": "2026-05-01T00:00:00Z",
    }
    assert [log["publicKey"]["validFor"] for log in root["tlogs"]] == [
        {"start": "2020-01-01T00:00:00Z"},
        {"start": "2026-01-01T00:00:00Z", "end": "2026-05-01T00:00:00Z"},
    ]
    assert root["ctlogs"][0]["publicKey"]["validFor"] == {"start": "2020-01-01T00:00:00Z"}


def test_a_trusted_root_has_both_certificates_of_each_authority() -> None:
    root = json.loads(SIGSTORE.trusted_root_json())

    assert [len(ca["certChain"]["certificates"]) for ca in root["certificateAuthorities"]] == [2]
    assert [len(ca["certChain"]["certificates"]) for ca in root["timestampAuthorities"]] == [2]
    assert [log["publicKey"]["keyDetails"] for log in root["tlogs"]] == ["PKIX_ECDSA_P256_SHA_256", "PKIX_ED25519"]


def test_a_borrowed_workflow_has_no_weight() -> None:
    borrowed = caller_of(UAT_AWS, "somebody/else")

    bundle = SIGSTORE.mint(STATEMENT, borrowed, at=AT)

    verdict = judge(SIGSTORE).verify(bundle, artifact=ARTIFACT, pins=Pins(), now=NOW)
    assert isinstance(verdict, VerifiedSignature), verdict
    assert verdict.signer.identity == UAT_AWS.value
    assert verdict.signer.claims.source_repository == "https://github.com/somebody/else"
    assert verdict.weightless != ""


def test_only_a_workflow_can_be_borrowed() -> None:
    with pytest.raises(ValueError, match="expected a workflow identity"):
        caller_of(OCTOCAT, "somebody/else")


def test_a_private_root_mints_a_public_issuers_identity() -> None:
    bundle = SIGSTORE.mint(STATEMENT, UAT_AWS, at=AT, faults=Faults())

    assert b"https://token.actions.githubusercontent.com" in base64.b64decode(
        json.loads(bundle)["verificationMaterial"]["certificate"]["rawBytes"]
    )
