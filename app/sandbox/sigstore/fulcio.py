"""The CA as a service: a token and a proof of key possession in, a certificate chain out (Fulcio API v2)."""

from collections.abc import Mapping
from datetime import datetime
from http import HTTPStatus
from typing import Any, Final

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization

from app.sandbox.sigstore.authority import LeafProfile, certificate_pem
from app.sandbox.sigstore.extensions import encoded, identity_extensions
from app.sandbox.sigstore.faults import HONESTLY
from app.sandbox.sigstore.oidc import Subject, TokenRefused, UnsafeSimulatedIssuer
from app.sandbox.sigstore.private import PrivateSigstore
from app.sandbox.sigstore.request import (
    LeafPublicKey,
    ServiceRefused,
    bad_request,
    child,
    decoded,
    leaf_key,
    text,
    verifies,
)

_BEARER: Final = "bearer "


class Fulcio:
    """Answers certificate requests for subjects that the sandbox's issuer vouches for."""

    def __init__(self, sigstore: PrivateSigstore, issuer: UnsafeSimulatedIssuer) -> None:
        self._sigstore = sigstore
        self._issuer = issuer

    def signing_certificate(self, request: Mapping[str, Any], authorization: str, *, now: datetime) -> dict[str, Any]:
        """Both forms: a CSR, or a public key with a signature over the token's challenge.

        The token comes in `credentials.oidcIdentityToken` or as a bearer in the `Authorization` header.
        """
        subject = self._subject(request, authorization, now)
        if "certificateSigningRequest" in request:
            key = _csr_key(decoded(request, "certificateSigningRequest"))
        else:
            wanted = child(request, "publicKeyRequest")
            key = _public_key(text(child(wanted, "publicKey"), "content").encode())
            if not verifies(key, decoded(wanted, "proofOfPossession"), subject.challenge.encode()):
                raise bad_request("expected a proof of possession that verifies over the token's subject")
        leaf = self._issue(key, subject, now.replace(microsecond=0))
        return {"signedCertificateEmbeddedSct": {"chain": {"certificates": [pem(leaf), *self._chain()]}}}

    def trust_bundle(self) -> dict[str, Any]:
        """The CA's chains."""
        return {"chains": [{"certificates": self._chain()}]}

    def _chain(self) -> list[str]:
        return [pem(certificate) for certificate in self._sigstore.ca.chain]

    def _subject(self, request: Mapping[str, Any], authorization: str, now: datetime) -> Subject:
        if "credentials" in request:
            token = text(child(request, "credentials"), "oidcIdentityToken")
        elif authorization.lower().startswith(_BEARER):
            token = authorization[len(_BEARER) :].strip()
        else:
            raise ServiceRefused(HTTPStatus.UNAUTHORIZED, "expected an identity token")
        try:
            return self._issuer.verify(token, now=now)
        except TokenRefused as err:
            message = f"there was an error processing the identity token: {err}"
            raise ServiceRefused(HTTPStatus.UNAUTHORIZED, message) from err

    def _issue(self, key: LeafPublicKey, subject: Subject, now: datetime) -> x509.Certificate:
        identity = subject.identity
        profile = LeafProfile(
            not_before=now,
            not_after=now + HONESTLY.leaf_lifetime,
            names=((identity.kind, identity.value),),
            extensions=encoded(identity_extensions(identity)),
        )
        parts = self._sigstore.instance
        return parts.ca.issue(key, profile, parts.ct_log, parts.foreign_ct_log)


def pem(certificate: x509.Certificate) -> str:
    """A certificate as PEM text."""
    return certificate_pem(certificate).decode()


def _csr_key(csr: bytes) -> LeafPublicKey:
    try:
        request = x509.load_pem_x509_csr(csr)
        valid = request.is_signature_valid
        key = request.public_key()
    except (ValueError, TypeError, UnsupportedAlgorithm) as err:
        raise bad_request("expected a PEM certificate request") from err
    if not valid:
        raise bad_request("expected a certificate request that its own key signed")
    return leaf_key(key)


def _public_key(content: bytes) -> LeafPublicKey:
    try:
        return leaf_key(serialization.load_pem_public_key(content))
    except (ValueError, TypeError, UnsupportedAlgorithm) as err:
        raise bad_request("expected a PEM public key") from err
