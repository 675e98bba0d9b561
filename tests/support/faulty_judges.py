"""A judge that fails as files of a directory say, by bundle digest; the real one for everything else.

`python -m tests.support.faulty_judges DIRECTORY` is `aicr evidence serve` with such judges in its workers.
"""

import os
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from app.bootstrap import container as composition
from app.cli.main import aicr_evidence
from app.config import Settings
from app.core.bundle import Verdict
from app.ports import Judge, JudgeJob

UNSTARTABLE = "unstartable"
"""While a file of this name exists, no worker can be started."""


@dataclass(frozen=True)
class BuildFaultyJudge:
    """A picklable factory around the real one."""

    build: Callable[[], Judge]
    faults: str

    def __call__(self) -> Judge:
        if Path(self.faults, UNSTARTABLE).exists():
            os._exit(3)
        return FaultyJudge(self.build(), Path(self.faults))


class FaultyJudge:
    """Hangs, eats memory, burns time or dies before it judges; a fault that ends with `-once` is taken away first."""

    def __init__(self, judge: Judge, faults: Path) -> None:
        self._judge = judge
        self._faults = faults

    def judge(self, job: JudgeJob, /) -> Verdict:
        path = self._faults / (job.digest.hex if job.digest else "none")
        fault = path.read_text() if path.exists() else ""
        if fault.endswith("-once"):
            path.rename(path.with_suffix(".begun"))
        match fault.removesuffix("-once"):
            case "hang":
                time.sleep(600)
            case "eat":
                hoard = []
                while True:
                    hoard.append(bytearray(16 << 20))
            case "die":
                os._exit(9)
        return self._judge.judge(job)


def main() -> int:
    """Serve."""
    real = composition.build_judge

    def build(settings: Settings) -> BuildFaultyJudge:
        return BuildFaultyJudge(real(settings), sys.argv[1])

    composition.build_judge = build  # type: ignore[assignment]
    return aicr_evidence(["serve"])


if __name__ == "__main__":
    # By its import name, so that what is pickled for the workers is found there.
    from tests.support import faulty_judges

    sys.exit(faulty_judges.main())
