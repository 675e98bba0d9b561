"""Every computed answer: its `ETag` changes when its content does and only then, whatever happens between two reads."""

from collections.abc import Callable, Mapping
from datetime import timedelta

import httpx

from app.ports import Act, Attempt, Received
from app.web.app import create_app
from tests.support.runs import PATTERN, RECIPE, allowlist_text, make_run, person, version, workflow
from tests.support.webapp import FakeContainer, Switchboard

ANN, BOB, EVE = person("dev-one"), person("dev-two"), person("eve")
FIRST = make_run(ANN, days=3)
OTHER_RECIPE = "gb200-eks-ubuntu-training"

ROUTES: Mapping[str, tuple[str, ...]] = {
    "/recipes": ("/recipes", "/recipes?state=CONFIRMED", "/recipes?staleness=AGED", "/recipes?limit=1"),
    "/recipes/{recipe}": (
        f"/recipes/{RECIPE}",
        f"/recipes/{RECIPE}?aicrVersion=v1.0.0",
        f"/recipes/{RECIPE}?k8s=1.33",
        f"/recipes/{RECIPE}?confirmBy=party",
        f"/recipes/{RECIPE}?asOf=2026-06-20T12:00:00Z",
    ),
    "/evidence": ("/evidence", f"/evidence?recipe={RECIPE}&staleness=SUPERSEDED", "/evidence?outcome=failed&limit=1"),
    "/evidence/{digest}": (f"/evidence/{FIRST.digest}",),
    "/evidence/{digest}/{source}/report": (f"/evidence/{FIRST.digest}/{ANN.slug}/report",),
    "/attempts": ("/attempts", "/attempts?outcome=refused"),
    "/attempts/{attempt_id}": ("/attempts/1",),
    "/sources": ("/sources", "/sources?limit=1"),
    "/sources/{source}": (f"/sources/{ANN.slug}",),
    "/allowlist": ("/allowlist",),
    "/allowlist/versions": ("/allowlist/versions", "/allowlist/versions?limit=1"),
    "/answer": ("/answer?service=eks&accelerator=h100", "/answer?service=moon"),
}
PAGES = ("/ui/recipes", f"/ui/recipes/{RECIPE}", "/openapi.json")
UNCACHED = {
    "/health": "no-store",
    "/ready": "no-store",
    "/evidence/{digest}/{source}/bundle": "immutable",
    "/evidence/{digest}/{source}/predicate": "immutable",
    "/evidence/{digest}/files/{path}": "immutable",
    "/evidence/{digest}/archive": "immutable",
    "/metrics": "no-store",
}
PATHS = (*(path for paths in ROUTES.values() for path in paths), *PAGES)

UNCHANGED = {
    f"/evidence/{FIRST.digest}/{ANN.slug}/report",
    "/attempts/1",
    "/openapi.json",
}
"""What nothing in the history can change: a judgement of archived bytes, an attempt that was not repeated."""

Event = Callable[[FakeContainer], object]


def put_catalogue(it: FakeContainer, recipe: str, floors: Mapping[str, str] | None = None) -> None:
    made = version(recipe=recipe, floors=floors)
    it.store.put_catalogue([made], replace=False, project=it.allowlist.project)


def passes(amount: timedelta) -> Event:
    def happen(it: FakeContainer) -> None:
        it.clock.now += amount

    return happen


def attempted(code: str) -> Event:
    def happen(it: FakeContainer) -> None:
        at = it.clock.now
        it.store.record_attempt(Attempt(0, "ghcr.io/o/e", "", "refused", "materialize", code, {}, at, at, 1))

    return happen


def broken(problem: str | None) -> Event:
    def happen(it: FakeContainer) -> None:
        it.allowlist.problem = problem

    return happen


def listed(*people: object, comment: str = "") -> Event:
    def happen(it: FakeContainer) -> None:
        it.clock.now += timedelta(seconds=1)
        it.allowlist.put(comment + allowlist_text(*people, patterns=[PATTERN]))  # type: ignore[arg-type]

    return happen


def withdrawn(*, retracted: bool) -> Event:
    def happen(it: FakeContainer) -> None:
        act = Act(it.clock.now, "ada", "a reason")
        it.store.retract(FIRST.digest, ANN.canonical_id, act, retracted=retracted, project=it.allowlist.project)

    return happen


def gone(*, is_gone: bool) -> Event:
    return lambda it: it.store.set_gone(FIRST.digest, it.clock.now, gone=is_gone, project=it.allowlist.project)


def seen_elsewhere(it: FakeContainer) -> None:
    it.store.add_location(FIRST.digest, Received(it.clock.now, f"ghcr.io/mirror/e@{FIRST.digest}", public=True))


HISTORY: tuple[tuple[str, Event], ...] = (
    ("nothing", lambda _: None),
    ("a moment", passes(timedelta(seconds=1))),
    ("a second signer", lambda it: it.keep(make_run(BOB, days=2))),
    ("a repeat", lambda it: it.keep(make_run(BOB, days=2))),
    ("another recipe", lambda it: it.keep(make_run(ANN, days=1, recipe=OTHER_RECIPE, digest="12" * 32))),
    ("a stranger", lambda it: it.keep(make_run(EVE, "failed", days=1))),
    ("a refusal", attempted("S1_TOO_LARGE")),
    ("the same refusal", attempted("S1_TOO_LARGE")),
    ("a catalogue", lambda it: put_catalogue(it, RECIPE)),
    ("the same catalogue", lambda it: put_catalogue(it, RECIPE)),
    ("floors", lambda it: put_catalogue(it, RECIPE, {"K8s.server.version": ">= 1.40"})),
    ("a catalogue of another recipe", lambda it: put_catalogue(it, "another")),
    ("one listed less", listed(ANN)),
    ("a list that only looks different", listed(ANN, comment="# a comment\n")),
    ("all listed again", listed(ANN, BOB)),
    ("a broken file", broken("expected schemaVersion 1.0")),
    ("a file that is whole again", broken(None)),
    ("five minutes", passes(timedelta(minutes=5))),
    ("a day", passes(timedelta(days=1))),
    ("most of a day", passes(timedelta(hours=23))),
    ("the rest of it", passes(timedelta(hours=1))),
    ("a month", passes(timedelta(days=30))),
    ("the owner's newer run", lambda it: it.keep(make_run(ANN, "failed", days=0.5))),
    ("a workflow", lambda it: it.keep(make_run(workflow(), days=0.4))),
    ("a mirror", seen_elsewhere),
    ("a retraction", withdrawn(retracted=True)),
    ("its end", withdrawn(retracted=False)),
    ("a bundle that is gone", gone(is_gone=True)),
    ("a bundle that is back", gone(is_gone=False)),
)


def test_every_route_that_can_be_read_is_in_the_table(client: httpx.Client) -> None:
    readable = {path for path, item in client.get("/openapi.json").json()["paths"].items() if "get" in item}
    assert readable - set(UNCACHED) == set(ROUTES)


def test_a_tag_is_as_old_as_its_content(
    container: FakeContainer, switchboard: tuple[Switchboard, str], client: httpx.Client
) -> None:
    """What a remembered tag says is compared with a service that remembers nothing."""
    board, _ = switchboard
    warm = board.app
    container.keep(FIRST)
    attempted("S2_JSON_DUPLICATE_KEY")(container)
    put_catalogue(container, OTHER_RECIPE)
    held = {path: client.get(path) for path in PATHS}
    assert {(one.status_code, one.headers["cache-control"]) for one in held.values()} == {(200, "no-cache")}
    changed: set[str] = set()
    for what, happens in HISTORY:
        happens(container)
        board.app = create_app(container)
        fresh = {path: client.get(path) for path in PATHS}
        board.app = warm
        for path, now in fresh.items():
            before = held[path]
            answer = client.get(path, headers={"If-None-Match": before.headers["etag"]})
            same = now.content == before.content
            assert (answer.status_code, answer.headers["etag"]) == (304 if same else 200, now.headers["etag"]), (
                f"{path} after {what}"
            )
            assert (now.headers["etag"] == before.headers["etag"]) == same, f"{path} after {what}"
            if not same:
                assert answer.content == now.content, f"{path} after {what}"
                held[path] = answer
                changed.add(path)
    assert set(PATHS) - changed == UNCHANGED
