"""Requests made up from the contract: every answer is one of the documented ones, whatever is asked."""

import json
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import quote

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from app.web.problems import PROBLEMS
from tests.fuzz.mutation import LEAVES, TOKENS, mutated_bytes, mutated_json
from tests.fuzz.targets import TARGETS
from tests.support.arena import Arena, arena, sample_of

KNOWN = "h100-eks-ubuntu-training-known"


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Arena]:
    """A service that knows one record."""
    with arena(tmp_path_factory.mktemp("api"), catalogue_token="sandbox", max_body_bytes=64 << 10) as running:
        running.accepted(running.push(sample_of("known")))
        yield running


@pytest.fixture(scope="module")
def contract(api: Arena) -> Mapping[str, Any]:
    found: Mapping[str, Any] = api.get("/openapi.json").json()
    return found


@pytest.fixture(scope="module")
def record(api: Arena) -> Mapping[str, str]:
    item = api.get("/evidence").json()["items"][0]
    return {"digest": item["digest"], "source": item["source"], "recipe": KNOWN, "path": "recipe.yaml"}


HOSTILE = st.one_of(
    st.text(max_size=40),
    st.sampled_from(TOKENS).map(lambda token: token.decode("utf-8", "replace")),
    st.sampled_from(
        (
            "",
            "0",
            "-1",
            "1e9",
            "9" * 30,
            "null",
            "true",
            "../..",
            "%00",
            "\x00",
            "a" * 3000,
            "2026-13-45",
            "now",
            "*",
            "'--",
        )
    ),
    st.integers().map(str),
    st.datetimes().map(lambda at: at.isoformat() + "Z"),
)
HEADERS = st.dictionaries(
    st.sampled_from(
        (
            "If-None-Match",
            "Accept",
            "Range",
            "X-Request-Id",
            "Authorization",
            "X-Forwarded-For",
            "Accept-Encoding",
            "Origin",
        )
    ),
    st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=1, max_size=60),
    max_size=3,
)


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_every_answer_is_documented(
    api: Arena, contract: Mapping[str, Any], record: Mapping[str, str], data: st.DataObject
) -> None:
    template = data.draw(st.sampled_from(sorted(contract["paths"])))
    operations = contract["paths"][template]
    method = data.draw(st.sampled_from([*operations, *operations, "head", "options", "delete", "patch"]))
    operation = operations.get(method) or next(iter(operations.values()))
    parameters: list[Any] = operations.get("parameters", []) + operation.get("parameters", [])
    path = template
    for parameter in parameters:
        if parameter["in"] == "path":
            name = parameter["name"]
            value = data.draw(st.one_of(st.just(record.get(name, "1")), HOSTILE))
            path = path.replace(f"{{{name}}}", quote(value.encode("utf-8", "replace"), safe=""))
    names = [parameter["name"] for parameter in parameters if parameter["in"] == "query"] or ["x"]
    query = data.draw(st.dictionaries(st.sampled_from(names), HOSTILE, max_size=4))
    if data.draw(st.integers(0, 9)) == 0:
        query[data.draw(HOSTILE)] = data.draw(HOSTILE)
    query = {_plain(name): _plain(value) for name, value in query.items()}
    headers = data.draw(HEADERS)
    content = b""
    if method in {"post", "put", "patch"}:
        content = data.draw(_bodies())
        headers["Content-Type"] = data.draw(
            st.sampled_from(("application/json", "application/yaml", "text/plain", "application/json; charset=x"))
        )
        if data.draw(st.booleans()):
            headers["Authorization"] = data.draw(st.sampled_from(("Bearer sandbox", "Bearer other", "Basic eDp5")))
    answer = api.service.http.request(method.upper(), path, params=query, headers=headers, content=content)
    _documented(answer)
    if method in operations and "no such route" not in answer.text:
        assert str(answer.status_code) in operation["responses"], f"{method} {template}: {answer.text[:300]}"


def _bodies() -> st.SearchStrategy[bytes]:
    seeds = TARGETS["bodies"].seeds()
    return st.one_of(
        mutated_json(seeds),
        mutated_bytes(seeds),
        mutated_bytes(TARGETS["pointer"].seeds()),
        mutated_bytes(TARGETS["snapshot"].seeds()),
        st.sampled_from(LEAVES).map(lambda leaf: json.dumps(leaf).encode()),
    )


def _plain(text: str) -> str:
    return text.encode("utf-8", "replace").decode()


def _documented(answer: httpx.Response) -> None:
    """No fault of the service; an error is the envelope with a code of the table and its status."""
    assert answer.status_code not in {500, 501, 502}, answer.text
    if answer.status_code < 400 or answer.request.method == "HEAD" or answer.url.path.startswith("/ui"):
        return
    body = answer.json()
    assert PROBLEMS[body["code"]].status == answer.status_code, answer.text
    assert body["message"]
    assert body["requestId"]
    assert "Traceback" not in answer.text
