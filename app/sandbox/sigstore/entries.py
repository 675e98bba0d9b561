"""Canonical bodies of log entries: `dsse` 0.0.1 for Rekor v1, `hashedrekord` 0.0.1 and 0.0.2."""

import base64
import hashlib
from collections.abc import Sequence
from typing import Any, Final

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa

from app.sandbox.sigstore.authority import certificate_der, certificate_pem

IN_TOTO: Final = "application/vnd.in-toto+json"


def b64(data: bytes) -> str:
    """Standard base64 text."""
    return base64.b64encode(data).decode()


def pae(payload_type: str, payload: bytes) -> bytes:
    """DSSE's pre-authentication encoding: what an envelope's signature covers."""
    kind = payload_type.encode()
    return b"DSSEv1 %d %b %d %b" % (len(kind), kind, len(payload), payload)


def key_details(certificate: x509.Certificate) -> tuple[str, str]:
    """(key details, hash algorithm) in protobuf names, by the public algorithm registry."""
    key = certificate.public_key()
    match key:
        case ec.EllipticCurvePublicKey() if key.curve.name == "secp256r1":
            return "PKIX_ECDSA_P256_SHA_256", "SHA2_256"
        case ec.EllipticCurvePublicKey() if key.curve.name == "secp384r1":
            return "PKIX_ECDSA_P384_SHA_384", "SHA2_384"
        case rsa.RSAPublicKey():
            return f"PKIX_RSA_PKCS1V15_{key.key_size}_SHA256", "SHA2_256"
        case ed25519.Ed25519PublicKey():
            return "PKIX_ED25519", "SHA2_512"
        case _:
            raise ValueError(f"expected an ECDSA, RSA or Ed25519 key, found {type(key).__name__}")


def dsse_body(
    envelope: bytes, payload: bytes, signatures: Sequence[bytes], verifiers: Sequence[x509.Certificate]
) -> dict[str, Any]:
    """Rekor v1: hashes of envelope and payload, and each signature with its certificate."""
    return {
        "apiVersion": "0.0.1",
        "kind": "dsse",
        "spec": {
            "envelopeHash": {"algorithm": "sha256", "value": hashlib.sha256(envelope).hexdigest()},
            "payloadHash": {"algorithm": "sha256", "value": hashlib.sha256(payload).hexdigest()},
            "signatures": [
                {"signature": b64(signature), "verifier": b64(certificate_pem(certificate))}
                for signature, certificate in zip(signatures, verifiers, strict=True)
            ],
        },
    }


def hashedrekord_v1_body(digest: str, algorithm: str, signature: bytes, verifier: bytes) -> dict[str, Any]:
    """Rekor v1: a signature over a hashed artifact; `verifier` is PEM."""
    return {
        "apiVersion": "0.0.1",
        "kind": "hashedrekord",
        "spec": {
            "data": {"hash": {"algorithm": algorithm, "value": digest}},
            "signature": {"content": b64(signature), "publicKey": {"content": b64(verifier)}},
        },
    }


def hashedrekord_v2_body(digest: bytes, signature: bytes, certificate: x509.Certificate) -> dict[str, Any]:
    """Rekor v2: a signature over a digest; for an envelope the digest is that of its PAE."""
    details, algorithm = key_details(certificate)
    return {
        "apiVersion": "0.0.2",
        "kind": "hashedrekord",
        "spec": {
            "hashedRekordV002": {
                "data": {"algorithm": algorithm, "digest": b64(digest)},
                "signature": {
                    "content": b64(signature),
                    "verifier": {
                        "keyDetails": details,
                        "x509Certificate": {"rawBytes": b64(certificate_der(certificate))},
                    },
                },
            }
        },
    }


def registry_digest(certificate: x509.Certificate, data: bytes) -> bytes:
    """`data` hashed as the registry asks for the certificate's key."""
    name = {"SHA2_256": "sha256", "SHA2_384": "sha384", "SHA2_512": "sha512"}[key_details(certificate)[1]]
    return hashlib.new(name, data).digest()
