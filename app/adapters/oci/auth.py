"""Anonymous, bearer and basic access to one repository, without believing the registry (trust 3).

The scope is always a pull of the repository asked for, whatever the challenge says, and a token server is
asked only when it is the registry's own host or named in the settings.
"""

import base64
import re
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from urllib.parse import urlencode

from app.adapters.oci.addresses import api_host, split_host
from app.adapters.oci.codes import fetch_error, status_error
from app.adapters.oci.transport import Credential, Response, Url, Wire
from app.core.errors import DocumentInvalid, ReferenceInvalid
from app.core.jsontext import parse_json
from app.ports import Access

MAX_CHALLENGE_CHARS = 8192
MAX_TOKEN_CHARS = 32 << 10
MAX_CACHED_TOKENS = 1024

_PARAMETER = re.compile(r'\s*([A-Za-z]{1,32})\s*=\s*(?:"([^"\\]*)"|([^\s",]+))\s*(?:,|$)')
_TOKEN = re.compile(r"[!-~]+")


@dataclass(frozen=True, slots=True)
class RegistryLogin:
    """What the settings give for one registry: user and password, or a ready bearer token."""

    user: str = ""
    password: str = ""
    token: str = ""

    @property
    def basic(self) -> str:
        """The `Authorization` value of RFC 7617."""
        return "Basic " + base64.b64encode(f"{self.user}:{self.password}".encode()).decode()

    def __repr__(self) -> str:
        return f"RegistryLogin(user={self.user!r})"


def login_key(registry: str) -> str:
    """The normal form under which a registry's login is kept."""
    host, port = split_host(registry)
    host = api_host(host, port)
    return host if port in {None, 443} else f"{host}:{port}"


def parse_logins(text: str) -> dict[str, RegistryLogin]:
    """Read REGISTRY_CREDENTIALS: a JSON object, host -> `{user, password}` or `{token}`.

    Raises `DocumentInvalid`; no message repeats a secret.
    """
    try:
        document = parse_json(text.encode(), what="registry credentials")
    except DocumentInvalid:
        raise DocumentInvalid("expected registry credentials as a JSON object, the text is not strict JSON") from None
    if not isinstance(document, dict):
        raise DocumentInvalid("expected registry credentials as a JSON object: host -> user and password, or token")
    logins: dict[str, RegistryLogin] = {}
    for host, entry in document.items():
        fields = entry if isinstance(entry, dict) else {}
        shape = set(fields)
        texts = {key: value for key, value in fields.items() if isinstance(value, str) and value}
        if shape not in ({"user", "password"}, {"token"}) or set(texts) != shape:
            raise DocumentInvalid(f"credentials of {host!r}: expected exactly user and password, or token, as texts")
        try:
            logins[login_key(host)] = RegistryLogin(**texts)
        except ReferenceInvalid as err:
            raise DocumentInvalid(f"credentials name a malformed host {host!r}") from err
    return logins


@dataclass(frozen=True, slots=True)
class Challenge:
    """A `WWW-Authenticate` answer that we can meet."""

    scheme: str  # bearer or basic
    realm: str = ""
    service: str = ""


def read_challenge(values: list[str]) -> Challenge | None:
    """The first bearer challenge, else a basic one; None when neither is well-formed."""
    basic = None
    for value in values:
        scheme, _, rest = value[:MAX_CHALLENGE_CHARS].partition(" ")
        if scheme.lower() == "basic":
            basic = Challenge("basic")
        if scheme.lower() != "bearer":
            continue
        found: dict[str, str] = {}
        position = 0
        while match := _PARAMETER.match(rest, position):
            found.setdefault(match[1].lower(), match[2] if match[2] is not None else match[3])
            position = match.end()
        if found.get("realm"):
            return Challenge("bearer", found["realm"], found.get("service", ""))
    return basic


class TokenCache:
    """Bearer tokens by (registry, repository, access); shared by all pulls of a process."""

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._tokens: OrderedDict[tuple[str, str, Access], tuple[str, float]] = OrderedDict()

    def get(self, key: tuple[str, str, Access]) -> str | None:
        """A token that is still good."""
        with self._lock:
            held = self._tokens.get(key)
            if held is None or held[1] <= self._clock():
                self._tokens.pop(key, None)
                return None
            return held[0]

    def put(self, key: tuple[str, str, Access], token: str, seconds: float) -> None:
        """Keep a token for `seconds`, at most an hour."""
        with self._lock:
            self._tokens[key] = (token, self._clock() + min(seconds, 3600.0))
            self._tokens.move_to_end(key)
            while len(self._tokens) > MAX_CACHED_TOKENS:
                self._tokens.popitem(last=False)

    def drop(self, key: tuple[str, str, Access]) -> None:
        """Forget a token that was refused."""
        with self._lock:
            self._tokens.pop(key, None)


class Authorizer:
    """Finds the `Authorization` value of one pull's repository, and answers at most one challenge a request."""

    def __init__(
        self, wire: Wire, repository: str, access: Access, logins: Mapping[str, RegistryLogin], cache: TokenCache
    ) -> None:
        self._wire = wire
        self._repository = repository
        self._login = logins.get(wire.own.name) if access is Access.CREDENTIALED else None
        self._cache = cache
        self._key = (str(wire.own), repository, access)
        self._basic = False

    @property
    def credential(self) -> Credential | None:
        """What to send unasked: a cached token, or basic after the registry asked for it in this pull."""
        if self._basic and self._login is not None:
            return Credential(self._wire.own, self._login.basic)
        token = self._cache.get(self._key)
        return Credential(self._wire.own, f"Bearer {token}") if token else None

    def answer(self, response: Response) -> Credential | None:
        """Meet the challenge of a 401; None when it can not be met, which leaves the 401 standing."""
        self._cache.drop(self._key)
        challenge = read_challenge(response.values("www-authenticate"))
        if challenge is None:
            return None
        if challenge.scheme == "basic":
            if self._login is None or not self._login.user:
                return None
            self._basic = True
            return self.credential
        if self._login is not None and self._login.token:
            return Credential(self._wire.own, f"Bearer {self._login.token}")
        token, seconds = self._request_token(challenge)
        self._cache.put(self._key, token, seconds)
        return Credential(self._wire.own, f"Bearer {token}")

    def _request_token(self, challenge: Challenge) -> tuple[str, float]:
        realm = Url.parse(challenge.realm)
        if realm is None:
            raise fetch_error("REALM_REFUSED", "the registry named a malformed token server")
        own = realm.origin.host == self._wire.own.host and realm.origin.port == self._wire.own.port
        if not own and realm.origin.name not in self._wire.rules.realms:
            raise fetch_error("REALM_REFUSED", f"token server {realm.origin.name} is not {self._wire.own.name}")
        if not self._wire.allows_scheme(realm.origin):
            raise fetch_error("REALM_REFUSED", f"expected the token server over https, got {realm.origin}")
        query = [("scope", f"repository:{self._repository}:pull")]
        if challenge.service:
            query.insert(0, ("service", challenge.service))
        separator = "&" if "?" in realm.target else "?"
        url = Url(realm.origin, realm.target + separator + urlencode(query))
        basic = Credential(realm.origin, self._login.basic) if self._login is not None else None
        with self._wire.get(url, {"Accept": "application/json"}, credential=basic, redirects=0) as response:
            if response.status in range(300, 400):
                raise fetch_error("REALM_REFUSED", f"token server {realm.origin.name} redirected")
            if response.status != 200:
                raise status_error(response.status, f"token server {realm.origin.name} answered {response.status}")
            body = bytearray()
            for chunk in response.chunks():
                body += chunk
                if len(body) > self._wire.limits.token_bytes:
                    raise fetch_error("TOKEN_INVALID", f"token answer is over {self._wire.limits.token_bytes} bytes")
        return read_token(bytes(body))


def read_token(body: bytes) -> tuple[str, float]:
    """(token, seconds it is good for) of a token server's answer; raises `FetchError` (TOKEN_INVALID)."""
    try:
        document = parse_json(body)
    except DocumentInvalid as err:
        raise fetch_error("TOKEN_INVALID", "expected JSON from the token server") from err
    fields = document if isinstance(document, dict) else {}
    token = fields.get("token") or fields.get("access_token")
    if not isinstance(token, str) or len(token) > MAX_TOKEN_CHARS or not _TOKEN.fullmatch(token):
        raise fetch_error("TOKEN_INVALID", "expected a token in visible ASCII from the token server")
    seconds = fields.get("expires_in")
    if isinstance(seconds, bool) or not isinstance(seconds, int) or seconds <= 0:
        seconds = 60  # the distribution specification's default
    return token, min(seconds, 3600) * 0.9
