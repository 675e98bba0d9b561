"""Two verify processes against one: the same batch of jobs, fed by as many threads as an ingest has."""

import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

import psutil

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
_COUNT = 5_000_000
_PRELOAD = ("app.services.judge", "app.adapters.sigstore.verifier")


def workers(plan: Plan) -> Outcome:
    """Batches through `adapters.workers.WorkerJudge`, one process and two in turn."""
    with workbench() as bench, ThreadPoolExecutor(_THREADS) as threads:
        jobs = [bench.sign(number).job() for number in range(_BUNDLES)]
        batch = [jobs[index % len(jobs)] for index in range(plan.pick(small=64, full=256, least=4))]
        one, two = _started(bench, 1), _started(bench, 2)
        try:
            rounds = plan.pick(small=9, full=31)
            spent = _Spent(one)
            pairs = interleave(
                lambda _: spent.over(lambda: _all(one, batch, threads)),
                lambda _: _all(two, batch, threads),
                rounds=rounds,
            )
        finally:
            one.close()
            two.close()
    plan.tick()
    count = plan.pick(small=_COUNT, full=_COUNT)
    control = interleave(lambda _: _spin(1, count), lambda _: _spin(2, count), rounds=rounds)
    done = len(batch) * (rounds + 1)
    details = pairs.details("one", "two") | {
        "jobs": len(batch),
        "controlRatio": control.ratio,
        "supervisorCpuMsPerJob": spent.supervisor / done * 1e3,
        "workerCpuMsPerJob": spent.workers / done * 1e3,
    }
    note = (
        f"two processes that share nothing and only count came to {control.ratio:.2f} x right after, which bounds what "
        "this machine gives a second process at the moment"
    )
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


class _Spent:
    """Processor time of the supervisor and of its workers, over what is run through it."""

    def __init__(self, judge: WorkerJudge) -> None:
        self._workers = [psutil.Process(pid) for pid in judge.pids()]
        self.supervisor = self.workers = 0.0

    def over(self, run: Callable[[], None]) -> None:
        """Run, and add what it took."""
        supervisor, workers = time.process_time(), self._of_workers()
        run()
        self.supervisor += time.process_time() - supervisor
        self.workers += self._of_workers() - workers

    def _of_workers(self) -> float:
        return sum(times.user + times.system for times in (worker.cpu_times() for worker in self._workers))


def _spin(at_once: int, count: int) -> None:
    """Count to the same number twice, in one process after the other or in two at once."""
    for _ in range(2 // at_once):
        running = [subprocess.Popen([sys.executable, "-c", f"for _ in range({count}): pass"]) for _ in range(at_once)]
        for process in running:
            process.wait()


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
