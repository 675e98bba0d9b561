"""Keyless signing against the sandbox services: what comes out verifies, what goes wrong has a name, nothing strays."""

import base64
import json
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from http import HTTPStatus
from pathlib import Path
from typing import Any

import pytest

from app.adapters.sigstore.outbound import MAX_ANSWER_BYTES
from app.adapters.sigstore.signing import SigningTrust, ambient_token, sign_statement
from app.core.bundle import Pins, VerifiedSignature
from app.core.errors import Category, DocumentInvalid, FetchError, ForbiddenError, InputError, ServiceError
from app.sandbox.identities import OCTOCAT, SAMPLE_SIGNERS, UAT_AWS
from app.sandbox.sigstore import LogVersion, PrivateSigstore, SigstoreServer
from app.sandbox.sigstore.oidc import claims_of
from app.sandbox.sigstore.wire import LoopbackServer, Request, Response
from tests.support.signatures import ARTIFACT, NOW, STATEMENT
from tests.support.sigstore import engine, engine_says, judge


@pytest.fixture(scope="module")
def server() -> Iterator[SigstoreServer]:
    with SigstoreServer() as running:
        yield running


def trust_in(server: SigstoreServer, log: LogVersion = LogVersion.V2, **config: Any) -> SigningTrust:
    """The server's own documents, with members of the signing configuration replaced."""
    document = json.loads(server.sigstore.signing_config_json(server.url, log=log)) | config
    return SigningTrust(server.sigstore.trusted_root_json(), json.dumps(document).encode(), timeout_seconds=5)


def service(url: str, version: int = 1) -> list[dict[str, Any]]:
    return [{"url": url, "majorApiVersion": version, "operator": "elsewhere.example"}]


def refusal(server: SigstoreServer, trust: SigningTrust, token: str | None = None) -> ServiceError:
    with pytest.raises(ServiceError) as caught:
        sign_statement(STATEMENT, token=token or server.token(OCTOCAT), trust=trust)
    return caught.value


@pytest.mark.parametrize("log", list(LogVersion))
@pytest.mark.parametrize("name", list(SAMPLE_SIGNERS))
def test_a_signed_statement_is_accepted_as_the_tokens_identity(
    server: SigstoreServer, name: str, log: LogVersion
) -> None:
    identity = SAMPLE_SIGNERS[name]

    bundle = sign_statement(STATEMENT, token=server.token(identity), trust=trust_in(server, log))

    assert engine_says(engine(server.sigstore), bundle) == "accepted"
    verdict = judge(server.sigstore).verify(bundle, artifact=ARTIFACT, pins=Pins(), now=NOW)
    assert isinstance(verdict, VerifiedSignature), verdict
    assert verdict.signer == identity.signer
    assert verdict.statement.payload == STATEMENT


@pytest.mark.parametrize(
    ("log", "kind", "stamps"),
    [
        pytest.param(LogVersion.V1, "dsse", 0, id="rekor-v1"),
        pytest.param(LogVersion.V2, "hashedrekord", 1, id="rekor-v2"),
    ],
)
def test_a_bundle_is_of_the_format_that_readers_expect(
    server: SigstoreServer, log: LogVersion, kind: str, stamps: int
) -> None:
    bundle = json.loads(sign_statement(STATEMENT, token=server.token(OCTOCAT), trust=trust_in(server, log)))

    material = bundle["verificationMaterial"]
    assert bundle["mediaType"] == "application/vnd.dev.sigstore.bundle.v0.3+json"
    assert [entry["kindVersion"]["kind"] for entry in material["tlogEntries"]] == [kind]
    assert len(material["timestampVerificationData"]["rfc3161Timestamps"]) == stamps
    assert bundle["dsseEnvelope"]["payloadType"] == "application/vnd.in-toto+json"
    assert base64.b64decode(bundle["dsseEnvelope"]["payload"]) == STATEMENT


def test_a_v1_log_with_a_timestamp_authority_has_both_times(server: SigstoreServer) -> None:
    config = server.sigstore.signing_config_json(server.url, log="v1", timestamps=True)
    trust = SigningTrust(server.sigstore.trusted_root_json(), config)

    bundle = json.loads(sign_statement(STATEMENT, token=server.token(OCTOCAT), trust=trust))

    assert "inclusionPromise" in bundle["verificationMaterial"]["tlogEntries"][0]
    assert len(bundle["verificationMaterial"]["timestampVerificationData"]["rfc3161Timestamps"]) == 1


def test_trust_is_read_from_the_files_that_the_sandbox_writes(server: SigstoreServer, tmp_path: Path) -> None:
    server.write(tmp_path)
    trust = SigningTrust.from_files(tmp_path / "trusted_root.json", tmp_path / "signing_config.json")

    bundle = sign_statement(STATEMENT, token=server.token(OCTOCAT), trust=trust)

    assert engine_says(engine(server.sigstore), bundle) == "accepted"


def test_a_missing_trust_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"expected a readable file at .*absent\.json: No such file"):
        SigningTrust.from_files(tmp_path / "absent.json", tmp_path / "absent.json")


def test_a_trust_file_beyond_the_limit_is_refused(tmp_path: Path) -> None:
    (tmp_path / "root.json").write_bytes(b" " * ((4 << 20) + 1))

    with pytest.raises(InputError, match="expected at most 4194304 bytes"):
        SigningTrust.from_files(tmp_path / "root.json", tmp_path / "root.json")


def test_the_public_good_instance_needs_no_network_to_be_known() -> None:
    trust = SigningTrust.public_good()

    assert json.loads(trust.signing_config)["caUrls"][0]["url"] == "https://fulcio.sigstore.dev"
    assert json.loads(trust.trusted_root)["tlogs"][0]["baseUrl"] == "https://rekor.sigstore.dev"


def tokens(server: SigstoreServer) -> dict[str, str]:
    good = server.token(OCTOCAT)
    header, claims, signature = good.split(".")
    times = {"aud": "sigstore", "iat": 1778235840, "nbf": 1778235840}
    return {
        "empty": "",
        "text": "not a token",
        "huge": "a" * 70_000,
        "expired": server.issuer.sign(claims_of(OCTOCAT) | times | {"exp": 1778236140}),
        "other audience": server.issuer.sign(claims_of(OCTOCAT) | times | {"aud": "npm", "exp": 4102444800}),
        "forged": f"{header}.{claims}.{'A' * len(signature)}",
        "issuer unknown to the authority": server.issuer.sign(
            {"iss": "https://elsewhere.example", "sub": "x"} | times | {"exp": 4102444800}
        ),
    }


@pytest.mark.parametrize(
    ("name", "said"),
    [
        pytest.param("empty", "expected an identity token for audience 'sigstore'", id="empty"),
        pytest.param("text", "expected an identity token for audience 'sigstore'", id="text"),
        pytest.param("huge", "at most 65536 characters, got 70000", id="huge"),
        pytest.param("expired", "expected an identity token for audience 'sigstore'", id="expired"),
        pytest.param("other audience", "expected an identity token for audience 'sigstore'", id="audience"),
        pytest.param("forged", "refused the identity token (status 401)", id="forged"),
        pytest.param("issuer unknown to the authority", "expected a simulated issuer", id="issuer"),
    ],
)
def test_a_token_that_does_not_count_is_forbidden(server: SigstoreServer, name: str, said: str) -> None:
    with pytest.raises(ForbiddenError) as caught:
        sign_statement(STATEMENT, token=tokens(server)[name], trust=trust_in(server))

    assert said in caught.value.message
    assert caught.value.hint


@pytest.mark.parametrize(
    "statement",
    [
        pytest.param(b"", id="empty"),
        pytest.param(b"{}", id="no-statement"),
        pytest.param(b"\xff\xfe", id="no-text"),
        pytest.param(b'{"_type":"https://in-toto.io/Statement/v1","subject":[],"predicateType":"x"}', id="no-subject"),
        pytest.param(
            b'{"_type":"https://in-toto.io/Statement/v1","subject":[{"name":"a","digest":{}}],'
            b'"predicateType":"x","predicate":{"a":1}}',
            id="no-digest",
        ),
        pytest.param(
            b'{"_type":"https://in-toto.io/Statement/v1","subject":[{"name":"a","digest":{"sha256":"00"}}],'
            b'"predicateType":"x","predicate":{}}',
            id="no-predicate",
        ),
        pytest.param(b"[" * 200_000, id="deep"),
        pytest.param(b" " * ((10 << 20) + 1), id="huge"),
    ],
)
def test_what_is_no_statement_is_refused_before_any_request(server: SigstoreServer, statement: bytes) -> None:
    trust = trust_in(server, caUrls=service("http://127.0.0.1:1"))

    with pytest.raises(DocumentInvalid, match=r"expected an? (in-toto )?statement"):
        sign_statement(statement, token=server.token(OCTOCAT), trust=trust)


@pytest.mark.parametrize("text", [b"", b"{}", b"[]", b"\xff", b'{"mediaType":"x"}'])
def test_what_is_no_trusted_root_is_refused(server: SigstoreServer, text: bytes) -> None:
    error = refusal(server, SigningTrust(text, trust_in(server).signing_config))

    assert isinstance(error, DocumentInvalid)
    assert error.message.startswith("expected a Sigstore trusted root: ")


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param({"mediaType": "x"}, id="media-type"),
        pytest.param({"caUrls": []}, id="no-authority"),
        pytest.param({"rekorTlogUrls": []}, id="no-log"),
        pytest.param({"rekorTlogUrls": service("http://127.0.0.1:1", version=9)}, id="unknown-log-version"),
        pytest.param({"rekorTlogConfig": {"selector": "EXACT", "count": 3}}, id="more-logs-than-there-are"),
    ],
)
def test_what_is_no_signing_configuration_is_refused(server: SigstoreServer, changes: dict[str, Any]) -> None:
    error = refusal(server, trust_in(server, **changes))

    assert isinstance(error, DocumentInvalid)
    assert error.message.startswith("expected a Sigstore signing configuration: ")


def test_a_v2_log_without_a_timestamp_authority_is_refused_before_any_request(server: SigstoreServer) -> None:
    error = refusal(server, trust_in(server, tsaUrls=[], caUrls=service("http://127.0.0.1:1")))

    assert isinstance(error, DocumentInvalid)
    assert "a Rekor v2 log tells no time" in error.message


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param({"caUrls": service("http://fulcio.example.org")}, id="authority"),
        pytest.param({"rekorTlogUrls": service("http://rekor.example.org", version=2)}, id="log"),
        pytest.param({"tsaUrls": service("http://10.0.0.1/api/v1/timestamp")}, id="timestamps"),
        pytest.param({"caUrls": service("ftp://127.0.0.1")}, id="scheme"),
        pytest.param({"caUrls": service("https://")}, id="no-host"),
    ],
)
def test_a_token_never_travels_in_the_clear(server: SigstoreServer, changes: dict[str, Any]) -> None:
    error = refusal(server, trust_in(server, **changes))

    assert isinstance(error, InputError)
    assert error.message.startswith("expected an https URL in the signing configuration, got ")


def test_documents_of_two_instances_are_noticed(server: SigstoreServer) -> None:
    trust = SigningTrust(PrivateSigstore().trusted_root_json(), trust_in(server).signing_config)

    error = refusal(server, trust)

    assert isinstance(error, FetchError)
    assert error.hint == "trusted root and signing configuration may be of different Sigstore instances"
    assert not error.retryable


def test_a_bundle_that_would_not_verify_is_not_handed_out(server: SigstoreServer) -> None:
    root = json.loads(server.sigstore.trusted_root_json())
    root["tlogs"] = json.loads(PrivateSigstore().trusted_root_json())["tlogs"]
    trust = SigningTrust(json.dumps(root).encode(), trust_in(server).signing_config)

    error = refusal(server, trust)

    assert isinstance(error, FetchError)
    assert error.message.startswith("expected a bundle that verifies under the trusted root: ")


Answer = Callable[[Request], Response]


@pytest.fixture
def elsewhere() -> Iterator[Callable[[Answer], str]]:
    """Starts small servers that answer as told; their base URL."""
    running: list[tuple[LoopbackServer, threading.Thread]] = []

    def start(answer: Answer) -> str:
        http = LoopbackServer(("127.0.0.1", 0), answer)
        thread = threading.Thread(target=http.serve_forever, args=(0.02,))
        thread.start()
        running.append((http, thread))
        return f"http://127.0.0.1:{http.server_address[1]}"

    yield start
    for http, thread in running:
        http.shutdown()
        thread.join()
        http.server_close()


def answering(status: HTTPStatus, body: bytes = b"{}", **headers: str) -> Answer:
    return lambda _: Response(status, body, "application/json", headers)


@pytest.mark.parametrize("member", ["caUrls", "rekorTlogUrls", "tsaUrls"])
def test_a_service_that_fails_is_named_with_its_status(
    server: SigstoreServer, elsewhere: Callable[[Answer], str], member: str
) -> None:
    url = elsewhere(answering(HTTPStatus.SERVICE_UNAVAILABLE, b'{"message": "come\\nback later"}'))
    names = {"caUrls": "certificate authority", "rekorTlogUrls": "transparency log", "tsaUrls": "timestamp authority"}
    version = 2 if member == "rekorTlogUrls" else 1

    error = refusal(server, trust_in(server, **{member: service(url, version)}))

    assert isinstance(error, FetchError)
    assert error.message == f"the {names[member]} answered with status 503: come back later"
    assert (error.http_status, error.retryable) == (503, True)


@pytest.mark.parametrize("member", ["caUrls", "rekorTlogUrls", "tsaUrls"])
def test_a_redirect_is_not_followed(server: SigstoreServer, elsewhere: Callable[[Answer], str], member: str) -> None:
    asked: list[str] = []

    def trap(request: Request) -> Response:
        asked.append(request.path)
        return Response(HTTPStatus.OK, b"{}")

    url = elsewhere(answering(HTTPStatus.TEMPORARY_REDIRECT, Location=elsewhere(trap)))
    version = 2 if member == "rekorTlogUrls" else 1

    error = refusal(server, trust_in(server, **{member: service(url, version)}))

    assert isinstance(error, FetchError)
    assert error.http_status == 307
    assert asked == []


@pytest.mark.parametrize("member", ["caUrls", "rekorTlogUrls", "tsaUrls"])
@pytest.mark.parametrize("body", [b"", b"{}", b"[]", b"[" * 100_000, b"\xff\xfe", b'{"uuid": {"body": 1}}'])
def test_an_answer_that_makes_no_sense_is_an_error_of_ours(
    server: SigstoreServer, elsewhere: Callable[[Answer], str], member: str, body: bytes
) -> None:
    url = elsewhere(answering(HTTPStatus.CREATED, body))
    version = 2 if member == "rekorTlogUrls" else 1

    error = refusal(server, trust_in(server, **{member: service(url, version)}))

    assert isinstance(error, FetchError)
    assert error.category in {Category.INTERNAL, Category.UNAVAILABLE}
    assert error.message.startswith("expected ")


def test_a_v1_log_that_answers_nonsense_is_an_error_of_ours(
    server: SigstoreServer, elsewhere: Callable[[Answer], str]
) -> None:
    url = elsewhere(answering(HTTPStatus.CREATED, b'{"x": {"body": "e30="}}'))

    error = refusal(server, trust_in(server, LogVersion.V1, rekorTlogUrls=service(url)))

    assert isinstance(error, FetchError)


def test_an_answer_beyond_the_limit_is_cut(server: SigstoreServer, elsewhere: Callable[[Answer], str]) -> None:
    url = elsewhere(answering(HTTPStatus.CREATED, b" " * (MAX_ANSWER_BYTES + 1)))

    error = refusal(server, trust_in(server, caUrls=service(url)))

    assert isinstance(error, FetchError)
    assert f"expected at most {MAX_ANSWER_BYTES} bytes" in error.message


def test_nobody_there_is_said_with_the_address(server: SigstoreServer) -> None:
    with closing(socket.socket()) as unused:
        unused.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{unused.getsockname()[1]}"

        error = refusal(server, trust_in(server, caUrls=service(url)))

    assert isinstance(error, FetchError)
    assert error.message == f"expected an answer from {url}/api/v2/signingCert: connection refused"
    assert error.retryable


def drip(listening: socket.socket, stop: threading.Event, head: bytes) -> None:
    """An answer that never ends: one byte at a time after `head`."""
    connection, _ = listening.accept()
    with connection:
        connection.recv(65536)
        connection.sendall(head)
        while not stop.wait(0.02):
            try:
                connection.sendall(b"x")
            except OSError:
                return


@pytest.mark.parametrize(
    "head",
    [
        pytest.param(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n", id="body"),
        pytest.param(b"HTTP/1.1 200 OK\r\nX-Long: ", id="header"),
    ],
)
def test_an_answer_that_drips_ends_with_the_deadline(server: SigstoreServer, head: bytes) -> None:
    stop = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=drip, args=(listening, stop, head))
        thread.start()
        config = trust_in(server, caUrls=service(f"http://127.0.0.1:{listening.getsockname()[1]}"))
        trust = SigningTrust(config.trusted_root, config.signing_config, timeout_seconds=0.3)
        try:
            error = refusal(server, trust)
        finally:
            stop.set()
            thread.join()
    assert isinstance(error, FetchError)
    assert error.category is Category.TIMEOUT
    assert error.message.endswith("/api/v2/signingCert: expected an answer within 0.3 s")


def test_a_silent_service_ends_with_the_deadline(server: SigstoreServer) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        config = trust_in(server, caUrls=service(f"http://127.0.0.1:{listening.getsockname()[1]}"))
        trust = SigningTrust(config.trusted_root, config.signing_config, timeout_seconds=0.2)

        error = refusal(server, trust)

    assert isinstance(error, FetchError)
    assert error.category is Category.TIMEOUT
    assert error.retryable


def test_a_failing_timestamp_authority_leaves_nothing_in_the_log(
    server: SigstoreServer, elsewhere: Callable[[Answer], str]
) -> None:
    size = server.sigstore.logs[LogVersion.V2].size

    refusal(server, trust_in(server, tsaUrls=service(elsewhere(answering(HTTPStatus.BAD_GATEWAY)))))

    assert server.sigstore.logs[LogVersion.V2].size == size


def test_the_environments_proxies_and_passwords_are_not_used(
    server: SigstoreServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "netrc").write_text("machine 127.0.0.1 login somebody password secret\n")
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    monkeypatch.delenv("NO_PROXY", raising=False)
    monkeypatch.delenv("no_proxy", raising=False)

    bundle = sign_statement(STATEMENT, token=server.token(OCTOCAT), trust=trust_in(server))

    assert engine_says(engine(server.sigstore), bundle) == "accepted"


def test_a_job_signs_with_its_ambient_token(server: SigstoreServer, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in server.actions_environment("uat-aws").items():
        monkeypatch.setenv(name, value)

    token = ambient_token()

    assert token is not None
    bundle = sign_statement(STATEMENT, token=token, trust=trust_in(server))
    verdict = judge(server.sigstore).verify(bundle, artifact=ARTIFACT, pins=Pins(), now=NOW)
    assert isinstance(verdict, VerifiedSignature), verdict
    assert verdict.signer == UAT_AWS.signer


def test_a_job_without_permission_is_told_what_it_needs(
    server: SigstoreServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in (server.actions_environment("uat-aws") | {"ACTIONS_ID_TOKEN_REQUEST_TOKEN": "wrong"}).items():
        monkeypatch.setenv(name, value)

    with pytest.raises(ForbiddenError) as caught:
        ambient_token()

    assert caught.value.hint == "a GitHub Actions job needs `permissions: id-token: write`"
