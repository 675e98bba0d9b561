"""A judging worker that hangs, eats memory or dies harms only its own job (service 8)."""

import threading
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from app.adapters.workers import WorkerJudge
from app.core.bundle import Rejected
from app.core.errors import JudgeCrashed, JudgeUnavailable
from app.core.report import InputKind
from app.ports import JudgeJob
from tests.support.judges import BuildScriptedJudge

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


def job(what: str) -> JudgeJob:
    return JudgeJob(directory=what, input=InputKind.OCI, received_at=NOW)


def detail(judge: WorkerJudge, what: str) -> str:
    verdict = judge.judge(job(what))
    assert isinstance(verdict, Rejected)
    return verdict.cause.detail


@pytest.fixture
def judge() -> Iterator[WorkerJudge]:
    pool = WorkerJudge(BuildScriptedJudge(), processes=2, timeout_seconds=2, memory_bytes=256 << 20)
    yield pool
    pool.close()


def test_jobs_run_outside_this_process(judge: WorkerJudge) -> None:
    assert int(detail(judge, "answer")) in judge.pids()


@pytest.mark.parametrize("fault", ["die", "hang", "eat:1073741824", "raise"])
def test_a_worker_that_fails_twice_gives_no_verdict_and_the_next_job_is_answered(
    judge: WorkerJudge, fault: str
) -> None:
    with pytest.raises(JudgeUnavailable, match="ended its worker twice"):
        judge.judge(job(fault))
    assert int(detail(judge, "answer")) > 0


def test_a_bundle_that_crashes_again_is_refused(judge: WorkerJudge) -> None:
    with pytest.raises(JudgeUnavailable):
        judge.judge(job("die"))
    with pytest.raises(JudgeCrashed) as caught:
        judge.judge(job("die"))
    assert caught.value.code == "JUDGE_CRASHED"


def test_one_death_is_retried_on_another_worker(judge: WorkerJudge, tmp_path: Path) -> None:
    assert int(detail(judge, f"die-once:{tmp_path / 'marker'}")) > 0


def test_memory_within_the_limit_is_granted(judge: WorkerJudge) -> None:
    assert detail(judge, "eat:67108864") == "67108864 bytes"


def test_a_hanging_job_does_not_hold_up_the_other_worker(judge: WorkerJudge) -> None:
    judge.start()
    outcome: list[str] = []

    def hang() -> None:
        try:
            judge.judge(job("hang"))
        except JudgeUnavailable as err:
            outcome.append(err.code)

    thread = threading.Thread(target=hang)
    thread.start()
    answers = [int(detail(judge, "answer")) for _ in range(20)]
    assert outcome == []
    assert len(set(answers)) == 1
    thread.join(30)
    assert outcome == ["SERVICE_UNAVAILABLE"]


def test_more_jobs_than_workers_wait_their_turn(judge: WorkerJudge) -> None:
    answers: list[str] = []
    threads = [threading.Thread(target=lambda: answers.append(detail(judge, "answer"))) for _ in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert len(answers) == 12
    assert 1 <= len(set(answers)) <= 2


def test_a_closed_pool_reaches_no_verdict(judge: WorkerJudge) -> None:
    judge.start()
    judge.close()
    with pytest.raises(JudgeUnavailable, match="shutting down"):
        judge.judge(job("answer"))
    assert judge.pids() == ()
