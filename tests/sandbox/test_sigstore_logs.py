"""The logs and the timestamp authority of the sandbox over HTTP: what they answer, and what they refuse."""

import base64
import hashlib
import json
from typing import Any

import httpx
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from rfc3161_client import TimestampRequestBuilder, VerifierBuilder, decode_timestamp_response
from rfc3161_client.base import HashAlgorithm

from app.sandbox.identities import OCTOCAT
from app.sandbox.sigstore import LogVersion, SigstoreServer
from app.sandbox.sigstore.entries import pae
from app.sandbox.sigstore.merkle import leaf_hash
from tests.support.sigstore_http import IN_TOTO, KEY, STATEMENT, b64, csr


def certified(client: httpx.Client, server: SigstoreServer) -> str:
    answer = client.post(
        "/api/v2/signingCert",
        json={"certificateSigningRequest": b64(csr())},
        headers={"Authorization": f"Bearer {server.token(OCTOCAT)}"},
    )
    chain: list[str] = answer.json()["signedCertificateEmbeddedSct"]["chain"]["certificates"]
    return chain[0]


def envelope(payload: bytes = STATEMENT) -> dict[str, Any]:
    signature = KEY.sign(pae(IN_TOTO, payload), ec.ECDSA(hashes.SHA256()))
    return {"payload": b64(payload), "payloadType": IN_TOTO, "signatures": [{"sig": b64(signature)}]}


def proposed_dsse(certificate: str, wrapped: dict[str, Any]) -> dict[str, Any]:
    content = {"envelope": json.dumps(wrapped), "verifiers": [b64(certificate.encode())]}
    return {"kind": "dsse", "apiVersion": "0.0.1", "spec": {"proposedContent": content}}


def test_rekor_v1_logs_an_envelope_once_and_finds_it_again(client: httpx.Client, server: SigstoreServer) -> None:
    proposed = proposed_dsse(certified(client, server), envelope())

    created = client.post("/api/v1/log/entries", json=proposed)
    again = client.post("/api/v1/log/entries", json=proposed)

    assert created.status_code == 201
    [(uuid, entry)] = created.json().items()
    assert created.headers["location"] == f"/api/v1/log/entries/{uuid}"
    assert uuid == "108e9186e8c5677a" + leaf_hash(base64.b64decode(entry["body"])).hex()
    body = json.loads(base64.b64decode(entry["body"]))
    assert body["spec"]["payloadHash"] == {"algorithm": "sha256", "value": hashlib.sha256(STATEMENT).hexdigest()}
    assert again.status_code == 409
    assert again.headers["location"] == f"/api/v1/log/entries/{uuid}"
    by_uuid = client.get(f"/api/v1/log/entries/{uuid}").json()[uuid]
    by_index = client.get("/api/v1/log/entries", params={"logIndex": entry["logIndex"]}).json()[uuid]
    assert by_uuid["body"] == by_index["body"] == entry["body"]
    assert client.get("/api/v1/log").json()["treeSize"] >= entry["verification"]["inclusionProof"]["treeSize"]
    assert client.get("/api/v1/log/publicKey").text.startswith("-----BEGIN PUBLIC KEY-----\n")


def test_rekor_v1_logs_a_hashed_record(client: httpx.Client, server: SigstoreServer) -> None:
    spec = {
        "data": {"hash": {"algorithm": "sha256", "value": hashlib.sha256(b"artifact").hexdigest()}},
        "signature": {
            "content": b64(KEY.sign(b"artifact", ec.ECDSA(hashes.SHA256()))),
            "publicKey": {"content": b64(certified(client, server).encode())},
        },
    }

    answer = client.post("/api/v1/log/entries", json={"kind": "hashedrekord", "apiVersion": "0.0.1", "spec": spec})

    assert answer.status_code == 201
    [entry] = answer.json().values()
    assert json.loads(base64.b64decode(entry["body"]))["spec"] == spec


@pytest.mark.parametrize("request_form", ["hashedRekordRequestV002", "dsseRequestV002"])
def test_rekor_v2_logs_an_envelope_by_the_digest_of_its_pae(
    client: httpx.Client, server: SigstoreServer, request_form: str
) -> None:
    wrapped = envelope()
    raw = x509.load_pem_x509_certificate(certified(client, server).encode()).public_bytes(serialization.Encoding.DER)
    verifier = {"x509Certificate": {"rawBytes": b64(raw)}, "keyDetails": "PKIX_ECDSA_P256_SHA_256"}
    digest = hashlib.sha256(pae(IN_TOTO, STATEMENT)).digest()
    form: dict[str, Any] = {"envelope": wrapped, "verifiers": [verifier]}
    if request_form == "hashedRekordRequestV002":
        form = {"digest": b64(digest), "signature": {"content": wrapped["signatures"][0]["sig"], "verifier": verifier}}

    answer = client.post("/api/v2/log/entries", json={request_form: form})

    assert answer.status_code == 201
    entry = answer.json()
    assert entry["kindVersion"] == {"kind": "hashedrekord", "version": "0.0.2"}
    assert entry["logIndex"] == entry["inclusionProof"]["logIndex"]
    spec = json.loads(base64.b64decode(entry["canonicalizedBody"]))["spec"]["hashedRekordV002"]
    assert spec["data"] == {"algorithm": "SHA2_256", "digest": b64(digest)}
    assert spec["signature"]["content"] == wrapped["signatures"][0]["sig"]
    size = int(entry["inclusionProof"]["treeSize"])
    head = client.get("/api/v2/checkpoint").text.split("\n")
    assert head[0] == "log2026-1.rekor.sandbox.example"
    assert int(head[1]) >= size
    tile = client.get(f"/api/v2/tile/0/000.p/{size}").content
    index = int(entry["logIndex"])
    assert tile[32 * index : 32 * index + 32] == leaf_hash(base64.b64decode(entry["canonicalizedBody"]))


@pytest.mark.parametrize(
    ("path", "body", "said"),
    [
        pytest.param("/api/v1/log/entries", {"kind": "rpm", "apiVersion": "0.0.1"}, "found 'rpm' '0.0.1'", id="kind"),
        pytest.param(
            "/api/v1/log/entries",
            {"kind": "dsse", "apiVersion": "0.0.1", "spec": {"proposedContent": {"envelope": "{", "verifiers": []}}},
            "expected JSON in the envelope",
            id="envelope-no-json",
        ),
        pytest.param(
            "/api/v1/log/entries",
            {"kind": "dsse", "apiVersion": "0.0.1", "spec": {"proposedContent": {"envelope": "[]", "verifiers": [1]}}},
            "expected an envelope and one verifier",
            id="envelope-list",
        ),
        pytest.param(
            "/api/v1/log/entries", proposed_dsse("no pem", envelope()), "expected a PEM certificate", id="pem"
        ),
        pytest.param("/api/v2/log/entries", {}, "expected hashedRekordRequestV002", id="v2-nothing"),
        pytest.param(
            "/api/v2/log/entries",
            {"dsseRequestV002": {"envelope": envelope(), "verifiers": []}},
            "expected one verifier",
            id="v2-no-verifier",
        ),
        pytest.param(
            "/api/v2/log/entries",
            {"dsseRequestV002": {"envelope": {"signatures": []}}},
            "expected an envelope with one signature",
            id="v2-no-signature",
        ),
    ],
)
def test_a_log_refuses(client: httpx.Client, path: str, body: dict[str, Any], said: str) -> None:
    answer = client.post(path, json=body)

    assert answer.status_code == 400
    assert said in answer.json()["message"]


def test_a_log_takes_no_signature_that_does_not_verify(client: httpx.Client, server: SigstoreServer) -> None:
    wrapped = envelope()
    wrapped["payload"] = b64(b"{}")
    size = server.sigstore.logs[LogVersion.V1].size

    answer = client.post("/api/v1/log/entries", json=proposed_dsse(certified(client, server), wrapped))

    assert answer.status_code == 400
    assert answer.json()["message"] == "expected a signature that verifies over the envelope"
    assert server.sigstore.logs[LogVersion.V1].size == size


@pytest.mark.parametrize("algorithm", [HashAlgorithm.SHA256, HashAlgorithm.SHA512])
def test_an_independent_library_verifies_a_timestamp(
    client: httpx.Client, server: SigstoreServer, algorithm: HashAlgorithm
) -> None:
    request = TimestampRequestBuilder().data(b"signature").hash_algorithm(algorithm).nonce(nonce=True).build()

    answer = client.post(
        "/api/v1/timestamp", content=request.as_bytes(), headers={"Content-Type": "application/timestamp-query"}
    )

    assert (answer.status_code, answer.headers["content-type"]) == (201, "application/timestamp-reply")
    leaf, root = server.sigstore.timestamping.chain
    verifier = VerifierBuilder.from_request(request).tsa_certificate(leaf).add_root_certificate(root).build()
    response = decode_timestamp_response(answer.content)
    assert verifier.verify_message(response, b"signature")
    # The builder asks for the certificate by default; it comes with the token.
    assert response.signed_data.certificates == {leaf.public_bytes(serialization.Encoding.DER)}
    assert client.get("/api/v1/timestamp/certchain").text.count("BEGIN CERTIFICATE") == 2


def test_a_timestamp_can_be_asked_for_in_json(client: httpx.Client, server: SigstoreServer) -> None:
    body = {"artifactHash": b64(hashlib.sha256(b"signature").digest()), "hashAlgorithm": "sha256", "nonce": 7}

    answer = client.post("/api/v1/timestamp", json=body)

    leaf, root = server.sigstore.timestamping.chain
    verifier = VerifierBuilder(nonce=7).tsa_certificate(leaf).add_root_certificate(root).build()
    assert verifier.verify_message(decode_timestamp_response(answer.content), b"signature")


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(b"", id="empty"),
        pytest.param(b"\x30\x84\xff\xff\xff\xff", id="length-beyond-the-end"),
        pytest.param(b"\x30\x80", id="indefinite-length"),
        pytest.param(b"\x30\x03\x02\x01\x01", id="no-imprint"),
        pytest.param(b"\x30\x12\x02\x01\x01\x30\x0d\x30\x07\x06\x05\x2b\x0e\x03\x02\x1a\x04\x02ab", id="sha1"),
    ],
)
def test_a_timestamp_request_that_is_none_is_refused(client: httpx.Client, body: bytes) -> None:
    answer = client.post("/api/v1/timestamp", content=body, headers={"Content-Type": "application/timestamp-query"})

    assert answer.status_code == 400
    assert answer.json()["message"].startswith("expected ")


@pytest.mark.parametrize(
    "body",
    [
        pytest.param({"hashAlgorithm": "md5", "artifactHash": ""}, id="md5"),
        pytest.param({"hashAlgorithm": "sha256", "artifactHash": b64(b"short")}, id="short-hash"),
        pytest.param({"hashAlgorithm": "sha256", "artifactHash": "*"}, id="no-base64"),
    ],
)
def test_a_json_timestamp_request_that_is_none_is_refused(client: httpx.Client, body: dict[str, str]) -> None:
    assert client.post("/api/v1/timestamp", json=body).status_code == 400
