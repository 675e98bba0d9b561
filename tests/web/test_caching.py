"""`ETag`, 304 and what a 304 costs."""

from datetime import timedelta
from typing import Any

import httpx
import pytest

from app.web.caching import TagCache
from tests.support.runs import NOW, RECIPE, allowlist_text, make_run, person, version
from tests.support.webapp import FakeContainer

PAGES = (f"/recipes/{RECIPE}", "/recipes", f"/ui/recipes/{RECIPE}", "/ui/recipes", "/evidence")


def tag(client: httpx.Client, path: str) -> str:
    return client.get(path).headers["etag"]


@pytest.mark.parametrize("path", PAGES)
def test_unchanged_content_is_304(container: FakeContainer, client: httpx.Client, path: str) -> None:
    container.keep(make_run(person("dev-one")))
    first = client.get(path)
    again = client.get(path, headers={"If-None-Match": first.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")
    assert (again.headers["etag"], again.headers["cache-control"]) == (first.headers["etag"], "no-cache")
    weak = client.get(path, headers={"If-None-Match": f'"other", W/{first.headers["etag"]}'})
    assert weak.status_code == 304
    assert client.get(path, headers={"If-None-Match": '"other"'}).status_code == 200


@pytest.mark.parametrize("path", PAGES)
def test_the_tag_changes_with_evidence_list_catalogue_and_age(
    container: FakeContainer, client: httpx.Client, path: str
) -> None:
    container.keep(make_run(person("dev-one")))
    tags = [tag(client, path)]
    container.keep(make_run(person("dev-two"), days=29.5))
    tags.append(tag(client, path))
    container.allowlist.put(allowlist_text(person("dev-two")))
    tags.append(tag(client, path))
    container.store.put_catalogue([version()], replace=False, project=container.allowlist.project)
    tags.append(tag(client, path))
    container.clock.now += timedelta(days=2)
    tags.append(tag(client, path))
    assert len(set(tags)) == 5


def test_the_tag_stays_when_only_time_or_another_recipe_moves(container: FakeContainer, client: httpx.Client) -> None:
    container.keep(make_run(person("dev-one"), days=1.5))
    before = client.get(f"/recipes/{RECIPE}")
    container.clock.now += timedelta(minutes=5)
    container.store.put_catalogue([version(recipe="another")], replace=False, project=container.allowlist.project)
    after = client.get(f"/recipes/{RECIPE}", headers={"If-None-Match": before.headers["etag"]})
    assert after.status_code == 304


def test_an_age_that_runs_on_is_seen_at_the_next_request(container: FakeContainer, client: httpx.Client) -> None:
    """The remembered tag is not used beyond the moment when the age changes, also without any write."""
    container.keep(make_run(person("dev-one"), days=1))
    first = client.get(f"/recipes/{RECIPE}")
    assert first.json()["sources"][0]["ageDays"] == 1
    container.clock.now += timedelta(days=1)
    second = client.get(f"/recipes/{RECIPE}", headers={"If-None-Match": first.headers["etag"]})
    assert (second.status_code, second.json()["sources"][0]["ageDays"]) == (200, 2)


def test_the_catalogue_line_ages_without_a_write(container: FakeContainer, client: httpx.Client) -> None:
    container.keep(make_run(person("dev-one"), days=30))
    first = client.get("/recipes")
    container.clock.now += timedelta(days=2)
    second = client.get("/recipes", headers={"If-None-Match": first.headers["etag"]})
    assert [answer.json()["items"][0]["staleness"] for answer in (first, second)] == [
        ["UNKNOWN_CURRENT"],
        ["UNKNOWN_CURRENT", "AGED"],
    ]


def test_a_304_asks_one_cheap_question(
    container: FakeContainer, client: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    container.keep(make_run(person("dev-one")))
    known = tag(client, f"/recipes/{RECIPE}")
    asked: list[str] = []
    real = type(container.store).__getattribute__

    def watched(store: object, name: str) -> Any:
        if not name.startswith("_"):
            asked.append(name)
        return real(store, name)

    monkeypatch.setattr(type(container.store), "__getattribute__", watched)
    answer = client.get(f"/recipes/{RECIPE}", headers={"If-None-Match": known})
    assert (answer.status_code, asked) == (304, ["revision"])


def test_the_tag_cache_forgets_the_least_recently_used_one() -> None:
    cache = TagCache(max_tags=2)
    cache.put("a", "1", None)
    cache.put("b", "2", None)
    assert cache.get("a", NOW) == "1"
    cache.put("c", "3", None)
    assert [cache.get(key, NOW) for key in ("a", "b", "c")] == ["1", None, "3"]


def test_a_tag_holds_until_its_time() -> None:
    cache = TagCache()
    cache.put("a", "1", NOW + timedelta(hours=1))
    assert cache.get("a", NOW) == "1"
    assert cache.get("a", NOW + timedelta(hours=1)) is None
