"""An independent implementation on both ends: npm's Sigstore signs for us, and judges what we sign."""

import base64
import json
import re
from collections.abc import Iterator
from typing import Any

import pytest

from app.adapters.sigstore.signing import SigningTrust, sign_statement
from app.core.bundle import Pins, VerifiedSignature
from app.sandbox.identities import DEV_TWO, OCTOCAT, PARTNER, SAMPLE_SIGNERS, UAT_AWS, SandboxIdentity
from app.sandbox.sigstore import Curve, Faults, LogVersion, PrivateSigstore, Promise, Sct, SigstoreServer, Stamp
from tests.support.signatures import ARTIFACT, NOW, STATEMENT
from tests.support.sigstore import judge, node_verdicts, run_node

pytestmark = pytest.mark.node

IN_TOTO = "application/vnd.in-toto+json"


@pytest.fixture(scope="module")
def server() -> Iterator[SigstoreServer]:
    with SigstoreServer() as running:
        yield running


def npm_signs(server: SigstoreServer, log: LogVersion, environment: dict[str, str]) -> bytes:
    bundles = run_node(
        "sign.mjs",
        {
            "signingConfig": json.loads(server.sigstore.signing_config_json(server.url, log=log)),
            "jobs": [{"payload": base64.b64encode(STATEMENT).decode(), "payloadType": IN_TOTO}],
        },
        environment,
    )
    return json.dumps(bundles[0]).encode()


def job(bundle: bytes, identity: SandboxIdentity) -> dict[str, Any]:
    return {
        "bundle": json.loads(bundle),
        "identity": f"^{re.escape(identity.value)}$",
        "issuer": identity.issuer,
    }


@pytest.mark.parametrize(
    ("log", "kind"),
    [
        pytest.param(LogVersion.V1, "dsse", id="rekor-v1"),
        pytest.param(LogVersion.V2, "hashedrekord", id="rekor-v2"),
    ],
)
def test_what_npm_signs_as_a_workflow_is_accepted(server: SigstoreServer, log: LogVersion, kind: str) -> None:
    environment = server.actions_environment("uat-aws")

    bundle = npm_signs(server, log, environment)

    verdict = judge(server.sigstore).verify(bundle, artifact=ARTIFACT, pins=Pins(), now=NOW)
    assert isinstance(verdict, VerifiedSignature), verdict
    assert verdict.signer == UAT_AWS.signer
    assert verdict.statement.payload == STATEMENT
    assert verdict.log.kind == kind
    assert verdict.weightless == ""


@pytest.mark.parametrize("log", list(LogVersion))
def test_what_npm_signs_as_a_person_is_accepted(server: SigstoreServer, log: LogVersion) -> None:
    bundle = npm_signs(server, log, {"SIGSTORE_ID_TOKEN": server.token(DEV_TWO, algorithm="RS256")})

    verdict = judge(server.sigstore).verify(bundle, artifact=ARTIFACT, pins=Pins(), now=NOW)

    assert isinstance(verdict, VerifiedSignature), verdict
    assert verdict.signer == DEV_TWO.signer


@pytest.mark.parametrize("curve", list(Curve))
def test_npm_accepts_what_is_minted(curve: Curve) -> None:
    sigstore = PrivateSigstore(curve=curve)
    jobs = [
        job(sigstore.mint(STATEMENT, identity, log=log), identity)
        for identity in SAMPLE_SIGNERS.values()
        for log in LogVersion
    ]

    verdicts = node_verdicts(sigstore.trusted_root_json(), jobs)

    assert verdicts == [{"accepted": True}] * 14


def test_npm_accepts_what_the_signing_adapter_signs(server: SigstoreServer) -> None:
    jobs = []
    for log in LogVersion:
        for identity in (UAT_AWS, OCTOCAT, PARTNER):
            config = server.sigstore.signing_config_json(server.url, log=log)
            trust = SigningTrust(server.sigstore.trusted_root_json(), config)
            jobs.append(job(sign_statement(STATEMENT, token=server.token(identity), trust=trust), identity))

    verdicts = node_verdicts(server.sigstore.trusted_root_json(), jobs)

    assert verdicts == [{"accepted": True}] * 6


def test_npm_refuses_what_is_forged() -> None:
    sigstore, other = PrivateSigstore(), PrivateSigstore()

    def minted(log: LogVersion = LogVersion.V2, **faults: Any) -> bytes:
        return sigstore.mint(STATEMENT, OCTOCAT, log=log, faults=Faults(**faults))

    forged = {
        "foreign instance": job(other.mint(STATEMENT, OCTOCAT), OCTOCAT),
        "other signer": job(minted(), DEV_TWO),
        "payload swapped": job(minted(signed_payload=STATEMENT + b" "), OCTOCAT),
        "no sct": job(minted(sct=Sct.NONE), OCTOCAT),
        "sct of a foreign log": job(minted(sct=Sct.FOREIGN), OCTOCAT),
        "timestamp over something else": job(minted(stamps=(Stamp.OTHER_MESSAGE,)), OCTOCAT),
        "timestamp of a foreign authority": job(minted(stamps=(Stamp.FOREIGN,)), OCTOCAT),
        "promise altered": job(minted(LogVersion.V1, promise=Promise.ALTERED), OCTOCAT),
        "checkpoint of a stranger": job(minted(checkpoint_by_stranger=True), OCTOCAT),
    }

    verdicts = node_verdicts(sigstore.trusted_root_json(), list(forged.values()))

    assert {name: verdict.get("code") for name, verdict in zip(forged, verdicts, strict=True)} == {
        "foreign instance": "TIMESTAMP_ERROR",
        "other signer": "UNTRUSTED_SIGNER_ERROR",
        "payload swapped": "TLOG_BODY_ERROR",
        "no sct": "CERTIFICATE_ERROR",
        "sct of a foreign log": "CERTIFICATE_ERROR",
        "timestamp over something else": "TIMESTAMP_ERROR",
        "timestamp of a foreign authority": "TIMESTAMP_ERROR",
        "promise altered": "TLOG_INCLUSION_PROMISE_ERROR",
        "checkpoint of a stranger": "TLOG_INCLUSION_PROOF_ERROR",
    }
