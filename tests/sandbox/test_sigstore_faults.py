"""Each fault does what it says: what the bare engine makes of it shows that everything around it is really signed.

Where the engine accepts, only a rule of trust 1.2 can refuse; that those do is shown with the rules.
"""

import base64
import hashlib
import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from app.sandbox.identities import OCTOCAT, UAT_AWS, SanKind
from app.sandbox.sigstore import (
    Faults,
    LeafKey,
    LogVersion,
    PrivateSigstore,
    Promise,
    Sct,
    Stamp,
    Window,
    Windows,
    stamps,
)
from tests.support.signatures import AT, STATEMENT
from tests.support.sigstore import engine, engine_says

SIGSTORE = PrivateSigstore()
ENGINE = engine(SIGSTORE)
V1, V2 = LogVersion.V1, LogVersion.V2


def minted(log: LogVersion, faults: Faults) -> bytes:
    return SIGSTORE.mint(STATEMENT, OCTOCAT, log=log, at=AT, faults=faults)


def version(text: str) -> Any:
    return lambda body: body | {"apiVersion": text}


def drop_proof_hashes(bundle: dict[str, Any]) -> None:
    del bundle["verificationMaterial"]["tlogEntries"][0]["inclusionProof"]["hashes"]


ACCEPTED_BY_THE_ENGINE = [
    pytest.param(V1, Faults(leaf_key=LeafKey.P384), id="p384-leaf"),
    pytest.param(V2, Faults(leaf_key=LeafKey.P384), id="p384-leaf-v2"),
    pytest.param(V2, Faults(leaf_lifetime=timedelta(days=3)), id="long-lived-leaf"),
    pytest.param(V2, Faults(names=((SanKind.EMAIL, "a@example.org"), (SanKind.EMAIL, "b@example.org"))), id="two-sans"),
    pytest.param(V2, Faults(names=((SanKind.DNS, "signer.example.org"),)), id="dns-san"),
    pytest.param(V2, Faults(names=((SanKind.URI, "https://example.org/\x07"),)), id="control-character"),
    pytest.param(V2, Faults(names=((SanKind.URI, "https://example.org/\nx"),)), id="newline"),
    pytest.param(V2, Faults(issuer_raw=None), id="no-raw-issuer"),
    pytest.param(V2, Faults(issuer=None), id="no-der-issuer"),
    pytest.param(V2, Faults(issuer_raw=None, issuer=None), id="no-issuer"),
    pytest.param(V2, Faults(issuer_raw="https://other.example"), id="issuers-differ"),
    pytest.param(V2, Faults(raw_extensions={8: b"\xff\xff"}), id="issuer-no-der"),
    pytest.param(V2, Faults(payload_type="application/json"), id="payload-type"),
    pytest.param(V1, Faults(body=version("0.0.9")), id="body-version-v1"),
    pytest.param(V1, Faults(log_index=0), id="index-zero-resigned"),
    pytest.param(V1, Faults(integrated_at=None, promise=Promise.ABSENT, stamps=stamps(1)), id="v1-without-promise"),
    pytest.param(V2, Faults(log_index=77), id="v2-index-claimed"),
    pytest.param(V2, Faults(checkpoint_size=999), id="checkpoint-size-resigned"),
    pytest.param(V2, Faults(checkpoint_origin="other.example"), id="checkpoint-origin-resigned"),
    pytest.param(V2, Faults(sct_at=AT - timedelta(days=900)), id="old-sct"),
    pytest.param(V2, Faults(stamps=stamps(32)), id="32-timestamps"),
    pytest.param(V1, Faults(stamps=(Stamp.OTHER_MESSAGE,)), id="bad-timestamp-beside-promise"),
    pytest.param(V1, Faults(stamps=(Stamp.FOREIGN,)), id="foreign-timestamp-beside-promise"),
    pytest.param(V1, Faults(stamps=(Stamp.REFUSED,)), id="refused-timestamp-beside-promise"),
    pytest.param(V2, Faults(media_type="application/vnd.dev.sigstore.bundle+json;version=0.3"), id="alternate-media"),
    pytest.param(
        V1,
        Faults(media_type="application/vnd.dev.sigstore.bundle+json;version=0.2", certificate_chain=True),
        id="older-format",
    ),
    pytest.param(V2, Faults(log_id=SIGSTORE.logs[V2].log_id[:4] + bytes(28)), id="other-log-id-with-our-hint"),
]


@pytest.mark.parametrize(("log", "faults"), ACCEPTED_BY_THE_ENGINE)
def test_the_engine_accepts_what_only_a_rule_can_refuse(log: LogVersion, faults: Faults) -> None:
    assert engine_says(ENGINE, minted(log, faults)) == "accepted"


REFUSED_BY_THE_ENGINE = [
    pytest.param(V1, Faults(leaf_key=LeafKey.RSA), "TypeError", id="rsa-leaf"),
    pytest.param(V1, Faults(leaf_key=LeafKey.ED25519), "TypeError", id="ed25519-leaf"),
    pytest.param(V1, Faults(leaf_lifetime=timedelta(seconds=1)), "CertValidationError", id="expired-leaf"),
    pytest.param(V1, Faults(leaf_age=timedelta(minutes=-1)), "CertValidationError", id="leaf-of-the-future"),
    pytest.param(V2, Faults(names=()), "CertValidationError", id="no-san"),
    pytest.param(V2, Faults(sct=Sct.NONE), "signed certificate timestamp extension", id="no-sct"),
    pytest.param(V2, Faults(sct=Sct.FOREIGN), "SCT verify failed", id="foreign-sct"),
    pytest.param(V2, Faults(sct=Sct.IMPOSTOR), "SCT verify failed", id="impostor-sct"),
    pytest.param(V2, Faults(sct=Sct.TWO), "Expected one certificate timestamp, found 2", id="two-scts"),
    pytest.param(V2, Faults(code_signing=False), "ExtensionNotFound", id="no-eku"),
    pytest.param(V2, Faults(digital_signature=False), "digital signature", id="key-usage"),
    pytest.param(V2, Faults(signatures=0), "InvalidEnvelope", id="no-signature"),
    pytest.param(V2, Faults(signatures=2), "InvalidEnvelope", id="two-signatures"),
    pytest.param(V2, Faults(signed_payload=b"{}"), "DSSE: invalid signature", id="other-payload-signed"),
    pytest.param(V2, Faults(body=version("0.0.9")), "inconsistent with other materials", id="body-version-v2"),
    pytest.param(V1, Faults(kind_version=("hashedrekord", "0.0.1")), "Unsupported DSSE log entry", id="kind"),
    pytest.param(V1, Faults(kind_version=("dsse", "0.0.3")), "IncompatibleEntry", id="version"),
    pytest.param(V1, Faults(promise=Promise.ALTERED), "SET: invalid inclusion promise", id="promise-altered"),
    pytest.param(
        V1, Faults(log_index=5, promise=Promise.FOR_TRUE_INDEX), "SET: invalid inclusion promise", id="index-moved"
    ),
    pytest.param(V1, Faults(promise=Promise.ABSENT), "inclusion promise or signed timestamp", id="no-time-at-all"),
    pytest.param(V2, Faults(stamps=()), "inclusion promise or signed timestamp", id="v2-without-timestamp"),
    pytest.param(V1, Faults(log_id=b"\x01" * 32), "checkpoint: Signature not found", id="foreign-log-id"),
    pytest.param(V2, Faults(checkpoint_by_stranger=True), "checkpoint: invalid signature", id="checkpoint-forged"),
    pytest.param(V2, Faults(checkpoint_root=b"\x00" * 32), "invalid root hash", id="checkpoint-root"),
    pytest.param(V2, Faults(proof_root=b"\x00" * 32), "invalid root hash", id="proof-root"),
    pytest.param(V2, Faults(proof_hashes=()), "inclusion proof", id="proof-hashes"),
    pytest.param(V2, Faults(inclusion_proof=False), "InvalidBundle", id="no-proof"),
    pytest.param(V2, Faults(document=drop_proof_hashes), "InvalidBundle", id="proof-without-hashes"),
    pytest.param(V2, Faults(tlog_entries=0), "InvalidBundle: expected exactly one log entry", id="no-entry"),
    pytest.param(V2, Faults(tlog_entries=2), "InvalidBundle: expected exactly one log entry", id="two-entries"),
    pytest.param(V2, Faults(stamps=stamps(33)), "too many signed timestamp: 33 > 32", id="33-timestamps"),
    pytest.param(V2, Faults(stamps=(Stamp.OTHER_MESSAGE,)), "not enough sources of verified time", id="bad-timestamp"),
    pytest.param(V2, Faults(stamps=(Stamp.FOREIGN,)), "not enough sources of verified time", id="foreign-timestamp"),
    pytest.param(V2, Faults(stamps=(Stamp.REFUSED,)), "not enough sources of verified time", id="refused-timestamp"),
    pytest.param(V2, Faults(stamps=(Stamp.MALFORMED,)), "Invalid Timestamp Response", id="malformed-timestamp"),
    pytest.param(
        V2, Faults(stamped_at=AT + timedelta(hours=1)), "CertValidationError", id="stamped-after-the-leaf-expired"
    ),
    pytest.param(V2, Faults(media_type="application/json"), "InvalidBundle", id="media-type"),
]


@pytest.mark.parametrize(("log", "faults", "said"), REFUSED_BY_THE_ENGINE)
def test_the_engine_refuses_for_this_reason(log: LogVersion, faults: Faults, said: str) -> None:
    assert said in engine_says(ENGINE, minted(log, faults))


def test_proof_numbers_can_be_forged_without_signing_anew() -> None:
    sigstore = PrivateSigstore(empty_logs=True)
    sigstore.mint(STATEMENT, OCTOCAT, at=AT)

    bundle = sigstore.mint(STATEMENT, OCTOCAT, at=AT, faults=Faults(proof_index=3, proof_tree_size=4, log_index=3))

    proof = json.loads(bundle)["verificationMaterial"]["tlogEntries"][0]["inclusionProof"]
    assert (proof["logIndex"], proof["treeSize"]) == ("3", "4")
    assert proof["checkpoint"]["envelope"].split("\n")[1] == "2"


def test_a_window_that_ended_before_the_signature_leaves_the_engine_unmoved() -> None:
    ended = Window(end=AT - timedelta(days=30))
    windows = Windows(ca=ended, ct_log=ended, rekor_v1=ended)

    said = engine_says(engine(SIGSTORE, windows), SIGSTORE.mint(STATEMENT, OCTOCAT, log=V1, at=AT))

    assert said == "accepted"


def test_a_body_can_be_replaced_and_is_logged_as_replaced() -> None:
    bundle = minted(V1, Faults(body=lambda _: {"kind": "dsse", "apiVersion": "0.0.1", "spec": {}}))

    entry = json.loads(bundle)["verificationMaterial"]["tlogEntries"][0]
    assert base64.b64decode(entry["canonicalizedBody"]) == b'{"apiVersion":"0.0.1","kind":"dsse","spec":{}}'
    assert "invalid DSSE log entry" in engine_says(ENGINE, bundle)


def test_extensions_are_set_and_taken_out_by_number() -> None:
    faults = Faults(extensions={20: "pull_request", 12: "https://github.com/somebody/fork", 21: None})

    bundle = SIGSTORE.mint(STATEMENT, UAT_AWS, at=AT, faults=faults)

    certificate = base64.b64decode(json.loads(bundle)["verificationMaterial"]["certificate"]["rawBytes"])
    assert b"\x0c\x0cpull_request" in certificate
    assert b"https://github.com/somebody/fork" in certificate
    assert b"/actions/runs/" not in certificate


def test_timestamps_are_at_whole_seconds_of_the_asked_time() -> None:
    bundle = SIGSTORE.mint(STATEMENT, OCTOCAT, at=datetime(2026, 5, 8, 10, 24, 0, 987654, tzinfo=UTC))

    token = json.loads(bundle)["verificationMaterial"]["timestampVerificationData"]["rfc3161Timestamps"][0]
    assert b"\x18\x0f20260508102400Z" in base64.b64decode(token["signedTimestamp"])


def test_the_statement_is_the_payload_byte_for_byte() -> None:
    odd = b'{ "_type":"https://in-toto.io/Statement/v1" ,"subject":[]}\n'

    bundle = SIGSTORE.mint(odd, OCTOCAT, at=AT)

    payload = base64.b64decode(json.loads(bundle)["dsseEnvelope"]["payload"])
    assert hashlib.sha256(payload).hexdigest() == hashlib.sha256(odd).hexdigest()
