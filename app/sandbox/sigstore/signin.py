"""How a sample signer gets a token: by name, by an authorization code, or as a GitHub Actions job."""

import base64
import hashlib
import hmac
import html
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from http import HTTPStatus
from typing import Any, Final
from urllib.parse import urlencode, urlsplit

from app.sandbox.identities import SandboxIdentity
from app.sandbox.sigstore.oidc import AUDIENCE, LIFETIME, UnsafeSimulatedIssuer
from app.sandbox.sigstore.request import ServiceRefused, bad_request

MAX_PENDING_CODES: Final = 256
_LOOPBACK_HOSTS: Final = frozenset({"127.0.0.1", "localhost"})


@dataclass(frozen=True, slots=True)
class Authorization:
    """The answer of the authorization endpoint: a page to choose from, or where to go with a code."""

    html: str = ""
    location: str = ""


@dataclass(frozen=True, slots=True)
class _Pending:
    signer: str
    audience: str
    redirect_uri: str
    challenge: str
    nonce: str


class SignIn:
    """The token endpoints of the simulated issuer. Anybody may be anybody here; that is what a sandbox is for."""

    def __init__(self, issuer: UnsafeSimulatedIssuer) -> None:
        self._issuer = issuer
        self._codes: dict[str, _Pending] = {}

    def authorize(self, query: Mapping[str, str]) -> Authorization:
        """OAuth's authorization endpoint (RFC 6749 4.1, PKCE S256): choose a signer, then come back with a code.

        Codes go to loopback only; the oldest pending one is forgotten when there are too many.
        """
        redirect_uri = query.get("redirect_uri", "")
        if urlsplit(redirect_uri).hostname not in _LOOPBACK_HOSTS or urlsplit(redirect_uri).scheme != "http":
            raise bad_request("expected a redirect_uri on loopback")
        if query.get("code_challenge") and query.get("code_challenge_method") != "S256":
            raise bad_request("expected code_challenge_method S256")
        signer = query.get("login_hint")
        if signer is None:
            return Authorization(html=self._page(query))
        self._identity(signer)
        while len(self._codes) >= MAX_PENDING_CODES:
            self._codes.pop(next(iter(self._codes)))
        code = secrets.token_urlsafe(24)
        self._codes[code] = _Pending(
            signer,
            query.get("client_id", AUDIENCE),
            redirect_uri,
            query.get("code_challenge", ""),
            query.get("nonce", ""),
        )
        joint = "&" if "?" in redirect_uri else "?"
        return Authorization(
            location=f"{redirect_uri}{joint}{urlencode({'code': code, 'state': query.get('state', '')})}"
        )

    def token(self, form: Mapping[str, str], *, now: datetime) -> dict[str, Any]:
        """OAuth's token endpoint: `client_credentials` names a signer, `authorization_code` brings a code."""
        match form.get("grant_type"):
            case "client_credentials":
                identity = self._identity(form.get("client_id", ""))
                return self._answer(identity, now, form.get("audience", AUDIENCE), "")
            case "authorization_code":
                pending = self._codes.pop(form.get("code", ""), None)
                if pending is None or pending.redirect_uri != form.get("redirect_uri"):
                    raise bad_request("expected a code that was given out for this redirect_uri, once")
                if pending.challenge and not _answers(form.get("code_verifier", ""), pending.challenge):
                    raise bad_request("expected the code_verifier of this code's challenge")
                return self._answer(self._identity(pending.signer), now, pending.audience, pending.nonce)
            case other:
                raise bad_request(f"expected grant_type client_credentials or authorization_code, found {other!r}")

    def actions_token(self, signer: str, authorization: str, *, audience: str, now: datetime) -> str:
        """A job's token, for who shows the job's request token as a bearer (GitHub's own endpoint works so)."""
        expected = self._issuer.request_tokens.get(signer)
        scheme, _, shown = authorization.partition(" ")
        if expected is None or scheme.lower() != "bearer" or not hmac.compare_digest(shown.encode(), expected.encode()):
            raise ServiceRefused(HTTPStatus.UNAUTHORIZED, "expected the request token of a workflow signer")
        identity = self._issuer.signers[signer]
        return self._issuer.token(identity, now=now, audience=audience or f"https://github.com/{signer}")

    def _identity(self, name: str) -> SandboxIdentity:
        identity = self._issuer.signers.get(name)
        if identity is None:
            raise bad_request(f"expected a sample signer ({', '.join(sorted(self._issuer.signers))}), found {name!r}")
        return identity

    def _answer(self, identity: SandboxIdentity, now: datetime, audience: str, nonce: str) -> dict[str, Any]:
        token = self._issuer.token(identity, now=now, audience=audience, nonce=nonce)
        return {
            "access_token": token,
            "id_token": token,
            "token_type": "Bearer",
            "expires_in": int(LIFETIME.total_seconds()),
        }

    def _page(self, query: Mapping[str, str]) -> str:
        links = "\n".join(
            f'<li><a href="/auth?{html.escape(urlencode({**query, "login_hint": name}))}">{html.escape(name)}</a>'
            f" {html.escape(identity.value)}</li>"
            for name, identity in self._issuer.signers.items()
        )
        return (
            '<!doctype html>\n<html lang="en"><meta charset="utf-8"><title>Sandbox sign-in</title>\n'
            f"<h1>Sandbox sign-in</h1>\n<p>Choose who you want to be.</p>\n<ul>\n{links}\n</ul></html>\n"
        )


def _answers(verifier: str, challenge: str) -> bool:
    digest = hashlib.sha256(verifier.encode()).digest()
    return hmac.compare_digest(base64.urlsafe_b64encode(digest).decode().rstrip("="), challenge)
