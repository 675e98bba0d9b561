"""Memory of the whole service with two verify processes: the sum of PSS over its processes, as the kernel counts it."""

import http.client
import json
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.parse import urlsplit

import psutil

from app.adapters.oci.pack import describe_bundle, describe_signature
from app.bench.figures import Bar, Figure, Outcome
from app.bench.plan import Plan
from app.bench.samples import AICR_VERSION, Workbench, swollen, workbench
from app.bench.services import write_allowlist
from app.core.bundle import STATEMENT_FILE
from app.core.errors import StoreError
from app.core.refs import OciRef
from app.sandbox.demo.service import ServiceProcess
from app.sandbox.identities import OCTOCAT
from app.sandbox.registry import Behaviour, Hostility, SandboxRegistry

_THREADS = 8
_SAMPLE_SECONDS = 0.02
_SETTLE_SECONDS = 1.0
_LARGE_SIGNATURE = b'{"a":"' + b"x" * (9 << 20) + b'"}'
_MIB = 1 << 20
NODES = b"apiVersion: aicr.run/v1\nkind: RecipeResult\nx: [" + b"[]," * (_MIB // 3 - 100) + b"]\n"
TESTS = b'{"results":{"tests":[' + b'{"name":"a","status":"passed"},' * (9 * _MIB // 31) + b"{}]}}"
_STATEMENT = (
    b'{"_type":"https://in-toto.io/Statement/v1","predicateType":"https://aicr.run/recipe-evidence/v3","predicate":'
)
ROWS = _STATEMENT + b'{"criteriaMatch":{"perDimension":[' + b"{}," * (9 * _MIB // 3) + b"{}]}}}"
PHASES = _STATEMENT + b'{"phases":{' + b",".join(b'"%07d":{}' % number for number in range(9 * _MIB // 13)) + b"}}}"
_SLOW = frozenset({Hostility.DRIP, Hostility.RATE_LIMITED, Hostility.SERVER_ERROR})
"""Modes that cost time and no memory; waiting for their deadlines would say nothing here."""


def memory(plan: Plan) -> Outcome:
    """A service of its own: idle, after good bundles (full size: 200, then 1,000), and while it is fed hostile ones."""
    first = plan.pick(small=60, full=200)
    later = plan.pick(small=60, full=1000) if plan.size == "full" else 0
    with workbench() as bench, SandboxRegistry() as source:
        place = bench.root / "service"
        place.mkdir()
        with ServiceProcess(
            place,
            registry=source.host,
            allowlist=write_allowlist(place),
            trusted_root=bench.trusted_root,
            settings={
                "RATE_LIMIT": "0",
                "RATE_LIMIT_CLIENT": "0",
                "VERIFY_PROCESSES": "2",
                "TRUSTED_REGISTRIES": source.host,
                "PULL_TIMEOUT_SECONDS": "10",
            },
        ) as service:
            idle = _settled(service.pid)
            plan.tick()
            _feed(service.url, _honest(bench, source, range(first)), expect=201)
            after_first = _settled(service.pid)
            figures = [
                Figure("memory-idle", "sum of PSS, idle", idle, "MB", Bar(250)),
                Figure(f"memory-{first}", f"sum of PSS after {first} judged bundles", after_first, "MB"),
            ]
            plan.tick()
            if later > first:
                _feed(service.url, _honest(bench, source, range(first, later)), expect=201)
                after_later = _settled(service.pid)
                what = f"growth of PSS from {first} to {later} judged bundles"
                details = {"firstMb": after_first, "laterMb": after_later}
                figures.append(Figure("memory-growth", what, after_later - after_first, "MB", Bar(5), details))
                plan.tick()
            hostile = [*_planted(source), *_heavy(bench, source)]
            with _peak(service.pid) as peak:
                _feed(service.url, hostile * plan.pick(small=2, full=4, least=1), expect=None)
            details = {"bundles": len(hostile), "afterMb": _settled(service.pid)}
            figures.append(
                Figure(
                    "memory-hostile", "greatest sum of PSS while fed hostile input", peak[0], "MB", Bar(400), details
                )
            )
    return Outcome(tuple(figures))


def _honest(bench: Workbench, source: SandboxRegistry, numbers: Sequence[int]) -> Iterator[OciRef]:
    for number in numbers:
        bundle = bench.sign(number)
        signature = describe_signature(bundle.artifact.descriptor, bundle.signature)
        yield source.seed("aicr/evidence", bundle.artifact, (signature,))


def _planted(source: SandboxRegistry) -> list[OciRef]:
    """One artifact of every hostile mode that costs something."""
    return [source.plant(Behaviour(mode)) for mode in Hostility if mode not in _SLOW]


def _heavy(bench: Workbench, source: SandboxRegistry) -> list[OciRef]:
    """Well served, really signed and heavy: each file that the judge reads at its limit, and a signature at its own."""
    honest = bench.sign(0)
    refs = [
        source.seed("aicr/large", honest.artifact, (describe_signature(honest.artifact.descriptor, _LARGE_SIGNATURE),))
    ]
    for number, changes in enumerate(({"recipe.yaml": NODES}, {"ctrf/deployment.json": TESTS})):
        bundle = bench.sign_as(OCTOCAT, swollen(number, changes))
        signature = describe_signature(bundle.artifact.descriptor, bundle.signature)
        refs.append(source.seed("aicr/large", bundle.artifact, (signature,)))
    for statement in (ROWS, PHASES):  # signed by nobody, so that the file itself is read
        files = {**honest.bundle.files, STATEMENT_FILE: statement}
        artifact = describe_bundle(files, predicate_type=honest.bundle.predicate_type, version=AICR_VERSION)
        refs.append(source.seed("aicr/large", artifact, ()))
    return refs


def _feed(url: str, refs: Iterator[OciRef] | Sequence[OciRef], *, expect: int | None) -> None:
    with ThreadPoolExecutor(_THREADS) as threads:
        for status in threads.map(lambda ref: _post(url, ref), refs):
            if expect is not None and status != expect:
                raise StoreError(f"expected {expect} for a sample, got {status}")


def _post(url: str, ref: OciRef) -> int:
    connection = http.client.HTTPConnection(str(urlsplit(url).netloc), timeout=120)
    try:
        body = json.dumps({"bundle": str(ref)})
        connection.request("POST", "/evidence", body, {"Content-Type": "application/json"})
        answer = connection.getresponse()
        answer.read()
        return answer.status
    finally:
        connection.close()


def _settled(pid: int) -> float:
    """The sum once nothing runs any more."""
    time.sleep(_SETTLE_SECONDS)
    return pss_megabytes(pid)


@contextmanager
def _peak(pid: int) -> Iterator[list[float]]:
    """The greatest sum while the context lasts, in the first item once it has ended."""
    done, found = threading.Event(), [0.0]

    def watch() -> None:
        while not done.wait(_SAMPLE_SECONDS):
            found[0] = max(found[0], pss_megabytes(pid))

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield found
    finally:
        done.set()
        watcher.join()


def pss_megabytes(pid: int) -> float:
    """Proportional set size of a process and all below it: shared pages count once over all who share them."""
    total = 0
    with suppress(psutil.NoSuchProcess):
        for process in (psutil.Process(pid), *psutil.Process(pid).children(recursive=True)):
            with suppress(OSError, ValueError):
                rollup = Path(f"/proc/{process.pid}/smaps_rollup").read_text("ascii")
                total += sum(int(line.split()[1]) for line in rollup.splitlines() if line.startswith("Pss:"))
    return total / 1024
