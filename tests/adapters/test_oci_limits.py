"""The deadline and the byte budget that all pulls share."""

import threading

import pytest

from app.adapters.oci import FETCH_CODES, OVERSIZE_CODES, ByteBudget, ReaderLimits
from app.adapters.oci.limits import Deadline
from app.core.errors import Category, FetchError


def test_a_deadline_counts_down_and_then_raises() -> None:
    now = 100.0
    deadline = Deadline(5.0, clock=lambda: now)
    assert deadline.remaining() == 5.0

    now = 104.0
    assert deadline.remaining() == 1.0

    now = 105.0
    with pytest.raises(FetchError) as caught:
        deadline.remaining()
    assert (caught.value.code, caught.value.category) == ("REGISTRY_TIMEOUT", Category.TIMEOUT)


def test_bytes_come_back_when_a_pull_ends_or_shrinks() -> None:
    budget = ByteBudget(100)
    with budget.reserve(80, Deadline(5)) as shrink:
        assert budget.free_bytes == 20
        shrink(30)
        assert budget.free_bytes == 70
        shrink(50)  # it never grows again
        assert budget.free_bytes == 70
    assert budget.free_bytes == 100


def test_bytes_come_back_when_a_pull_fails() -> None:
    budget = ByteBudget(100)
    with pytest.raises(ZeroDivisionError), budget.reserve(80, Deadline(5)):
        raise ZeroDivisionError
    assert budget.free_bytes == 100


def test_a_pull_over_the_whole_budget_runs_alone() -> None:
    budget = ByteBudget(100)
    with budget.reserve(1000, Deadline(5)):
        assert budget.free_bytes == 0
    assert budget.free_bytes == 100


def test_waiting_ends_with_the_deadline_and_frees_the_queue() -> None:
    budget = ByteBudget(100)
    with budget.reserve(100, Deadline(5)):
        with pytest.raises(FetchError) as caught, budget.reserve(1, Deadline(0.05)):
            raise AssertionError("nothing was free")
        assert caught.value.code == "REGISTRY_TIMEOUT"
    with budget.reserve(100, Deadline(5)):
        assert budget.free_bytes == 0


def test_a_large_request_is_not_overtaken_by_small_ones() -> None:
    budget, order = ByteBudget(100), []
    holding, release = threading.Event(), threading.Event()
    queued = [threading.Event(), threading.Event()]

    def holder() -> None:
        with budget.reserve(60, Deadline(10)):
            holding.set()
            release.wait(10)

    def taker(name: str, size: int, ready: threading.Event) -> None:
        ready.set()
        with budget.reserve(size, Deadline(10)):
            order.append(name)

    first = threading.Thread(target=holder)
    first.start()
    holding.wait(10)
    large = threading.Thread(target=taker, args=("large", 100, queued[0]))
    large.start()
    queued[0].wait(10)
    while len(budget._queue) < 1:
        threading.Event().wait(0.001)
    small = threading.Thread(target=taker, args=("small", 10, queued[1]))
    small.start()
    while len(budget._queue) < 2:
        threading.Event().wait(0.001)

    assert order == []  # 40 bytes are free, yet the small one waits its turn
    release.set()
    for thread in (first, large, small):
        thread.join(10)
    assert order == ["large", "small"]


def test_a_pull_reserves_its_worst_case() -> None:
    limits = ReaderLimits()

    assert limits.unpacked_cost(1000) == 1000 + (1 << 20)
    assert limits.unpacked_cost(1 << 20) == (1 << 20) + (100 << 20)
    assert limits.unpacked_cost(64 << 20) == (64 << 20) + (256 << 20)


def test_the_defaults_are_those_of_the_specification() -> None:
    limits = ReaderLimits()

    assert (limits.manifest_bytes, limits.blob_bytes, limits.unpacked_bytes) == (4 << 20, 64 << 20, 256 << 20)
    assert (limits.ratio, limits.files, limits.path_bytes, limits.depth, limits.referrers) == (100, 4096, 512, 16, 64)
    assert (limits.signature_bytes, limits.referrer_manifest_bytes) == (10 << 20, 1 << 20)


def test_every_code_has_cause_and_cure() -> None:
    for code, entry in FETCH_CODES.items():
        assert entry.code == code
        assert entry.cause.endswith(".")
        assert entry.cure
    assert frozenset({"BODY_TOO_LARGE"}) == OVERSIZE_CODES
