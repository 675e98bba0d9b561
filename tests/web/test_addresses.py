"""Paths and queries: what is unknown, repeated or can not be meant is refused on every route, with the envelope."""

import base64

import httpx
import pytest

from tests.support.runs import RECIPE, make_run, person
from tests.support.webapp import REGISTRY, FakeContainer

REFERENCE = f"{REGISTRY}@sha256:{'ab' * 32}"
DIGEST = f"sha256:{'ab' * 32}"
LENS = ["aicrVersion", "aicrCommit", "k8s", "asOf", "confirmBy"]


def cursor(text: str) -> str:
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


@pytest.mark.parametrize(
    ("request_line", "message", "expected"),
    [
        pytest.param(
            "POST /evidence?dryrun=true",
            "unknown query parameter 'dryrun': expected one of dryRun",
            ["dryRun"],
            id="misspelt",
        ),
        pytest.param(
            "POST /evidence?dryRun=true&dryRun=false",
            "expected the query parameter dryRun once, got it again",
            ["dryRun"],
            id="repeated",
        ),
        pytest.param(
            "POST /verify?Format=markdown",
            "unknown query parameter 'Format': expected one of format",
            ["format"],
            id="capital",
        ),
        pytest.param(
            "GET /allowlist?limit=1",
            "unknown query parameter 'limit': expected none",
            [],
            id="a-route-without-parameters",
        ),
        pytest.param(
            "GET /recipes/unknown?as_of=2026-01-01T00:00:00Z",
            "unknown query parameter 'as_of': expected one of aicrVersion, aicrCommit, k8s, asOf, confirmBy",
            LENS,
            id="before-the-recipe-is-looked-up",
        ),
        pytest.param(
            "PUT /recipes?Replace=true",
            "unknown query parameter 'Replace': expected one of replace",
            ["replace"],
            id="before-the-token",
        ),
        pytest.param("GET /health?x", "unknown query parameter 'x': expected none", [], id="without-a-value"),
    ],
)
def test_a_parameter_that_is_unknown_or_repeated_names_the_known_ones(
    container: FakeContainer, client: httpx.Client, request_line: str, message: str, expected: list[str]
) -> None:
    method, _, target = request_line.partition(" ")
    answer = client.request(method, target, json=None if method == "GET" else {"bundle": REFERENCE})
    assert (answer.status_code, answer.json()["code"], answer.json()["message"]) == (400, "INVALID_REQUEST", message)
    assert answer.json()["details"] == {"expected": expected}
    assert container.ingest.asked == []


@pytest.mark.parametrize("path", ["/recipes", "/ui/recipes"])
def test_a_misspelt_filter_is_refused_instead_of_ignored(client: httpx.Client, path: str) -> None:
    answer = client.get(f"{path}?State=CONFIRMED")
    assert answer.status_code == 400
    assert "cursor, limit, service, accelerator, os, intent, platform, profile, state" in answer.text
    assert answer.headers["content-type"].startswith("text/html" if path.startswith("/ui") else "application/json")


def test_every_documented_parameter_is_known(client: httpx.Client) -> None:
    """An empty one is as if it was not there, so that each can be sent to each route."""
    tried = 0
    for path, operations in client.get("/openapi.json").json()["paths"].items():
        names = [one["name"] for one in operations.get("get", {}).get("parameters", []) if one["in"] == "query"]
        for name in names:
            target = path.replace("{recipe}", "unknown").replace("{digest}", DIGEST).replace("{source}", "0" * 32)
            answer = client.get(f"{target}?{name}=")
            assert "unknown query parameter" not in answer.text, target
            tried += 1
    assert tried > 40


@pytest.mark.parametrize(
    "target",
    [
        "/sources/%00",
        "/recipes/a%00b",
        "/evidence/%00",
        f"/evidence/{DIGEST}/%00/report",
        "/attempts/%00",
        "/ui/recipes/%00",
        "/static/%00",
    ],
)
def test_nothing_is_known_under_a_path_with_nul(client: httpx.Client, target: str) -> None:
    assert client.get(target).status_code == 404


@pytest.mark.parametrize(
    "target",
    [
        pytest.param("/evidence?source=%00", id="source"),
        pytest.param("/evidence?recipe=a%00b", id="recipe"),
        pytest.param("/answer?service=%00", id="criteria"),
        pytest.param("/ui/recipes?q=%00", id="page"),
        pytest.param("/sources?cursor=" + cursor('["sources", "\\ud800"]'), id="surrogate-in-a-cursor"),
        pytest.param("/sources?cursor=" + cursor('["sources", "\\u0000"]'), id="nul-in-a-cursor"),
        pytest.param("/recipes?cursor=" + cursor('["recipes", "a\\ud800b"]'), id="surrogate-in-a-name"),
        pytest.param("/evidence?since=0001-01-01T00:00:00%2B23:59", id="before-the-first-year"),
        pytest.param("/evidence?since=9999-12-31T23:59:59-23:59", id="since-after-the-last-year"),
        pytest.param("/evidence?until=9999-12-31T23:59:59-23:59", id="until-after-the-last-year"),
        pytest.param(f"/recipes/{RECIPE}?asOf=0001-01-01T00:00:00%2B23:59", id="as-of-before-the-first-year"),
        pytest.param(f"/ui/recipes/{RECIPE}?asOf=0001-01-01T00:00:00%2B23:59", id="as-of-on-the-page"),
        pytest.param("/evidence?since=1", id="number"),
        pytest.param(f"/recipes/{RECIPE}?asOf=-1", id="negative-number"),
        pytest.param("/evidence?since=1e9", id="float"),
        pytest.param("/evidence?since=2026-01-01", id="date-alone"),
        pytest.param("/evidence?since=2026-13-45T00:00:00Z", id="no-such-day"),
    ],
)
def test_what_can_not_be_meant_is_400(container: FakeContainer, client: httpx.Client, target: str) -> None:
    container.keep(make_run(person("dev-one")))
    answer = client.get(target)
    assert answer.status_code == 400, answer.text


def test_the_first_and_the_last_moment_can_be_asked_for(container: FakeContainer, client: httpx.Client) -> None:
    container.keep(make_run(person("dev-one")))
    query = "since=0001-01-01T00:00:00Z&until=9999-12-31T23:59:59.999999999%2B00:00"
    assert len(client.get(f"/evidence?{query}").json()["items"]) == 1


@pytest.mark.parametrize(
    ("target", "field", "message"),
    [
        pytest.param("/recipes?limit=501", "query.limit", "expected at most 500", id="too-many"),
        pytest.param("/recipes?limit=x", "query.limit", "expected a whole number", id="no-number"),
        pytest.param(
            "/evidence?since=1",
            "query.since",
            "expected a date and time with Z or an offset, such as 2026-01-11T10:30:00Z",
            id="time",
        ),
        pytest.param("/evidence?outcome=maybe", "query.outcome", "expected 'passed' or 'failed'", id="one-of-two"),
        pytest.param(
            "/evidence?staleness=OLD",
            "query.staleness",
            "expected 'DRIFTED', 'NEVER_PUBLISHED', 'UNKNOWN_CURRENT', 'LEGACY_PREDICATE', 'SUPERSEDED', 'AGED', "
            "'SIGNER_REMOVED', 'BUNDLE_GONE' or 'RETRACTED' or 'current'",
            id="both-branches-of-a-type",
        ),
        pytest.param("/recipes/" + "x" * 600, "path.recipe", "expected at most 512 characters", id="path"),
    ],
)
def test_a_wrong_value_is_told_in_the_words_of_its_field(
    client: httpx.Client, target: str, field: str, message: str
) -> None:
    found = client.get(target).json()
    assert found["details"]["fields"] == [{"field": field, "message": message}]
    assert found["message"] == f"{field}: {message}"
