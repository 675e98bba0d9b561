"""The sandbox Sigstore over HTTP for tests: one server a module, and what both test modules send to it."""

import base64

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

KEY = ec.generate_private_key(ec.SECP256R1())
STATEMENT = b'{"_type":"https://in-toto.io/Statement/v1"}'
IN_TOTO = "application/vnd.in-toto+json"


def b64(data: bytes) -> str:
    """Standard base64 as text."""
    return base64.b64encode(data).decode()


def csr(key: ec.EllipticCurvePrivateKey = KEY) -> bytes:
    """A signing request with an empty subject, PEM."""
    request = x509.CertificateSigningRequestBuilder().subject_name(x509.Name([])).sign(key, hashes.SHA256())
    return request.public_bytes(serialization.Encoding.PEM)
