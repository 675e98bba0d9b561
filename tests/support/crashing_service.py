"""Services that kill themselves at a named step: `python -m tests.support.crashing_service`, never a production switch.

One process imports everything once and forks a service for each line of JSON on its stdin, so that a start costs a
fraction of a second. Judging happens in the service process, since the steps in question are not about workers. The
reply to `serve` is the pid; `wait` replies with how it ended; `rebuild` runs to its end.
"""

import json
import os
import signal
import sys
import threading
from collections.abc import Callable
from typing import Any

from app.bootstrap import container as composition
from app.cli.main import aicr_evidence
from app.cli.verbs.serve import _log, _serve
from app.config import load_settings
from app.core.bundle import Verdict
from app.ports import Judge, JudgeJob


class InlineJudge:
    """Stands where `WorkerJudge` stands; no process of its own."""

    def __init__(self, factory: Callable[[], Judge], **_limits: object) -> None:
        self._judge = factory()

    def start(self) -> None:
        """Nothing to start."""

    def judge(self, job: JudgeJob, /) -> Verdict:
        return self._judge.judge(job)

    def ready(self) -> str:
        return "ok"

    def close(self) -> None:
        """Nothing to end."""


class Failpoint:
    """`kill -9` of this process when `step` is passed for the `count`th time."""

    def __init__(self, step: str, count: int) -> None:
        self._step = step
        self._left = count
        self._lock = threading.Lock()

    def __call__(self, name: str) -> None:
        if name != self._step:
            return
        with self._lock:
            self._left -= 1
            if self._left == 0:
                os.kill(os.getpid(), signal.SIGKILL)


def _child(order: dict[str, Any]) -> None:
    log = os.open(order["log"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    os.dup2(log, 1)
    os.dup2(log, 2)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    for name in [name for name in os.environ if name.startswith("AICR_EVIDENCE_")]:
        del os.environ[name]
    os.environ.update(order["environment"])
    composition.WorkerJudge = InlineJudge  # type: ignore[misc, assignment]
    if order["do"] == "rebuild":
        os._exit(aicr_evidence(["rebuild", *order["words"]]))
    settings = load_settings()
    _log(settings)
    with composition.open_container(settings, failpoint=Failpoint(order["step"], order["count"])) as opened:
        _serve(opened)


def main() -> None:
    """Obey until stdin ends; every service left over is killed then."""
    living: set[int] = set()
    # What a judge needs is imported here once, not in every child.
    __import__("app.bootstrap.judge_parts")
    for line in sys.stdin:
        order = json.loads(line)
        if order["do"] == "wait":
            pid = int(order["pid"])
            _, status = os.waitpid(pid, 0)
            living.discard(pid)
            reply = os.waitstatus_to_exitcode(status)
        else:
            reply = os.fork()
            if reply == 0:
                try:
                    _child(order)
                finally:
                    os._exit(70)
            living.add(reply)
        sys.stdout.write(json.dumps(reply) + "\n")
        sys.stdout.flush()
    for pid in living:
        os.kill(pid, signal.SIGKILL)


if __name__ == "__main__":
    main()
