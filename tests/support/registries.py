"""Real and sandbox registries behind one face: where it is, who may push, where its tokens come from."""

import base64
import json
import socket
import subprocess
import tempfile
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Self
from urllib.parse import parse_qs, urlsplit

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature
from cryptography.x509.oid import NameOID

from app.adapters.oci import BundleArtifact, OciRegistry, RegistryLogin, describe_bundle
from app.adapters.oci.writer import Writer
from app.core.refs import OciRef
from app.ports import Access, PullOptions
from app.sandbox.registry import AuthMode, RegistryAuth, SandboxRegistry

USER, PASSWORD = "octocat", "sandbox-password"
HTPASSWD = f"{USER}:$2y$05$abcdefghijklmnopqrstuuTPHCjDv7wlHzVGkCj1wvmvMc9m6iDlK\n"
"""bcrypt of PASSWORD, the only form that Debian's registry takes."""

DOCKER_REGISTRY = "/usr/bin/docker-registry"
PREDICATE_V3 = "https://aicr.run/recipe-evidence/v3"
FILES = {
    "recipe.yaml": b"kind: RecipeResult\n",
    "manifest.json": b'{"files": []}\n',
    "ctrf/deployment.json": b"{}\n",
    "ctrf/performance.json": b"{}\n",
}


def sample_bundle() -> BundleArtifact:
    """A small artifact with subdirectories."""
    return describe_bundle(FILES, predicate_type=PREDICATE_V3, version="v1.2.3")


@dataclass(frozen=True)
class RunningRegistry:
    """One registry that answers now."""

    host: str
    private: bool = False  # reading needs a login
    realms: tuple[str, ...] = ()
    logins: dict[str, RegistryLogin] = field(default_factory=dict)

    def ref(self, name: str) -> OciRef:
        """`name` (repository with tag or digest) on this registry."""
        return OciRef.parse(f"{self.host}/{name}")

    def writer(self, **changes: object) -> Writer:
        """A writer that may push here."""
        options: dict[str, object] = {
            "credentials": self.logins,
            "plain_http_hosts": [self.host, *self.realms],
            "token_realms": self.realms,
            **changes,
        }
        return Writer(**options)  # type: ignore[arg-type]

    def reader(self, tmp: Path, **changes: object) -> OciRegistry:
        """A reader that may reach this host and its token server."""
        options: dict[str, object] = {
            "tmp": str(tmp),
            "private_hosts": [self.host, *self.realms],
            "plain_http_hosts": [self.host, *self.realms],
            "token_realms": self.realms,
            "credentials": self.logins,
            **changes,
        }
        return OciRegistry(**options)  # type: ignore[arg-type]

    @property
    def options(self) -> PullOptions:
        """Options with which everything here can be read."""
        return PullOptions(20.0, access=Access.CREDENTIALED if self.private else Access.ANONYMOUS)


@contextmanager
def sandbox(*, mode: AuthMode = AuthMode.NONE, referrers_api: bool = True) -> Iterator[RunningRegistry]:
    """The sandbox registry; with any auth mode, reading needs a login too."""
    auth = RegistryAuth(mode, {USER: PASSWORD}, anonymous_pull=mode is AuthMode.NONE)
    with SandboxRegistry(auth=auth, referrers_api=referrers_api) as registry:
        login = {registry.host: RegistryLogin(USER, PASSWORD)}
        yield RunningRegistry(registry.host, private=mode is not AuthMode.NONE, logins=login)


@contextmanager
def debian_plain() -> Iterator[RunningRegistry]:
    """Debian's registry, open to everybody."""
    with _docker_registry({}) as host:
        yield RunningRegistry(host)


@contextmanager
def debian_basic() -> Iterator[RunningRegistry]:
    """Debian's registry with basic auth."""
    with tempfile.TemporaryDirectory() as scratch:
        passwords = Path(scratch, "htpasswd")
        passwords.write_text(HTPASSWD)
        with _docker_registry({"htpasswd": {"realm": "test", "path": str(passwords)}}) as host:
            yield RunningRegistry(host, private=True, logins={host: RegistryLogin(USER, PASSWORD)})


@contextmanager
def debian_bearer() -> Iterator[RunningRegistry]:
    """Debian's registry with its bearer-token flow and a token server on another port."""
    with TokenIssuer() as issuer, tempfile.TemporaryDirectory() as scratch:
        roots = Path(scratch, "roots.pem")
        roots.write_bytes(issuer.certificate_pem)
        token = {"realm": f"http://{issuer.host}/token", "service": "test", "issuer": "test-issuer"}
        with _docker_registry({"token": {**token, "rootcertbundle": str(roots)}}) as host:
            login = {host: RegistryLogin(USER, PASSWORD)}
            yield RunningRegistry(host, private=True, realms=(issuer.host,), logins=login)


KINDS: dict[str, Callable[[], AbstractContextManager[RunningRegistry]]] = {
    "sandbox": sandbox,
    "sandbox-without-referrers": lambda: sandbox(referrers_api=False),
    "sandbox-basic": lambda: sandbox(mode=AuthMode.BASIC),
    "sandbox-bearer": lambda: sandbox(mode=AuthMode.BEARER),
    "debian": debian_plain,
    "debian-basic": debian_basic,
    "debian-bearer": debian_bearer,
}
"""Every registry that the contract suites run over."""


@contextmanager
def _docker_registry(auth: dict[str, object]) -> Iterator[str]:
    """A `docker-registry` process with storage of its own; yields `host:port`."""
    with tempfile.TemporaryDirectory() as scratch, socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        host = f"127.0.0.1:{probe.getsockname()[1]}"
        config: dict[str, object] = {
            "version": 0.1,
            "log": {"level": "error", "accesslog": {"disabled": True}},
            "storage": {"filesystem": {"rootdirectory": f"{scratch}/data"}, "delete": {"enabled": True}},
            "http": {"addr": host, "secret": "not-a-secret"},
        }
        if auth:
            config["auth"] = auth
        path = Path(scratch, "config.yml")
        path.write_text(json.dumps(config))  # JSON is YAML
        probe.close()
        with Path(scratch, "log").open("wb") as log:
            process = subprocess.Popen([DOCKER_REGISTRY, "serve", str(path)], stdout=log, stderr=log)
            try:
                _wait_for(f"http://{host}/v2/", process)
                yield host
            finally:
                process.terminate()
                process.wait(timeout=10)


def _wait_for(url: str, process: "subprocess.Popen[bytes]") -> None:
    end = time.monotonic() + 20
    while time.monotonic() < end:
        assert process.poll() is None, "docker-registry ended at start"
        try:
            with urllib.request.urlopen(url, timeout=1):
                return
        except urllib.error.HTTPError as err:
            err.close()
            return
        except OSError:
            time.sleep(0.02)
    raise AssertionError("docker-registry does not answer")


class TokenIssuer:
    """A token server as the distribution project describes it: ES256 tokens, the certificate in `x5c`."""

    def __init__(self) -> None:
        self.authorizations: list[str | None] = []
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._certificate = _self_signed(self._key)
        issuer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                authorization = self.headers.get("Authorization")
                issuer.authorizations.append(authorization)
                wanted = base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()
                allowed = authorization == f"Basic {wanted}"
                query = parse_qs(urlsplit(self.path).query)
                token = issuer.token(query.get("scope", []) if allowed else [])
                body = json.dumps({"token": token, "expires_in": 300}).encode()
                self.send_response(200)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                """Silent."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)
        self.host = f"127.0.0.1:{self._server.server_address[1]}"

    @property
    def certificate_pem(self) -> bytes:
        """What the registry is told to trust."""
        return self._certificate.public_bytes(serialization.Encoding.PEM)

    def token(self, scopes: list[str]) -> str:
        """A token for exactly these scopes."""
        now = int(time.time())
        access = []
        for scope in scopes:
            kind, name, actions = scope.split(":")
            access.append({"type": kind, "name": name, "actions": actions.split(",")})
        header = {
            "typ": "JWT",
            "alg": "ES256",
            "x5c": [base64.b64encode(self._certificate.public_bytes(serialization.Encoding.DER)).decode()],
        }
        claims = {
            "iss": "test-issuer",
            "sub": USER,
            "aud": "test",
            "exp": now + 300,
            "nbf": now - 60,
            "iat": now,
            "jti": "1",
            "access": access,
        }
        signed = f"{_b64(json.dumps(header).encode())}.{_b64(json.dumps(claims).encode())}"
        r, s = decode_dss_signature(self._key.sign(signed.encode(), ec.ECDSA(hashes.SHA256())))
        return f"{signed}.{_b64(r.to_bytes(32, 'big') + s.to_bytes(32, 'big'))}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


def _b64(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def _self_signed(key: ec.EllipticCurvePrivateKey) -> x509.Certificate:
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "test token issuer")])
    now = datetime.fromtimestamp(time.time(), UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(hours=1))
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
