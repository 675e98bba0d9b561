"""One registry session of the writer: `oras` with its gaps closed.

Left alone the library retries for minutes, has no timeouts, asks any token server that a registry names, and
sends its token to whatever host an upload's location names.
"""

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import oras.auth.utils
import requests
from oras.auth.token import TokenAuth
from oras.container import Container
from oras.provider import Registry
from requests.adapters import HTTPAdapter

from app.adapters.oci.addresses import HostRules, Origin
from app.adapters.oci.auth import Challenge, RegistryLogin, read_challenge
from app.adapters.oci.codes import fetch_error, status_error
from app.adapters.oci.limits import Deadline
from app.adapters.oci.manifest import INDEX_TYPE, MANIFEST_TYPE
from app.adapters.oci.pack import sha256
from app.adapters.oci.transport import Url
from app.core.refs import Digest

_RETRIES = 2
_REQUEST_SECONDS = 30.0
_READ_BYTES = 1  # a larger read waits until it is full, past any deadline; answers are small and buffered below
_MAX_ANSWER_BYTES = 4 << 20
_TRANSIENT = frozenset({429, 500, 502, 503, 504})


class Pusher:
    """Blobs and manifests into one repository."""

    def __init__(
        self,
        origin: Origin,
        repository: str,
        *,
        rules: HostRules,
        login: RegistryLogin | None,
        verify: bool | str,
        docker_logins: bool,
        deadline: Deadline,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._origin = origin
        self._base = f"{origin}/v2/{repository}"
        self._container = Container(f"{origin.name}/{repository}", registry=origin.name)
        self._client = _Client(origin, verify=verify, deadline=deadline, sleep=sleep)
        with faults(origin):
            self._client.prepare_auth(repository, self._container, rules, login, docker_logins=docker_logins)

    def close(self) -> None:
        """Drop the connections."""
        self._client.close()

    def blob(self, digest: Digest, path: Path) -> None:
        """Upload the file at `path`, unless the registry has it."""
        layer = {"digest": str(digest), "size": path.stat().st_size}
        with faults(self._origin):
            response = self._client.upload_blob(str(path), self._container, layer)
        self._expect(response, f"blob {digest}")

    def manifest(self, reference: str, media_type: str, data: bytes) -> bool:
        """Put exactly these bytes; whether the registry took note of the manifest's subject itself."""
        headers = {"Content-Type": media_type}
        with faults(self._origin):
            response = self._client.do_request(f"{self._base}/manifests/{reference}", "PUT", data=data, headers=headers)
        self._expect(response, f"manifest {reference}")
        reported = response.headers.get("Docker-Content-Digest")
        if reported is not None and reported != str(sha256(data)):
            raise fetch_error("DIGEST_MISMATCH", f"pushed {sha256(data)}, the registry reports {reported[:80]!r}")
        return "OCI-Subject" in response.headers

    def read_manifest(self, reference: str, cap: int) -> bytes | None:
        """A manifest's bytes, at most `cap`; None when there is none."""
        headers = {"Accept": f"{INDEX_TYPE}, {MANIFEST_TYPE}"}
        with faults(self._origin):
            response = self._client.do_request(f"{self._base}/manifests/{reference}", "GET", headers=headers)
        if response.status_code == 404:
            return None
        self._expect(response, f"manifest {reference}")
        data = self._client.body
        if len(data) > cap:
            raise fetch_error("BODY_TOO_LARGE", f"manifest {reference} is over {cap} bytes")
        return data

    def _expect(self, response: requests.Response, what: str) -> None:
        if response.status_code not in {200, 201, 202, 204}:
            raise status_error(
                response.status_code, f"{self._origin.name} answered {response.status_code} to a push of {what}"
            )


@contextmanager
def faults(origin: Origin) -> Iterator[None]:
    """Turn what the libraries raise into a `FetchError`."""
    try:
        yield
    except requests.Timeout as err:
        raise fetch_error("REGISTRY_TIMEOUT", f"{origin.name} did not answer in time") from err
    except requests.RequestException as err:
        raise fetch_error("REGISTRY_UNREACHABLE", f"the exchange with {origin.name} broke") from err
    except (ValueError, TypeError, AttributeError, RuntimeError, OSError) as err:
        raise fetch_error("REGISTRY_ANSWER", f"{origin.name} gave an answer that a push can not use") from err


class _TimedAdapter(HTTPAdapter):
    """Gives every request a timeout that ends with the deadline."""

    def __init__(self, deadline: Deadline) -> None:
        self._deadline = deadline
        super().__init__()

    def send(self, request: requests.PreparedRequest, **options: object) -> requests.Response:  # type: ignore[override]
        options["timeout"] = min(_REQUEST_SECONDS, self._deadline.remaining())
        return super().send(request, **options)  # type: ignore[arg-type]


class _GuardedTokens(TokenAuth):  # type: ignore[misc]  # the library is untyped
    """Bearer tokens from the registry's own host or a named token server, always for this repository."""

    def __init__(
        self, origin: Origin, repository: str, rules: HostRules, *, session: requests.Session, verify: bool | str
    ) -> None:
        super().__init__()
        self._origin = origin
        self._repository = repository
        self._rules = rules
        self.session = session
        self.prefix = origin.scheme
        self._tls_verify = verify

    def authenticate_request(
        self, original: requests.Response, headers: dict[str, str], **options: object
    ) -> tuple[dict[str, str], bool]:
        """Meet a challenge as the library does, after the realm was held against the rules."""
        challenge = read_challenge([original.headers.get("WWW-Authenticate", "")])
        realm = Url.parse(challenge.realm) if challenge is not None else None
        if realm is None:
            raise status_error(original.status_code, f"{self._origin.name} refused the push")
        own = (realm.origin.host, realm.origin.port) == (self._origin.host, self._origin.port)
        if not own and realm.origin.name not in self._rules.realms:
            raise fetch_error("REALM_REFUSED", f"token server {realm.origin.name} is not {self._origin.name}")
        if (
            realm.origin.scheme != "https"
            and realm.origin != self._origin
            and not self._rules.allows_scheme(realm.origin)
        ):
            raise fetch_error("REALM_REFUSED", f"expected the token server over https, got {realm.origin}")
        scope = f'scope="repository:{self._repository}:pull,push"'
        service = f'service="{challenge.service}",' if challenge is not None and challenge.service else ""
        original.headers["Www-Authenticate"] = f'Bearer realm="{realm}",{service}{scope}'
        answered: dict[str, str]
        answered, changed = super().authenticate_request(original, headers, **options)
        if not changed:
            raise status_error(original.status_code, f"{self._origin.name} refused the push, and its token server too")
        return answered, True


class _Client(Registry):  # type: ignore[misc]  # the library is untyped
    """`oras` with bounded requests to one origin."""

    def __init__(
        self, origin: Origin, *, verify: bool | str, deadline: Deadline, sleep: Callable[[float], None]
    ) -> None:
        super().__init__(hostname=origin.name, insecure=origin.scheme == "http", tls_verify=verify)
        self._origin = origin
        self._deadline = deadline
        self._sleep = sleep
        self.body = b""
        self.session.trust_env = False
        self.session.max_redirects = 5
        self._answers: list[requests.Response] = []
        self.session.hooks["response"].append(self._remember)
        for prefix in ("http://", "https://"):
            self.session.mount(prefix, _TimedAdapter(deadline))

    def _remember(self, response: requests.Response, **_: object) -> None:
        """Keep each answer, also those that the library drops unread, to close it."""
        self._answers.append(response)

    def close(self) -> None:
        """Drop every connection."""
        self._release()
        self.session.close()

    def _release(self) -> None:
        for response in self._answers:
            response.close()
        self._answers.clear()

    def prepare_auth(
        self,
        repository: str,
        container: Container,
        rules: HostRules,
        login: RegistryLogin | None,
        *,
        docker_logins: bool,
    ) -> None:
        """Ask the registry which way it wants, and choose the library's backend for it."""
        probe = self.session.get(f"{self._origin}/v2/", verify=self._tls_verify, stream=True)
        challenge = read_challenge([probe.headers.get("WWW-Authenticate", "")]) if probe.status_code == 401 else None
        probe.close()
        kind = challenge or Challenge("bearer")
        if kind.scheme == "basic":
            backend = oras.auth.get_auth_backend("basic", self.session, self.prefix == "http", self._tls_verify)
        else:
            backend = _GuardedTokens(self._origin, repository, rules, session=self.session, verify=self._tls_verify)
        if login is not None and login.token:
            backend.token = login.token
        elif login is not None:
            backend.set_basic_auth(login.user, login.password)
        elif docker_logins:
            backend.load_configs(container)
        if kind.scheme == "basic" and not hasattr(backend, "_basic_auth"):
            raise status_error(401, f"{self._origin.name} asks for user and password")
        self.auth = backend

    def do_request(
        self,
        url: str,
        method: str = "GET",
        data: bytes | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> requests.Response:
        """The library's request, with few retries, to this origin only, and with a bounded answer in `body`."""
        target = Url.parse(url)
        if target is None or target.origin != self._origin:
            raise fetch_error("REDIRECT_REFUSED", "the registry sent the upload to another host")
        attempt = 0
        while True:
            pause = ""
            try:
                # The undecorated method: the library's own retries sleep for two minutes.
                response: requests.Response = Registry.do_request.__wrapped__(
                    self, url, method, data=data, headers=dict(headers or {}), stream=True
                )
                self.body = _bounded(response, self._deadline)
                if response.status_code < 400 or response.status_code == 404:
                    return response
                if attempt >= _RETRIES or response.status_code not in _TRANSIENT:
                    raise status_error(
                        response.status_code, f"{self._origin.name} answered {response.status_code} to a push"
                    )
                pause = response.headers.get("Retry-After", "")
            except requests.ConnectionError:
                if attempt >= _RETRIES:
                    raise
            finally:
                self._release()
            wait = float(pause[:9]) if pause.isascii() and pause.isdigit() else 0.25 * 2**attempt
            if wait >= self._deadline.remaining():
                raise fetch_error("REGISTRY_RATE_LIMITED", f"{self._origin.name} asks for a pause of {wait:g} seconds")
            self._sleep(wait)
            attempt += 1


def _bounded(response: requests.Response, deadline: Deadline) -> bytes:
    """The answer's body up to a cap, with the connection given back or dropped."""
    body = bytearray()
    for chunk in response.iter_content(_READ_BYTES):
        body += chunk
        deadline.remaining()
        if len(body) > _MAX_ANSWER_BYTES:
            break
    return bytes(body)
