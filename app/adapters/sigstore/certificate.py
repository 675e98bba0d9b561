"""What a signing certificate says: names, issuer, GitHub claims, key and lifetime (trust 1.1, Fulcio's oid-info).

Only facts; S13 to S15 and S18 judge them in `rules`. Extensions 1 to 6 hold raw UTF-8, later ones a DER UTF8String.
"""

import unicodedata
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from cryptography import x509
from cryptography.hazmat import asn1
from cryptography.hazmat.primitives.asymmetric import ec

from app.core.identity import GithubClaims

_FULCIO: Final = "1.3.6.1.4.1.57264.1"
_ISSUER_RAW: Final = x509.ObjectIdentifier(f"{_FULCIO}.1")
_ISSUER: Final = x509.ObjectIdentifier(f"{_FULCIO}.8")
_CLAIMS: Final = {
    "source_repository": x509.ObjectIdentifier(f"{_FULCIO}.12"),
    "source_ref": x509.ObjectIdentifier(f"{_FULCIO}.14"),
    "source_repository_id": x509.ObjectIdentifier(f"{_FULCIO}.15"),
    "source_owner": x509.ObjectIdentifier(f"{_FULCIO}.16"),
    "source_owner_id": x509.ObjectIdentifier(f"{_FULCIO}.17"),
    "trigger": x509.ObjectIdentifier(f"{_FULCIO}.20"),
    "run_url": x509.ObjectIdentifier(f"{_FULCIO}.21"),
}
_UNPRINTABLE: Final = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})


@dataclass(frozen=True, slots=True)
class SubjectName:
    """One subject alternative name; `kind` is `email`, `uri` or the name of another kind, whose value is not read."""

    kind: str
    value: str


@dataclass(frozen=True, slots=True)
class CertificateFacts:
    """A leaf certificate as the rules look at it; an issuer is None when its extension is absent."""

    names: tuple[SubjectName, ...]
    issuer_raw: str | None
    issuer_v2: str | None
    claims: GithubClaims
    key: str  # p-256, or what it is instead
    lifetime: timedelta

    @property
    def issuer(self) -> str:
        """The .1.8 issuer when present, .1.1 only otherwise (S15)."""
        return self.issuer_v2 if self.issuer_v2 is not None else self.issuer_raw or ""

    @property
    def identity(self) -> str:
        """The first name; S14 makes sure that there is no other."""
        return self.names[0].value if self.names else ""


def read_certificate(certificate: x509.Certificate) -> CertificateFacts:
    """Read a leaf; raises `ValueError` for an extension that is not what its OID asks for."""
    values = {
        extension.oid: extension.value.value
        for extension in certificate.extensions
        if isinstance(extension.value, x509.UnrecognizedExtension)
    }
    raw, modern = values.get(_ISSUER_RAW), values.get(_ISSUER)
    return CertificateFacts(
        names=_names(certificate),
        issuer_raw=None if raw is None else raw.decode("utf-8"),
        issuer_v2=None if modern is None else asn1.decode_der(str, modern),
        claims=GithubClaims(
            **{name: asn1.decode_der(str, values[oid]) for name, oid in _CLAIMS.items() if oid in values}
        ),
        key=_key(certificate),
        lifetime=certificate.not_valid_after_utc - certificate.not_valid_before_utc,
    )


def unprintable(text: str) -> str | None:
    """The first character of `text` that can not be seen or breaks a line, as `U+XXXX`; None when there is none."""
    if text.isascii() and text.isprintable():
        return None
    found = next((char for char in text if unicodedata.category(char) in _UNPRINTABLE), None)
    return None if found is None else f"U+{ord(found):04X}"


def _names(certificate: x509.Certificate) -> tuple[SubjectName, ...]:
    try:
        found = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return ()
    names: list[SubjectName] = []
    for name in found:
        match name:
            case x509.RFC822Name():
                names.append(SubjectName("email", name.value))
            case x509.UniformResourceIdentifier():
                names.append(SubjectName("uri", name.value))
            case _:
                names.append(SubjectName(type(name).__name__, ""))
    return tuple(names)


def _key(certificate: x509.Certificate) -> str:
    key = certificate.public_key()
    if isinstance(key, ec.EllipticCurvePublicKey):
        return "p-256" if isinstance(key.curve, ec.SECP256R1) else key.curve.name
    return type(key).__name__.removesuffix("PublicKey")
