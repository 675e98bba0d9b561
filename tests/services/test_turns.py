"""Turns at a digest: one holder at a time, for as long as it works and hardly longer."""

import threading
import time
from datetime import UTC, datetime

import pytest

from app.core.errors import FetchError
from app.core.refs import Digest
from app.services.pulling import PullTime
from app.services.turns import Turns
from tests.support.memory_store import MemoryStore

DIGEST = Digest("5d" * 32)
LEASE_SECONDS = 0.3


def now() -> datetime:
    return datetime.now(UTC)  # noqa: TID251 - leases expire by the wall clock


@pytest.fixture
def store() -> MemoryStore:
    return MemoryStore()


@pytest.fixture
def turns(store: MemoryStore) -> Turns:
    return Turns(store, now, LEASE_SECONDS)


def test_a_free_digest_takes_no_waiting(turns: Turns) -> None:
    with turns.turn(DIGEST, PullTime(5)) as waited:
        assert waited is False


def test_a_turn_lasts_as_long_as_its_work(store: MemoryStore, turns: Turns) -> None:
    with turns.turn(DIGEST, PullTime(5)):
        for _ in range(10):
            time.sleep(LEASE_SECONDS / 3)
            assert not store.lease(DIGEST, "another", now=now(), seconds=LEASE_SECONDS)
    assert store.lease(DIGEST, "another", now=now(), seconds=LEASE_SECONDS)


def test_whoever_comes_later_waits_for_the_holder(turns: Turns) -> None:
    order: list[str] = []
    inside = threading.Event()

    def first() -> None:
        with turns.turn(DIGEST, PullTime(5)):
            inside.set()
            time.sleep(0.2)
            order.append("first")

    thread = threading.Thread(target=first)
    thread.start()
    assert inside.wait(5)
    with turns.turn(DIGEST, PullTime(5)) as waited:
        order.append("second")
    thread.join()
    assert waited is True
    assert order == ["first", "second"]


def test_the_lease_of_a_killed_holder_expires(store: MemoryStore, turns: Turns) -> None:
    assert store.lease(DIGEST, "killed", now=now(), seconds=LEASE_SECONDS)
    with turns.turn(DIGEST, PullTime(5)) as waited:
        assert waited is True


def test_waiting_ends_with_the_time_of_the_pull(store: MemoryStore, turns: Turns) -> None:
    assert store.lease(DIGEST, "another", now=now(), seconds=60)
    with (
        pytest.raises(FetchError, match="being taken in by another process") as caught,
        turns.turn(DIGEST, PullTime(0.2)),
    ):
        raise AssertionError("it was entered")
    assert caught.value.retryable
    assert caught.value.retry_after_seconds == 2
