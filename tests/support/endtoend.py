"""The whole product in a test: a private Sigstore, bundles that are built, signed and pushed, a service, the verbs.

The service runs over real adapters on a real socket in this process, so that a test sees every connection that it
opens; `tests/test_demo.py` runs it as an operator would, as a process of its own.
"""

import contextlib
import io
import json
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Self

import httpx

from app.adapters.oci.publishing import OciPublisher
from app.adapters.oci.writer import Writer
from app.adapters.sigstore.signing import SigningTrust, sign_statement
from app.bootstrap.container import Container, open_container
from app.cli.main import aicr_evidence
from app.config import Settings
from app.core.cross_check import SignerClaim
from app.core.pointer import Pointer, dump_pointer
from app.core.produce import ProducedBundle
from app.core.refs import OciRef
from app.sandbox.demo.samples import AICR_VERSION, Sample, build_bundle
from app.sandbox.identities import UAT_AWS, SandboxIdentity
from app.sandbox.sigstore.server import SigstoreServer
from app.services.publish import Published, publish
from app.web.app import create_app
from tests.support.runs import allowlist_text
from tests.support.webapp import serving

NOW = datetime.now(UTC)  # noqa: TID251 - certificates are made now, so the bundles must be of now
RECIPE = "h100-eks-ubuntu-training"
"""The recipe of the sample bundles."""


def bundle_of(name: str = "one", *, recipe: str = "agreed", results: Mapping[str, str] | None = None) -> ProducedBundle:
    """A bundle as the producer makes it; another `name` ran at another time and measured other durations."""
    days_ago = 1 + int.from_bytes(name.encode()[-3:]) % 997 / 1000
    return build_bundle(Sample(name, recipe, UAT_AWS, days_ago, results or {}), NOW)


@dataclass(frozen=True)
class Signing:
    """A private Sigstore that answers, with its root and signing configurations in `directory`."""

    server: SigstoreServer
    directory: Path

    @property
    def trusted_root(self) -> str:
        return str(self.directory / "trusted_root.json")

    def sign(self, statement: bytes, identity: SandboxIdentity, *, rekor: str = "v2") -> bytes:
        config = "signing_config.v1.json" if rekor == "v1" else "signing_config.json"
        trust = SigningTrust.from_files(self.directory / "trusted_root.json", self.directory / config)
        return sign_statement(statement, token=self.server.token(identity), trust=trust)

    def publish(
        self,
        bundle: ProducedBundle,
        host: str,
        identity: SandboxIdentity,
        *,
        tag: str = "one",
        rekor: str = "v2",
        registry: OciPublisher | None = None,
    ) -> Published:
        """Build, sign, push and attach, as a CI job does."""
        return publish(
            bundle,
            OciRef.parse(f"{host}/aicr/evidence:{tag}"),
            version=AICR_VERSION,
            registry=registry or publisher(host),
            sign=lambda statement: self.sign(statement, identity, rekor=rekor),
        )


@contextmanager
def signing(directory: Path) -> Iterator[Signing]:
    """A running private Sigstore."""
    with SigstoreServer() as server:
        server.write(directory)
        yield Signing(server, directory)


def publisher(host: str) -> OciPublisher:
    """What pushes to a registry on loopback."""
    return OciPublisher(Writer(plain_http_hosts=(host,)))


def pointer_of(bundle: ProducedBundle, published: Published, identity: SandboxIdentity, **changes: Any) -> bytes:
    """The pointer file that belongs to a published bundle; the log index is the signature's own."""
    entry = json.loads(published.signature)["verificationMaterial"]["tlogEntries"][0]
    fields: dict[str, Any] = {
        "recipe": bundle.predicate["recipe"]["name"],  # type: ignore[index]
        "predicate_type": bundle.predicate_type,
        "oci": f"{published.ref.registry}/{published.ref.repository}:any",
        "digest": str(published.digest),
        "signer": SignerClaim(identity.signer.identity, identity.signer.issuer, int(entry["logIndex"])),
        "attested_at": datetime.fromisoformat(str(bundle.predicate["attestedAt"])),
    }
    return dump_pointer(Pointer(**{**fields, **changes}))


@dataclass(frozen=True)
class Service:
    """A running service and its parts."""

    url: str
    http: httpx.Client
    container: Container
    allowlist: Path

    def submit(self, reference: object) -> httpx.Response:
        return self.http.post("/evidence", json={"bundle": str(reference)})

    def submit_pointer(self, pointer: bytes) -> httpx.Response:
        return self.http.post("/evidence", content=pointer, headers={"Content-Type": "application/yaml"})

    def recipe(self, name: str = RECIPE) -> dict[str, Any]:
        answer = self.http.get(f"/recipes/{name}")
        assert answer.status_code == 200, answer.text
        body: dict[str, Any] = answer.json()
        return body

    def attempts(self, digest: object) -> list[dict[str, Any]]:
        """What is on record about a digest, newest first."""
        items: list[dict[str, Any]] = self.http.get("/attempts", params={"digest": str(digest)}).json()["items"]
        return items


@contextmanager
def service(
    directory: Path,
    trusted_root: str,
    hosts: Sequence[str],
    listed: Sequence[SandboxIdentity] | str,
    **settings: object,
) -> Iterator[Service]:
    """A service that trusts `HOST/aicr` of each host and lists those signers, or has that allowlist text."""
    directory.mkdir(parents=True, exist_ok=True)
    allowlist = directory / "allowlist.yaml"
    text = listed if isinstance(listed, str) else allowlist_text(*(identity.signer for identity in listed))
    allowlist.write_text(text)
    chosen: dict[str, object] = {
        "sandbox": True,
        "database_url": f"sqlite:///{directory / 'evidence.db'}",
        "archive": str(directory / "archive"),
        "allowlist": str(allowlist),
        "trusted_root": trusted_root,
        "trusted_registries": ",".join(f"{host}/aicr" for host in hosts),
        "private_registries": tuple(hosts),
        "plain_http_registries": tuple(hosts),
        "verify_processes": 1,
        "rate_limit": "0",
        "rate_limit_client": "0",
        **settings,
    }
    with (
        open_container(Settings(**chosen)) as container,  # type: ignore[arg-type]
        serving(create_app(container)) as url,
        httpx.Client(base_url=url, timeout=60, trust_env=False) as http,
    ):
        yield Service(url, http, container, allowlist)


@dataclass
class Run:
    """What a verb gave back."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


def cli(*words: str) -> Run:
    """One verb in this process; no exception may leave it but argparse's own way out."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            code = aicr_evidence(list(words))
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else 1
    return Run(code, out.getvalue(), err.getvalue())


def in_past(days: float) -> datetime:
    """A time that many days before the tests began."""
    return NOW - timedelta(days=days)


@dataclass
class StatusRegistry:
    """Answers every request to `aicr/status-NNN` with that status; a path with `/silent/` is never answered.

    Counts what it was asked.
    """

    requests: list[str] = field(default_factory=list)
    headers: Mapping[int, Mapping[str, str]] = field(default_factory=lambda: {429: {"Retry-After": "7"}})
    _ending: threading.Event = field(default_factory=threading.Event)

    def __enter__(self) -> Self:
        registry = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                registry.requests.append(self.path)
                if "/silent/" in self.path:
                    registry._ending.wait(30)
                    self.close_connection = True
                    return
                status = int(self.path.partition("status-")[2][:3])
                self.send_response(status)
                for name, value in registry.headers.get(status, {}).items():
                    self.send_header(name, value)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def do_POST(self) -> None:
                self.do_GET()

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._server.block_on_close = False
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ending.set()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    @property
    def host(self) -> str:
        return f"127.0.0.1:{self._server.server_address[1]}"


def watch_connections(monkeypatch: Any) -> list[object]:
    """Every address that this process connects to or looks up from now on."""
    import socket  # noqa: PLC0415 - what is replaced is the module's own

    seen: list[object] = []
    connect, lookup = socket.socket.connect, socket.getaddrinfo

    def connecting(self: socket.socket, address: object) -> None:
        seen.append(address)
        connect(self, address)  # type: ignore[arg-type]

    def looking_up(*args: Any, **kwargs: Any) -> Any:
        seen.append(args[:2])
        return lookup(*args, **kwargs)

    monkeypatch.setattr(socket.socket, "connect", connecting)
    monkeypatch.setattr(socket, "getaddrinfo", looking_up)
    return seen
