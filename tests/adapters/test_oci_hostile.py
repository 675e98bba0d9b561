"""Every hostile mode of the sandbox registry: right code, bounded time and memory, nothing leaks, nothing escapes."""

import ipaddress
import socket
import ssl
import threading
import time
import tracemalloc
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from app.adapters.oci import (
    FETCH_CODES,
    OVERSIZE_CODES,
    ByteBudget,
    OciRegistry,
    ReaderLimits,
    RegistryLogin,
    describe_signature,
)
from app.adapters.oci.limits import Deadline
from app.core.errors import Category, FetchError
from app.core.refs import OciRef
from app.ports import Access, PullOptions
from app.sandbox.registry import AuthMode, Behaviour, Hostility, RegistryAuth, SandboxRegistry
from tests.support.registries import FILES, sample_bundle

LOGIN = RegistryLogin("octocat", "top-secret")
DEADLINE_SECONDS = 2.0


@pytest.fixture
def registry() -> Iterator[SandboxRegistry]:
    with SandboxRegistry() as running:
        yield running


@pytest.fixture
def elsewhere() -> Iterator[SandboxRegistry]:
    with SandboxRegistry() as running:
        yield running


def reader_of(registry: SandboxRegistry, tmp: Path, **changes: object) -> OciRegistry:
    options: dict[str, object] = {
        "tmp": str(tmp / "private"),
        "private_hosts": [registry.host],
        "plain_http_hosts": [registry.host],
        "credentials": {registry.host: LOGIN},
        "sleep": lambda _: None,
        **changes,
    }
    return OciRegistry(**options)  # type: ignore[arg-type]


def pull(reader: OciRegistry, ref: OciRef, **changes: object) -> FetchError:
    """The error that a whole pull of `ref` ends with."""
    fields: dict[str, object] = {"timeout_seconds": DEADLINE_SECONDS, "access": Access.CREDENTIALED, **changes}
    options = PullOptions(**fields)  # type: ignore[arg-type]
    with pytest.raises(FetchError) as caught:
        take(reader, ref, options)
    return caught.value


def take(reader: OciRegistry, ref: OciRef, options: PullOptions) -> None:
    """Resolve and pull."""
    with reader.pull(reader.resolve(ref, options), options):
        raise AssertionError("a hostile artifact was handed out")


CODES = {
    Hostility.WRONG_MANIFEST: "DIGEST_MISMATCH",
    Hostility.WRONG_BLOB: "DIGEST_MISMATCH",
    Hostility.WRONG_CONTENT_DIGEST: "DIGEST_MISMATCH",
    Hostility.ENDLESS_BODY: "BODY_TOO_LARGE",
    Hostility.DRIP: "REGISTRY_TIMEOUT",
    Hostility.TRUNCATED: "REGISTRY_UNREACHABLE",
    Hostility.REDIRECT_ELSEWHERE: "ADDRESS_REFUSED",
    Hostility.REDIRECT_PRIVATE: "ADDRESS_REFUSED",
    Hostility.REDIRECT_LOOP: "REDIRECT_REFUSED",
    Hostility.REALM_ELSEWHERE: "REALM_REFUSED",
    Hostility.AUTH_LOOP: "REGISTRY_FORBIDDEN",
    Hostility.RATE_LIMITED: "REGISTRY_RATE_LIMITED",
    Hostility.SERVER_ERROR: "REGISTRY_ERROR",
    Hostility.INDEX_LOOP: "MANIFEST_INVALID",
    Hostility.NESTED_INDEX: "REFERRER_INVALID",
    Hostility.MANY_REFERRERS: "REFERRERS_TOO_MANY",
    Hostility.FOREIGN_REFERRER: "REFERRER_INVALID",
    Hostility.PLANTED_TAG: "REFERRER_INVALID",
    Hostility.GZIP_BOMB: "BOMB",
    Hostility.TAR_BOMB: "LAYER_UNSAFE",
    Hostility.TRAVERSAL: "LAYER_UNSAFE",
    Hostility.ABSOLUTE: "LAYER_UNSAFE",
    Hostility.PAX_PATH: "LAYER_UNSAFE",
    Hostility.SYMLINK: "LAYER_UNSAFE",
    Hostility.HARDLINK: "LAYER_UNSAFE",
    Hostility.DEVICE: "LAYER_UNSAFE",
    Hostility.DUPLICATE_ENTRY: "LAYER_UNSAFE",
    Hostility.CASE_TWINS: "LAYER_UNSAFE",
    Hostility.SECOND_MEMBER: "LAYER_UNSAFE",
    Hostility.TRAILING_GARBAGE: "LAYER_UNSAFE",
    Hostility.DUPLICATE_TITLES: "MANIFEST_INVALID",
    Hostility.DUPLICATE_KEYS: "MANIFEST_INVALID",
    Hostility.LOOKALIKE_KEYS: "MANIFEST_INVALID",
}

RETRYABLE = {"REGISTRY_TIMEOUT", "REGISTRY_UNREACHABLE", "REGISTRY_RATE_LIMITED", "REGISTRY_ERROR"}


@pytest.mark.parametrize("mode", [pytest.param(mode, id=mode.value) for mode in Hostility])
def test_a_hostile_registry_gives_an_error_and_takes_nothing(
    registry: SandboxRegistry, elsewhere: SandboxRegistry, tmp_path: Path, mode: Hostility
) -> None:
    ref = registry.plant(Behaviour(mode, elsewhere=f"https://{elsewhere.host}"))
    reader = reader_of(registry, tmp_path)

    tracemalloc.start()
    started = time.monotonic()
    error = pull(reader, ref)
    seconds = time.monotonic() - started
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()

    assert error.code == CODES[mode]
    assert error.retryable is (error.code in RETRYABLE)
    assert error.hint == FETCH_CODES[error.code].cure
    assert seconds < 30  # none of them ends by itself
    assert peak < 64 << 20
    assert elsewhere.log == []
    if mode not in {Hostility.AUTH_LOOP, Hostility.REALM_ELSEWHERE}:
        assert {seen.authorization for seen in registry.log} == {None}
    assert [path.name for path in tmp_path.rglob("*")] == ["private"]


def test_the_table_covers_every_mode() -> None:
    assert set(CODES) == set(Hostility)


def test_an_honest_artifact_passes_the_same_way(registry: SandboxRegistry, tmp_path: Path) -> None:
    bundle = sample_bundle()
    ref = registry.seed("honest/one", bundle, (describe_signature(bundle.descriptor, b"{}"),))
    reader, options = reader_of(registry, tmp_path), PullOptions(DEADLINE_SECONDS)

    with reader.pull(reader.resolve(ref, options), options) as pulled:
        assert Path(pulled.directory, "recipe.yaml").is_file()


@pytest.mark.parametrize(
    ("mode", "code"),
    [
        pytest.param(Hostility.WRONG_BLOB, "DIGEST_MISMATCH", id="wrong"),
        pytest.param(Hostility.ENDLESS_BODY, "SIZE_MISMATCH", id="endless"),
        pytest.param(Hostility.DRIP, "REGISTRY_TIMEOUT", id="drip"),
        pytest.param(Hostility.TRUNCATED, "REGISTRY_UNREACHABLE", id="truncated"),
        pytest.param(Hostility.WRONG_CONTENT_DIGEST, "DIGEST_MISMATCH", id="announced"),
    ],
)
def test_a_registry_that_turns_hostile_after_the_manifest_is_caught_at_the_layer(
    registry: SandboxRegistry, tmp_path: Path, mode: Hostility, code: str
) -> None:
    ref, reader = registry.seed("late/one", sample_bundle()), reader_of(registry, tmp_path)
    options = PullOptions(1.0)
    artifact = reader.resolve(ref, options)
    registry.misbehave(mode)

    with pytest.raises(FetchError) as caught, reader.pull(artifact, options):
        raise AssertionError("a hostile layer was handed out")

    assert caught.value.code == code
    assert list((tmp_path / "private").iterdir()) == []


# --- patience ------------------------------------------------------------------------------------------


def test_retry_after_is_honoured_and_retries_are_few(registry: SandboxRegistry, tmp_path: Path) -> None:
    pauses: list[float] = []
    ref = registry.plant(Behaviour(Hostility.RATE_LIMITED, retry_after_seconds=1))
    reader = reader_of(registry, tmp_path, sleep=pauses.append)

    error = pull(reader, ref, timeout_seconds=30.0)

    assert (error.code, error.http_status, error.retry_after_seconds) == ("REGISTRY_RATE_LIMITED", 429, 1)
    assert error.category is Category.RATE_LIMITED
    assert pauses == [1.0, 1.0]
    assert len(registry.log) == 3


@pytest.mark.parametrize("mode", [Hostility.RATE_LIMITED, Hostility.SERVER_ERROR])
def test_a_registry_that_recovers_in_time_is_read(registry: SandboxRegistry, tmp_path: Path, mode: Hostility) -> None:
    ref = registry.plant(Behaviour(mode, retry_after_seconds=None, failures=2))
    reader, options = reader_of(registry, tmp_path), PullOptions(DEADLINE_SECONDS)

    assert reader.resolve(ref, options).ref == ref


def test_a_pause_beyond_the_deadline_is_not_waited_for(registry: SandboxRegistry, tmp_path: Path) -> None:
    pauses: list[float] = []
    ref = registry.plant(Behaviour(Hostility.SERVER_ERROR, retry_after_seconds=3600))
    reader = reader_of(registry, tmp_path, sleep=pauses.append)

    error = pull(reader, ref)

    assert (error.code, error.http_status, error.retry_after_seconds) == ("REGISTRY_ERROR", 503, 3600)
    assert pauses == []


def test_a_server_that_accepts_and_says_nothing_ends_at_the_deadline(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        host = f"127.0.0.1:{silent.getsockname()[1]}"
        reader = OciRegistry(tmp=str(tmp_path), private_hosts=[host], plain_http_hosts=[host])

        error = pull(reader, OciRef.parse(f"{host}/a/b@sha256:{'0' * 64}"), timeout_seconds=0.3)

    assert (error.code, error.category, error.http_status) == ("REGISTRY_TIMEOUT", Category.TIMEOUT, None)


def test_a_closed_port_is_unreachable(tmp_path: Path) -> None:
    with SandboxRegistry() as gone:
        host = gone.host
    reader = OciRegistry(tmp=str(tmp_path), private_hosts=[host], plain_http_hosts=[host], sleep=lambda _: None)

    error = pull(reader, OciRef.parse(f"{host}/a/b@sha256:{'0' * 64}"))

    assert (error.code, error.category) == ("REGISTRY_UNREACHABLE", Category.UNAVAILABLE)


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(b"no http at all\r\n\r\n", id="not-http"),
        pytest.param(b"HTTP/1.1 200 OK\r\nContent-Length: abc\r\n\r\n", id="bad-length"),
        pytest.param(b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", id="two-lengths"),
        pytest.param(b"HTTP/1.1 200 OK\r\nX: " + b"a" * 200_000 + b"\r\n\r\n", id="huge-header"),
        pytest.param(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", id="bad-chunk"),
        pytest.param(b"", id="closes-at-once"),
    ],
)
def test_what_is_no_http_is_unreachable(tmp_path: Path, answer: bytes) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        _answer_always(server, answer)
        host = f"127.0.0.1:{server.getsockname()[1]}"
        reader = OciRegistry(tmp=str(tmp_path), private_hosts=[host], plain_http_hosts=[host], sleep=lambda _: None)

        error = pull(reader, OciRef.parse(f"{host}/a/b@sha256:{'0' * 64}"), timeout_seconds=10.0)

    assert error.code == "REGISTRY_UNREACHABLE"


# --- addresses -----------------------------------------------------------------------------------------


def test_a_loopback_registry_is_refused_unless_it_is_named(registry: SandboxRegistry, tmp_path: Path) -> None:
    ref = registry.seed("a/b", sample_bundle())
    reader = reader_of(registry, tmp_path, private_hosts=[])

    error = pull(reader, ref)
    named = reader.resolve(ref, PullOptions(DEADLINE_SECONDS, private_host=True))

    assert error.code == "ADDRESS_REFUSED"
    assert named.ref == ref
    assert len(registry.log) == 2  # manifest and referrers of the second


def test_a_name_is_looked_up_once_a_pull(registry: SandboxRegistry, tmp_path: Path) -> None:
    """A second answer, which a rebinding attacker would make private, is never asked for."""
    port = registry.host.rpartition(":")[2]
    host = f"registry.example.org:{port}"
    asked: list[str] = []

    def resolver(name: str, _port: int) -> list[str]:
        asked.append(name)
        return ["127.0.0.1"]

    bundle = sample_bundle()
    registry.seed("a/b", bundle, (describe_signature(bundle.descriptor, b"{}"),))
    reader = reader_of(registry, tmp_path, private_hosts=[host], plain_http_hosts=[host], resolver=resolver)

    reader.resolve(OciRef.parse(f"{host}/a/b@{bundle.digest}"), PullOptions(DEADLINE_SECONDS))

    assert asked == ["registry.example.org"]
    assert len(registry.log) == 4


def test_private_answers_are_left_out_of_a_mixed_lookup(registry: SandboxRegistry, tmp_path: Path) -> None:
    port = registry.host.rpartition(":")[2]
    reader = reader_of(
        registry,
        tmp_path,
        plain_http_hosts=[f"mixed.example.org:{port}"],
        resolver=lambda _name, _port: ["127.0.0.1", "10.0.0.1", "::ffff:127.0.0.1", "fe80::1%lo"],
    )

    error = pull(reader, OciRef.parse(f"mixed.example.org:{port}/a/b@sha256:{'0' * 64}"))

    assert error.code == "ADDRESS_REFUSED"
    assert registry.log == []


def test_a_lookup_that_fails_or_hangs_is_no_verdict(registry: SandboxRegistry, tmp_path: Path) -> None:
    def missing(_name: str, _port: int) -> list[str]:
        raise OSError("no such name")

    def hanging(_name: str, _port: int) -> list[str]:
        time.sleep(1.0)
        return []

    ref = OciRef.parse(f"absent.example.org/a/b@sha256:{'0' * 64}")

    assert pull(reader_of(registry, tmp_path, resolver=missing), ref).code == "REGISTRY_UNREACHABLE"
    assert pull(reader_of(registry, tmp_path, resolver=hanging), ref, timeout_seconds=0.2).code == "REGISTRY_TIMEOUT"


def test_the_callers_flags_hold_for_his_host_only(
    registry: SandboxRegistry, elsewhere: SandboxRegistry, tmp_path: Path
) -> None:
    ref = registry.plant(Behaviour(Hostility.REDIRECT_ELSEWHERE, elsewhere=elsewhere.url))
    reader = OciRegistry(tmp=str(tmp_path / "private"))

    error = pull(reader, ref, plain_http=True, private_host=True)

    assert error.code == "REDIRECT_REFUSED"
    assert elsewhere.log == []


# --- credentials ---------------------------------------------------------------------------------------


@pytest.fixture
def guarded() -> Iterator[SandboxRegistry]:
    auth = RegistryAuth(AuthMode.BASIC, {LOGIN.user: LOGIN.password}, anonymous_pull=False)
    with SandboxRegistry(auth=auth) as running:
        yield running


def test_a_redirect_to_an_admitted_host_takes_no_credentials_along(
    guarded: SandboxRegistry, elsewhere: SandboxRegistry, tmp_path: Path
) -> None:
    bundle = sample_bundle()
    ref = guarded.seed("a/b", bundle)
    elsewhere.seed("a/b", bundle)
    guarded.misbehave(Behaviour(Hostility.REDIRECT_ELSEWHERE, elsewhere=elsewhere.url))
    hosts = [guarded.host, elsewhere.host]
    reader = reader_of(guarded, tmp_path, private_hosts=hosts, plain_http_hosts=hosts)
    options = PullOptions(DEADLINE_SECONDS, access=Access.CREDENTIALED)

    with reader.pull(reader.resolve(ref, options), options) as pulled:
        assert Path(pulled.layer).read_bytes() == bundle.layer

    assert [seen.authorization for seen in elsewhere.log] == [None]
    assert guarded.log[0].authorization is None  # nothing is sent unasked
    assert guarded.log[-1].authorization == LOGIN.basic


def test_an_anonymous_pull_never_sends_configured_credentials(guarded: SandboxRegistry, tmp_path: Path) -> None:
    ref = guarded.seed("a/b", sample_bundle())

    error = pull(reader_of(guarded, tmp_path), ref, access=Access.ANONYMOUS)

    assert (error.code, error.http_status, error.category) == ("REGISTRY_FORBIDDEN", 401, Category.UNAUTHORIZED)
    assert {seen.authorization for seen in guarded.log} == {None}


def test_credentials_go_to_a_named_realm_and_to_no_other(
    registry: SandboxRegistry, elsewhere: SandboxRegistry, tmp_path: Path
) -> None:
    ref = registry.plant(Behaviour(Hostility.REALM_ELSEWHERE, elsewhere=elsewhere.url))
    hosts = [registry.host, elsewhere.host]

    refused = pull(reader_of(registry, tmp_path, private_hosts=hosts, plain_http_hosts=hosts), ref)
    assert (refused.code, elsewhere.log) == ("REALM_REFUSED", [])

    plain = pull(reader_of(registry, tmp_path, private_hosts=hosts, token_realms=[elsewhere.host]), ref)
    assert (plain.code, elsewhere.log) == ("REALM_REFUSED", [])

    asked = pull(
        reader_of(registry, tmp_path, private_hosts=hosts, plain_http_hosts=hosts, token_realms=[elsewhere.host]),
        ref,
    )
    assert asked.code == "REGISTRY_FORBIDDEN"
    assert elsewhere.log[0].path.startswith(
        "/token?service=sandbox&scope=repository%3Ahostile%2Frealm-elsewhere%3Apull"
    )


def test_a_token_is_asked_for_pull_only_and_once_a_repository(tmp_path: Path) -> None:
    auth = RegistryAuth(AuthMode.BEARER, {LOGIN.user: LOGIN.password})
    with SandboxRegistry(auth=auth) as registry:
        refs = [registry.seed(name, sample_bundle()) for name in ("a/one", "a/two")]
        reader = reader_of(registry, tmp_path)
        for _ in range(2):
            for ref in refs:
                reader.resolve(ref, PullOptions(DEADLINE_SECONDS))
        tokens = [seen.path for seen in registry.log if seen.path.startswith("/token")]

    assert tokens == [
        "/token?service=sandbox&scope=repository%3Aa%2Fone%3Apull",
        "/token?service=sandbox&scope=repository%3Aa%2Ftwo%3Apull",
    ]


def test_a_token_that_the_registry_forgot_is_replaced(tmp_path: Path) -> None:
    with SandboxRegistry(auth=RegistryAuth(AuthMode.BEARER)) as registry:
        ref, reader = registry.seed("a/b", sample_bundle()), reader_of(registry, tmp_path)
        reader.resolve(ref, PullOptions(DEADLINE_SECONDS))
        registry.gatekeeper._tokens.clear()

        assert reader.resolve(ref, PullOptions(DEADLINE_SECONDS)).ref == ref


def test_a_token_server_that_redirects_is_refused(
    registry: SandboxRegistry, elsewhere: SandboxRegistry, tmp_path: Path
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        _answer_always(
            server, f"HTTP/1.1 302 Found\r\nLocation: {elsewhere.url}/token\r\nContent-Length: 0\r\n\r\n".encode()
        )
        host = f"127.0.0.1:{server.getsockname()[1]}"
        hosts = [registry.host, elsewhere.host, host]
        ref = registry.plant(Behaviour(Hostility.REALM_ELSEWHERE, elsewhere=f"http://{host}"))

        error = pull(
            reader_of(registry, tmp_path, private_hosts=hosts, plain_http_hosts=hosts, token_realms=hosts), ref
        )

    assert error.code == "REALM_REFUSED"
    assert elsewhere.log == []


# --- limits and TLS ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("limits", "code"),
    [
        pytest.param({"manifest_bytes": 100}, "BODY_TOO_LARGE", id="manifest"),
        pytest.param({"blob_bytes": 10}, "BODY_TOO_LARGE", id="layer"),
        pytest.param({"unpacked_bytes": 1000}, "BODY_TOO_LARGE", id="unpacked"),
        pytest.param({"ratio": 1, "ratio_floor_bytes": 0}, "BOMB", id="ratio"),
        pytest.param({"files": 2}, "LAYER_UNSAFE", id="files"),
        pytest.param({"path_bytes": 8}, "LAYER_UNSAFE", id="path"),
        pytest.param({"depth": 1}, "LAYER_UNSAFE", id="depth"),
        pytest.param({"referrers": 1}, "REFERRERS_TOO_MANY", id="referrers"),
        pytest.param({"signature_bytes": 1}, "BODY_TOO_LARGE", id="signature"),
        pytest.param({"signatures_bytes": 1000}, "BODY_TOO_LARGE", id="all-signatures"),
        pytest.param({"referrer_manifest_bytes": 100}, "BODY_TOO_LARGE", id="referrer-manifest"),
    ],
)
def test_every_limit_is_asked(registry: SandboxRegistry, tmp_path: Path, limits: dict[str, int], code: str) -> None:
    bundle = sample_bundle()
    signatures = [describe_signature(bundle.descriptor, content) for content in (b'{"n": 1}', b'{"n": 2}')]
    ref = registry.seed("a/b", bundle, signatures)
    reader = reader_of(registry, tmp_path, limits=ReaderLimits(**limits))  # type: ignore[arg-type]

    error = pull(reader, ref)

    assert (error.code, error.category, error.retryable) == (code, Category.INVALID_REQUEST, False)
    assert (code in OVERSIZE_CODES) is (code == "BODY_TOO_LARGE")


def test_pages_of_referrers_are_followed_on_the_same_host(tmp_path: Path) -> None:
    bundle = sample_bundle()
    contents = [f'{{"n": {n}}}'.encode() for n in range(7)]
    with SandboxRegistry(referrers_page=3) as registry:
        ref = registry.seed("a/b", bundle, [describe_signature(bundle.descriptor, content) for content in contents])

        artifact = reader_of(registry, tmp_path).resolve(ref, PullOptions(DEADLINE_SECONDS))

        assert [signature.bundle for signature in artifact.signatures] == contents
        assert sum("/referrers/" in seen.path for seen in registry.log) == 3


def test_tls_is_verified_unless_the_caller_waives_it_for_his_host(tmp_path: Path) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(_certificate(tmp_path))
    with SandboxRegistry(tls=context) as registry:
        ref = registry.seed("a/b", sample_bundle())
        reader = reader_of(registry, tmp_path, plain_http_hosts=[])
        trusting = reader_of(registry, tmp_path, plain_http_hosts=[], ca_file=str(tmp_path / "server.pem"))

        refused = pull(reader, ref)
        waived = reader.resolve(ref, PullOptions(DEADLINE_SECONDS, insecure_tls=True))
        trusted = trusting.resolve(ref, PullOptions(DEADLINE_SECONDS))

    assert refused.code == "REGISTRY_UNREACHABLE"
    assert (waived.ref, trusted.ref) == (ref, ref)


def test_proxies_and_netrc_of_the_environment_are_ignored(
    registry: SandboxRegistry, elsewhere: SandboxRegistry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    netrc = tmp_path / "netrc"
    netrc.write_text("machine 127.0.0.1 login octocat password top-secret\n")
    for name in ("http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
        monkeypatch.setenv(name, elsewhere.url)
    monkeypatch.setenv("NETRC", str(netrc))
    ref = registry.seed("a/b", sample_bundle())

    reader_of(registry, tmp_path).resolve(ref, PullOptions(DEADLINE_SECONDS))

    assert elsewhere.log == []
    assert {seen.authorization for seen in registry.log} == {None}


def test_directories_of_a_crashed_process_are_swept_and_running_pulls_are_not(
    registry: SandboxRegistry, tmp_path: Path
) -> None:
    stale = tmp_path / "private" / "pull-stale"
    stale.mkdir(parents=True)
    (stale / "left.txt").write_text("left")
    ref, options = registry.seed("a/b", sample_bundle()), PullOptions(DEADLINE_SECONDS)
    reader = reader_of(registry, tmp_path)
    assert not stale.exists()

    with reader.pull(reader.resolve(ref, options), options) as pulled:
        reader_of(registry, tmp_path)  # a second process starts
        assert Path(pulled.directory, "recipe.yaml").read_bytes() == b"kind: RecipeResult\n"


def test_a_pull_holds_its_bytes_of_the_shared_budget_while_it_lasts(registry: SandboxRegistry, tmp_path: Path) -> None:
    budget, bundle = ByteBudget(8 << 20), sample_bundle()
    ref, options = registry.seed("a/b", bundle), PullOptions(DEADLINE_SECONDS)
    reader = reader_of(registry, tmp_path, budget=budget)
    artifact = reader.resolve(ref, options)
    assert budget.free_bytes == 8 << 20

    with reader.pull(artifact, options):
        assert budget.free_bytes == (8 << 20) - len(bundle.layer) - sum(map(len, FILES.values()))
    assert budget.free_bytes == 8 << 20

    with budget.reserve(8 << 20, Deadline(5)):
        assert pull(reader, ref, timeout_seconds=0.2).code == "REGISTRY_TIMEOUT"


def _answer_always(server: socket.socket, answer: bytes) -> None:
    """Send the same bytes to every connection until the listener closes."""

    def serve() -> None:
        while True:
            try:
                connection, _ = server.accept()
            except OSError:
                return
            with connection:
                connection.recv(65536)
                connection.sendall(answer)

    threading.Thread(target=serve, daemon=True).start()


def _certificate(directory: Path) -> Path:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "sandbox")])
    now = datetime.fromtimestamp(time.time(), UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(hours=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    path = directory / "server.pem"
    path.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
        + certificate.public_bytes(serialization.Encoding.PEM)
    )
    return path
