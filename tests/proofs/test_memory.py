"""What the service and its processes hold: the bars of service 7, as the sum of proportional set sizes."""

import contextlib
import threading
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import psutil
import pytest

from app.adapters.oci.pack import describe_bundle
from app.bench.memory import PHASES, ROWS
from app.core.bundle import STATEMENT_FILE
from app.sandbox.demo.samples import AICR_VERSION, Sample, build_bundle
from app.sandbox.identities import DEV_TWO, OCTOCAT, PARTNER, UAT_AWS, UAT_GCP
from app.sandbox.registry.modes import Behaviour, Hostility
from tests.support.service import Service, Stage, in_parallel, open_stage, sized

pytestmark = pytest.mark.proof

MB = 1_000_000
IDLE_BAR = 250 * MB
HOSTILE_BAR = 400 * MB
GROWTH_BAR = 5 * MB

SIGNERS = (UAT_AWS, UAT_GCP, OCTOCAT, PARTNER, DEV_TWO)
RECIPES = ("agreed", "alone", "disputed", "failing", "profiled", "branch", "copied", "waiting")
MODES = tuple(mode for mode in Hostility if mode is not Hostility.DRIP)
"""A drip holds a slot and no memory; it is proved elsewhere."""


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    with open_stage(tmp_path) as opened:
        yield opened


def say(**figures: int) -> None:
    """The figures, for who runs this with `-s`."""
    print("\n" + ", ".join(f"{name} {value / MB:.1f} MB" for name, value in figures.items()))


class Sampler:
    """The highest sum of PSS while something else happens."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._highest = service.pss()
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._sample)
        self._thread.start()

    def stop(self) -> int:
        """End, and tell."""
        self._done.set()
        self._thread.join(60)
        return self._highest

    def _sample(self) -> None:
        while not self._done.wait(0.1):
            # A worker may be replaced between the list and the look at it.
            with contextlib.suppress(psutil.NoSuchProcess, FileNotFoundError, ProcessLookupError):
                self._highest = max(self._highest, self._service.pss())


def feed(stage: Stage, service: Service, numbers: Iterator[int], bundles: int) -> None:
    """Ingest so many new bundles, four at a time, over several recipes and signers."""
    for _ in range(bundles // 4):
        batch = [next(numbers) for _ in range(4)]
        published = [
            stage.publish(f"fed-{n}", RECIPES[n % 8], SIGNERS[n % 5], days_ago=1 + n % 20 + n / 5000) for n in batch
        ]
        replies = in_parallel(4, lambda caller: service.submit(published[caller]))  # noqa: B023
        assert {reply.status_code for reply in replies} == {201}


def unsigned(stage: Stage, statement: bytes) -> str:
    """A bundle that nobody signed, with that statement beside its files; returns its reference."""
    produced = build_bundle(Sample("heavy", "agreed", UAT_AWS, 1.0, {}, earlier=False), stage.now)
    files = {**produced.files, STATEMENT_FILE: statement}
    artifact = describe_bundle(files, predicate_type=produced.predicate_type, version=AICR_VERSION)
    return str(stage.registry.seed("aicr/heavy", artifact, ()))


def test_idle_and_after_judging_many_bundles(stage: Stage, tmp_path: Path) -> None:
    numbers = count()
    with Service(stage, tmp_path / "service") as service:
        assert len(service.workers()) == 2
        idle = service.pss()
        feed(stage, service, numbers, sized(60, 200))
        early, early_anonymous = service.pss(), service.pss(anonymous=True)
        feed(stage, service, numbers, sized(120, 800))
        late, late_anonymous = service.pss(), service.pss(anonymous=True)
        growth = late_anonymous - early_anonymous
        say(idle=idle, early=early, late=late, growth=growth)
        assert idle < IDLE_BAR
        assert growth <= GROWTH_BAR


def test_fed_with_hostile_input(stage: Stage, tmp_path: Path) -> None:
    settings = {"PULL_TIMEOUT_SECONDS": 5, "INGEST_CONCURRENCY": 8}
    with Service(stage, tmp_path / "service", settings=settings) as service:
        sampler = Sampler(service)
        for round_number in range(sized(1, 5)):
            refs = [stage.registry.plant(Behaviour(mode), f"hostile/{mode.value}-{round_number}") for mode in MODES]
            for start in range(0, len(refs), 8):
                group = refs[start : start + 8]
                replies = in_parallel(
                    len(group),
                    lambda caller: service.client.post("/evidence", json={"bundle": str(group[caller])}),  # noqa: B023
                )
                assert {reply.status_code for reply in replies} <= {413, 422, 503}
            heavy = [unsigned(stage, statement) for statement in (ROWS, PHASES)]
            replies = in_parallel(2, lambda caller: service.client.post("/evidence", json={"bundle": heavy[caller]}))  # noqa: B023
            assert [reply.status_code for reply in replies] == [422, 422]
        highest = sampler.stop()
        say(hostile=highest)
        assert highest < HOSTILE_BAR
        assert service.submit(stage.publish("honest", "agreed", UAT_AWS)).status_code == 201
