"""Reading what a client of the sandbox sends: JSON members, keys, and the refusal of anything else."""

import base64
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, padding, rsa

LeafPublicKey = ec.EllipticCurvePublicKey | rsa.RSAPublicKey | ed25519.Ed25519PublicKey


class ServiceRefused(Exception):
    """A request that a sandbox service does not serve: HTTP status, and a message for the answer."""

    def __init__(self, status: HTTPStatus, message: str, *, location: str = "") -> None:
        super().__init__(message)
        self.status = status
        self.location = location


def bad_request(message: str) -> ServiceRefused:
    """The usual refusal."""
    return ServiceRefused(HTTPStatus.BAD_REQUEST, message)


def child(value: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """An object member of foreign JSON; refuses anything else."""
    member = value.get(name)
    if not isinstance(member, Mapping):
        raise bad_request(f"expected an object {name!r}")
    return member


def text(value: Mapping[str, Any], name: str) -> str:
    """A text member of foreign JSON; refuses anything else."""
    member = value.get(name)
    if not isinstance(member, str):
        raise bad_request(f"expected text {name!r}")
    return member


def decoded(value: Mapping[str, Any], name: str) -> bytes:
    """A base64 member of foreign JSON; refuses anything else."""
    try:
        return base64.b64decode(text(value, name), validate=True)
    except ValueError as err:
        raise bad_request(f"expected base64 in {name!r}") from err


def verifies(key: LeafPublicKey, signature: bytes, data: bytes) -> bool:
    """Whether `signature` is the key's over `data`, with SHA-256 unless the key fixes its own hash."""
    try:
        match key:
            case ec.EllipticCurvePublicKey():
                key.verify(signature, data, ec.ECDSA(hashes.SHA256()))
            case rsa.RSAPublicKey():
                key.verify(signature, data, padding.PKCS1v15(), hashes.SHA256())
            case _:
                key.verify(signature, data)
    except InvalidSignature:
        return False
    return True


def leaf_key(key: object) -> LeafPublicKey:
    """A key of a kind that leaves may have; refuses others."""
    if isinstance(key, ec.EllipticCurvePublicKey | rsa.RSAPublicKey | ed25519.Ed25519PublicKey):
        return key
    raise bad_request(f"expected an ECDSA, RSA or Ed25519 key, found {type(key).__name__}")
