"""The sandbox Sigstore over HTTP: certificates, sign-in, and the wire; `test_sigstore_logs` has the other services."""

import base64
import hashlib
import json
import socket
import threading
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from app.sandbox.identities import OCTOCAT, UAT_AWS
from app.sandbox.sigstore import PrivateSigstore, SigstoreServer
from tests.support.sigstore_http import KEY, b64, csr


def key_request(challenge: str, token: str, key: ec.EllipticCurvePrivateKey = KEY) -> dict[str, Any]:
    public = KEY.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    return {
        "credentials": {"oidcIdentityToken": token},
        "publicKeyRequest": {
            "publicKey": {"algorithm": "ECDSA", "content": public.decode()},
            "proofOfPossession": b64(key.sign(challenge.encode(), ec.ECDSA(hashes.SHA256()))),
        },
    }


def test_fulcio_certifies_a_request_of_the_tokens_identity(client: httpx.Client, server: SigstoreServer) -> None:
    answer = client.post(
        "/api/v2/signingCert",
        json={"certificateSigningRequest": b64(csr())},
        headers={"Authorization": f"Bearer {server.token(UAT_AWS)}"},
    )

    assert answer.status_code == 201
    leaf, *rest = answer.json()["signedCertificateEmbeddedSct"]["chain"]["certificates"]
    certificate = x509.load_pem_x509_certificate(leaf.encode())
    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.UniformResourceIdentifier) == [
        "https://github.com/NVIDIA/aicr/.github/workflows/uat-aws.yaml@refs/heads/main"
    ]
    assert certificate.public_key() == KEY.public_key()
    assert rest == client.get("/api/v2/trustBundle").json()["chains"][0]["certificates"]


@pytest.mark.parametrize(
    ("identity", "challenge"),
    [
        pytest.param(OCTOCAT, "1234567+octocat@users.noreply.github.com", id="e-mail"),
        pytest.param(UAT_AWS, "repo:NVIDIA/aicr:ref:refs/heads/main", id="workflow"),
    ],
)
def test_fulcio_certifies_a_key_whose_possession_is_proven(
    client: httpx.Client, server: SigstoreServer, identity: Any, challenge: str
) -> None:
    answer = client.post("/api/v2/signingCert", json=key_request(challenge, server.token(identity)))

    assert answer.status_code == 201
    leaf = answer.json()["signedCertificateEmbeddedSct"]["chain"]["certificates"][0]
    assert x509.load_pem_x509_certificate(leaf.encode()).public_key() == KEY.public_key()


@pytest.mark.parametrize(
    ("challenge", "key"),
    [
        pytest.param("dev-two@example.org", KEY, id="other-subject"),
        pytest.param(OCTOCAT.value, ec.generate_private_key(ec.SECP256R1()), id="other-key"),
    ],
)
def test_fulcio_refuses_a_proof_that_does_not_hold(
    client: httpx.Client, server: SigstoreServer, challenge: str, key: ec.EllipticCurvePrivateKey
) -> None:
    answer = client.post("/api/v2/signingCert", json=key_request(challenge, server.token(OCTOCAT), key))

    assert answer.status_code == 400
    assert answer.json()["message"] == "expected a proof of possession that verifies over the token's subject"


@pytest.mark.parametrize(
    ("body", "token", "status", "said"),
    [
        pytest.param({}, "", 401, "expected an identity token", id="no-token"),
        pytest.param({}, "Bearer x", 401, "expected a token of three parts", id="broken-token"),
        pytest.param({}, None, 400, "expected an object 'publicKeyRequest'", id="no-request"),
        pytest.param({"certificateSigningRequest": 5}, None, 400, "expected text", id="number"),
        pytest.param({"certificateSigningRequest": "*"}, None, 400, "expected base64", id="no-base64"),
        pytest.param(
            {"certificateSigningRequest": b64(b"x")}, None, 400, "expected a PEM certificate request", id="csr"
        ),
        pytest.param(
            {"publicKeyRequest": {"publicKey": {"content": "x"}, "proofOfPossession": ""}},
            None,
            400,
            "expected a PEM public key",
            id="no-key",
        ),
        pytest.param({"credentials": []}, None, 400, "expected an object 'credentials'", id="credentials-list"),
        pytest.param([], None, 400, "expected a JSON object", id="list"),
    ],
)
def test_fulcio_refuses(  # noqa: PLR0917  the table's columns
    client: httpx.Client, server: SigstoreServer, body: Any, token: str | None, status: int, said: str
) -> None:
    authorization = f"Bearer {server.token(OCTOCAT)}" if token is None else token

    answer = client.post("/api/v2/signingCert", json=body, headers={"Authorization": authorization})

    assert answer.status_code == status
    assert said in answer.json()["message"]


def test_the_token_endpoint_gives_a_named_signers_token(client: httpx.Client, server: SigstoreServer) -> None:
    configuration = client.get("/.well-known/openid-configuration").json()
    form = {"grant_type": "client_credentials", "client_id": "partner"}

    answer = client.post(configuration["token_endpoint"], data=form)

    assert configuration["jwks_uri"] == f"{server.url}/keys"
    assert answer.json()["expires_in"] == 300
    claims = json.loads(base64.urlsafe_b64decode(answer.json()["id_token"].split(".")[1] + "=="))
    assert (claims["iss"], claims["sub"], claims["aud"]) == (
        "https://oidc.partner-lab.example",
        "https://oidc.partner-lab.example/attest",
        "sigstore",
    )


def test_the_authorization_code_flow_gives_the_chosen_signers_token(client: httpx.Client) -> None:
    verifier = "v" * 64
    challenge = base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).decode().rstrip("=")
    query = {
        "response_type": "code",
        "client_id": "sigstore",
        "redirect_uri": "http://localhost:4000/auth/callback",
        "state": "s<1>",
        "code_challenge": challenge,
        "code_challenge_method": "S256",
    }
    page = client.get("/auth", params=query)
    chosen = client.get("/auth", params=query | {"login_hint": "octocat"})
    back = parse_qs(urlsplit(chosen.headers["location"]).query)
    form = {
        "grant_type": "authorization_code",
        "code": back["code"][0],
        "redirect_uri": query["redirect_uri"],
        "code_verifier": verifier,
    }

    first, second = client.post("/token", data=form), client.post("/token", data=form)

    assert "1234567+octocat@users.noreply.github.com" in page.text
    assert "s<1>" not in page.text
    assert (chosen.status_code, back["state"]) == (302, ["s<1>"])
    assert first.json()["token_type"] == "Bearer"
    assert second.status_code == 400


@pytest.mark.parametrize(
    ("method", "path", "data", "said"),
    [
        pytest.param("GET", "/auth?redirect_uri=https://example.org/", None, "redirect_uri on loopback", id="redirect"),
        pytest.param(
            "GET",
            "/auth?redirect_uri=http://localhost/&code_challenge=x&code_challenge_method=plain",
            None,
            "code_challenge_method S256",
            id="plain-pkce",
        ),
        pytest.param(
            "GET", "/auth?redirect_uri=http://localhost/&login_hint=nobody", None, "found 'nobody'", id="unknown-hint"
        ),
        pytest.param("POST", "/token", {"grant_type": "password"}, "found 'password'", id="grant"),
        pytest.param(
            "POST", "/token", {"grant_type": "client_credentials", "client_id": "x"}, "a sample signer", id="unknown"
        ),
        pytest.param("POST", "/token", {"grant_type": "authorization_code", "code": "x"}, "once", id="unknown-code"),
    ],
)
def test_sign_in_refuses(client: httpx.Client, method: str, path: str, data: Any, said: str) -> None:
    answer = client.request(method, path, data=data)

    assert answer.status_code == 400
    assert said in answer.json()["message"]


def test_a_code_needs_its_verifier(client: httpx.Client) -> None:
    redirect = "http://127.0.0.1:4000/"
    query = {
        "redirect_uri": redirect,
        "login_hint": "octocat",
        "code_challenge": "x" * 43,
        "code_challenge_method": "S256",
    }
    code = parse_qs(urlsplit(client.get("/auth", params=query).headers["location"]).query)["code"][0]
    form = {"grant_type": "authorization_code", "code": code, "redirect_uri": redirect, "code_verifier": "wrong"}

    answer = client.post("/token", data=form)

    assert answer.status_code == 400
    assert "code_verifier" in answer.json()["message"]


def test_a_job_gets_its_token_for_its_request_token(client: httpx.Client, server: SigstoreServer) -> None:
    environment = server.actions_environment("uat-gcp")
    url = environment["ACTIONS_ID_TOKEN_REQUEST_URL"] + "&audience=sigstore"
    bearer = environment["ACTIONS_ID_TOKEN_REQUEST_TOKEN"]

    given = client.get(url, headers={"Authorization": f"bearer {bearer}"})
    others = client.get(url.replace("uat-gcp", "uat-aws"), headers={"Authorization": f"bearer {bearer}"})
    person = client.get(url.replace("uat-gcp", "octocat"), headers={"Authorization": f"bearer {bearer}"})

    claims = json.loads(base64.urlsafe_b64decode(given.json()["value"].split(".")[1] + "=="))
    assert claims["job_workflow_ref"] == "NVIDIA/aicr/.github/workflows/uat-gcp.yaml@refs/heads/main"
    assert (others.status_code, person.status_code) == (401, 401)


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        pytest.param("GET", "/", 404, id="root"),
        pytest.param("GET", "/api/v2/signingCert", 405, id="wrong-method"),
        pytest.param("GET", "/api/v1/log/entries?logIndex=0", 404, id="index-of-another-shard"),
        pytest.param("GET", "/api/v1/log/entries?logIndex=x", 404, id="index-text"),
        pytest.param("GET", f"/api/v1/log/entries/{'0' * 80}", 404, id="unknown-uuid"),
        pytest.param("GET", "/api/v2/tile/0/999", 404, id="tile-to-come"),
        pytest.param("GET", "/api/v2/tile/0/x.p", 404, id="tile-path"),
        pytest.param("GET", "/api/v2/tile/0/p.", 400, id="tile-no-number"),
        pytest.param("DELETE", "/keys", 501, id="unknown-method"),
    ],
)
def test_other_requests_are_refused(client: httpx.Client, method: str, path: str, status: int) -> None:
    assert client.request(method, path).status_code == status


def test_a_body_beyond_the_limit_is_not_read(client: httpx.Client) -> None:
    answer = client.post("/api/v2/log/entries", content=b"x" * ((1 << 20) + 1))

    assert answer.status_code == 413


@pytest.mark.parametrize("content", [b"{", b"\xff", b"[" * 100_000, b'"text"'], ids=["cut", "bytes", "deep", "text"])
def test_a_body_that_is_no_json_object_is_refused(client: httpx.Client, content: bytes) -> None:
    answer = client.post("/api/v2/log/entries", content=content)

    assert answer.status_code == 400


def test_files_for_clients_are_written(server: SigstoreServer, tmp_path: Path) -> None:
    server.write(tmp_path / "sandbox")

    names = sorted(path.name for path in (tmp_path / "sandbox").iterdir())
    assert names == ["signing_config.json", "signing_config.v1.json", "trusted_root.json"]
    config = json.loads((tmp_path / "sandbox" / "signing_config.json").read_bytes())
    assert config["rekorTlogUrls"][0] | {"validFor": None} == {
        "url": server.url,
        "majorApiVersion": 2,
        "validFor": None,
        "operator": "sandbox.example",
    }
    assert config["tsaUrls"][0]["url"] == f"{server.url}/api/v1/timestamp"
    older = json.loads((tmp_path / "sandbox" / "signing_config.v1.json").read_bytes())
    assert older["rekorTlogUrls"][0]["majorApiVersion"] == 1
    assert older.keys() & {"tsaUrls", "tsaConfig"} == set()


def test_closing_ends_open_connections_and_threads() -> None:
    before = set(threading.enumerate())
    server = SigstoreServer(PrivateSigstore()).start()
    port = urlsplit(server.url).port
    assert port is not None
    idle = socket.create_connection(("127.0.0.1", port))
    with httpx.Client(base_url=server.url, trust_env=False) as client:
        client.get("/keys")

        server.close()

        assert idle.recv(1) == b""
    idle.close()
    assert set(threading.enumerate()) <= before
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port))


def test_a_given_port_is_used_and_a_server_that_never_started_closes() -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]

    server = SigstoreServer(port=port)

    assert server.url == f"http://127.0.0.1:{port}"
    server.close()
