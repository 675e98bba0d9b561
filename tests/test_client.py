"""The client of the command line: against the application, and against whatever else may answer."""

import json
from collections.abc import Callable, Iterator

import httpx
import pytest

from app.client import ApiClient, ApiUnreachable, Refusal, Submitted
from app.core.errors import (
    ConflictError,
    FetchError,
    ForbiddenError,
    InputError,
    JudgeCrashed,
    NotFoundError,
    RegistryNotTrusted,
    ServiceError,
)
from app.core.report import CauseClass, Exit, FailureCause, InputKind, Report, StepName
from app.services.ingest_types import Judged, Refused
from app.web.app import create_app
from tests.support.bundles import NAME, RECIPE
from tests.support.runs import allowlist_text, make_run, person
from tests.support.webapp import REGISTRY, FakeContainer, make_container, serving

REFERENCE = f"{REGISTRY}@sha256:{'ab' * 32}"


@pytest.fixture
def container() -> FakeContainer:
    made = make_container(catalogue_token="push-me")
    made.allowlist.put(allowlist_text(person("dev-one")))
    return made


@pytest.fixture
def api(container: FakeContainer) -> Iterator[ApiClient]:
    with serving(create_app(container)) as base, ApiClient(f"{base}/", 10, token="push-me") as made:
        yield made


def answering(handler: Callable[[httpx.Request], httpx.Response]) -> ApiClient:
    """A client of a service that `handler` plays."""
    return ApiClient("https://api.example.org", 1, transport=httpx.MockTransport(handler))


def envelope(code: str, status: int, details: dict[str, object] | None = None, **headers: str) -> ApiClient:
    body = {"code": code, "message": f"it is {code}", "details": details or {}, "requestId": "r-1"}
    return answering(lambda _: httpx.Response(status, json=body, headers=headers))


def test_a_new_bundle_is_created_and_a_repeat_is_not(container: FakeContainer, api: ApiClient) -> None:
    run = make_run(person("dev-one"))
    reference = container.script(run)
    first = api.submit(bundle=reference)
    container.script(run, created=False)
    again = api.submit(bundle=reference)
    assert isinstance(first, Submitted)
    assert isinstance(again, Submitted)
    assert (first.created, again.created, first.body == again.body) == (True, False, True)
    assert first.body["state"] == {"before": None, "after": "SINGLE"}


def test_a_pointer_travels_as_its_exact_text(container: FakeContainer, api: ApiClient) -> None:
    pointer = (
        "schemaVersion: 1.0.0\nrecipe: h100-eks-ubuntu-training\nattestations:\n- bundle:\n"
        f"    oci: {REGISTRY}\n    digest: sha256:{'ab' * 32}\n"
        "    predicateType: https://aicr.run/recipe-evidence/v3\n"
    ).encode()
    run = make_run(person("dev-one"))
    container.ingest.results[REFERENCE] = Judged(
        run, "community", allowlisted=True, report=Report(InputKind.OCI, (), 0)
    )
    result = api.submit(pointer=pointer, dry_run=True)
    assert isinstance(result, Submitted)
    assert (container.ingest.asked[0].pointer, container.ingest.asked[0].dry_run) == (pointer, True)


def test_a_refused_bundle_is_data(container: FakeContainer, api: ApiClient) -> None:
    cause = FailureCause(CauseClass.SIGNATURE, "expected canonical base64")
    report = Report(InputKind.OCI, (), Exit.INVALID, failure_cause=cause)
    container.ingest.results[REFERENCE] = Refused(StepName.SIGNATURE, "S5_BASE64", cause, report)
    result = api.submit(bundle=REFERENCE)
    assert isinstance(result, Refusal)
    assert (result.step, result.code) == ("signature-verify", "S5_BASE64")
    assert result.cause == {"class": "signature", "detail": "expected canonical base64"}
    assert result.report["exit"] == 2
    assert api.verify(bundle=REFERENCE)["exit"] == 2


def test_lists_are_read_to_the_end(container: FakeContainer, api: ApiClient) -> None:
    for day in range(1, 8):
        container.keep(make_run(person("dev-one"), days=day))
    assert len(list(api.records(limit="2"))) == 7
    assert [line["recipe"] for line in api.recipes()] == ["h100-eks-ubuntu-training-kubeflow"]
    assert list(api.recipes(service="gke")) == []
    assert list(api.attempts()) == []


def test_recipes_answers_and_catalogue(container: FakeContainer, api: ApiClient) -> None:
    container.keep(make_run(person("dev-one")))
    assert api.recipe("h100-eks-ubuntu-training-kubeflow", aicrVersion="v1.0.0")["state"] == "SINGLE"
    with pytest.raises(NotFoundError, match=r"no recipe 'a\?b c'"):
        api.recipe("a?b c")
    assert api.answer(service="eks", accelerator="h100")["state"] == "SINGLE"
    document = b"fingerprint: {service: {value: eks}, accelerator: {value: h100}}"
    assert api.answer_document(document, intent="training")["state"] == "SINGLE"
    assert api.put_recipe(NAME, RECIPE, commit="0123abc")["changed"] is True
    bulk = [{"name": NAME, "recipe": RECIPE.decode()}, {"recipe": RECIPE.decode().replace("h100", "b200")}]
    assert api.put_catalogue(bulk, commit="0123abc")["changed"] == ["b200-eks-ubuntu-training"]
    assert api.put_catalogue(bulk[:1], replace=True)["retired"] == ["b200-eks-ubuntu-training"]
    assert api.allowlist()["status"] == "ok"
    assert api.ready()["status"] == "ready"
    container.parts["database"] = "gone"
    assert api.ready()["reason"] == "database"


@pytest.mark.parametrize(
    ("code", "status", "kind"),
    [
        ("INVALID_REQUEST", 400, InputError),
        ("PAYLOAD_TOO_LARGE", 413, InputError),
        ("UNSUPPORTED_MEDIA_TYPE", 415, InputError),
        ("UNAUTHORIZED", 401, ForbiddenError),
        ("FORBIDDEN", 403, ForbiddenError),
        ("REGISTRY_NOT_TRUSTED", 403, RegistryNotTrusted),
        ("NOT_FOUND", 404, NotFoundError),
        ("CONFLICT", 409, ConflictError),
        ("JUDGE_CRASHED", 422, JudgeCrashed),
        ("SERVICE_UNAVAILABLE", 503, FetchError),
        ("TIMEOUT", 504, FetchError),
        ("RATE_LIMIT_EXCEEDED", 429, FetchError),
        ("INTERNAL", 500, ServiceError),
    ],
)
def test_an_envelope_becomes_the_error_it_came_from(code: str, status: int, kind: type[ServiceError]) -> None:
    with pytest.raises(kind) as caught:
        envelope(code, status, {"hint": "do this"}).submit(bundle=REFERENCE)
    error = caught.value
    assert type(error) is kind
    assert (error.message, error.hint) == (f"it is {code}", "do this")
    assert not isinstance(error, ApiUnreachable)


def test_a_retryable_error_says_when_to_try_again() -> None:
    with pytest.raises(FetchError) as caught:
        envelope("SERVICE_UNAVAILABLE", 503, **{"Retry-After": "17"}).submit(bundle=REFERENCE)
    assert (caught.value.retryable, caught.value.retry_after_seconds) == (True, 17)


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(httpx.Response(200, text="<html>hello"), id="a-web-page"),
        pytest.param(httpx.Response(502, text="bad gateway"), id="a-proxy"),
        pytest.param(httpx.Response(200, json=["a", "list"]), id="a-list"),
        pytest.param(httpx.Response(404, json={"detail": "Not Found"}), id="another-api"),
        pytest.param(httpx.Response(302, headers={"Location": "https://evil.example/"}), id="a-redirect"),
        pytest.param(httpx.Response(422, json={"detail": []}), id="another-422"),
        pytest.param(httpx.Response(200, content=b"[" * 100_000), id="too-deep"),
    ],
)
def test_whoever_is_not_this_service_is_unreachable(answer: httpx.Response) -> None:
    content = answer.content
    made = answering(lambda _: httpx.Response(answer.status_code, headers=answer.headers, content=content))
    with pytest.raises(ApiUnreachable, match="it is not this service"):
        made.submit(bundle=REFERENCE)


def test_nobody_there_is_unreachable() -> None:
    def refuse(_: httpx.Request) -> httpx.Response:
        raise httpx.ConnectError("refused")

    with pytest.raises(ApiUnreachable, match="did not answer: ConnectError") as caught:
        answering(refuse).ready()
    assert "aicr evidence serve" in (caught.value.hint or "")
    with pytest.raises(ApiUnreachable), ApiClient("http://127.0.0.1:9", 2) as client:
        client.ready()


def test_an_endless_answer_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.client.MAX_ANSWER_BYTES", 1000)

    def endless() -> Iterator[bytes]:
        while True:
            yield b"x" * 100

    with pytest.raises(ApiUnreachable, match="more than 1000 bytes"):
        answering(lambda _: httpx.Response(200, content=endless())).ready()


def test_a_cursor_that_does_not_move_ends_the_list() -> None:
    made = answering(lambda _: httpx.Response(200, json={"items": [{"a": 1}], "next": "same"}))
    assert len(list(made.recipes())) == 2


def test_the_token_goes_only_to_the_service() -> None:
    seen: list[httpx.Request] = []

    def handler(request: httpx.Request) -> httpx.Response:
        seen.append(request)
        return httpx.Response(307, headers={"Location": "https://evil.example/"}, json={})

    made = ApiClient("https://api.example.org/base/", 1, token="secret", transport=httpx.MockTransport(handler))
    with pytest.raises(ApiUnreachable):
        made.put_recipe("a", b"x: y")
    assert [(str(one.url), one.headers["authorization"]) for one in seen] == [
        ("https://api.example.org/base/recipes/a", "Bearer secret")
    ]


@pytest.mark.parametrize(
    "address",
    [
        "http://service.example.org",
        "HTTP://service.example.org:80/base",
        "http://10.0.0.1:8080",
        "http://127.1",
        "http://0.0.0.0:8080",
        "http://localhost.example.org",
        "http://service.localhost",
        "http://127.0.0.1.example.org",
        "http://user@service.example.org",
    ],
)
def test_a_token_is_not_sent_in_the_clear(address: str) -> None:
    ApiClient(address, 1).close()
    with pytest.raises(InputError, match="expected an https address to send a token to") as caught:
        ApiClient(address, 1, token="secret")
    assert "secret" not in f"{caught.value.message} {caught.value.hint}"


@pytest.mark.parametrize(
    "address",
    ["https://service.example.org", "http://127.0.0.1:8080", "http://127.9.9.9", "http://[::1]", "http://localhost"],
)
def test_a_token_is_sent_by_tls_or_on_this_machine(address: str) -> None:
    seen: list[str] = []

    def handler(request: httpx.Request) -> httpx.Response:
        seen.append(request.headers["authorization"])
        return httpx.Response(200, json={})

    ApiClient(address, 1, token="secret", transport=httpx.MockTransport(handler)).ready()
    assert seen == ["Bearer secret"]


def test_a_login_in_the_address_does_not_take_the_place_of_a_token() -> None:
    with pytest.raises(InputError, match="expected an address without a login beside a token") as caught:
        ApiClient("https://user:password@api.example.org", 1, token="secret")
    assert "'https://user:***@api.example.org'" in caught.value.message


@pytest.mark.parametrize("token", ["", "a b", "secret\n", "secret\r\nX: y", "sécret", "a,b", "\udcff", "x" * 5000])
def test_what_is_no_token_is_refused_and_not_repeated(token: str) -> None:
    with pytest.raises(InputError) as caught:
        ApiClient("https://api.example.org", 1, token=token)
    assert caught.value.message == (
        "expected one bearer token of visible ASCII characters, got something else, which is not shown"
    )


@pytest.mark.parametrize("address", ["", "api.example.org", "ftp://api.example.org", "http://", "file:///etc/passwd"])
def test_an_address_that_is_none_is_refused(address: str) -> None:
    with pytest.raises(InputError, match="expected an http or https address"):
        ApiClient(address, 1)


def test_one_of_bundle_and_pointer_is_named() -> None:
    made = answering(lambda _: httpx.Response(500))
    for arguments in ({}, {"bundle": "a", "pointer": b"b"}):
        with pytest.raises(InputError, match="expected a bundle reference or a pointer"):
            made.submit(**arguments)  # type: ignore[arg-type]


def test_the_body_of_a_bundle_submission_is_json() -> None:
    seen: list[httpx.Request] = []

    def handler(request: httpx.Request) -> httpx.Response:
        seen.append(request)
        return httpx.Response(201, json={})

    answering(handler).submit(bundle=REFERENCE, dry_run=True)
    assert json.loads(seen[0].content) == {"bundle": REFERENCE}
    assert str(seen[0].url) == "https://api.example.org/evidence?dryRun=true"
