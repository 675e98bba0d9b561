"""A whole ingest (resolve, pull, judge, archive, commit) against our reader only resolving and pulling."""

import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil

from app.bench.figures import Bar, Figure, Outcome
from app.bench.plan import Plan
from app.bench.registries import registry
from app.bench.samples import workbench
from app.bench.services import container
from app.bench.timing import interleave, profiled
from app.bootstrap.container import Container
from app.core.errors import StoreError
from app.core.refs import OciRef
from app.ports import PullOptions
from app.services.ingest_types import IngestRequest, Stored

_THREADS = 8
_PROFILED = 12


def ingesting(plan: Plan) -> Outcome:
    """Throughput with as many threads as an ingest has; every round takes bundles that are new."""
    rounds, batch = plan.pick(small=9, full=25), plan.pick(small=16, full=32, least=2)
    with registry() as source, workbench() as bench:
        refs = [source.push(bench.sign(number)) for number in range((rounds + 1) * batch + _PROFILED + 1)]
        plan.tick()
        with (
            ThreadPoolExecutor(_THREADS) as threads,
            container(bench, Path(bench.root, "service"), registry=source.host) as service,
        ):
            service.judge.start()
            used: list[float] = []

            def ingest(index: int) -> None:
                before = _cpu_seconds()
                _ingest(service, refs[index * batch : (index + 1) * batch], threads)
                used.append(_cpu_seconds() - before)

            _ingest(service, refs[rounds * batch : (rounds + 1) * batch], threads)
            pulled: list[float] = []

            def pull(index: int) -> None:
                before = _cpu_seconds()
                _pull(service, refs[index * batch : (index + 1) * batch], threads)
                pulled.append(_cpu_seconds() - before)

            pairs = interleave(pull, ingest, rounds=rounds, warm=0)
            plan.tick()
            left = iter(refs[(rounds + 1) * batch :])
            started = time.perf_counter()
            _submit(service, next(left))
            alone = time.perf_counter() - started
            profile = profiled("ingest", lambda: _submit(service, next(left)), seconds=alone, times=_PROFILED)
    details = pairs.details("pull", "ingest") | {
        "bundles": batch,
        "pullCpuMsPerBundle": sum(pulled) / (rounds * batch) * 1e3,
        "ingestCpuMsPerBundle": sum(used) / (rounds * batch) * 1e3,
        "ingestAloneMs": alone * 1e3,
    }
    return Outcome(
        (
            Figure(
                "ingest-pull",
                f"throughput of ingest against only pulling, {source.kind} registry",
                pairs.ratio,
                "x",
                Bar(0.8, at_least=True),
                details,
                "processor time counts this process and the judging workers, not the registry",
            ),
        ),
        (profile,),
    )


def _pull(service: Container, refs: Sequence[OciRef], threads: ThreadPoolExecutor) -> None:
    options = PullOptions(timeout_seconds=60)

    def one(ref: OciRef) -> None:
        source = service.ingest.source
        with source.pull(source.resolve(ref, options), options):
            pass

    list(threads.map(one, refs))


def _ingest(service: Container, refs: Sequence[OciRef], threads: ThreadPoolExecutor) -> None:
    list(threads.map(lambda ref: _submit(service, ref), refs))


def _submit(service: Container, ref: OciRef) -> None:
    result = service.ingest.submit(IngestRequest(ref))
    if not isinstance(result, Stored) or not result.created:
        raise StoreError(f"expected a new sample to be stored, got {result}")


def _cpu_seconds() -> float:
    """Processor time of this process and of every process below it that still runs."""
    me = psutil.Process()
    times = [me.cpu_times(), *(child.cpu_times() for child in me.children(recursive=True) if _ours(child))]
    return sum(spent.user + spent.system for spent in times)


def _ours(child: psutil.Process) -> bool:
    """Whether a child is Python, and so no registry."""
    return "python" in child.name()
