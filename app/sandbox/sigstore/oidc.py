"""Identity tokens of the sandbox: who signs in as whom, and what a CA reads back from a token.

DANGEROUS by design: the one loopback issuer puts the names of other issuers into `iss` (GitHub's among them), so that
certificates look like real ones. Nobody else trusts its keys; the discovery document says so in a key of its own.
"""

import base64
import json
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property
from typing import Any, Final
from urllib.parse import urlsplit

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature, encode_dss_signature

from app.core.identity import GITHUB_ACTIONS_ISSUER, GITHUB_OAUTH_ISSUER
from app.sandbox.identities import SandboxIdentity, SanKind, WorkflowRun, email_identity, workflow_identity
from app.sandbox.sigstore.authority import Curve

FEDERATION_ISSUER: Final = "https://oauth2.sigstore.dev/auth"
"""Issuer of public Sigstore's sign-in page; the account's own issuer stands in `federated_claims`."""

AUDIENCE: Final = "sigstore"
LIFETIME: Final = timedelta(minutes=5)
MAX_TOKEN_CHARS: Final = 16_384
ES256: Final = "ES256"
RS256: Final = "RS256"
_KEY_IDS: Final = {ES256: "sandbox-es256", RS256: "sandbox-rs256"}


class TokenRefused(Exception):
    """A token that the CA does not take; the message is safe to answer with."""


@dataclass(frozen=True, slots=True)
class Subject:
    """What a verified token stands for; `challenge` is what a proof of possession must sign (Fulcio's API)."""

    identity: SandboxIdentity
    challenge: str


def claims_of(identity: SandboxIdentity) -> dict[str, Any]:
    """The claims that the identity's own issuer would state; times and audience are added when signing."""
    run = identity.run
    if run is not None:
        return {
            "iss": GITHUB_ACTIONS_ISSUER,
            "sub": f"repo:{run.repository}:ref:{run.ref}",
            "repository": run.repository,
            "repository_id": run.repository_id,
            "repository_owner": run.owner,
            "repository_owner_id": run.owner_id,
            "repository_visibility": run.visibility,
            "ref": run.ref,
            "sha": run.sha,
            "event_name": run.event,
            "workflow": run.name,
            "workflow_ref": run.workflow_ref,
            "workflow_sha": run.sha,
            "job_workflow_ref": run.job_workflow_ref,
            "job_workflow_sha": run.job_workflow_sha,
            "run_id": run.run_id,
            "run_attempt": run.attempt,
            "runner_environment": run.runner,
        }
    if identity.kind is SanKind.EMAIL:
        subject = base64.urlsafe_b64encode(identity.value.encode()).decode().rstrip("=")
        claims: dict[str, Any] = {
            "iss": identity.issuer,
            "sub": subject,
            "email": identity.value,
            "email_verified": True,
        }
        if identity.issuer == GITHUB_OAUTH_ISSUER:
            claims |= {
                "iss": FEDERATION_ISSUER,
                "federated_claims": {"connector_id": identity.issuer, "user_id": subject},
            }
        return claims
    return {"iss": identity.issuer, "sub": identity.value}


def subject_of(claims: Mapping[str, Any]) -> Subject:
    """Read verified claims as public Fulcio does: GitHub Actions, e-mail, or a URI below the issuer's own host."""
    issuer = _text(claims, "iss")
    if issuer == GITHUB_ACTIONS_ISSUER:
        return Subject(workflow_identity(_run(claims)), _text(claims, "sub"))
    if "email" in claims:
        address = _text(claims, "email")
        if claims.get("email_verified") is not True:
            raise TokenRefused("expected a verified e-mail address")
        if issuer == FEDERATION_ISSUER:
            federated = claims.get("federated_claims")
            issuer = _text(federated if isinstance(federated, Mapping) else {}, "connector_id")
        return Subject(email_identity(address, issuer), address)
    subject = _text(claims, "sub")
    own, named = urlsplit(issuer), urlsplit(subject)
    if not named.scheme or (own.scheme, own.netloc) != (named.scheme, named.netloc):
        raise TokenRefused(f"expected a subject below {issuer}, found {subject!r}")
    return Subject(SandboxIdentity(issuer, SanKind.URI, subject), subject)


def _run(claims: Mapping[str, Any]) -> WorkflowRun:
    repository, ref = _text(claims, "repository"), _text(claims, "ref")
    triggered, job = _text(claims, "workflow_ref"), _text(claims, "job_workflow_ref")
    path = triggered.removeprefix(f"{repository}/").removesuffix(f"@{ref}")
    if triggered != f"{repository}/{path}@{ref}":
        raise TokenRefused(f"expected workflow_ref {repository}/<path>@{ref}, found {triggered!r}")
    called = "" if job == triggered else job
    return WorkflowRun(
        repository=repository,
        workflow=path,
        ref=ref,
        event=_text(claims, "event_name"),
        sha=_text(claims, "sha"),
        repository_id=_text(claims, "repository_id"),
        owner_id=_text(claims, "repository_owner_id"),
        run_id=_text(claims, "run_id"),
        attempt=_text(claims, "run_attempt"),
        name=_text(claims, "workflow"),
        visibility=_text(claims, "repository_visibility"),
        runner=_text(claims, "runner_environment"),
        called=called,
        called_sha=_text(claims, "job_workflow_sha") if called else "",
    )


def _text(claims: Mapping[str, Any], name: str) -> str:
    value = claims.get(name)
    if not isinstance(value, str) or not value:
        raise TokenRefused(f"expected a text claim {name!r}")
    return value


class UnsafeSimulatedIssuer:
    """One key set that signs in the name of every issuer among `signers`. For a sandbox, never for anything else."""

    def __init__(self, signers: Mapping[str, SandboxIdentity]) -> None:
        self.signers = dict(signers)
        self.request_tokens = {name: secrets.token_urlsafe(24) for name in self.workflows}

    @property
    def workflows(self) -> tuple[str, ...]:
        """The signers that sign in as GitHub Actions jobs."""
        return tuple(name for name, identity in self.signers.items() if identity.run is not None)

    @property
    def issuers(self) -> frozenset[str]:
        """Every `iss` that this issuer may write."""
        return frozenset(claims_of(identity)["iss"] for identity in self.signers.values())

    @cached_property
    def _elliptic(self) -> ec.EllipticCurvePrivateKey:
        return Curve.P256.generate()

    @cached_property
    def _rsa(self) -> rsa.RSAPrivateKey:
        return rsa.generate_private_key(public_exponent=65537, key_size=2048)

    def token(
        self,
        identity: SandboxIdentity,
        *,
        now: datetime,
        audience: str = AUDIENCE,
        algorithm: str = ES256,
        nonce: str = "",
    ) -> str:
        """A token of `identity`, valid from `now` for five minutes."""
        issued = int(now.timestamp())
        claims = claims_of(identity) | {
            "aud": audience,
            "iat": issued,
            "nbf": issued,
            "exp": issued + int(LIFETIME.total_seconds()),
            "jti": secrets.token_hex(16),
        }
        if nonce:
            claims["nonce"] = nonce
        return self.sign(claims, algorithm=algorithm)

    def sign(self, claims: Mapping[str, Any], *, algorithm: str = ES256) -> str:
        """Exactly these claims as a compact JWS (RFC 7515); ES256 or RS256."""
        header = {"alg": algorithm, "typ": "JWT", "kid": _KEY_IDS[algorithm]}
        signed = f"{_segment(header)}.{_segment(claims)}".encode()
        if algorithm == RS256:
            signature = self._rsa.sign(signed, padding.PKCS1v15(), hashes.SHA256())
        else:
            r, s = decode_dss_signature(self._elliptic.sign(signed, ec.ECDSA(hashes.SHA256())))
            signature = r.to_bytes(32, "big") + s.to_bytes(32, "big")
        return f"{signed.decode()}.{_b64url(signature)}"

    def verify(self, token: str, *, now: datetime, audience: str = AUDIENCE) -> Subject:
        """The subject of a token that this issuer signed and that holds `now`; raises `TokenRefused`."""
        if len(token) > MAX_TOKEN_CHARS:
            raise TokenRefused(f"expected a token of at most {MAX_TOKEN_CHARS} characters, found {len(token)}")
        parts = token.split(".")
        if len(parts) != 3:
            raise TokenRefused(f"expected a token of three parts, found {len(parts)}")
        header, claims, signature = _object(parts[0]), _object(parts[1]), _unb64url(parts[2])
        if not self._signed(header, ".".join(parts[:2]).encode(), signature):
            raise TokenRefused("expected a token signed by the sandbox issuer")
        moment = now.timestamp()
        if not _number(claims, "nbf") <= moment < _number(claims, "exp"):
            raise TokenRefused("expected a token within its validity period")
        audiences = claims.get("aud")
        if audience not in (audiences if isinstance(audiences, list) else [audiences]):
            raise TokenRefused(f"expected audience {audience!r}, found {audiences!r}")
        if claims.get("iss") not in self.issuers:
            raise TokenRefused(f"expected a simulated issuer, found {claims.get('iss')!r}")
        return subject_of(claims)

    def _signed(self, header: Mapping[str, Any], signed: bytes, signature: bytes) -> bool:
        algorithm = header.get("alg")
        if not isinstance(algorithm, str) or header.get("kid") != _KEY_IDS.get(algorithm, ""):
            return False
        try:
            if algorithm == RS256:
                self._rsa.public_key().verify(signature, signed, padding.PKCS1v15(), hashes.SHA256())
            elif len(signature) != 64:
                return False
            else:
                r, s = int.from_bytes(signature[:32], "big"), int.from_bytes(signature[32:], "big")
                public = self._elliptic.public_key()
                public.verify(encode_dss_signature(r, s), signed, ec.ECDSA(hashes.SHA256()))
        except InvalidSignature:
            return False
        return True

    def key_set(self) -> dict[str, Any]:
        """The public keys as a JWK set (RFC 7517)."""
        point = self._elliptic.public_key().public_numbers()
        modulus = self._rsa.public_key().public_numbers()
        return {
            "keys": [
                {
                    "kty": "EC",
                    "crv": "P-256",
                    "use": "sig",
                    "alg": ES256,
                    "kid": _KEY_IDS[ES256],
                    "x": _b64url(point.x.to_bytes(32, "big")),
                    "y": _b64url(point.y.to_bytes(32, "big")),
                },
                {
                    "kty": "RSA",
                    "use": "sig",
                    "alg": RS256,
                    "kid": _KEY_IDS[RS256],
                    "n": _b64url(modulus.n.to_bytes(256, "big")),
                    "e": _b64url(modulus.e.to_bytes(3, "big")),
                },
            ]
        }

    def discovery(self, base_url: str) -> dict[str, Any]:
        """The OpenID configuration, with the warning that makes this issuer no issuer for anybody else."""
        return {
            "issuer": base_url,
            "jwks_uri": f"{base_url}/keys",
            "authorization_endpoint": f"{base_url}/auth",
            "token_endpoint": f"{base_url}/token",
            "response_types_supported": ["code"],
            "grant_types_supported": ["authorization_code", "client_credentials"],
            "code_challenge_methods_supported": ["S256"],
            "subject_types_supported": ["public"],
            "id_token_signing_alg_values_supported": [ES256, RS256],
            "scopes_supported": ["openid", "email"],
            "claims_supported": ["aud", "email", "email_verified", "exp", "iat", "iss", "sub"],
            "dangerous_simulated_issuers": sorted(self.issuers),
        }


def _segment(value: Mapping[str, Any]) -> str:
    return _b64url(json.dumps(value, separators=(",", ":")).encode())


def _b64url(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def _unb64url(text: str) -> bytes:
    try:
        return base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
    except ValueError as err:
        raise TokenRefused("expected base64url in the token") from err


def _object(segment: str) -> dict[str, Any]:
    try:
        value = json.loads(_unb64url(segment))
    except (ValueError, RecursionError) as err:
        raise TokenRefused("expected JSON in the token") from err
    if not isinstance(value, dict):
        raise TokenRefused("expected a JSON object in the token")
    return value


def _number(claims: Mapping[str, Any], name: str) -> float:
    value = claims.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TokenRefused(f"expected a number in claim {name!r}")
    return value
