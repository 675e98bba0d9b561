"""An RFC 3161 timestamp authority: requests in, signed tokens (CMS SignedData over a TSTInfo) out."""

import base64
import hashlib
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec

from app.sandbox.sigstore import der
from app.sandbox.sigstore.authority import Curve, certificate_der, certificate_pem, timestamping_chain

POLICY: Final = "1.3.6.1.4.1.57264.2"
_HASHES: Final = {
    "2.16.840.1.101.3.4.2.1": "sha256",
    "2.16.840.1.101.3.4.2.2": "sha384",
    "2.16.840.1.101.3.4.2.3": "sha512",
}
_SHA256: Final = "2.16.840.1.101.3.4.2.1"
_SIGNED_DATA: Final = "1.2.840.113549.1.7.2"
_TST_INFO: Final = "1.2.840.113549.1.9.16.1.4"
_CONTENT_TYPE: Final = "1.2.840.113549.1.9.3"
_MESSAGE_DIGEST: Final = "1.2.840.113549.1.9.4"
_SIGNING_TIME: Final = "1.2.840.113549.1.9.5"
_SIGNING_CERTIFICATE_V2: Final = "1.2.840.113549.1.9.16.2.47"
_ECDSA_SHA256: Final = "1.2.840.10045.4.3.2"
_UTC_TIME: Final = 0x17


@dataclass(frozen=True, slots=True)
class TimestampRequest:
    """A TimeStampReq: what is to be stamped, as an already encoded imprint."""

    imprint: bytes
    nonce: bytes | None = None  # INTEGER content
    certificates: bool = False


def request_for(data: bytes) -> TimestampRequest:
    """A request to stamp `data` under SHA-256."""
    return TimestampRequest(_imprint(_SHA256, hashlib.sha256(data).digest()))


def parse_request(body: bytes) -> TimestampRequest:
    """Read a TimeStampReq; raises `ValueError` for what is none or asks for an unknown hash."""
    fields = list(der.elements(der.single(body, der.SEQUENCE)))
    if len(fields) < 2 or fields[0] != (der.INTEGER, b"\x01") or fields[1][0] != der.SEQUENCE:
        raise ValueError("expected a version 1 timestamp request")
    parts = list(der.elements(fields[1][1]))
    if [tag for tag, _ in parts] != [der.SEQUENCE, der.OCTET_STRING]:
        raise ValueError("expected an algorithm and a hash in the message imprint")
    for dotted, name in _HASHES.items():
        if parts[0][1].startswith(der.oid(dotted)):
            if len(parts[1][1]) != hashlib.new(name).digest_size:
                raise ValueError(f"expected a {name} hash, found {len(parts[1][1])} bytes")
            nonce = next((content for tag, content in fields[2:] if tag == der.INTEGER), None)
            wants = any(tag == der.BOOLEAN and content != b"\x00" for tag, content in fields[2:])
            return TimestampRequest(_imprint(dotted, parts[1][1]), nonce, wants)
    raise ValueError("expected SHA-256, SHA-384 or SHA-512 in the message imprint")


def parse_json_request(request: Mapping[str, Any]) -> TimestampRequest:
    """The JSON form of a request that Sigstore's timestamp authority also takes; raises `ValueError`."""
    name, digest = request.get("hashAlgorithm"), request.get("artifactHash")
    dotted = next((dotted for dotted, known in _HASHES.items() if known == name), None)
    if dotted is None or not isinstance(digest, str):
        raise ValueError("expected artifactHash and a hashAlgorithm of sha256, sha384 or sha512")
    hashed = base64.b64decode(digest, validate=True)
    if len(hashed) != hashlib.new(_HASHES[dotted]).digest_size:
        raise ValueError(f"expected a {name} hash, found {len(hashed)} bytes")
    nonce = request.get("nonce")
    return TimestampRequest(
        _imprint(dotted, hashed),
        der.integer(nonce)[2:] if isinstance(nonce, int) and not isinstance(nonce, bool) else None,
        request.get("certificates") is True,
    )


class TimestampAuthority:
    """One P-256 key with its chain of two certificates."""

    def __init__(self, organization: str) -> None:
        self._key = Curve.P256.generate()
        self.leaf, self.root = timestamping_chain(organization, self._key.public_key())

    @property
    def chain(self) -> tuple[x509.Certificate, x509.Certificate]:
        """From the signing certificate to the root."""
        return self.leaf, self.root

    def chain_pem(self) -> bytes:
        """The chain as PEM, leaf first."""
        return b"".join(certificate_pem(certificate) for certificate in self.chain)

    def stamp(self, data: bytes, at: datetime, *, status: int = 0) -> bytes:
        """A TimeStampResp over `data`, without certificates in it, as public authorities answer by default."""
        return self.respond(request_for(data), at, status=status)

    def respond(self, request: TimestampRequest, at: datetime, *, status: int = 0) -> bytes:
        """A TimeStampResp at `at`, whole seconds; status 0 is granted, 2 rejection."""
        return der.sequence(der.sequence(der.integer(status)), self._token(request, at.astimezone(UTC)))

    def _token(self, request: TimestampRequest, at: datetime) -> bytes:
        info = der.sequence(
            der.integer(1),
            der.oid(POLICY),
            request.imprint,
            der.integer(secrets.randbits(120) | 1 << 120),
            der.generalized_time(at),
            *([der.tlv(der.INTEGER, request.nonce)] if request.nonce is not None else []),
        )
        attributes = self._attributes(info, at)
        signature = self._key.sign(der.set_of(*attributes), ec.ECDSA(hashes.SHA256()))
        signer = der.sequence(
            der.integer(1),
            der.sequence(der.name(self.leaf.issuer), der.integer(self.leaf.serial_number)),
            _algorithm(_SHA256),
            der.context(0, *sorted(attributes)),
            _algorithm(_ECDSA_SHA256),
            der.octets(signature),
        )
        signed = der.sequence(
            der.integer(3),
            der.set_of(_algorithm(_SHA256)),
            der.sequence(der.oid(_TST_INFO), der.context(0, der.octets(info))),
            *([der.context(0, certificate_der(self.leaf))] if request.certificates else []),
            der.set_of(signer),
        )
        return der.sequence(der.oid(_SIGNED_DATA), der.context(0, signed))

    def _attributes(self, info: bytes, at: datetime) -> list[bytes]:
        certificate_hash = hashlib.sha256(certificate_der(self.leaf)).digest()
        signing_certificate = der.sequence(der.sequence(der.sequence(der.octets(certificate_hash))))
        return [
            _attribute(_CONTENT_TYPE, der.oid(_TST_INFO)),
            _attribute(_SIGNING_TIME, der.tlv(_UTC_TIME, at.strftime("%y%m%d%H%M%SZ").encode())),
            _attribute(_SIGNING_CERTIFICATE_V2, signing_certificate),
            _attribute(_MESSAGE_DIGEST, der.octets(hashlib.sha256(info).digest())),
        ]


def _imprint(algorithm: str, digest: bytes) -> bytes:
    return der.sequence(_algorithm(algorithm), der.octets(digest))


def _algorithm(dotted: str) -> bytes:
    return der.sequence(der.oid(dotted))


def _attribute(dotted: str, value: bytes) -> bytes:
    return der.sequence(der.oid(dotted), der.set_of(value))
