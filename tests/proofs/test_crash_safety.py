"""`kill -9` after each step of an ingest: nothing acknowledged is lost, nothing half is visible, orphans are swept."""

import json
import signal
import threading
from collections import Counter
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import httpx
import pytest

from app.sandbox.identities import DEV_TWO, OCTOCAT, PARTNER, STRANGER, UAT_AWS, UAT_GCP
from tests.support.crashes import CrashingService, Nursery, open_nursery
from tests.support.service import Published, Stage, answers, new_database, open_stage, sized

pytestmark = [pytest.mark.proof, pytest.mark.postgres]

STEPS = (
    "fetched",
    "archive:blobs",
    "archive:rename",
    "archive:synced",
    "archived",
    "db:row",
    "db:commit",
    "committed",
    "answering",
    "archive:signature",
    "archive:index",
)
"""Every step that a crash may follow; the last two are passed when a digest gets one more signature."""

SIGNERS = (UAT_AWS, OCTOCAT, PARTNER, UAT_GCP)
RECIPES = ("agreed", "disputed", "alone")


@pytest.fixture(scope="module")
def nursery() -> Iterator[Nursery]:
    with open_nursery() as opened:
        yield opened


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    with open_stage(tmp_path_factory.mktemp("stage")) as opened:
        yield opened


class Client:
    """Submits bundles, and remembers which of them were acknowledged with what."""

    def __init__(self, stage: Stage, name: str) -> None:
        self._stage = stage
        self._name = name
        self._numbers = count(1)
        self.acknowledged: dict[tuple[str, str], tuple[Published, bytes]] = {}
        self.unanswered: list[Published] = []

    def batch(self) -> list[Published]:
        """Two new bundles, one more signature about an acknowledged one, and what got no answer before.

        That signature may be of a source that has a record of the digest, which then stays the only one.
        """
        fresh = []
        for _ in range(2):
            number = next(self._numbers)
            recipe, signer = RECIPES[number % 3], SIGNERS[number % 4]
            fresh.append(self._stage.publish(f"{self._name}-{number}", recipe, signer, days_ago=1 + number / 7))
        again = []
        if self.acknowledged:
            first, _ = list(self.acknowledged.values())[-1]
            signer = DEV_TWO if first.signer == STRANGER else STRANGER
            again.append(self._stage.sign_again(first, signer, repository=f"aicr/copies-{next(self._numbers)}"))
        retried, self.unanswered = self.unanswered, []
        return [*fresh, *again, *retried]

    def submit(self, service: CrashingService, bundles: list[Published]) -> None:
        """All at once; a connection that breaks is no answer."""

        def one(published: Published) -> None:
            try:
                reply = httpx.post(f"{service.url}/evidence", json={"bundle": str(published.ref)}, timeout=60)
            except httpx.HTTPError:
                self.unanswered.append(published)
                return
            assert reply.status_code in (200, 201), f"{reply.text}\n{service.said()[-4000:]}"
            self.acknowledged[published.digest, published.signer.signer.slug] = (published, reply.content)

        threads = [threading.Thread(target=one, args=(published,)) for published in bundles]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)

    def check(self, service: CrashingService) -> None:
        """What the store and the archive show after a restart, against what this client was told."""
        listed = [(each["digest"], each["source"]) for each in service.get("/evidence?limit=500")["items"]]
        assert self.acknowledged.keys() <= set(listed)
        # No archived bundle or signature without its record, and no record without those.
        assert archived(service.directory) == Counter(digest for digest, _ in listed)
        assert list((service.directory / "archive.pulls").iterdir()) == []
        for published in self.unanswered:
            status = 200 if any(digest == published.digest for digest, _ in listed) else 404
            assert service.client.get(f"/evidence/{published.digest}").status_code == status
            assert service.client.get(f"/evidence/{published.digest}/archive").status_code == status

    def check_repeats(self, service: CrashingService) -> None:
        """Everything that was acknowledged is answered again, with the body of the first time."""
        for published, body in self.acknowledged.values():
            reply = service.submit(published)
            assert (reply.status_code, reply.content) == (200, body)


def archived(directory: Path) -> Counter[str]:
    """How many signatures the archive holds, by bundle digest; nothing may lie there that is neither."""
    found: Counter[str] = Counter()
    for shard in (directory / "archive").iterdir():
        for layout in shard.iterdir():
            listed = json.loads((layout / "index.json").read_bytes())["manifests"]
            assert sorted(path.name for path in layout.iterdir()) == ["blobs", "index.json", "oci-layout"]
            blobs = {path.name for path in (layout / "blobs" / "sha256").iterdir()}
            assert len(blobs) == 3 + 2 * (len(listed) - 1)  # manifest, config, layer; two for each signature
            found[f"sha256:{layout.name}"] = len(listed) - 1
    return found


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
@pytest.mark.parametrize("step", STEPS)
def test_a_crash_after_a_step_loses_nothing_and_shows_nothing_half(
    step: str, kind: str, nursery: Nursery, stage: Stage, tmp_path: Path
) -> None:
    service = CrashingService(nursery, stage, tmp_path / "service", new_database(kind, tmp_path))
    client = Client(stage, f"{kind}-{step}")
    try:
        service.start()
        client.submit(service, client.batch())
        assert client.unanswered == []
        service.stop()
        for kill in range(sized(5, 25)):
            service.arm(step, 1 if step in ("archive:signature", "archive:index") else 1 + kill % 2)
            client.check(service)
            client.submit(service, client.batch())
            assert client.unanswered != []
            assert service.ended() == -signal.SIGKILL
        service.start()
        client.check(service)
        client.submit(service, client.batch())
        assert client.unanswered == []
        client.check_repeats(service)
        before = answers(service, signed=False)
        service.stop()
        assert service.rebuilt()["lost"] == []
        service.start()
        after = answers(service, signed=False)
        assert {path for path in before.keys() | after.keys() if before.get(path) != after.get(path)} == set()
    finally:
        service.stop()
        service.client.close()
