"""Judges for the worker tests: each job's directory says what the judge is to do."""

import os
import time
from dataclasses import dataclass
from pathlib import Path

from app.core.bundle import Rejected, Verdict
from app.core.report import CauseClass, Exit, FailureCause, InputKind, Report, StepName
from app.ports import JudgeJob


@dataclass(frozen=True)
class BuildScriptedJudge:
    """A picklable factory."""

    def __call__(self) -> "ScriptedJudge":
        return ScriptedJudge()


class ScriptedJudge:
    """Answers, hangs, eats memory or dies, as the job's `directory` says."""

    def judge(self, job: JudgeJob, /) -> Verdict:
        match job.directory.partition(":"):
            case ("hang", _, _):
                time.sleep(600)
            case ("eat", _, amount):
                hoard = bytearray(int(amount))
                return self._answer(f"{len(hoard)} bytes")
            case ("die", _, _):
                os._exit(9)
            case ("die-once", _, marker):
                if not Path(marker).exists():
                    Path(marker).touch()
                    os._exit(9)
            case ("raise", _, _):
                raise RuntimeError("a defect")
        return self._answer(str(os.getpid()))

    def _answer(self, detail: str) -> Rejected:
        cause = FailureCause(CauseClass.UNKNOWN, detail)
        report = Report(InputKind.DIRECTORY, (), Exit.INVALID, failure_cause=cause)
        return Rejected(StepName.MATERIALIZE, "SCRIPTED", cause, report)
