"""Who may do what on the sandbox registry: anonymous, basic, or bearer tokens from its own token endpoint."""

import base64
import binascii
import secrets
import threading
from dataclasses import dataclass, field
from enum import StrEnum
from urllib.parse import parse_qs


class AuthMode(StrEnum):
    """What the registry asks for."""

    NONE = "none"
    BASIC = "basic"
    BEARER = "bearer"


@dataclass(frozen=True, slots=True)
class RegistryAuth:
    """The access rules of one registry; with `anonymous_pull`, only pushes need a user."""

    mode: AuthMode = AuthMode.NONE
    users: dict[str, str] = field(default_factory=dict)
    anonymous_pull: bool = True
    expires_in_seconds: int = 300


class Gatekeeper:
    """Checks requests and hands out tokens."""

    def __init__(self, auth: RegistryAuth) -> None:
        self.auth = auth
        self._lock = threading.Lock()
        self._tokens: dict[str, frozenset[tuple[str, str]]] = {}

    def admits(self, authorization: str | None, repository: str, action: str) -> bool:
        """Whether a request may `pull` from or `push` to `repository`."""
        if self.auth.mode is AuthMode.NONE:
            return True
        if self.auth.mode is AuthMode.BASIC:
            return (action == "pull" and self.auth.anonymous_pull) or self._user(authorization) is not None
        scheme, _, token = (authorization or "").partition(" ")
        with self._lock:
            granted = self._tokens.get(token, frozenset()) if scheme.lower() == "bearer" else frozenset()
        return (repository, action) in granted

    def challenge(self, base: str, repository: str, action: str) -> str:
        """The `WWW-Authenticate` of a refusal."""
        if self.auth.mode is AuthMode.BASIC:
            return 'Basic realm="sandbox"'
        actions = "pull,push" if action == "push" else "pull"
        return f'Bearer realm="{base}/token",service="sandbox",scope="repository:{repository}:{actions}"'

    def issue(self, authorization: str | None, query: str) -> str | None:
        """A token for the scopes of a token request; None when user or password is wrong."""
        user = self._user(authorization)
        if authorization and user is None:
            return None
        granted: set[tuple[str, str]] = set()
        for scope in parse_qs(query).get("scope", []):
            kind, _, rest = scope.partition(":")
            name, _, actions = rest.rpartition(":")
            for action in actions.split(","):
                anonymous = action == "pull" and self.auth.anonymous_pull
                if kind == "repository" and (user is not None or anonymous):
                    granted.add((name, action))
        token = secrets.token_urlsafe(24)
        with self._lock:
            self._tokens[token] = frozenset(granted)
        return token

    def _user(self, authorization: str | None) -> str | None:
        scheme, _, value = (authorization or "").partition(" ")
        if scheme.lower() != "basic":
            return None
        try:
            user, _, password = base64.b64decode(value, validate=True).decode().partition(":")
        except (binascii.Error, UnicodeDecodeError):
            return None
        return user if secrets.compare_digest(self.auth.users.get(user, "\0"), password) else None
