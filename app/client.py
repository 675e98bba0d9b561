"""The HTTP client of the command line: asks a running service, and turns its errors back into those of the core.

A refused bundle is data here too (`Refusal`). That nobody answered is `ApiUnreachable`, apart from every answer.
"""

import ipaddress
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self
from urllib.parse import quote, urlsplit

import httpx

from app.core.errors import (
    Category,
    ConflictError,
    FetchError,
    ForbiddenError,
    InputError,
    JudgeCrashed,
    NotFoundError,
    RegistryNotTrusted,
    ServiceError,
)
from app.core.tokens import is_bearer_token
from app.core.urls import http_host, masked_url

MAX_ANSWER_BYTES = 256 << 20
"""More than the largest answer of the service; whatever answers instead of it fills no memory."""

JsonObject = Mapping[str, object]


class ApiUnreachable(ServiceError):
    """Nobody answered at the address, or somebody who is not this service."""

    code = "API_UNREACHABLE"
    category = Category.UNAVAILABLE
    retryable = True


@dataclass(frozen=True, slots=True)
class Submitted:
    """The bundle is stored, or was judged by a dry run; `created` is False when it was known already."""

    created: bool
    body: JsonObject


@dataclass(frozen=True, slots=True)
class Refusal:
    """The service judged the bundle and it does not count; `body` is the whole error envelope."""

    step: str
    code: str
    cause: JsonObject
    report: JsonObject
    message: str
    details: JsonObject = field(default_factory=dict)
    body: JsonObject = field(default_factory=dict)


class ApiClient:
    """One service at `base_url`; `timeout` (seconds) bounds each step of an exchange, the answer's wait included.

    A `token` is shown to that address alone: no redirect is followed, and without TLS it stays on this machine.
    """

    def __init__(
        self,
        base_url: str,
        timeout: float,
        *,
        token: str | None = None,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        host = _host_of(base_url)
        if host is None:
            raise InputError(
                f"expected an http or https address of the service, got {masked_url(base_url)[:200]!r}",
                hint="set AICR_EVIDENCE_API or --api, e.g. http://127.0.0.1:8080",
            )
        if token is not None:
            _require_safe(base_url, host, token)
        self._base_url = base_url.rstrip("/")
        self._timeout = timeout
        headers = {"Accept": "application/json", "User-Agent": "aicr-evidence"}
        if token is not None:
            headers["Authorization"] = f"Bearer {token}"
        self._http = httpx.Client(
            base_url=self._base_url,
            timeout=httpx.Timeout(timeout, connect=min(timeout, 10.0)),
            headers=headers,
            transport=transport,
            trust_env=not _is_loopback(host),  # a proxy can not reach this machine's own loopback
            follow_redirects=False,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Give the connections back."""
        self._http.close()

    # --- evidence ----------------------------------------------------------------------------------

    def submit(
        self, *, bundle: str | None = None, pointer: bytes | None = None, dry_run: bool = False
    ) -> Submitted | Refusal:
        """`POST /evidence` with a pinned reference or a pointer's exact text."""
        answer = self._post_bundle("/evidence", bundle, pointer, {"dryRun": "true"} if dry_run else {})
        if answer.status_code == 422:
            refusal = _refusal(answer)
            if refusal is not None:
                return refusal
        return Submitted(answer.status_code == 201, self._object(answer))

    def verify(self, *, bundle: str | None = None, pointer: bytes | None = None) -> JsonObject:
        """`POST /verify`: the JSON report, whatever the verdict."""
        return self._object(self._post_bundle("/verify", bundle, pointer, {}))

    def evidence(self, digest: str) -> JsonObject:
        """`GET /evidence/{digest}`."""
        return self._get(f"/evidence/{_segment(digest)}")

    def records(self, **filters: str) -> Iterator[JsonObject]:
        """Every record that passes the filters, page by page."""
        return self._pages("/evidence", filters)

    def attempts(self, **filters: str) -> Iterator[JsonObject]:
        """Every attempt that passes the filters, page by page."""
        return self._pages("/attempts", filters)

    # --- recipes -----------------------------------------------------------------------------------

    def recipes(self, **filters: str) -> Iterator[JsonObject]:
        """Every catalogue line that passes the filters, page by page."""
        return self._pages("/recipes", filters)

    def recipe(self, name: str, **lens: str) -> JsonObject:
        """`GET /recipes/{recipe}`; raises `NotFoundError` for an unknown one."""
        return self._get(f"/recipes/{_segment(name)}", lens)

    def answer(self, **criteria: str) -> JsonObject:
        """`GET /answer` by criteria."""
        return self._get("/answer", criteria)

    def answer_document(self, document: bytes, **criteria: str) -> JsonObject:
        """`POST /answer` by a fingerprint or a snapshot; named criteria win over it."""
        headers = {"Content-Type": "application/yaml"}
        return self._object(self._send("POST", "/answer", params=criteria, content=document, headers=headers))

    def put_catalogue(self, recipes: list[JsonObject], *, replace: bool = False, **shared: str) -> JsonObject:
        """`PUT /recipes`: `shared` (commit, ref, time) holds for every recipe that does not say otherwise."""
        params = {"replace": "true"} if replace else {}
        return self._object(self._send("PUT", "/recipes", params=params, json={"recipes": recipes, **shared}))

    def put_recipe(self, name: str, text: bytes, **shared: str) -> JsonObject:
        """`PUT /recipes/{recipe}` with its resolved text."""
        headers = {"Content-Type": "application/yaml"}
        path = f"/recipes/{_segment(name)}"
        return self._object(self._send("PUT", path, params=shared, content=text, headers=headers))

    # --- the service -------------------------------------------------------------------------------

    def allowlist(self) -> JsonObject:
        """`GET /allowlist`."""
        return self._get("/allowlist")

    def ready(self) -> JsonObject:
        """`GET /ready`, also when a part does not answer."""
        answer = self._send("GET", "/ready")
        return _json(answer) if answer.status_code == 503 else self._object(answer)

    # --- wire --------------------------------------------------------------------------------------

    def _post_bundle(
        self, path: str, bundle: str | None, pointer: bytes | None, params: Mapping[str, str]
    ) -> httpx.Response:
        if (bundle is None) == (pointer is None):
            raise InputError("expected a bundle reference or a pointer")
        if pointer is not None:
            headers = {"Content-Type": "application/yaml"}
            return self._send("POST", path, params=params, content=pointer, headers=headers)
        return self._send("POST", path, params=params, json={"bundle": bundle})

    def _get(self, path: str, params: Mapping[str, str] | None = None) -> JsonObject:
        return self._object(self._send("GET", path, params=params or {}))

    def _pages(self, path: str, filters: Mapping[str, str]) -> Iterator[JsonObject]:
        params = {"limit": "500", **filters}
        while True:
            page = self._get(path, params)
            items = page.get("items")
            for item in items if isinstance(items, list) else []:
                if isinstance(item, dict):
                    yield item
            following = page.get("next")
            if not isinstance(following, str) or following == params.get("cursor"):
                return
            params = {**params, "cursor": following}

    def _send(
        self,
        method: str,
        path: str,
        *,
        params: Mapping[str, str] | None = None,
        json: object | None = None,
        content: bytes | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> httpx.Response:
        """One exchange; the body is read within the limit. Raises `ApiUnreachable`, or `FetchError` (TIMEOUT)."""
        try:
            request = self._http.build_request(
                method, path, params=dict(params or {}), json=json, content=content, headers=dict(headers or {})
            )
        except UnicodeError as err:
            raise InputError("expected text that can be sent as UTF-8") from err
        try:
            answer = self._http.send(request, stream=True)
            try:
                data = _read(answer)
            finally:
                answer.close()
        except (httpx.ReadTimeout, httpx.WriteTimeout) as err:
            raise FetchError(
                f"the service at {masked_url(self._base_url)} did not answer within {self._timeout:g} seconds",
                category=Category.TIMEOUT,
                code="TIMEOUT",
                hint="it may still be at work: ask again, or wait longer with --timeout",
            ) from err
        except (httpx.HTTPError, httpx.InvalidURL, httpx.StreamError) as err:
            raise ApiUnreachable(
                f"the service at {masked_url(self._base_url)} did not answer: {type(err).__name__}",
                hint="start it with `aicr evidence serve`, or name another with --api or AICR_EVIDENCE_API",
            ) from err
        kept = {name: value for name, value in answer.headers.items() if name in {"content-type", "retry-after"}}
        return httpx.Response(answer.status_code, headers=kept, content=data, request=request)

    def _object(self, answer: httpx.Response) -> JsonObject:
        if not answer.is_success:
            raise _error(answer)
        return _json(answer)


def _read(answer: httpx.Response) -> bytes:
    chunks: list[bytes] = []
    size = 0
    for chunk in answer.iter_bytes():
        size += len(chunk)
        if size > MAX_ANSWER_BYTES:
            raise ApiUnreachable(f"the answer has more than {MAX_ANSWER_BYTES} bytes")
        chunks.append(chunk)
    return b"".join(chunks)


def _json(answer: httpx.Response) -> JsonObject:
    try:
        found = json.loads(answer.content)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise ApiUnreachable(
            f"the address answered {answer.status_code} without JSON: it is not this service",
            hint="check --api or AICR_EVIDENCE_API",
        )
    return found


def _refusal(answer: httpx.Response) -> Refusal | None:
    """The verdict in a 422; None for another 422."""
    body = _json(answer)
    details = body.get("details")
    if body.get("code") != "EVIDENCE_REFUSED" or not isinstance(details, dict):
        return None
    cause, report = details.get("cause"), details.get("report")
    return Refusal(
        step=str(details.get("step", "")),
        code=str(details.get("code", "")),
        cause=cause if isinstance(cause, dict) else {},
        report=report if isinstance(report, dict) else {},
        message=str(body.get("message", "")),
        details=details,
        body=body,
    )


def _error(answer: httpx.Response) -> ServiceError:
    """The error of the core that an envelope stands for."""
    body = _json(answer)
    code, message = body.get("code"), body.get("message")
    if not isinstance(code, str) or not isinstance(message, str):
        return ApiUnreachable(
            f"the address answered {answer.status_code} without an error envelope: it is not this service",
            hint="check --api or AICR_EVIDENCE_API",
        )
    found = body.get("details")
    details: dict[str, object] = dict(found) if isinstance(found, dict) else {}
    hint = details.get("hint")
    hint = hint if isinstance(hint, str) else None
    details["requestId"] = body.get("requestId")
    match code:
        case "REGISTRY_NOT_TRUSTED":
            return RegistryNotTrusted(message, hint=hint, details=details)
        case "NOT_FOUND":
            return NotFoundError(message, hint=hint, details=details)
        case "CONFLICT":
            return ConflictError(message, hint=hint, details=details)
        case "UNAUTHORIZED" | "FORBIDDEN":
            return ForbiddenError(message, code=code, hint=hint, details=details)
        case "JUDGE_CRASHED":
            return JudgeCrashed(message, hint=hint, details=details)
        case "SERVICE_UNAVAILABLE" | "TIMEOUT" | "RATE_LIMIT_EXCEEDED":
            return FetchError(
                message,
                http_status=answer.status_code,
                retry_after_seconds=_seconds(answer.headers.get("retry-after", "")),
                category=Category.RATE_LIMITED if code == "RATE_LIMIT_EXCEEDED" else Category.UNAVAILABLE,
                code=code,
                hint=hint,
            )
        case "INTERNAL":
            return ServiceError(message, code=code, hint=hint, details=details)
        case _:
            return InputError(message, code=code, hint=hint, details=details)


def _segment(text: str) -> str:
    """One segment of a path; raises `InputError` for what would be none or several, and for bytes that are no text.

    Those reach us as lone surrogates. Dots would lead to another route, quoted or not.
    """
    if text in {"", ".", ".."} or "/" in text:
        raise InputError(f"expected a name, got {text[:200]!r}", hint="`aicr evidence status` lists every recipe")
    try:
        return quote(text, safe=":")
    except UnicodeError as err:
        raise InputError("expected a name that can be sent as UTF-8") from err


def _host_of(base_url: str) -> str | None:
    """The host of an http or https address; None for what is no such address."""
    try:
        httpx.URL(base_url)
    except (ValueError, httpx.InvalidURL):
        return None
    return http_host(base_url)


def _require_safe(base_url: str, host: str, token: str) -> None:
    """Raise `InputError` where a token could be read on its way, would not arrive, or is none; it is never repeated."""
    parts = urlsplit(base_url)
    if parts.scheme != "https" and not (_is_loopback(host) and not host.endswith(".localhost")):
        raise InputError(
            f"expected an https address to send a token to, got {masked_url(base_url)[:200]!r}",
            hint="name the service by https, or give no token: submitting needs none",
        )
    if parts.username is not None or parts.password is not None:
        raise InputError(
            f"expected an address without a login beside a token, got {masked_url(base_url)[:200]!r}",
            hint="one request carries one of them: leave the login or the token out",
        )
    if not is_bearer_token(token):
        raise InputError(
            "expected one bearer token of visible ASCII characters, got something else, which is not shown",
            hint="a token is one word without spaces, commas or quotes of a shell",
        )


def _seconds(text: str) -> int | None:
    return int(text) if text.isdecimal() and len(text) < 7 else None


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")
