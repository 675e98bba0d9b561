"""The private Sigstore over loopback HTTP: Fulcio, Rekor v1 and v2, timestamp authority and OIDC issuer on one port.

Only routing and the wire are here; what is answered comes from the service modules. Paths are those of the public
services, so that ordinary clients work once they are given `signing_config.json`.
"""

import json
import re
import threading
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from http import HTTPStatus
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from app.sandbox.identities import SAMPLE_SIGNERS, SandboxIdentity
from app.sandbox.sigstore.fulcio import Fulcio
from app.sandbox.sigstore.log import LogVersion
from app.sandbox.sigstore.oidc import UnsafeSimulatedIssuer
from app.sandbox.sigstore.private import PrivateSigstore
from app.sandbox.sigstore.rekor import RekorV1, RekorV2
from app.sandbox.sigstore.request import ServiceRefused, bad_request
from app.sandbox.sigstore.signin import SignIn
from app.sandbox.sigstore.timestamping import parse_json_request, parse_request
from app.sandbox.sigstore.wire import JSON, LoopbackServer, Request, Response

LOOPBACK: Final = "127.0.0.1"
TRUSTED_ROOT_FILE: Final = "trusted_root.json"
SIGNING_CONFIG_FILE: Final = "signing_config.json"
SIGNING_CONFIG_V1_FILE: Final = "signing_config.v1.json"

Clock = Callable[[], datetime]


Route = Callable[[Request, re.Match[str]], Response]


def _json(value: object, status: HTTPStatus = HTTPStatus.OK) -> Response:
    return Response(status, json.dumps(value).encode())


class SigstoreServer:
    """Serves one `PrivateSigstore` on loopback between `start` and `close` (or in a `with`)."""

    def __init__(
        self,
        sigstore: PrivateSigstore | None = None,
        *,
        signers: Mapping[str, SandboxIdentity] = SAMPLE_SIGNERS,
        port: int = 0,
        clock: Clock = lambda: datetime.now(UTC),  # noqa: TID251  the sandbox may read the clock
    ) -> None:
        self.sigstore = sigstore or PrivateSigstore()
        self.issuer = UnsafeSimulatedIssuer(signers)
        self._clock = clock
        self._fulcio = Fulcio(self.sigstore, self.issuer)
        self._v1 = RekorV1(self.sigstore.logs[LogVersion.V1])
        self._v2 = RekorV2(self.sigstore.logs[LogVersion.V2])
        self._http = LoopbackServer((LOOPBACK, port), self._handle)
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.05,), name="sigstore", daemon=True)
        self._signin = SignIn(self.issuer)
        self._routes: tuple[tuple[str, re.Pattern[str], Route], ...] = tuple(
            (method, re.compile(pattern), route) for method, pattern, route in self._table()
        )

    @property
    def url(self) -> str:
        """Base URL of every service."""
        return f"http://{LOOPBACK}:{self._http.server_address[1]}"

    def start(self) -> Self:
        """Begin to answer; the port is open already."""
        self._thread.start()
        return self

    def close(self) -> None:
        """Stop, end open connections and wait for their threads."""
        if self._thread.is_alive():
            self._http.shutdown()
            self._thread.join()
        self._http.server_close()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, kind: type[BaseException] | None, err: BaseException | None, tb: TracebackType | None) -> None:
        self.close()

    def write(self, directory: Path) -> None:
        """Write `trusted_root.json` and the signing configurations (v2; v1 beside it) into `directory`."""
        directory.mkdir(parents=True, exist_ok=True)
        (directory / TRUSTED_ROOT_FILE).write_bytes(self.sigstore.trusted_root_json())
        for name, version in ((SIGNING_CONFIG_FILE, LogVersion.V2), (SIGNING_CONFIG_V1_FILE, LogVersion.V1)):
            (directory / name).write_bytes(self.sigstore.signing_config_json(self.url, log=version))

    def token(self, identity: SandboxIdentity, *, algorithm: str = "ES256") -> str:
        """An identity token as the token endpoint would give it, also for identities that have no name there."""
        return self.issuer.token(identity, now=self._clock(), algorithm=algorithm)

    def actions_environment(self, signer: str) -> dict[str, str]:
        """What GitHub Actions puts into a job's environment so that it can ask for a token."""
        return {
            "GITHUB_ACTIONS": "true",
            "ACTIONS_ID_TOKEN_REQUEST_URL": f"{self.url}/actions/{signer}/token?api-version=2.0",
            "ACTIONS_ID_TOKEN_REQUEST_TOKEN": self.issuer.request_tokens[signer],
        }

    def _handle(self, request: Request) -> Response:
        try:
            route, match = self._route(request)
            return route(request, match)
        except ServiceRefused as refused:
            answer: dict[str, object] = {"code": refused.status.value, "message": str(refused), "details": []}
            headers = {"Location": refused.location} if refused.location else {}
            return Response(refused.status, json.dumps(answer).encode(), JSON, headers)

    def _route(self, request: Request) -> tuple[Route, re.Match[str]]:
        allowed: set[str] = set()
        for method, pattern, route in self._routes:
            if match := pattern.fullmatch(request.path):
                if method == request.method:
                    return route, match
                allowed.add(method)
        if allowed:
            raise ServiceRefused(HTTPStatus.METHOD_NOT_ALLOWED, f"expected {' or '.join(sorted(allowed))}")
        raise ServiceRefused(HTTPStatus.NOT_FOUND, "expected a path of Fulcio, Rekor, the authority or the issuer")

    def _table(self) -> tuple[tuple[str, str, Route], ...]:
        return (
            ("POST", "/api/v2/signingCert", self._certificate),
            ("GET", "/api/v2/trustBundle", lambda _, __: _json(self._fulcio.trust_bundle())),
            ("POST", "/api/v1/log/entries", self._create_v1),
            ("GET", "/api/v1/log/entries", self._entry_by_index),
            ("GET", "/api/v1/log/entries/([0-9a-f]{64}|[0-9a-f]{80})", lambda _, m: _json(self._v1.by_uuid(m[1]))),
            ("GET", "/api/v1/log", lambda _, __: _json(self._v1.info())),
            ("GET", "/api/v1/log/publicKey", self._log_key),
            ("POST", "/api/v2/log/entries", self._create_v2),
            ("GET", "/api/v2/checkpoint", self._checkpoint),
            ("GET", "/api/v2/tile/([0-9./p]{1,40})", self._tile),
            ("POST", "/api/v1/timestamp", self._timestamp),
            ("GET", "/api/v1/timestamp/certchain", self._timestamp_chain),
            ("GET", "/.well-known/openid-configuration", lambda _, __: _json(self.issuer.discovery(self.url))),
            ("GET", "/keys", lambda _, __: _json(self.issuer.key_set())),
            ("GET", "/auth", self._authorize),
            ("POST", "/token", lambda request, _: _json(self._signin.token(request.form(), now=self._clock()))),
            ("GET", "/actions/([a-z0-9-]{1,64})/token", self._actions_token),
        )

    def _certificate(self, request: Request, _: re.Match[str]) -> Response:
        authorization = request.headers.get("authorization", "")
        answer = self._fulcio.signing_certificate(request.json(), authorization, now=self._clock())
        return _json(answer, HTTPStatus.CREATED)

    def _create_v1(self, request: Request, _: re.Match[str]) -> Response:
        answer = self._v1.create(request.json(), now=self._clock())
        created = _json(answer, HTTPStatus.CREATED)
        return Response(created.status, created.body, JSON, {"Location": f"/api/v1/log/entries/{next(iter(answer))}"})

    def _entry_by_index(self, request: Request, _: re.Match[str]) -> Response:
        return _json(self._v1.by_index(request.query.get("logIndex", [""])[0]))

    def _log_key(self, _: Request, __: re.Match[str]) -> Response:
        return Response(HTTPStatus.OK, self._v1.public_key(), "application/x-pem-file")

    def _create_v2(self, request: Request, _: re.Match[str]) -> Response:
        return _json(self._v2.create(request.json()), HTTPStatus.CREATED)

    def _checkpoint(self, _: Request, __: re.Match[str]) -> Response:
        return Response(HTTPStatus.OK, self._v2.checkpoint().encode(), "text/plain; charset=utf-8")

    def _tile(self, _: Request, match: re.Match[str]) -> Response:
        return Response(HTTPStatus.OK, self._v2.tile(match[1]), "application/octet-stream")

    def _timestamp(self, request: Request, _: re.Match[str]) -> Response:
        try:
            as_json = request.headers.get("content-type", "").partition(";")[0].strip() == JSON
            asked = parse_json_request(request.json()) if as_json else parse_request(request.body)
        except ValueError as err:
            raise bad_request(str(err)) from err
        token = self.sigstore.timestamping.respond(asked, self._clock())
        return Response(HTTPStatus.CREATED, token, "application/timestamp-reply")

    def _timestamp_chain(self, _: Request, __: re.Match[str]) -> Response:
        return Response(HTTPStatus.OK, self.sigstore.timestamping.chain_pem(), "application/pem-certificate-chain")

    def _authorize(self, request: Request, _: re.Match[str]) -> Response:
        page = self._signin.authorize({name: values[0] for name, values in request.query.items()})
        if page.location:
            return Response(HTTPStatus.FOUND, b"", "text/plain", {"Location": page.location})
        return Response(HTTPStatus.OK, page.html.encode(), "text/html; charset=utf-8")

    def _actions_token(self, request: Request, match: re.Match[str]) -> Response:
        audience = request.query.get("audience", [""])[-1]
        value = self._signin.actions_token(
            match[1], request.headers.get("authorization", ""), audience=audience, now=self._clock()
        )
        return _json({"count": len(value), "value": value})
