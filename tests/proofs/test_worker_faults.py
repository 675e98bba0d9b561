"""Faults of judging workers during real ingests over HTTP: each harms its own job and nothing else (service 8)."""

import os
import signal
import threading
from collections.abc import Iterator
from pathlib import Path

import httpx
import psutil
import pytest

from app.sandbox.identities import OCTOCAT, UAT_AWS
from tests.support.faulty_judges import UNSTARTABLE
from tests.support.service import Published, Service, Stage, eventually, open_stage

pytestmark = pytest.mark.proof

LIMITS = {"JUDGE_TIMEOUT_SECONDS": 2, "JUDGE_MEMORY_BYTES": 256 << 20}


class Bench:
    """A service whose judges fail on demand."""

    def __init__(self, stage: Stage, directory: Path) -> None:
        self.stage = stage
        self.faults = directory / "faults"
        self.faults.mkdir()
        entry = ("tests.support.faulty_judges", str(self.faults))
        self.service = Service(stage, directory / "service", settings=LIMITS, entry=entry)
        self._published = 0

    def publish(self, fault: str = "") -> Published:
        """A bundle that no other test has; judging it meets `fault`."""
        self._published += 1
        published = self.stage.publish(f"fault-{self._published}", "agreed", UAT_AWS, days_ago=1 + self._published)
        if fault:
            self._fault(published).write_text(fault)
        return published

    def cure(self, published: Published) -> None:
        """Judging this one is harmless from now on."""
        self._fault(published).unlink()

    def begun(self, published: Published) -> bool:
        """Whether a fault that happens once has begun."""
        return self._fault(published).with_suffix(".begun").exists()

    def posting(self, published: Published, into: list[httpx.Response]) -> threading.Thread:
        """A caller that waits on a thread of its own."""

        def post() -> None:
            url = f"{self.service.url}/evidence"
            into.append(httpx.post(url, json={"bundle": str(published.ref)}, timeout=60))

        thread = threading.Thread(target=post)
        thread.start()
        return thread

    def _fault(self, published: Published) -> Path:
        return self.faults / published.artifact.digest.hex


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    directory = tmp_path_factory.mktemp("worker-faults")
    with open_stage(directory) as stage:
        made = Bench(stage, directory)
        with made.service:
            yield made


@pytest.mark.parametrize("fault", ["hang", "eat", "die"])
def test_a_fault_harms_only_its_own_job(bench: Bench, fault: str) -> None:
    service, bad = bench.service, bench.publish(fault)
    replies: list[httpx.Response] = []
    waiting = bench.posting(bad, replies)
    for _ in range(5):
        assert service.submit(bench.publish()).status_code == 201
        assert service.client.get("/recipes").status_code == 200
        assert service.client.get("/ready").json()["parts"]["judge"] == "ok"
    waiting.join(60)
    assert [reply.status_code for reply in replies] == [503]
    assert int(replies[0].headers["Retry-After"]) > 0
    assert replies[0].json()["retryable"] is True

    again = service.submit(bad)
    assert (again.status_code, again.json()["code"]) == (422, "JUDGE_CRASHED")
    outcomes = {each["code"]: each["outcome"] for each in service.get(f"/attempts?digest={bad.digest}")["items"]}
    assert outcomes == {"SERVICE_UNAVAILABLE": "no-verdict", "JUDGE_CRASHED": "refused"}
    assert service.client.get(f"/evidence/{bad.digest}").status_code == 404

    bench.cure(bad)  # a refused digest is judged anew each time
    assert service.submit(bad).status_code == 201


def test_killed_idle_workers_are_replaced_unnoticed(bench: Bench) -> None:
    for _ in range(3):
        for worker in bench.service.workers():
            worker.send_signal(signal.SIGKILL)
        assert bench.service.submit(bench.publish()).status_code == 201


def test_a_worker_killed_while_it_judges_costs_a_second_try(bench: Bench) -> None:
    published = bench.publish("hang-once")
    before = {worker.pid for worker in bench.service.workers()}
    replies: list[httpx.Response] = []
    waiting = bench.posting(published, replies)
    eventually(lambda: bench.begun(published))
    for worker in bench.service.workers():
        worker.send_signal(signal.SIGKILL)
    waiting.join(60)
    assert [reply.status_code for reply in replies] == [201]
    assert before.isdisjoint(worker.pid for worker in bench.service.workers())


def test_a_killed_fork_server_is_replaced_with_its_workers(bench: Bench) -> None:
    service = bench.service
    (server,) = service.forkservers()
    workers = service.workers()
    server.send_signal(signal.SIGKILL)
    eventually(lambda: not any(alive(worker) for worker in workers))
    assert service.submit(bench.publish()).status_code == 201
    assert service.client.get("/ready").status_code == 200
    (other,) = service.forkservers()
    assert other.pid != server.pid


def test_a_fork_server_killed_while_it_judges_costs_a_second_try(bench: Bench) -> None:
    published = bench.publish("hang-once")
    replies: list[httpx.Response] = []
    waiting = bench.posting(published, replies)
    eventually(lambda: bench.begun(published))
    (server,) = bench.service.forkservers()
    server.send_signal(signal.SIGKILL)
    waiting.join(60)
    assert [reply.status_code for reply in replies] == [201]


def test_a_service_without_startable_workers_says_so_and_recovers_by_itself(bench: Bench) -> None:
    service = bench.service
    (bench.faults / UNSTARTABLE).touch()
    for worker in service.workers():
        worker.send_signal(signal.SIGKILL)
    published = bench.publish()
    reply = service.submit(published)
    assert reply.status_code == 503
    assert int(reply.headers["Retry-After"]) > 0
    told = service.client.get("/ready")
    assert told.status_code == 503
    assert told.json()["parts"]["judge"] == "no judging worker can be started"
    assert service.client.get("/health").status_code == 200
    assert service.client.get("/recipes").status_code == 200
    (bench.faults / UNSTARTABLE).unlink()
    assert service.client.get("/ready").status_code == 200
    assert service.submit(published).status_code == 201


def test_a_killed_service_takes_every_process_with_it(tmp_path: Path) -> None:
    with open_stage(tmp_path) as stage:
        bench = Bench(stage, tmp_path)
        with bench.service as service:
            published = bench.publish("hang-once")
            replies: list[httpx.Response] = []
            thread = threading.Thread(target=_unanswered, args=(bench, published, replies))
            thread.start()
            eventually(lambda: bench.begun(published))
            below = service.children()
            assert len(below) >= 3
            service.kill()
            thread.join(60)
            assert replies == []
            eventually(lambda: not any(alive(process) for process in below))
            service.start()
            assert service.submit(bench.stage.publish("after", "alone", OCTOCAT)).status_code == 201


def alive(process: psutil.Process) -> bool:
    """Whether a process still runs; nobody may have reaped it yet."""
    try:
        os.kill(process.pid, 0)
        return process.status() != psutil.STATUS_ZOMBIE
    except (ProcessLookupError, psutil.NoSuchProcess):
        return False


def _unanswered(bench: Bench, published: Published, into: list[httpx.Response]) -> None:
    try:
        url = f"{bench.service.url}/evidence"
        into.append(httpx.post(url, json={"bundle": str(published.ref)}, timeout=60))
    except httpx.HTTPError:
        return
