"""The real service as a process over a sandbox registry and a private Sigstore, to be fed, killed and started again."""

import functools
import json
import os
import re
import secrets
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import httpx
import psutil

from app.adapters.db.migrate import upgrade
from app.adapters.db.session import Database
from app.adapters.oci.pack import BundleArtifact, SignatureArtifact, describe_bundle, describe_signature
from app.core.cross_check import SignerClaim
from app.core.pointer import Pointer, dump_pointer
from app.core.produce import ProducedBundle, artifact_statement
from app.core.refs import OciRef
from app.sandbox.demo.allowlists import allowlist
from app.sandbox.demo.recipes import CHECKS, RECIPES
from app.sandbox.demo.samples import AICR_VERSION, Sample, build_bundle
from app.sandbox.identities import UAT_AWS, SandboxIdentity
from app.sandbox.registry import SandboxRegistry
from app.sandbox.sigstore.private import PrivateSigstore
from tests.support.postgres import shared_cluster

REPOSITORY = "aicr/evidence"
FULL = os.environ.get("AICR_PROOF") == "full"
"""`make proof` asks for the full sizes; the suite runs small ones."""

_READY = re.compile(r"serving on (http://\S+?)/ ")
_START_SECONDS = 90.0
_STOP_SECONDS = 30.0


def sized(small: int, full: int) -> int:
    """How many of something this run takes."""
    return full if FULL else small


@dataclass(frozen=True, slots=True)
class Published:
    """A signed bundle in the registry."""

    ref: OciRef
    artifact: BundleArtifact
    produced: ProducedBundle
    signature: bytes
    signer: SandboxIdentity

    @property
    def digest(self) -> str:
        """The bundle digest, prefixed."""
        return str(self.artifact.digest)

    @property
    def pointer(self) -> str:
        """The pointer's text as its publisher would commit it."""
        entry = json.loads(self.signature)["verificationMaterial"]["tlogEntries"][0]
        predicate: Any = self.produced.predicate
        pointer = Pointer(
            recipe=predicate["recipe"]["name"],
            predicate_type=self.produced.predicate_type,
            oci=f"{self.ref.registry}/{self.ref.repository}:any",
            digest=self.digest,
            signer=SignerClaim(self.signer.signer.identity, self.signer.signer.issuer, int(entry["logIndex"])),
            attested_at=datetime.fromisoformat(predicate["attestedAt"]),
        )
        return dump_pointer(pointer).decode()


@dataclass(slots=True)
class Stage:
    """What stands around the service: registry, Sigstore, allowlist file. One stage serves many databases."""

    directory: Path
    registry: SandboxRegistry
    sigstore: PrivateSigstore
    now: datetime
    allowlist: Path = field(init=False)
    trusted_root: Path = field(init=False)

    def __post_init__(self) -> None:
        self.trusted_root = self.directory / "trusted_root.json"
        self.trusted_root.write_bytes(self.sigstore.trusted_root_json())
        self.allowlist = self.directory / "allowlist.yaml"
        self.allowlist.write_text(allowlist(), encoding="utf-8")

    def publish(
        self,
        name: str,
        recipe: str,
        signer: SandboxIdentity,
        *,
        days_ago: float = 1.0,
        results: Mapping[str, str] | None = None,
        earlier: bool = False,
        repository: str = REPOSITORY,
    ) -> Published:
        """Build, sign and hold a bundle that no other name gives."""
        sample = Sample(name, recipe, signer, days_ago, results or {}, earlier)
        produced = build_bundle(sample, self.now)
        artifact = describe_bundle(produced.files, predicate_type=produced.predicate_type, version=AICR_VERSION)
        signature = self.sign(produced, artifact, signer, repository)
        ref = self.registry.seed(repository, artifact, (signature,))
        return Published(ref, artifact, produced, signature.content, signer)

    def sign(
        self, produced: ProducedBundle, artifact: BundleArtifact, signer: SandboxIdentity, repository: str = REPOSITORY
    ) -> SignatureArtifact:
        """A signature about an artifact, not pushed."""
        name = f"{self.registry.host}/{repository}"
        statement = artifact_statement(produced.predicate_type, produced.predicate, name, artifact.digest.hex)
        return describe_signature(artifact.descriptor, self.sigstore.mint(statement, signer))

    def sign_again(self, published: Published, signer: SandboxIdentity, *, repository: str) -> Published:
        """The same artifact in another repository with somebody else's signature alone."""
        signature = self.sign(published.produced, published.artifact, signer, repository)
        ref = self.registry.seed(repository, published.artifact, (signature,))
        return Published(ref, published.artifact, published.produced, signature.content, signer)

    def signature_of(self, published: Published) -> SignatureArtifact:
        """The referrer of a published bundle, to be held elsewhere too."""
        return describe_signature(published.artifact.descriptor, published.signature)

    def publish_unsigned(self, name: str, recipe: str) -> OciRef:
        """A bundle that nobody signed."""
        produced = build_bundle(Sample(name, recipe, UAT_AWS, 1.0), self.now)
        artifact = describe_bundle(produced.files, predicate_type=produced.predicate_type, version=AICR_VERSION)
        return self.registry.seed(REPOSITORY, artifact)

    def fetches(self, published: Published) -> int:
        """How often the layer was asked for, from whatever repository."""
        end = f"/blobs/{published.artifact.layer_digest}"
        return sum(1 for seen in list(self.registry.log) if seen.method == "GET" and seen.path.endswith(end))

    def environment(self, directory: Path, database_url: str) -> dict[str, str]:
        """The settings of a service whose files are below `directory`."""
        inherited = {k: v for k, v in os.environ.items() if not k.startswith("AICR_EVIDENCE_")}
        prefix = "AICR_EVIDENCE_"
        settings = {
            "SANDBOX": "true",
            "DATABASE_URL": database_url,
            "ARCHIVE": str(directory / "archive"),
            "ALLOWLIST": str(self.allowlist),
            "TRUSTED_ROOT": str(self.trusted_root),
            "TRUSTED_REGISTRIES": f"{self.registry.host}/aicr,{self.registry.host}/hostile",
            "PRIVATE_REGISTRIES": self.registry.host,
            "PLAIN_HTTP_REGISTRIES": self.registry.host,
            "CATALOGUE_TOKEN": CATALOGUE_TOKEN,
            "PORT": "0",
            "VERIFY_PROCESSES": "2",
            "RATE_LIMIT": "0",
            "RATE_LIMIT_CLIENT": "0",
        }
        return inherited | {prefix + name: value for name, value in settings.items()}


CATALOGUE_TOKEN = secrets.token_urlsafe(12)


@contextmanager
def open_stage(directory: Path) -> Iterator[Stage]:
    """A stage that ends with the context."""
    with SandboxRegistry() as registry:
        yield Stage(directory, registry, PrivateSigstore(), datetime.now(UTC) - timedelta(minutes=1))  # noqa: TID251


class Service:
    """One service process and its client; `kill` is `kill -9`, `start` begins again over the same files."""

    def __init__(
        self,
        stage: Stage,
        directory: Path,
        database_url: str = "",
        *,
        settings: Mapping[str, object] | None = None,
        entry: tuple[str, ...] = ("app", "serve"),
    ) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self.stage = stage
        self.directory = directory
        self.database_url = database_url or f"sqlite:///{directory / 'evidence.db'}"
        self.log = directory / "service.log"
        self.entry = entry
        self.url = ""
        self._environment = stage.environment(directory, self.database_url)
        self._environment |= {f"AICR_EVIDENCE_{name}": str(value) for name, value in (settings or {}).items()}
        self._process: subprocess.Popen[bytes] | None = None
        self.client = httpx.Client(timeout=120)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, err: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
        self.client.close()

    @property
    def pid(self) -> int:
        """The service process."""
        assert self._process is not None
        return self._process.pid

    def start(self, *extra: str) -> None:
        """Start and wait until it listens; `extra` are words for the entry module."""
        with self.log.open("wb") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", *self.entry, *extra],
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=log,
            )
        deadline = time.monotonic() + _START_SECONDS
        while time.monotonic() < deadline and self._process.poll() is None:
            if found := self.listening():
                self.url = found
                self.client.close()
                self.client = httpx.Client(base_url=self.url, timeout=120)
                return
            time.sleep(0.02)
        self.stop()
        raise AssertionError(f"the service did not start:\n{self.said()[-4000:]}")

    def said(self) -> str:
        """Its log since the last start."""
        return self.log.read_text("utf-8", "replace") if self.log.exists() else ""

    def listening(self) -> str:
        """Where it listens, once it said so."""
        found = _READY.search(self.said())
        return found.group(1) if found else ""

    def kill(self) -> None:
        """`kill -9`, and wait until it is gone."""
        assert self._process is not None
        self._process.kill()
        self._process.wait(_STOP_SECONDS)

    def ended(self) -> int:
        """Wait for an end that it brought upon itself; its return code."""
        assert self._process is not None
        return self._process.wait(_STOP_SECONDS)

    def stop(self) -> None:
        """End it as an operator would."""
        if self._process is None or self._process.poll() is not None:
            return
        self._process.send_signal(signal.SIGTERM)
        try:
            self._process.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self.kill()

    def rebuild(self, *words: str) -> subprocess.CompletedProcess[str]:
        """`aicr evidence rebuild` beside a stopped service."""
        return subprocess.run(
            [sys.executable, "-m", "app", "rebuild", *words],
            env=self._environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )

    # --- requests ------------------------------------------------------------------------------------

    def submit(self, published: Published) -> httpx.Response:
        """`POST /evidence` of a reference."""
        return self.client.post("/evidence", json={"bundle": str(published.ref)})

    def accepted(self, published: Published) -> dict[str, Any]:
        """The body of a `POST` that stored something or found it stored."""
        answer = self.submit(published)
        assert answer.status_code in (200, 201), answer.text
        body: dict[str, Any] = answer.json()
        return body

    def get(self, path: str) -> Any:
        """The JSON of a read that must succeed."""
        answer = self.client.get(path)
        assert answer.status_code == 200, f"{path}: {answer.text}"
        return answer.json()

    def push_catalogue(self, recipes: Mapping[str, bytes], commit: str) -> None:
        """`PUT /recipes` with resolved texts."""
        declared = {phase: list(checks) for phase, checks in CHECKS.items()}
        entries = [{"recipe": text.decode(), "declared": declared} for text in recipes.values()]
        answer = self.client.put(
            "/recipes",
            json={"recipes": entries, "commit": commit, "ref": "main"},
            headers={"Authorization": f"Bearer {CATALOGUE_TOKEN}"},
        )
        assert answer.status_code == 200, answer.text

    # --- processes -----------------------------------------------------------------------------------

    def children(self) -> list[psutil.Process]:
        """Every process below the service."""
        return psutil.Process(self.pid).children(recursive=True)

    def workers(self) -> list[psutil.Process]:
        """The judging workers: the children of the fork server."""
        servers = self.forkservers()
        return [child for server in servers for child in server.children()]

    def forkservers(self) -> list[psutil.Process]:
        """The process that workers are forked from."""
        found = psutil.Process(self.pid).children()
        return [child for child in found if any("forkserver" in word for word in child.cmdline())]

    def pss(self, *, anonymous: bool = False) -> int:
        """Proportional set size of the whole tree, bytes.

        With `anonymous`, without pages of files: how much of those counts here depends on what else the machine runs.
        """
        wanted = "Pss_Anon:" if anonymous else "Pss:"
        total = 0
        for process in (psutil.Process(self.pid), *self.children()):
            for line in Path(f"/proc/{process.pid}/smaps_rollup").read_text().splitlines():
                if line.startswith(wanted):
                    total += int(line.split()[1]) << 10
        return total


def answers(service: Service, *, signed: bool = True) -> dict[str, bytes]:
    """Every read of the API that a rebuild must not change, by path; bodies exactly as they come.

    Without `signed`, only what is computed and the archives.
    """
    found: dict[str, bytes] = {}
    for path in _paths(service, signed=signed):
        answer = service.client.get(path)
        assert answer.status_code == 200, f"{path}: {answer.status_code} {answer.text}"
        found[path] = answer.content
    return found


def _paths(service: Service, *, signed: bool) -> Iterator[str]:
    yield from ("/recipes?limit=500", "/evidence?limit=500", "/sources?limit=500", "/allowlist", "/allowlist/versions")
    for line in service.get("/recipes?limit=500")["items"]:
        recipe = line["recipe"]
        yield f"/recipes/{recipe}"
        yield f"/recipes/{recipe}?confirmBy=party"
        yield f"/ui/recipes/{recipe}"
    digests: set[str] = set()
    for record in service.get("/evidence?limit=500")["items"]:
        digest, source = record["digest"], record["source"]
        digests.add(digest)
        yield f"/evidence/{digest}/{source}/bundle"
        if signed:
            yield f"/evidence/{digest}/{source}/report"
            yield f"/evidence/{digest}/{source}/predicate"
    for digest in sorted(digests):
        yield f"/evidence/{digest}"
        yield f"/evidence/{digest}/archive"
        yield f"/evidence/{digest}/files/recipe.yaml"
    for source in service.get("/sources?limit=500")["items"]:
        yield f"/sources/{source['source']}"


def in_parallel(calls: int, call: Callable[[int], httpx.Response]) -> list[httpx.Response]:
    """Run `call` once a thread, all let go at the same moment; the responses in order of the calls."""
    gate = threading.Barrier(calls)
    results: list[httpx.Response | None] = [None] * calls

    def one(number: int) -> None:
        gate.wait(60)
        results[number] = call(number)

    threads = [threading.Thread(target=one, args=(number,)) for number in range(calls)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert None not in results
    return [result for result in results if result is not None]


def eventually(holds: Callable[[], bool], *, seconds: float = 30.0) -> None:
    """Wait until something holds; a fact that never comes is a failure."""
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, "it did not come true in time"
        time.sleep(0.02)


def recipe_texts() -> dict[str, bytes]:
    """Today's sample recipes, by what the demo shows with them."""
    return {name: recipe.text for name, recipe in RECIPES.items()}


def new_database(kind: str, directory: Path) -> str:
    """A database for a sandbox service: a file that `serve` makes, or a migrated one on the test run's PostgreSQL."""
    if kind == "sqlite":
        return f"sqlite:///{directory / 'evidence.db'}"
    return shared_cluster().database(_sandbox_template())


@functools.cache
def _sandbox_template() -> str:
    url = shared_cluster().database()
    database = Database(url)
    try:
        upgrade(database, sandbox=True)
    finally:
        database.close()
    return url
