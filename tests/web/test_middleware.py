"""What happens around every request: ids, limits, headers, the log, the last resort."""

import logging
import socket
import uuid

import httpx
import pytest

from app.web.app import create_app
from tests.support.runs import RECIPE, make_run, person
from tests.support.webapp import REGISTRY, FakeContainer, Switchboard, make_container

GIVEN = "6F9619FF-8B86-D011-B42D-00CF4FC964FF"
BODY = {"bundle": f"{REGISTRY}@sha256:{'ab' * 32}"}


class Ticks:
    """A monotonic clock that a test moves."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


def plug(switchboard: tuple[Switchboard, str], container: FakeContainer, ticks: Ticks | None = None) -> httpx.Client:
    board, base = switchboard
    board.app = create_app(container, monotonic=ticks or Ticks())
    return httpx.Client(base_url=base, trust_env=False)


def test_a_valid_request_id_is_echoed_and_another_replaced(client: httpx.Client) -> None:
    assert client.get("/health", headers={"X-Request-Id": GIVEN}).headers["x-request-id"] == GIVEN
    for bad in ("x", "0" * 36, "../../etc", GIVEN + "0"):
        made = client.get("/nope", headers={"X-Request-Id": bad})
        assert str(uuid.UUID(made.headers["x-request-id"])) == made.headers["x-request-id"] != bad
        assert made.json()["requestId"] == made.headers["x-request-id"]


@pytest.mark.parametrize("path", ["/health", "/recipes", "/nope", "/ui/recipes", "/openapi.json", "/ui/recipes/nope"])
def test_every_answer_carries_the_version_and_the_security_headers(client: httpx.Client, path: str) -> None:
    headers = client.get(path, headers={"Accept": "application/vnd.nvidia.aicr.v7+json"}).headers
    assert headers["x-api-version"] == "v1"
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["x-frame-options"] == "DENY"
    assert headers["referrer-policy"] == "no-referrer"
    policy = headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "frame-ancestors 'none'" in policy
    assert "unsafe" not in policy
    assert "http" not in policy


def test_the_process_bucket_limits_all_requests_but_the_probes(switchboard: tuple[Switchboard, str]) -> None:
    ticks = Ticks()
    with plug(switchboard, make_container(rate_limit="2/s burst 3"), ticks) as client:
        good = [client.get("/recipes") for _ in range(3)]
        refused = client.get("/recipes")
        probe = client.get("/health")
        ticks.now = 0.5
        later = client.get("/recipes")
    assert [answer.headers["x-ratelimit-remaining"] for answer in good] == ["2", "1", "0"]
    assert good[0].headers["x-ratelimit-limit"] == "3"
    assert good[0].headers["x-ratelimit-reset"] == "1781956801"
    assert (refused.status_code, refused.json()["code"]) == (429, "RATE_LIMIT_EXCEEDED")
    assert refused.json()["details"] == {"limit": 2, "burst": 3}
    assert refused.json()["retryable"] is True
    assert (refused.headers["retry-after"], refused.headers["x-ratelimit-remaining"]) == ("1", "0")
    assert probe.status_code == 200
    assert later.status_code == 200


def test_the_client_bucket_limits_posts_of_one_address(switchboard: tuple[Switchboard, str]) -> None:
    container = make_container(rate_limit_client="1/s burst 2", trusted_proxies="127.0.0.1")
    with plug(switchboard, container) as client:
        one, two = {"X-Forwarded-For": "198.51.100.1"}, {"X-Forwarded-For": "198.51.100.2"}
        statuses = [client.post("/verify", json=BODY, headers=one).status_code for _ in range(3)]
        other = client.post("/verify", json=BODY, headers=two).status_code
        reads = [client.get("/recipes", headers=one).status_code for _ in range(5)]
    assert statuses == [500, 500, 429]
    assert other == 500
    assert reads == [200] * 5


def test_a_refused_client_takes_nothing_from_the_others(switchboard: tuple[Switchboard, str]) -> None:
    container = make_container(rate_limit="1/s burst 4", rate_limit_client="1/s burst 1")
    with plug(switchboard, container) as client:
        statuses = [client.post("/verify", json=BODY).status_code for _ in range(10)]
        reads = [client.get("/recipes").status_code for _ in range(4)]
    assert statuses == [500] + [429] * 9
    assert reads == [200, 200, 200, 429]


@pytest.mark.parametrize(
    ("method", "path", "allow"),
    [
        ("DELETE", f"/recipes/{RECIPE}", "GET, HEAD, PUT"),
        ("POST", "/recipes", "GET, HEAD, PUT"),
        ("PUT", "/evidence", "GET, HEAD, POST"),
        ("PATCH", "/verify", "POST"),
        ("POST", "/health", "GET, HEAD"),
        ("PUT", "/allowlist", "GET, HEAD"),
        ("DELETE", "/allowlist", "GET, HEAD"),
    ],
)
def test_another_method_is_405_with_every_method_of_the_path(
    client: httpx.Client, method: str, path: str, allow: str
) -> None:
    answer = client.request(method, path)
    assert (answer.status_code, answer.json()["code"], answer.headers["allow"]) == (405, "METHOD_NOT_ALLOWED", allow)


def test_head_is_get_without_a_body(container: FakeContainer, client: httpx.Client) -> None:
    container.keep(make_run(person("dev-one")))
    for path in ("/health", "/recipes", f"/ui/recipes/{RECIPE}", "/openapi.json"):
        got, head = client.get(path), client.head(path)
        assert (head.status_code, head.content) == (200, b"")
        assert head.headers["content-length"] == str(len(got.content))
        assert head.headers.get("etag") == got.headers.get("etag")


def test_a_trailing_slash_is_another_path_and_redirects_nowhere(client: httpx.Client) -> None:
    answer = client.get("/recipes/", headers={"Host": "evil.example"})
    assert answer.status_code == 404
    assert "location" not in answer.headers


def test_an_announced_oversize_body_is_refused_unread(client: httpx.Client) -> None:
    """The answer comes although not one byte of the body was sent."""
    host, port = client.base_url.host, client.base_url.port or 80
    with socket.create_connection((host, port), timeout=5) as wire:
        wire.sendall(
            b"POST /evidence HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 99999999\r\n\r\n"
        )
        assert wire.recv(4096).startswith(b"HTTP/1.1 413 ")


def test_an_endless_chunked_body_is_answered_before_it_ends(client: httpx.Client) -> None:
    host, port = client.base_url.host, client.base_url.port or 80
    with socket.create_connection((host, port), timeout=5) as wire:
        wire.sendall(
            b"POST /evidence HTTP/1.1\r\nHost: x\r\nContent-Type: application/yaml\r\n"
            b"Transfer-Encoding: chunked\r\n\r\n"
        )
        for _ in range(17):
            wire.sendall(b"10000\r\n" + b"x" * 0x10000 + b"\r\n")
        assert wire.recv(4096).startswith(b"HTTP/1.1 413 ")


def test_the_log_has_no_address_and_no_query(
    container: FakeContainer, client: httpx.Client, caplog: pytest.LogCaptureFixture
) -> None:
    container.ingest.results[BODY["bundle"]] = RuntimeError("dev-one@example.org was here")
    with caplog.at_level(logging.DEBUG, logger="app.web.access"):
        client.get("/recipes?q=dev-one@example.org")
        client.get("/recipes/dev-one@example.org%0aforged")
        client.post("/evidence", json=BODY, headers={"X-Request-Id": GIVEN})
    lines = [record.getMessage() for record in caplog.records if record.name == "app.web.access"]
    text = "\n".join(lines)
    assert "example.org" not in text
    assert "127.0.0.1" not in text
    assert "\nforged" not in text
    levels = {record.levelno for record in caplog.records if record.name == "app.web.access"}
    assert levels == {logging.DEBUG, logging.WARNING, logging.ERROR}
    assert any(line.startswith(f"unexpected RuntimeError {GIVEN}") and "webapp.py" in line for line in lines)


def test_readiness_names_each_part(container: FakeContainer, client: httpx.Client) -> None:
    assert client.get("/ready").json() == {
        "status": "ready",
        "parts": {"database": "ok", "archive": "ok", "judge": "ok"},
        "timestamp": "2026-06-20T12:00:00Z",
        "reason": None,
    }
    container.allowlist.problem = "J5: unknown key by dev-one@example.org"
    degraded = client.get("/ready")
    assert (degraded.status_code, degraded.json()["status"]) == (200, "degraded")
    assert degraded.json()["parts"]["allowlist"] == "degraded"
    assert degraded.json()["reason"] == "J5: unknown key by d…e@example.org"
    assert client.get("/allowlist").json()["status"] == "degraded"
    container.parts["database"] = "the database did not answer"
    broken = client.get("/ready")
    assert (broken.status_code, broken.json()["status"], broken.json()["reason"]) == (503, "unavailable", "database")


def test_readiness_ends_when_the_service_drains(
    container: FakeContainer, client: httpx.Client, switchboard: tuple[Switchboard, str]
) -> None:
    app = switchboard[0].app
    assert app is not None
    app.state.draining = True
    assert client.get("/ready").status_code == 503
    assert client.get("/health").status_code == 200
