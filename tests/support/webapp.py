"""A service behind a real socket with everything below the web replaced by fakes that a test scripts."""

import asyncio
import hashlib
import io
import socket
import tarfile
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path

import httpx
import uvicorn
from fastapi import FastAPI
from starlette.types import ASGIApp, Receive, Scope, Send

from app.config import Settings
from app.core.allowlist import Allowlist, on_any
from app.core.bundle import RawSignature, Rejected, Run, Verdict
from app.core.corroborate import corroborate
from app.core.errors import NotFoundError, ServiceError
from app.core.refs import Digest, OciRef
from app.core.report import CauseClass, Exit, FailureCause, InputKind, Report, StepName
from app.core.verdict import ConfirmRule, RecipeInputs, RecipeVerdict
from app.ports import AllowlistVersion, Artifact, JudgeJob, Listing, Pulled, Received, Record
from app.services.ingest_types import IngestRequest, IngestResult, Stored
from app.web.app import create_app
from app.web.wire import TimedHeads
from tests.support.memory_store import MemoryStore
from tests.support.runs import NOW

REGISTRY = "registry.example.org/evidence"


class Clock:
    """A time that a test moves."""

    def __init__(self, now: datetime = NOW) -> None:
        self.now = now

    def __call__(self) -> datetime:
        return self.now


@dataclass(frozen=True)
class InForce:
    allowlist: Allowlist
    sha256: str
    since: datetime


class ListHolder:
    """The list in force; `put` activates another one as the file watcher would."""

    def __init__(self, store: MemoryStore, clock: Clock, rule: ConfirmRule) -> None:
        self.store, self.clock, self.rule = store, clock, rule
        self.problem: str | None = None
        self._in_force = InForce(Allowlist.empty(), "", clock())

    def current(self) -> InForce:
        return self._in_force

    def sha256(self) -> str:
        return self._in_force.sha256

    def follow(self) -> None:
        raise AssertionError("nobody else puts a list into force here")

    def put(self, text: str) -> None:
        data = text.encode()
        sha256 = hashlib.sha256(data).hexdigest()
        self._in_force = InForce(Allowlist.load(data), sha256, self.clock())
        version = AllowlistVersion(sha256, self.clock(), data)
        self.store.activate_allowlist(version, project=self.project, classify=self.classify)

    def project(self, inputs: RecipeInputs, /) -> RecipeVerdict:
        earlier = [Allowlist.load(version.text) for version in self.store.allowlists()]
        return corroborate(
            inputs, allowlist=self._in_force.allowlist, rule=self.rule, now=self.clock(), earlier=earlier
        )

    def classify(self, run: Run, /) -> Listing:
        signer = run.signer
        found = self._in_force.allowlist.classify(signer.issuer, signer.identity)
        earlier = [Allowlist.load(version.text) for version in self.store.allowlists()]
        known = on_any([self._in_force.allowlist, *earlier], signer.issuer, signer.identity)
        return Listing(found.source_class.value, found.allowlisted, known)


class Archive:
    """Files and Sigstore bundles by digest; `planted` may add to an unpacked directory."""

    def __init__(self) -> None:
        self.planted: Callable[[Path], None] = lambda _: None
        self.files: dict[Digest, Mapping[str, bytes]] = {}
        self.signatures: dict[tuple[Digest, str], bytes] = {}

    @contextmanager
    def open(self, digest: Digest, /) -> Iterator[Pulled]:
        if digest not in self.files:
            raise NotFoundError(f"{digest} is not archived")
        with tempfile.TemporaryDirectory() as directory:
            for path, data in self.files[digest].items():
                target = Path(directory, path)
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(data)
            self.planted(Path(directory))
            artifact = Artifact(OciRef.parse(f"{REGISTRY}@{digest}"), digest, b"{}", b"{}", digest, 0, ())
            yield Pulled(artifact, directory, "")

    def signature(self, digest: Digest, signature_sha256: str, /) -> RawSignature:
        try:
            return RawSignature(self.signatures[digest, signature_sha256])
        except KeyError:
            raise NotFoundError(f"{digest} is not archived") from None

    def export_tar(self, digest: Digest, /) -> Iterator[bytes]:
        if digest not in self.files:
            raise NotFoundError(f"{digest} is not archived")
        buffer = io.BytesIO()
        with tarfile.open(fileobj=buffer, mode="w") as tar:
            for path, data in self.files[digest].items():
                entry = tarfile.TarInfo(path)
                entry.size = len(data)
                tar.addfile(entry, io.BytesIO(data))
        return iter([buffer.getvalue()])

    def put(self, artifact: Artifact, signature: RawSignature, layer: str, /) -> None:
        raise AssertionError("the web archives nothing")

    def holds(self, digest: Digest, signature_sha256: str, /) -> bool:
        return (digest, signature_sha256) in self.signatures

    def sweep(self, known: Callable[[Digest, str], bool], /) -> int:
        raise AssertionError("the web sweeps nothing")


class Judge:
    """Answers with the verdict that a test puts here."""

    verdict: Verdict | None = None

    def judge(self, job: JudgeJob, /) -> Verdict:
        if self.verdict is not None:
            return self.verdict
        cause = FailureCause(CauseClass.UNKNOWN, "scripted")
        report = Report(InputKind.OCI, (), Exit.INVALID, bundle_digest=str(job.digest), failure_cause=cause)
        return Rejected(StepName.MATERIALIZE, "SCRIPTED", cause, report)


class Ingest:
    """Answers each request with what `results` holds for its reference; keeps what was asked."""

    def __init__(self) -> None:
        self.results: dict[str, IngestResult | Exception] = {}
        self.asked: list[IngestRequest] = []
        self.release: threading.Event | None = None

    async def submit_async(self, request: IngestRequest) -> IngestResult:
        self.asked.append(request)
        if self.release is not None:
            await asyncio.get_running_loop().run_in_executor(None, self.release.wait, 20)
        result = self.results.get(str(request.reference))
        if result is None:
            raise ServiceError(f"no result was scripted for {request.reference}")
        if isinstance(result, Exception):
            raise result
        return result


@dataclass
class FakeContainer:
    """What `app.web.context.Container` asks for."""

    settings: Settings
    clock: Clock = field(default_factory=Clock)
    rule: ConfirmRule = field(default_factory=ConfirmRule)
    parts: dict[str, str] = field(default_factory=lambda: {"database": "ok", "archive": "ok", "judge": "ok"})

    def __post_init__(self) -> None:
        self.store = MemoryStore()
        self.archive = Archive()
        self.judge = Judge()
        self.ingest = Ingest()
        self.allowlist = ListHolder(self.store, self.clock, self.rule)

    def ready(self) -> dict[str, str]:
        return dict(self.parts)

    def keep(self, run: Run, *, files: Mapping[str, bytes] | None = None, bundle: bytes = b"{}") -> Record:
        """Store a run as an ingest would, with its archived bytes and a log entry of its own."""
        index = 100 + len(self.archive.signatures)
        run = replace(run, log=replace(run.log, index=index, proof_index=index), signature_sha256=f"{index:064x}")
        received = Received(run.received_at, f"{REGISTRY}@{run.digest}", public=True)
        kept = self.store.keep(run, received, project=self.allowlist.project, classify=self.allowlist.classify)
        self.archive.files[run.digest] = files or {"recipe.yaml": b"kind: RecipeResult\n"}
        self.archive.signatures[run.digest, run.signature_sha256] = bundle
        return kept.record

    def script(self, run: Run, *, created: bool = True) -> str:
        """Make a `POST` of the run's reference answer as stored; gives the reference."""
        reference = f"{REGISTRY}@{run.digest}"
        self.ingest.results[reference] = Stored(created, self.keep(run))
        return reference


def make_container(**settings: object) -> FakeContainer:
    """A container whose settings are the defaults, without rate limits unless given."""
    chosen = {"rate_limit": "0", "rate_limit_client": "0", **settings}
    return FakeContainer(Settings(**chosen))  # type: ignore[arg-type]


@contextmanager
def serving(app: ASGIApp) -> Iterator[str]:
    """The application on a loopback socket; gives its base URL."""
    listener = socket.socket()
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # as `serve` does; else each answer costs 40 ms
    listener.bind(("127.0.0.1", 0))
    config = uvicorn.Config(
        app, log_config=None, lifespan="off", timeout_graceful_shutdown=1, ws="none", http=TimedHeads
    )
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, args=([listener],), daemon=True)
    thread.start()
    try:
        while not server.started:
            if not thread.is_alive():
                raise AssertionError("the server did not start")
            threading.Event().wait(0.005)
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(10)
        listener.close()


class Switchboard:
    """One server for many tests: hands each connection to the application that is plugged in."""

    app: FastAPI | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self.app is None:
            raise AssertionError("no application is plugged in")
        await self.app(scope, receive, send)


@contextmanager
def client_of(container: FakeContainer, **options: object) -> Iterator[httpx.Client]:
    """An HTTP client of the application over `container`."""
    with serving(create_app(container, **options)) as base, httpx.Client(base_url=base, trust_env=False) as client:  # type: ignore[arg-type]
        yield client
