"""Two verify processes against one: the same batch of jobs, fed by as many threads as an ingest has."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from app.adapters.workers import WorkerJudge
from app.bench.figures import Bar, Figure, Outcome
from app.bench.plan import Plan
from app.bench.samples import Workbench, workbench
from app.bench.timing import interleave
from app.core.bundle import Accepted
from app.core.errors import StoreError
from app.ports import Judge, JudgeJob

_THREADS = 8
_BUNDLES = 16
_PRELOAD = ("app.services.judge", "app.adapters.sigstore.verifier")


def workers(plan: Plan) -> Outcome:
    """Batches through `adapters.workers.WorkerJudge`, one process and two in turn."""
    with workbench() as bench, ThreadPoolExecutor(_THREADS) as threads:
        jobs = [bench.sign(number).job() for number in range(_BUNDLES)]
        batch = [jobs[index % len(jobs)] for index in range(plan.pick(small=64, full=256, least=4))]
        one, two = _started(bench, 1), _started(bench, 2)
        try:
            pairs = interleave(
                lambda _: _all(one, batch, threads),
                lambda _: _all(two, batch, threads),
                rounds=plan.pick(small=9, full=31),
            )
        finally:
            one.close()
            two.close()
    plan.tick()
    details = pairs.details("one", "two") | {"jobs": len(batch)}
    note = "needs two cores that nothing else uses: with other work on the machine the second process has none"
    return Outcome(
        (
            Figure(
                "workers-two",
                "two verify processes against one",
                pairs.ratio,
                "x",
                Bar(1.6, at_least=True),
                details,
                note,
            ),
        )
    )


def _started(bench: Workbench, processes: int) -> WorkerJudge:
    judge = WorkerJudge(
        bench.judge_factory(), processes=processes, timeout_seconds=60, memory_bytes=1 << 30, preload=_PRELOAD
    )
    judge.start()
    return judge


def _all(judge: Judge, jobs: Sequence[JudgeJob], threads: ThreadPoolExecutor) -> None:
    for verdict in threads.map(judge.judge, jobs):
        if not isinstance(verdict, Accepted):
            raise StoreError(f"expected a sample to be accepted, it was {verdict}")
