"""Files and archives, attempts, the allowlist and sources, over a socket."""

import io
import os
import tarfile
import threading
from datetime import UTC, datetime
from pathlib import Path

import httpx
import pytest

from app.core.refs import Digest
from app.ports import Attempt
from tests.support.runs import GHO, PATTERN, RECIPE, allowlist_text, make_run, person, workflow
from tests.support.webapp import REGISTRY, FakeContainer

FILES = {
    "recipe.yaml": b"kind: RecipeResult\n",
    "ctrf/deployment.json": b"{}",
    "nasty/<svg onload=alert(1)>.html": b"<script>alert(1)</script>",
    "big.bin": bytes(range(256)) * 1024,
}


@pytest.fixture
def digest(container: FakeContainer) -> str:
    return str(container.keep(make_run(person("dev-one")), files=FILES).run.digest)


@pytest.mark.parametrize("path", list(FILES))
def test_a_file_is_exact_and_can_not_run(client: httpx.Client, digest: str, path: str) -> None:
    answer = client.get(f"/evidence/{digest}/files/{path}")
    assert (answer.status_code, answer.content) == (200, FILES[path])
    assert answer.headers["content-type"] == "application/octet-stream"
    assert answer.headers["content-disposition"].startswith("attachment; filename*=UTF-8''")
    assert answer.headers["content-security-policy"].endswith("sandbox")
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["cache-control"] == "public, max-age=31536000, immutable"
    assert answer.headers["content-length"] == str(len(FILES[path]))
    head = client.head(f"/evidence/{digest}/files/{path}")
    assert (head.content, head.headers["content-length"]) == (b"", str(len(FILES[path])))


@pytest.mark.parametrize(
    "path",
    ["nope", "ctrf", "ctrf/", "", "..%2f..%2fetc%2fpasswd", "ctrf%2f..%2frecipe.yaml", "%2fetc%2fpasswd", "a%00b"],
)
def test_what_is_no_file_of_the_bundle_is_404(client: httpx.Client, digest: str, path: str) -> None:
    answer = client.get(f"/evidence/{digest}/files/{path}")
    assert (answer.status_code, answer.json()["code"]) == (404, "NOT_FOUND")


def test_a_link_in_an_unpacked_bundle_is_not_followed(
    container: FakeContainer, client: httpx.Client, digest: str
) -> None:
    """The archive unpacks none; if one was there all the same, it would lead nowhere."""

    def plant(directory: Path) -> None:
        (directory / "link").symlink_to("/etc")
        (directory / "file").symlink_to("/etc/hostname")
        os.mkfifo(directory / "pipe")

    container.archive.planted = plant
    for path in ("link/hostname", "file", "pipe"):
        assert client.get(f"/evidence/{digest}/files/{path}").status_code == 404, path


def test_reading_files_leaves_no_descriptor_behind(client: httpx.Client, digest: str) -> None:
    def descriptors() -> int:
        return len(os.listdir("/proc/self/fd"))  # noqa: PTH208 - only the count

    client.get(f"/evidence/{digest}/files/big.bin")
    before = descriptors()
    for _ in range(20):
        client.head(f"/evidence/{digest}/files/big.bin")
        client.get(f"/evidence/{digest}/files/big.bin")
        client.get(f"/evidence/{digest}/files/nope")
    assert descriptors() <= before + 2


def test_the_archive_is_a_tar_as_an_attachment(client: httpx.Client, digest: str) -> None:
    answer = client.get(f"/evidence/{digest}/archive")
    assert answer.headers["content-type"] == "application/x-tar"
    assert answer.headers["content-disposition"] == f"attachment; filename*=UTF-8''{digest[7:]}.tar"
    with tarfile.open(fileobj=io.BytesIO(answer.content)) as tar:
        assert tar.getnames() == list(FILES)


def test_many_unpackings_wait_without_blocking_a_read(
    container: FakeContainer, client: httpx.Client, digest: str
) -> None:
    """60 readers of files, and never more than four unpacked bundles; the recipes answer meanwhile."""
    release = threading.Event()
    now, most = 0, 0
    lock = threading.Lock()

    def hold(_: Path) -> None:
        nonlocal now, most
        with lock:
            now += 1
            most = max(most, now)
        release.wait(20)
        with lock:
            now -= 1

    container.archive.planted = hold
    statuses: list[int] = []

    def read() -> None:
        with httpx.Client(base_url=client.base_url, trust_env=False, timeout=30) as own:
            statuses.append(own.get(f"/evidence/{digest}/files/recipe.yaml").status_code)

    threads = [threading.Thread(target=read) for _ in range(60)]
    for thread in threads:
        thread.start()
    while now < 4:
        threading.Event().wait(0.01)
    assert client.get("/recipes", timeout=5).status_code == 200
    release.set()
    for thread in threads:
        thread.join(20)
    assert (statuses, most) == ([200] * 60, 4)


def test_only_accepted_digests_are_served(container: FakeContainer, client: httpx.Client) -> None:
    """Bytes that lie in the archive without a record, as after a crash, are nobody's to read."""
    container.archive.files[Digest("ee" * 32)] = FILES
    for tail in ("archive", "files/recipe.yaml"):
        assert client.get(f"/evidence/sha256:{'ee' * 32}/{tail}").status_code == 404


# --- attempts --------------------------------------------------------------------------------------


def attempt(number: int, **changes: object) -> Attempt:
    at = datetime(2026, 6, 20, 10, number, tzinfo=UTC)
    fields: dict[str, object] = {
        "id": 0,
        "reference": f"{REGISTRY}@sha256:{number:064x}",
        "digest": f"sha256:{number:064x}",
        "outcome": "refused",
        "step": "signature-verify",
        "code": "S5_BASE64",
        "cause": {"class": "signature", "detail": "certificate of dev-one@example.org", "more": ["x@example.org"]},
        "first_at": at,
        "last_at": at,
        "count": 1,
    }
    return Attempt(**{**fields, **changes})  # type: ignore[arg-type]


def test_attempts_are_listed_newest_first_and_masked(container: FakeContainer, client: httpx.Client) -> None:
    for number in (1, 2, 3):
        container.store.record_attempt(attempt(number))
    container.store.record_attempt(attempt(2))
    container.store.record_attempt(attempt(4, outcome="no-verdict", code="SERVICE_UNAVAILABLE"))
    found = client.get("/attempts").json()["items"]
    assert [(one["digest"][-1], one["outcome"], one["count"]) for one in found] == [
        ("4", "no-verdict", 1),
        ("3", "refused", 1),
        ("2", "refused", 2),
        ("1", "refused", 1),
    ]
    assert found[1]["cause"] == {
        "class": "signature",
        "detail": "certificate of d…e@example.org",
        "more": ["…@example.org"],
    }
    only = client.get("/attempts?outcome=no-verdict").json()["items"]
    assert [one["code"] for one in only] == ["SERVICE_UNAVAILABLE"]
    assert len(client.get("/attempts", params={"digest": f"sha256:{2:064x}"}).json()["items"]) == 1
    page = client.get("/attempts?limit=3").json()
    rest = client.get("/attempts", params={"limit": 3, "cursor": page["next"]}).json()
    assert ([one["digest"][-1] for one in rest["items"]], rest["next"]) == (["1"], None)


@pytest.mark.parametrize(
    ("outcome", "digest", "links"),
    [
        pytest.param("accepted", "ab" * 32, {"self", "evidence"}, id="accepted"),
        pytest.param("refused", "ab" * 32, {"self"}, id="refused"),
        pytest.param("no-verdict", "ab" * 32, {"self"}, id="no-verdict"),
        pytest.param("no-verdict", "", {"self"}, id="no-digest"),
    ],
)
def test_an_attempt_links_only_evidence_that_there_is(
    container: FakeContainer, client: httpx.Client, outcome: str, digest: str, links: set[str]
) -> None:
    container.keep(make_run(person("dev-one"), digest="ab" * 32))
    kept = container.store.record_attempt(attempt(7, outcome=outcome, digest=digest and f"sha256:{digest}"))
    found = client.get(f"/attempts/{kept.id}").json()["links"]
    assert set(found) == links
    assert {client.get(link).status_code for link in found.values()} == {200}


@pytest.mark.parametrize("path", ["/attempts", "/attempts/1", "/recipes", "/evidence", "/ui/recipes"])
def test_any_representation_is_known_to_who_asks_for_a_star(
    container: FakeContainer, client: httpx.Client, path: str
) -> None:
    container.store.record_attempt(attempt(7))
    tag = client.get(path).headers["etag"]
    for asked in ("*", f"W/{tag}", f'"other", {tag}'):
        assert client.get(path, headers={"If-None-Match": asked}).status_code == 304
    assert client.get(path, headers={"If-None-Match": tag.strip('"')}).status_code == 200


def test_an_attempt_has_a_page_of_its_own_and_a_tag(container: FakeContainer, client: httpx.Client) -> None:
    kept = container.store.record_attempt(attempt(7))
    answer = client.get(f"/attempts/{kept.id}")
    assert (answer.json()["code"], answer.json()["links"]["self"]) == ("S5_BASE64", f"/attempts/{kept.id}")
    again = client.get(f"/attempts/{kept.id}", headers={"If-None-Match": answer.headers["etag"]})
    assert again.status_code == 304
    container.store.record_attempt(attempt(7))
    later = client.get(f"/attempts/{kept.id}", headers={"If-None-Match": answer.headers["etag"]})
    assert (later.status_code, later.json()["count"]) == (200, 2)
    for bad in ("0", "-1", "x", str(1 << 70)):
        assert client.get(f"/attempts/{bad}").status_code == 400


# --- allowlist and sources -------------------------------------------------------------------------


def test_the_allowlist_in_force_is_shown_without_addresses(client: httpx.Client) -> None:
    found = client.get("/allowlist").json()
    assert (found["status"], found["problem"], found["since"]) == ("ok", None, "2026-06-20T12:00:00Z")
    assert found["entries"][0]["identityPattern"] == PATTERN
    assert [entry["source"] for entry in found["entries"][1:]] == [person("dev-one").slug, person("dev-two").slug]
    assert "example.org" not in str(found)


def test_versions_say_what_each_list_changed(container: FakeContainer, client: httpx.Client) -> None:
    container.clock.now = container.clock.now.replace(hour=14)
    container.allowlist.put(allowlist_text(person("dev-two"), person("dev-three"), patterns=[PATTERN]))
    items = client.get("/allowlist/versions").json()["items"]
    assert [one["since"] for one in items] == ["2026-06-20T14:00:00Z", "2026-06-20T12:00:00Z"]
    assert [entry["source"] for entry in items[0]["added"]] == [person("dev-three").slug]
    assert [entry["source"] for entry in items[0]["removed"]] == [person("dev-one").slug]
    assert (len(items[1]["added"]), items[1]["removed"]) == (3, [])
    first = client.get("/allowlist/versions?limit=1").json()
    container.allowlist.put(allowlist_text())
    second = client.get("/allowlist/versions", params={"limit": 1, "cursor": first["next"]}).json()
    assert [second["items"][0]["sha256"], second["next"]] == [items[1]["sha256"], None]


def test_sources_say_why_each_counts(container: FakeContainer, client: httpx.Client) -> None:
    for signer in (person("dev-one"), workflow(), person("stranger")):
        container.keep(make_run(signer))
    found = {one["source"]: one for one in client.get("/sources").json()["items"]}
    assert "lists this signer by its slug" in found[person("dev-one").slug]["why"]
    assert "admits this workflow identity" in found[workflow().slug]["why"]
    assert "weigh nothing" in found[person("stranger").slug]["why"]
    assert found[person("stranger").slug]["identity"] == "s…r@example.org"
    one = client.get(f"/sources/{workflow().slug}").json()
    assert one == found[workflow().slug]
    assert (one["records"], one["recipes"], one["class"]) == (1, [RECIPE], "first-party")
    assert client.get(f"/sources/{workflow().canonical_id}").json() == one
    pages = client.get("/sources?limit=2").json()
    rest = client.get("/sources", params={"limit": 2, "cursor": pages["next"]}).json()
    assert len(pages["items"]) + len(rest["items"]) == 3


def test_a_change_of_the_list_shows_at_once(container: FakeContainer, client: httpx.Client) -> None:
    container.keep(make_run(person("dev-one")))
    path = f"/sources/{person('dev-one').slug}"
    before = client.get(path)
    container.allowlist.put(allowlist_text())
    after = client.get(path, headers={"If-None-Match": before.headers["etag"]})
    assert (before.json()["allowlisted"], after.json()["allowlisted"]) == (True, False)
    removed = client.get(f"/recipes/{RECIPE}").json()["sources"][0]["staleness"]
    assert "SIGNER_REMOVED" in [one["reason"] for one in removed]
    assert before.json()["issuer"] == GHO
