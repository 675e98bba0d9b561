"""Judging in worker processes under a supervisor (service 8).

One job at a time and worker. A worker that dies, hangs or outgrows its memory harms only its own job: it is killed
and replaced, the job is tried once more, then no verdict is reached. What is judged is in the factory that the
workers are started with; this module knows only the port.
"""

import contextlib
import ctypes
import gc
import logging
import multiprocessing
import os
import resource
import signal
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from multiprocessing import forkserver, resource_tracker
from multiprocessing.connection import Connection
from typing import Any, Final

from app.core.bundle import Accepted, Rejected, Verdict
from app.core.errors import InputError, JudgeCrashed, JudgeUnavailable, ServiceError
from app.ports import Judge, JudgeJob

log = logging.getLogger(__name__)

_REMEMBERED_CRASHES: Final = 1024
_START_TIMEOUT_SECONDS: Final = 60.0
_PR_SET_PDEATHSIG: Final = 1
_ENDING: Final = (signal.SIGINT, signal.SIGTERM)
"""What ends a service: its supervisor and a terminal send it to the whole group, these processes included."""

JudgeFactory = Callable[[], Judge]
"""Builds the judge inside a worker; must pickle, so a module-level function or a dataclass with `__call__`."""


@dataclass(slots=True)
class _Worker:
    process: Any  # multiprocessing's processes share no public base class
    pipe: Connection

    def gone(self) -> bool:
        """Whether an idle worker ended unasked: it has nothing to say, so whatever is readable is the pipe's end."""
        try:
            return self.pipe.poll(0)
        except (OSError, EOFError):
            return True

    def end(self) -> None:
        with contextlib.suppress(OSError):
            self.pipe.close()
        if self.process.is_alive():
            self.process.kill()
        self.process.join(5)


class _Died(Exception):
    """The worker ended or was ended before it answered."""


class WorkerJudge:
    """A `Judge` that hands jobs to `processes` supervised workers.

    `timeout_seconds` bounds one job on one worker, `memory_bytes` what a worker may map beyond its start.
    Workers are forked from a small server process that imported `preload` once, so that a replacement is quick
    and the imported code is shared memory. When that server dies its workers die with it, and the next job starts
    another one.
    """

    def __init__(
        self,
        factory: JudgeFactory,
        *,
        processes: int,
        timeout_seconds: float,
        memory_bytes: int,
        preload: Sequence[str] = (),
    ) -> None:
        self._factory = factory
        self._timeout = timeout_seconds
        self._memory = memory_bytes
        self._context = multiprocessing.get_context("forkserver")
        self._context.set_forkserver_preload([*preload])
        self._free = threading.Condition()
        self._idle: list[_Worker] = []
        self._missing = processes
        self._processes = processes
        self._closed = False
        self._broken = ""
        self._crashes: OrderedDict[str, int] = OrderedDict()

    def start(self) -> None:
        """Start every worker now instead of with the first jobs; raises `InputError` for what no judge is made of."""
        for _ in range(self._processes):
            if not self._add():
                return

    def _add(self) -> bool:
        """Start one missing worker; False when none is missing."""
        with self._free:
            if self._missing == 0 or self._closed:
                return False
            self._missing -= 1
        self._give_back(self._spawn_counted())
        return True

    def judge(self, job: JudgeJob, /) -> Verdict:
        """Judge on a worker; a job whose worker dies is tried once more on a fresh one.

        Raises `JudgeUnavailable` when no worker came free in time or both tries died, `JudgeCrashed` when a
        bundle that already did that does it again.
        """
        key = str(job.digest or job.directory)
        for attempt in (1, 2):
            worker = self._take(fresh=attempt == 2)
            try:
                verdict = self._run(worker, job)
            except _Died as err:
                worker.end()
                with self._free:
                    self._missing += 1
                    self._free.notify()
                log.warning("judging worker ended: %s (attempt %d, %s)", err, attempt, key)
                continue
            self._give_back(worker)
            with self._free:
                self._crashes.pop(key, None)
            return verdict
        with self._free:
            seen = self._crashes[key] = self._crashes.get(key, 0) + 1
            self._crashes.move_to_end(key)
            while len(self._crashes) > _REMEMBERED_CRASHES:
                self._crashes.popitem(last=False)
        if seen > 1:
            raise JudgeCrashed(
                f"judging {key} ended its worker again",
                hint="the bundle exhausts the time or memory of one judging job; rebuild it smaller and push it again",
            )
        raise JudgeUnavailable(f"judging {key} ended its worker twice; no verdict was reached", hint="try again later")

    def ready(self) -> str:
        """`ok`, or what is wrong; never blocks on a running job.

        After a failed start it tries to start one, so that a service that is kept from traffic finds back by itself.
        """
        if self._closed:
            return "closed"
        if self._broken:
            with contextlib.suppress(ServiceError):
                self._add()
        return self._broken or "ok"

    def pids(self) -> tuple[int, ...]:
        """Process ids of the idle workers, for memory figures and crash tests."""
        with self._free:
            return tuple(worker.process.pid for worker in self._idle if worker.process.pid is not None)

    def close(self) -> None:
        """End every idle worker and refuse further jobs; a running job's worker ends when it is given back."""
        with self._free:
            self._closed = True
            idle, self._idle = self._idle, []
            self._free.notify_all()
        for worker in idle:
            worker.end()

    def _take(self, *, fresh: bool) -> _Worker:
        deadline = time.monotonic() + self._timeout
        with self._free:
            while True:
                if self._closed:
                    raise JudgeUnavailable(
                        "the service is shutting down; no verdict was reached", hint="try again later"
                    )
                while self._idle and not (fresh and self._missing):
                    worker = self._idle.pop()
                    if not worker.gone():
                        return worker
                    log.warning("an idle judging worker ended (pid %s) and is replaced", worker.process.pid)
                    worker.end()
                    self._missing += 1
                if self._missing:
                    self._missing -= 1
                    break
                if not self._free.wait(max(0.0, deadline - time.monotonic())) and time.monotonic() >= deadline:
                    raise JudgeUnavailable(
                        f"no judging worker came free within {self._timeout:g} s", hint="try again later"
                    )
        return self._spawn_counted()

    def _give_back(self, worker: _Worker) -> None:
        with self._free:
            if not self._closed:
                self._idle.append(worker)
                self._free.notify()
                return
        worker.end()

    def _spawn_counted(self) -> _Worker:
        """Start the worker that was taken off `_missing`, or put it back there."""
        try:
            worker = self._spawn()
        except BaseException as err:
            with self._free:
                self._missing += 1
                self._free.notify()
            self._broken = "no judging worker can be started" if isinstance(err, JudgeUnavailable) else self._broken
            raise
        self._broken = ""
        return worker

    def _spawn(self) -> _Worker:
        try:
            return self._start_one()
        except (OSError, EOFError):
            log.warning("the server of judging workers did not answer; starting another one")
        try:
            return self._start_one()
        except (OSError, EOFError) as err:
            raise JudgeUnavailable(
                f"no judging worker could be started ({type(err).__name__})", hint="try again later"
            ) from err

    def _start_one(self) -> _Worker:
        """A worker that is ready; `OSError` or `EOFError` while the fork server is being replaced."""
        ours, theirs = self._context.Pipe()
        process = self._context.Process(
            target=_serve, args=(self._factory, theirs, self._memory), name="aicr-judge", daemon=True
        )
        try:
            with _spared_from_the_end():
                process.start()
        except BaseException:
            ours.close()
            raise
        finally:
            theirs.close()
        worker = _Worker(process, ours)
        try:
            said = ours.recv() if ours.poll(_START_TIMEOUT_SECONDS) else None
        except (EOFError, OSError):
            said = None
        if said == "ready":
            return worker
        worker.end()
        if isinstance(said, InputError):
            raise said
        raise JudgeUnavailable("a judging worker ended while it started; see the log", hint="try again later")

    def _run(self, worker: _Worker, job: JudgeJob) -> Verdict:
        try:
            worker.pipe.send(job)
            if not worker.pipe.poll(self._timeout):
                raise _Died(f"no answer within {self._timeout:g} s")
            verdict = worker.pipe.recv()
        except (EOFError, OSError) as err:
            raise _Died("the process ended") from err
        if not isinstance(verdict, Accepted | Rejected):
            raise _Died("the answer was no verdict")
        return verdict


@contextlib.contextmanager
def _spared_from_the_end() -> Iterator[None]:
    """A fork server that is started meanwhile never sees SIGINT or SIGTERM, nor do its workers until they are ready.

    It imports for a second before it could ignore anything, and without it a service that is asked to end can neither
    finish its start nor its running requests. It ends when the service does, whatever it blocks. The resource tracker
    comes first because its start unblocks both signals.
    """
    resource_tracker.ensure_running()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _ENDING)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _serve(factory: JudgeFactory, pipe: Connection, memory_bytes: int) -> None:
    """The worker's loop: one job, one verdict. Any escape from the judge ends the process."""
    for number in _ENDING:
        signal.signal(number, signal.SIG_IGN)
    _die_with_service()
    try:
        judge = factory()
    except InputError as err:  # a setting: whoever started the service is told, in words that pickle
        pipe.send(InputError(err.message, code=err.code, hint=err.hint, details=err.details))
        return
    gc.collect()
    gc.freeze()
    _limit_memory(memory_bytes)
    # What was sent while this one started was not meant for it; later SIGTERM is how Python ends its children.
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _ENDING)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    try:
        pipe.send("ready")
    except OSError:
        return  # the supervisor is gone
    while True:
        try:
            job = pipe.recv()
        except (EOFError, OSError):
            return  # the supervisor is gone
        try:
            verdict = judge.judge(job)
        except BaseException:  # a judge never raises; a worker in which one did is not to be trusted any longer
            log.exception("the judge raised")
            os._exit(70)
        pipe.send(verdict)


def _die_with_service() -> None:
    """End when the service does, also in the middle of a job that hangs: nobody is left who would end it.

    The fork server ends when every write end of its pipe is closed, and each worker was handed one: it is given back
    here. The kernel then ends the worker with the fork server.
    """
    server = getattr(forkserver, "_forkserver", None)
    handed = getattr(server, "_forkserver_alive_fd", None)
    if handed is not None:
        os.close(handed)
        server._forkserver_alive_fd = None  # type: ignore[union-attr]  # noqa: SLF001 - it has no public name
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def _limit_memory(extra_bytes: int) -> None:
    with open("/proc/self/statm", encoding="ascii") as statm:  # noqa: PTH123
        mapped = int(statm.read().split()[0]) * resource.getpagesize()
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    wanted = mapped + extra_bytes
    resource.setrlimit(resource.RLIMIT_AS, (wanted if hard == resource.RLIM_INFINITY else min(wanted, hard), hard))
