"""What bounds an ingest: one time for a whole pull, a deadline for the answer, a quota for strangers."""

import asyncio
import itertools
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

import pytest

from app.core.bundle import Accepted, RawSignature, Run
from app.core.errors import FetchError, NotFoundError, QuotaExceeded
from app.core.identity import SignerIdentity
from app.core.refs import Digest, OciRef
from app.core.report import Exit, InputKind, Report
from app.ports import Artifact, JudgeJob, Pulled, PullOptions
from app.services.flights import Flights
from app.services.ingest import IngestLimits, IngestService
from app.services.ingest_types import IngestRequest, IngestResult, Judged, Stored
from tests.support.memory_store import MemoryStore
from tests.support.stored_runs import DEV_ONE, OCTOCAT, PASS, at, make_run
from tests.support.stores import RULES

STRANGER = SignerIdentity("https://issuer.example.org", "stranger@example.org")


class Time:
    """Seconds that pass when somebody says so."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now

    def let_pass(self, seconds: float) -> None:
        self.now += seconds


@dataclass
class FakeRegistry:
    """Holds every artifact; `resolving` is how long it takes to say so. Notes what it was given."""

    time: Time
    resolving: float = 0.0
    given: list[tuple[str, float]] = field(default_factory=list)

    def resolve(self, ref: OciRef, options: PullOptions, /) -> Artifact:
        self.given.append(("resolve", options.timeout_seconds))
        self.time.let_pass(self.resolving)
        assert ref.digest is not None
        return Artifact(ref, ref.digest, b"{}", b"{}", Digest("0" * 64), 0, (RawSignature(b"one"), RawSignature(b"2")))

    @contextmanager
    def pull(self, artifact: Artifact, options: PullOptions, /) -> Iterator[Pulled]:
        self.given.append(("pull", options.timeout_seconds))
        yield Pulled(artifact, "", "")


@dataclass
class FakeJudge:
    """Accepts the run of a digest, once it may."""

    runs: dict[Digest, Run] = field(default_factory=dict)
    may_answer: threading.Event = field(default_factory=threading.Event)
    received: datetime | None = None

    def judge(self, job: JudgeJob, /) -> Accepted:
        self.received = job.received_at
        assert self.may_answer.wait(20)
        assert job.digest is not None
        return Accepted(self.runs[job.digest], Report(InputKind.OCI, (), Exit.VALID), None)  # type: ignore[arg-type]


@dataclass
class FakeArchive:
    """Keeps digests, gives nothing back."""

    kept: list[Digest] = field(default_factory=list)

    def put(self, artifact: Artifact, _signature: RawSignature, _layer: str, /) -> None:
        self.kept.append(artifact.digest)

    def open(self, digest: Digest, /) -> Any:
        raise NotFoundError(f"{digest} is not archived")


class Verdicts:
    """The sample list in force."""

    project = staticmethod(RULES.project)
    classify = staticmethod(RULES.classify)

    def sha256(self) -> str:
        return RULES.version(at(0)).sha256


class OpenGate:
    def require(self, ref: OciRef, /) -> None:
        assert ref.digest is not None


@dataclass
class World:
    """A service and its parts."""

    service: IngestService
    time: Time
    registry: FakeRegistry
    judge: FakeJudge
    archive: FakeArchive
    store: MemoryStore

    def request(self, number: int, signer: SignerIdentity = STRANGER, *, dry_run: bool = False) -> IngestRequest:
        return self.request_of(make_run(number, signer), dry_run=dry_run)

    def request_of(self, run: Run, *, dry_run: bool = False) -> IngestRequest:
        self.judge.runs[run.digest] = run
        return IngestRequest(OciRef.parse(f"ghcr.io/o/e@{run.digest}"), dry_run=dry_run)


@contextmanager
def world(limits: IngestLimits) -> Iterator[World]:
    time, judge, archive, store = Time(), FakeJudge(), FakeArchive(), MemoryStore()
    registry = FakeRegistry(time)
    judge.may_answer.set()
    store.activate_allowlist(RULES.version(at(0)), project=RULES.project, classify=RULES.classify)
    with ThreadPoolExecutor(1) as executor:
        flights: Flights[IngestResult] = Flights(executor)
        service = IngestService(
            gate=OpenGate(),
            source=registry,
            judge=judge,
            archive=archive,  # type: ignore[arg-type]
            store=store,
            verdicts=Verdicts(),  # type: ignore[arg-type]
            clock=lambda: at(500),
            limits=limits,
            executor=executor,
            flights=flights,
            pause=time.let_pass,
            monotonic=time,
        )
        yield World(service, time, registry, judge, archive, store)


def test_a_record_is_received_when_it_is_kept() -> None:
    """What `asOf` said about the seconds of a fetch holds afterwards too."""
    with world(IngestLimits(60)) as it:
        hours = itertools.count(500)
        service = replace(it.service, clock=lambda: at(next(hours)))
        stored = service.submit(it.request(1))
        assert isinstance(stored, Stored)
        assert it.judge.received is not None
        assert stored.record.run.received_at > it.judge.received


class TestTheTimeOfOnePull:
    def test_the_layer_gets_what_the_manifest_left(self) -> None:
        with world(IngestLimits(60)) as it:
            it.registry.resolving = 45
            it.service.submit(it.request(1))
        assert it.registry.given == [("resolve", 60), ("pull", 15)]

    def test_nothing_is_asked_of_a_registry_that_used_it_up(self) -> None:
        with world(IngestLimits(60)) as it:
            it.registry.resolving = 60
            with pytest.raises(FetchError, match="did not finish within 60 seconds") as caught:
                it.service.submit(it.request(1))
        assert (caught.value.code, caught.value.retryable) == ("REGISTRY_TIMEOUT", True)
        assert it.registry.given == [("resolve", 60)]
        assert [attempt.outcome for attempt in it.store.attempts(after=None, limit=9)[0]] == ["no-verdict"]

    def test_waiting_for_another_process_counts(self) -> None:
        with world(IngestLimits(60)) as it:
            it.registry.resolving = 45
            request = it.request(1)
            digest = request.reference.digest
            assert digest is not None
            it.store.lease(digest, "another process", now=at(500), seconds=600)
            with pytest.raises(FetchError, match="taken in by another process"):
                it.service.submit(request)
        assert 1060 <= it.time.now < 1061

    def test_who_waited_has_less_time_to_pull(self) -> None:
        with world(IngestLimits(60)) as it:
            request = it.request(1)
            digest = request.reference.digest
            assert digest is not None
            it.store.lease(digest, "another process", now=at(500), seconds=600)

            def pause(seconds: float) -> None:
                it.time.let_pass(20)
                it.store.release(digest, "another process")

            object.__setattr__(it.service, "pause", pause)
            it.service.submit(request)
        assert it.registry.given == [("resolve", 60), ("pull", 40)]


class TestTheDeadlineOfAnAnswer:
    def test_a_caller_is_told_and_the_work_goes_on(self) -> None:
        with world(IngestLimits(60, answer_seconds=0.05)) as it:
            it.judge.may_answer.clear()
            request = it.request(1)
            with pytest.raises(FetchError, match=r"no verdict within 0\.05 seconds") as caught:
                asyncio.run(_submit_and_release(it, request))
        assert (caught.value.code, caught.value.retryable) == ("NO_VERDICT_IN_TIME", True)
        assert len(it.store.records_of(make_run(1).digest)) == 1

    def test_waiting_for_a_slot_counts(self) -> None:
        async def both(it: World) -> list[object]:
            requests = [it.request(1), it.request(2)]
            answers = await asyncio.gather(*map(it.service.submit_async, requests), return_exceptions=True)
            it.judge.may_answer.set()
            return list(answers)

        with world(IngestLimits(60, answer_seconds=0.05)) as it:
            it.judge.may_answer.clear()
            answers = asyncio.run(both(it))
        assert [getattr(answer, "code", None) for answer in answers] == ["NO_VERDICT_IN_TIME"] * 2


async def _submit_and_release(it: World, request: IngestRequest) -> None:
    try:
        await it.service.submit_async(request)
    finally:
        it.judge.may_answer.set()


class TestTheQuotaOfStrangers:
    def test_one_more_record_than_the_quota_is_not_taken_in(self) -> None:
        with world(IngestLimits(60, unlisted_quota=2)) as it:
            for number in (1, 2):
                assert isinstance(it.service.submit(it.request(number)), Stored)
            with pytest.raises(QuotaExceeded, match="holds 2 records, expected fewer than 2") as caught:
                it.service.submit(it.request(3))
            assert caught.value.details == {"limit": 2, "held": 2, "source": STRANGER.slug}
            assert it.archive.kept == [make_run(1).digest, make_run(2).digest]
            attempt = it.store.attempts(after=None, limit=1)[0][0]
            assert (attempt.outcome, attempt.code, attempt.source) == ("refused", "UNLISTED_QUOTA", STRANGER.slug)

    def test_what_is_there_already_is_found_again(self) -> None:
        with world(IngestLimits(60, unlisted_quota=1)) as it:
            it.service.submit(it.request(1))
            again = it.service.submit(it.request(1))
        assert isinstance(again, Stored)
        assert not again.created

    def test_each_source_has_its_own(self) -> None:
        other = SignerIdentity(STRANGER.issuer, "other@example.org")
        with world(IngestLimits(60, unlisted_quota=1)) as it:
            it.service.submit(it.request(1))
            assert isinstance(it.service.submit(it.request(2, other)), Stored)

    @pytest.mark.parametrize("quota", [pytest.param(1, id="one"), pytest.param(0, id="off")])
    def test_listed_sources_have_none(self, quota: int) -> None:
        with world(IngestLimits(60, unlisted_quota=quota)) as it:
            for number in range(1, 5):
                assert isinstance(it.service.submit(it.request(number, OCTOCAT)), Stored)

    def test_zero_turns_it_off(self) -> None:
        with world(IngestLimits(60, unlisted_quota=0)) as it:
            for number in range(1, 5):
                assert isinstance(it.service.submit(it.request(number)), Stored)

    def test_runs_without_weight_fill_a_quota_of_their_own_beside_a_listed_name(self) -> None:
        """A workflow that anybody can call signs with its owner's name; the owner's records stay without a quota."""

        def weightless(number: int) -> Run:
            return make_run(number, OCTOCAT, weightless="called from another repository")

        with world(IngestLimits(60, unlisted_quota=1)) as it:
            it.service.submit(it.request_of(make_run(1, OCTOCAT)))
            it.service.submit(it.request_of(weightless(2)))
            with pytest.raises(QuotaExceeded):
                it.service.submit(it.request_of(weightless(3)))
            assert isinstance(it.service.submit(it.request_of(make_run(4, OCTOCAT))), Stored)

    def test_a_dry_run_knows_a_copy(self) -> None:
        """What it promises is what the real run gives: the data was shown under another recipe first."""
        with world(IngestLimits(60)) as it:
            original = make_run(1, OCTOCAT, results=PASS, recipe="gb200-oke-ubuntu-inference")
            copy = make_run(2, DEV_ONE, results=PASS, prints=original.prints)
            it.service.submit(it.request_of(original))
            it.service.submit(it.request_of(make_run(3, OCTOCAT, results=PASS)))
            promised = it.service.submit(it.request_of(copy, dry_run=True))
            assert isinstance(promised, Judged)
            assert promised.before is not None
            assert promised.after is not None
            assert (promised.before.state, promised.after.state) == ("SINGLE", "SINGLE")
            it.service.submit(it.request_of(copy))
            assert [line.verdict["state"] for line in it.store.summaries() if line.recipe == copy.recipe] == ["SINGLE"]

    def test_judging_alone_needs_no_room(self) -> None:
        with world(IngestLimits(60, unlisted_quota=1)) as it:
            it.service.submit(it.request(1))
            assert isinstance(it.service.submit(it.request(2, dry_run=True)), Judged)
