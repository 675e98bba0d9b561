"""Many callers at once, over real sockets: one fetch and one row a digest, one state however the ingests interleave."""

import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from app.sandbox.identities import DEV_TWO, OCTOCAT, PARTNER, STRANGER, UAT_AWS, UAT_GCP, email_identity
from app.sandbox.registry.modes import Behaviour, Hostility
from tests.support.service import (
    Published,
    Service,
    Stage,
    answers,
    eventually,
    in_parallel,
    new_database,
    open_stage,
    recipe_texts,
    sized,
)

pytestmark = [pytest.mark.proof, pytest.mark.postgres]

DATABASES = ["sqlite", "postgres"]
CALLERS = 50
ANYBODY = email_identity("dev-three@example.org")


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    with open_stage(tmp_path) as opened:
        yield opened


def post(service: Service, body: dict[str, object]) -> httpx.Response:
    """One caller with a connection of its own."""
    return httpx.post(f"{service.url}/evidence", json=body, timeout=120)


@pytest.mark.parametrize("kind", DATABASES)
def test_fifty_posts_of_one_digest_are_one_fetch_and_one_row(kind: str, stage: Stage, tmp_path: Path) -> None:
    with Service(stage, tmp_path / "service", new_database(kind, tmp_path)) as service:
        for number in range(sized(2, 10)):
            published = stage.publish(f"many-{number}", "agreed", UAT_AWS, days_ago=1 + number)
            replies = in_parallel(CALLERS, lambda _: post(service, {"bundle": str(published.ref)}))  # noqa: B023
            assert Counter(reply.status_code for reply in replies) == {201: 1, 200: CALLERS - 1}
            assert len({reply.content for reply in replies}) == 1
            assert stage.fetches(published) == 1
            assert len(service.get(f"/evidence?digest={published.digest}")["items"]) == 1


@pytest.mark.parametrize("kind", DATABASES)
def test_pointers_and_references_to_one_digest_share_its_fetch(kind: str, stage: Stage, tmp_path: Path) -> None:
    """Two forms of a request are two judgements and still one fetch: the second reads what the first archived."""
    with Service(stage, tmp_path / "service", new_database(kind, tmp_path)) as service:
        published = stage.publish("both", "agreed", OCTOCAT)
        bodies: list[dict[str, object]] = [{"bundle": str(published.ref)}, {"pointer": published.pointer}]
        replies = in_parallel(CALLERS, lambda caller: post(service, bodies[caller % 2]))
        assert Counter(reply.status_code for reply in replies) == {201: 1, 200: CALLERS - 1}
        assert len({reply.content for reply in replies}) == 1
        assert stage.fetches(published) == 1
        copied = stage.sign_again(published, STRANGER, repository="aicr/copies")
        assert service.submit(copied).status_code == 201
        assert stage.fetches(published) == 1


def test_two_processes_share_one_fetch_and_one_row(stage: Stage, tmp_path: Path) -> None:
    url = new_database("postgres", tmp_path)
    shared = {"ARCHIVE": tmp_path / "archive"}
    with (
        Service(stage, tmp_path / "one", url, settings=shared) as one,
        Service(stage, tmp_path / "two", url, settings=shared) as two,
    ):
        for number in range(sized(3, 20)):
            published = stage.publish(f"shared-{number}", "agreed", UAT_AWS, days_ago=1 + number)
            services = (one, two)
            replies = in_parallel(
                20,
                lambda caller: post(services[caller % 2], {"bundle": str(published.ref)}),  # noqa: B023
            )
            assert Counter(reply.status_code for reply in replies) == {201: 1, 200: 19}
            assert len({reply.content for reply in replies}) == 1
            assert stage.fetches(published) == 1
            assert [len(each.get(f"/evidence?digest={published.digest}")["items"]) for each in services] == [1, 1]


def test_nobody_waits_long_for_the_lease_of_a_killed_process(stage: Stage, tmp_path: Path) -> None:
    """One process is killed while it fetches; the other, which waits for it, takes over."""
    url = new_database("postgres", tmp_path)
    shared = {"ARCHIVE": tmp_path / "archive"}
    with (
        Service(stage, tmp_path / "one", url, settings=shared) as one,
        Service(stage, tmp_path / "two", url, settings=shared) as two,
    ):
        published = stage.publish("slow", "agreed", UAT_AWS)
        stage.registry.misbehave(Behaviour(Hostility.DRIP, drip_seconds=0.2))
        doomed = threading.Thread(target=_ignored, args=(one, published))
        doomed.start()
        eventually(lambda: _leased(stage))
        one.kill()
        doomed.join()
        stage.registry.misbehave(None)
        started = time.monotonic()
        assert two.submit(published).status_code == 201
        assert time.monotonic() - started < 45  # a lease of 15 s, nothing near the 60 s that a caller is let wait
        assert len(two.get("/evidence")["items"]) == 1


@pytest.mark.parametrize("kind", DATABASES)
def test_parallel_ingests_of_one_recipe_end_in_the_state_that_a_rebuild_gives(
    kind: str, stage: Stage, tmp_path: Path
) -> None:
    signers = [UAT_AWS, UAT_GCP, OCTOCAT, PARTNER, DEV_TWO, STRANGER, ANYBODY, UAT_AWS]
    with Service(stage, tmp_path / "service", new_database(kind, tmp_path)) as service:
        service.push_catalogue(recipe_texts(), "1" * 40)
        for number in range(sized(2, 10)):
            bundles = [
                stage.publish(
                    f"parallel-{number}-{index}",
                    "agreed",
                    signer,
                    # Pairs of them ran at the same moment, which makes one a copy of the other.
                    days_ago=1 + number + (index // 2) * 0.1,
                    results={"nccl-all-reduce-bw": "failed"} if index == 3 else {},
                )
                for index, signer in enumerate(signers)
            ]
            replies = in_parallel(len(bundles), lambda caller: post(service, {"bundle": str(bundles[caller].ref)}))  # noqa: B023
            assert [reply.status_code for reply in replies] == [201] * len(bundles)
        before = answers(service)
        service.stop()
        assert service.rebuild().returncode == 0
        service.start()
        after = answers(service)
        assert {path for path in before.keys() | after.keys() if before.get(path) != after.get(path)} == set()


def test_reads_are_answered_while_fifty_posts_wait_for_a_registry(stage: Stage, tmp_path: Path) -> None:
    with Service(stage, tmp_path / "service") as service:
        service.accepted(stage.publish("first", "agreed", UAT_AWS))
        waiting = [stage.publish(f"waiting-{number}", "alone", UAT_GCP, days_ago=number) for number in range(CALLERS)]
        slow = Behaviour(Hostility.DRIP, drip_seconds=0.02)
        stage.registry.misbehave(slow)
        finished: list[int] = []

        def wait_for(published: Published) -> None:
            finished.append(post(service, {"bundle": str(published.ref)}).status_code)

        threads = [threading.Thread(target=wait_for, args=(published,)) for published in waiting]
        for thread in threads:
            thread.start()
        eventually(lambda: _open_posts(stage))
        for path in ("/health", "/ready", "/recipes", "/evidence", "/recipes/h100-eks-ubuntu-training") * 4:
            assert service.client.get(path).status_code == 200
        assert finished == []
        slow.drip_seconds = 0
        for thread in threads:
            thread.join(120)
        assert len(finished) == CALLERS


def _ignored(service: Service, published: Published) -> None:
    try:
        post(service, {"bundle": str(published.ref)})
    except httpx.HTTPError:
        return  # its process was killed


def _leased(stage: Stage) -> bool:
    return any("/manifests/" in seen.path for seen in list(stage.registry.log))


def _open_posts(stage: Stage) -> bool:
    return sum("/manifests/" in seen.path for seen in list(stage.registry.log)) >= 8


def test_several_processes_behind_one_socket(stage: Stage, tmp_path: Path) -> None:
    settings = {"WORKERS": 2, "VERIFY_PROCESSES": 1}
    with Service(stage, tmp_path / "service", new_database("postgres", tmp_path), settings=settings) as service:
        published = stage.publish("behind", "agreed", UAT_AWS)
        eventually(lambda: service.said().count("Application startup complete") == 2)
        replies = in_parallel(20, lambda _: post(service, {"bundle": str(published.ref)}))
        assert Counter(reply.status_code for reply in replies) == {201: 1, 200: 19}
        assert len({reply.content for reply in replies}) == 1
        assert stage.fetches(published) == 1
