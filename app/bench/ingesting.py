"""A whole ingest (resolve, pull, judge, archive, commit) against our reader only resolving and pulling."""

import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import psutil

from app.bench.figures import Bar, Figure, Outcome, Profile
from app.bench.plan import Plan
from app.bench.registries import BenchRegistry, registry
from app.bench.samples import Workbench, workbench
from app.bench.services import container
from app.bench.timing import interleave, profiled
from app.bootstrap.container import Container
from app.core.errors import StoreError
from app.core.refs import OciRef
from app.ports import PullOptions
from app.services.ingest_types import IngestRequest, Stored

_THREADS = 8
_PROFILED = 12
_LOG_BYTES = 2 << 20
_NOTE = (
    "on loopback nothing waits for a network, so this compares processor time; per bundle, the registry's left out: "
    "pull {pull:.1f} ms, ingest {ingest:.1f} ms"
)


@dataclass(slots=True)
class _Side:
    """One side of the comparison: a batch of bundles through as many threads as an ingest has."""

    step: Callable[[OciRef], None]
    batches: Sequence[Sequence[OciRef]]
    threads: ThreadPoolExecutor
    cpu: float = 0.0

    def run(self, index: int) -> None:
        """One batch; every one of it must succeed."""
        before = _cpu_seconds()
        list(self.threads.map(self.step, self.batches[index]))
        self.cpu += _cpu_seconds() - before


def ingesting(plan: Plan) -> Outcome:
    """Throughput over bundles that are new each round: those of `judge`, and such with 2 MiB of logs beside."""
    with registry() as source, workbench() as bench:
        rounds, batch = plan.pick(small=9, full=25), plan.pick(small=16, full=32)
        small, profile = _compare(plan, bench, source, rounds=rounds, batch=batch, logs=0)
        rounds, batch = plan.pick(small=5, full=15), plan.pick(small=8, full=16)
        large, _ = _compare(plan, bench, source, rounds=rounds, batch=batch, logs=_LOG_BYTES)
    return Outcome((small, large), (profile,))


def _compare(
    plan: Plan, bench: Workbench, source: BenchRegistry, *, rounds: int, batch: int, logs: int
) -> tuple[Figure, Profile]:
    refs = [source.push(bench.sign(number, logs=logs)) for number in range((rounds + 1) * batch + _PROFILED + 1)]
    plan.tick()
    place = Path(bench.root, "large" if logs else "usual")
    with ThreadPoolExecutor(_THREADS) as threads, container(bench, place, registry=source.host) as service:
        batches = [refs[start : start + batch] for start in range(0, (rounds + 1) * batch, batch)]
        pulling = _Side(partial(_pull, service), batches, threads)
        taking = _Side(partial(_submit, service), batches, threads)
        pulling.run(rounds)
        taking.run(rounds)
        pairs = interleave(pulling.run, taking.run, rounds=rounds, warm=0)
        left = iter(refs[(rounds + 1) * batch :])
        started = time.perf_counter()
        _submit(service, next(left))
        alone = time.perf_counter() - started
        profile = profiled("ingest", lambda: _submit(service, next(left)), seconds=alone, times=_PROFILED)
    plan.tick()
    done = (rounds + 1) * batch
    spent = {
        "pullCpuMsPerBundle": pulling.cpu / done * 1e3,
        "ingestCpuMsPerBundle": taking.cpu / done * 1e3,
        "ingestAloneMs": alone * 1e3,
        "bundles": batch,
    }
    figure = Figure(
        "ingest-pull-large" if logs else "ingest-pull",
        f"throughput of ingest against only pulling, {source.kind} registry" + (", 2 MiB of logs" if logs else ""),
        pairs.ratio,
        "x",
        None if logs else Bar(0.8, at_least=True),
        pairs.details("pull", "ingest") | spent,
        _NOTE.format(pull=spent["pullCpuMsPerBundle"], ingest=spent["ingestCpuMsPerBundle"]),
    )
    return figure, profile


def _pull(service: Container, ref: OciRef) -> None:
    options, source = PullOptions(timeout_seconds=60), service.ingest.source
    with source.pull(source.resolve(ref, options), options):
        pass


def _submit(service: Container, ref: OciRef) -> None:
    result = service.ingest.submit(IngestRequest(ref))
    if not isinstance(result, Stored) or not result.created:
        raise StoreError(f"expected a new sample to be stored, got {result}")


def _cpu_seconds() -> float:
    """Processor time of this process and of every process below it that still runs."""
    me = psutil.Process()
    return _spent(me) + sum(_spent(child) for child in me.children(recursive=True) if _ours(child))


def _spent(process: psutil.Process) -> float:
    """Its processor seconds; none of one that has ended since it was listed."""
    try:
        times = process.cpu_times()
    except psutil.NoSuchProcess:
        return 0.0
    return float(times.user + times.system)


def _ours(child: psutil.Process) -> bool:
    """Whether a child is Python, and so no registry; one that has ended is neither."""
    try:
        return "python" in child.name()
    except psutil.NoSuchProcess:
        return False
