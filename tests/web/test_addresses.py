"""Paths and queries: the API refuses what is unknown or repeated, every route what can not be meant."""

import base64

import httpx
import pytest

from app.core.errors import StoreError
from tests.support.htmlcheck import Page
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
            "POST /evidence?utm_source=mail",
            "unknown query parameter 'utm_source': expected one of dryRun",
            ["dryRun"],
            id="a-write",
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
        pytest.param(
            "GET /sources?x",
            "unknown query parameter 'x': expected one of cursor, limit",
            ["cursor", "limit"],
            id="without-a-value",
        ),
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


@pytest.mark.parametrize(
    ("target", "status"),
    [
        pytest.param("/health?probe=lb", 200, id="health"),
        pytest.param("/health?x=%00&x", 200, id="health-with-what-can-not-be-meant"),
        pytest.param("/ready?_=1", 200, id="ready"),
        pytest.param("/?fbclid=1", 307, id="front-page"),
        pytest.param("/ui?fbclid=1", 307, id="ui"),
        pytest.param("/ui/recipes?utm_source=mail&utm_source=mail", 200, id="recipes-page"),
        pytest.param("/ui/recipes?q=h100&q=h100", 200, id="known-twice-on-a-page"),
        pytest.param(f"/ui/recipes/{RECIPE}?utm_source=mail", 200, id="recipe-page"),
        pytest.param("/docs?x=1", 200, id="docs"),
        pytest.param("/openapi.json?x=1", 200, id="openapi"),
        pytest.param("/static/style.css?x=1", 200, id="static"),
        pytest.param("/allowlist?x=1", 200, id="a-read-without-parameters"),
    ],
)
def test_probes_pages_and_files_ignore_what_they_do_not_know(
    container: FakeContainer, client: httpx.Client, target: str, status: int
) -> None:
    container.keep(make_run(person("dev-one")))
    assert client.get(target).status_code == status


def test_the_twin_of_a_page_takes_over_what_the_page_knows(container: FakeContainer, client: httpx.Client) -> None:
    container.keep(make_run(person("dev-one")))
    drawn = Page(client.get(f"/ui/recipes/{RECIPE}?k8s=1.35&utm_source=mail&asOf=2026-06-20T14:00:00%2B02:00").text)
    twin = next(link for link in drawn.links if link.startswith(f"/recipes/{RECIPE}"))
    assert twin == f"/recipes/{RECIPE}?k8s=1.35&asOf=2026-06-20T12%3A00%3A00Z"
    assert client.get(twin).status_code == 200


@pytest.mark.parametrize(
    ("request_line", "status"),
    [
        pytest.param("POST /evidence?dryRun=", 503, id="true-or-false"),
        pytest.param("POST /verify?format=", 503, id="one-of-two"),
        pytest.param("PUT /recipes?replace=", 200, id="bulk"),
        pytest.param(f"PUT /recipes/{RECIPE}?commit=abc&ref=&time=", 200, id="time"),
        pytest.param("GET /recipes?limit=&state=&q=", 200, id="list"),
        pytest.param("GET /ui/recipes?limit=&state=&q=", 200, id="page"),
        pytest.param("GET /recipes?State=", 200, id="unknown"),
        pytest.param("POST /evidence?dryRun=&dryRun=true", 503, id="beside-one-that-says-something"),
    ],
)
def test_an_empty_parameter_is_as_if_it_was_not_there(
    container: FakeContainer, client: httpx.Client, request_line: str, status: int
) -> None:
    """503 is the answer of a submission that came through to the ingest, which here can not store."""
    container.ingest.results[REFERENCE] = StoreError("busy")
    method, _, target = request_line.partition(" ")
    digests = {"digests": {"legacy": "a" * 64, "contentOnly": "b" * 64}}
    body = {
        "POST": {"bundle": REFERENCE},
        "PUT": {"recipes": [{"name": RECIPE, **digests}]} if "replace" in target else digests,
    }
    answer = client.request(method, target, json=body.get(method), headers={"Authorization": "Bearer push-me"})
    assert answer.status_code == status, answer.text
    assert [asked.dry_run for asked in container.ingest.asked] == ["true" in target] * (method == "POST")


@pytest.mark.parametrize("target", ["/evidence?dryRun", "/evidence?dryRun&dryRun="])
def test_a_name_alone_is_refused_since_it_may_be_meant_as_true(
    container: FakeContainer, client: httpx.Client, target: str
) -> None:
    answer = client.post(target, json={"bundle": REFERENCE})
    assert (answer.status_code, answer.json()["message"]) == (
        400,
        "dryRun: expected dryRun=<value>, got the name alone",
    )
    assert container.ingest.asked == []


def test_every_documented_parameter_is_known(client: httpx.Client) -> None:
    tried = 0
    for path, operations in client.get("/openapi.json").json()["paths"].items():
        names = [one["name"] for one in operations.get("get", {}).get("parameters", []) if one["in"] == "query"]
        for name in names:
            target = path.replace("{recipe}", "unknown").replace("{digest}", DIGEST).replace("{source}", "0" * 32)
            answer = client.get(f"{target}?{name}=x")
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
        pytest.param("/recipes?limit=501", "limit", "expected at most 500", id="too-many"),
        pytest.param("/recipes?limit=x", "limit", "expected a whole number", id="no-number"),
        pytest.param(
            "/evidence?since=1",
            "since",
            "expected a date and time with Z or an offset, such as 2026-01-11T10:30:00Z",
            id="time",
        ),
        pytest.param("/evidence?outcome=maybe", "outcome", "expected 'passed' or 'failed'", id="one-of-two"),
        pytest.param(
            "/evidence?staleness=OLD",
            "staleness",
            "expected 'DRIFTED', 'NEVER_PUBLISHED', 'UNKNOWN_CURRENT', 'LEGACY_PREDICATE', 'SUPERSEDED', 'AGED', "
            "'SIGNER_REMOVED', 'BUNDLE_GONE' or 'RETRACTED' or 'current'",
            id="both-branches-of-a-type",
        ),
        pytest.param("/recipes/" + "x" * 600, "recipe", "expected at most 512 characters", id="path"),
        pytest.param("/attempts/x", "attempt_id", "expected a whole number", id="number-in-the-path"),
    ],
)
def test_a_wrong_value_is_told_in_the_words_of_its_field(
    client: httpx.Client, target: str, field: str, message: str
) -> None:
    found = client.get(target).json()
    assert found["details"]["fields"] == [{"field": field, "message": message}]
    assert found["message"] == f"{field}: {message}"
