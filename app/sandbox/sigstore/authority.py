"""Certificates of the private Sigstore: a CA of root and intermediate, and the CT log that vouches for its leaves.

The demands on each certificate are those of trust 1.3. Nothing here decides who may have a certificate.
"""

import hashlib
import struct
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from functools import cached_property
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.types import CertificateIssuerPublicKeyTypes, PublicKeyTypes
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from app.sandbox.identities import SanKind
from app.sandbox.sigstore import der
from app.sandbox.sigstore.extensions import general_names

EPOCH: Final = datetime(2020, 1, 1, tzinfo=UTC)
"""From here on the private Sigstore's certificates and keys hold, so that a sample can be signed in the past."""

HORIZON: Final = datetime(2045, 1, 1, tzinfo=UTC)

_SCT_LIST: Final = x509.ObjectIdentifier("1.3.6.1.4.1.11129.2.4.2")


class Curve(StrEnum):
    """Curves of the CA; P-256 verifies faster, P-384 is what public Fulcio has."""

    P256 = "P-256"
    P384 = "P-384"

    def generate(self) -> ec.EllipticCurvePrivateKey:
        """A fresh key."""
        return ec.generate_private_key(ec.SECP256R1() if self is Curve.P256 else ec.SECP384R1())

    @property
    def digest(self) -> hashes.SHA256 | hashes.SHA384:
        """The hash that goes with the curve."""
        return hashes.SHA256() if self is Curve.P256 else hashes.SHA384()


class Sct(StrEnum):
    """How a leaf is logged."""

    GOOD = "good"
    NONE = "none"
    FOREIGN = "foreign"  # by a log that no root knows
    IMPOSTOR = "impostor"  # by a foreign key under our log's id
    TWO = "two"


def spki(key: PublicKeyTypes) -> bytes:
    """A public key as DER SubjectPublicKeyInfo."""
    return key.public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)


def certificate_der(certificate: x509.Certificate) -> bytes:
    """A certificate's exact bytes."""
    return certificate.public_bytes(serialization.Encoding.DER)


def certificate_pem(certificate: x509.Certificate) -> bytes:
    """PEM at 64 columns with a final newline, the form that log entries hash."""
    return certificate.public_bytes(serialization.Encoding.PEM)


@dataclass(frozen=True, slots=True)
class LeafProfile:
    """What a leaf certificate says besides its key; `extensions` maps dotted OIDs to exact values."""

    not_before: datetime
    not_after: datetime
    names: tuple[tuple[SanKind, str], ...]
    extensions: Mapping[str, bytes] = field(default_factory=dict)
    sct: Sct = Sct.GOOD
    sct_at: datetime | None = None  # `not_before` when None
    code_signing: bool = True
    digital_signature: bool = True


class CtLog:
    """A certificate-transparency log: one P-256 key that signs timestamps over certificates (RFC 6962)."""

    def __init__(self) -> None:
        self.key = Curve.P256.generate()

    @cached_property
    def log_id(self) -> bytes:
        """sha256 of the public key."""
        return hashlib.sha256(spki(self.key.public_key())).digest()

    def stamp(self, tbs: bytes, issuer: x509.Certificate, at: datetime, *, log_id: bytes | None = None) -> bytes:
        """A serialized SCT over a certificate that has no SCT extension yet."""
        milliseconds = int(at.timestamp() * 1000)
        issuer_key_hash = hashlib.sha256(spki(issuer.public_key())).digest()
        signed = struct.pack("!BBQH", 0, 0, milliseconds, 1) + issuer_key_hash
        signed += struct.pack("!I", len(tbs))[1:] + tbs + struct.pack("!H", 0)
        signature = self.key.sign(signed, ec.ECDSA(hashes.SHA256()))
        head = struct.pack("!B32sQH", 0, log_id or self.log_id, milliseconds, 0)
        return head + struct.pack("!BBH", 4, 3, len(signature)) + signature


class CertificateAuthority:
    """Root and intermediate; the intermediate issues leaves (trust 1.3: both belong into a root's `certChain`)."""

    def __init__(self, organization: str, *, curve: Curve = Curve.P256) -> None:
        self.organization = organization
        self.curve = curve
        root_key, self._key = curve.generate(), curve.generate()
        root_name, name = _name(organization, "sandbox"), _name(organization, "sandbox-intermediate")
        self.root = _ca(root_name, root_name, root_key.public_key(), root_key, curve, path_length=1)
        self.intermediate = _ca(name, root_name, self._key.public_key(), root_key, curve, path_length=0)

    @property
    def chain(self) -> tuple[x509.Certificate, x509.Certificate]:
        """From the issuer of leaves up to the root."""
        return self.intermediate, self.root

    @cached_property
    def _authority_key(self) -> x509.AuthorityKeyIdentifier:
        return x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key())

    def issue(
        self, key: CertificateIssuerPublicKeyTypes, profile: LeafProfile, ct_log: CtLog, foreign: CtLog
    ) -> x509.Certificate:
        """A leaf for `key`; the SCT extension comes last, since the log signs the certificate without it."""
        builder = (
            x509.CertificateBuilder()
            .subject_name(x509.Name([]))
            .issuer_name(self.intermediate.subject)
            .public_key(key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(profile.not_before)
            .not_valid_after(profile.not_after)
            .add_extension(_key_usage(digital_signature=profile.digital_signature), critical=True)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
            .add_extension(self._authority_key, critical=False)
        )
        if profile.code_signing:
            builder = builder.add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CODE_SIGNING]), critical=False)
        if profile.names:
            names = x509.UnrecognizedExtension(x509.SubjectAlternativeName.oid, general_names(profile.names))
            builder = builder.add_extension(names, critical=True)
        for dotted, value in profile.extensions.items():
            builder = builder.add_extension(
                x509.UnrecognizedExtension(x509.ObjectIdentifier(dotted), value), critical=False
            )
        unlogged = builder.sign(self._key, self.curve.digest)
        stamps = self._stamps(unlogged.tbs_certificate_bytes, profile, ct_log, foreign)
        if not stamps:
            return unlogged
        listed = b"".join(struct.pack("!H", len(stamp)) + stamp for stamp in stamps)
        value = der.octets(struct.pack("!H", len(listed)) + listed)
        return builder.add_extension(x509.UnrecognizedExtension(_SCT_LIST, value), critical=False).sign(
            self._key, self.curve.digest
        )

    def _stamps(self, tbs: bytes, profile: LeafProfile, ct_log: CtLog, foreign: CtLog) -> tuple[bytes, ...]:
        at = profile.sct_at or profile.not_before
        match profile.sct:
            case Sct.NONE:
                return ()
            case Sct.GOOD:
                return (ct_log.stamp(tbs, self.intermediate, at),)
            case Sct.FOREIGN:
                return (foreign.stamp(tbs, self.intermediate, at),)
            case Sct.IMPOSTOR:
                return (foreign.stamp(tbs, self.intermediate, at, log_id=ct_log.log_id),)
            case Sct.TWO:
                return ct_log.stamp(tbs, self.intermediate, at), foreign.stamp(tbs, self.intermediate, at)


def _name(organization: str, common_name: str) -> x509.Name:
    return x509.Name(
        [
            x509.NameAttribute(NameOID.ORGANIZATION_NAME, organization),
            x509.NameAttribute(NameOID.COMMON_NAME, common_name),
        ]
    )


def _key_usage(*, digital_signature: bool = False, cert_sign: bool = False) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=digital_signature,
        content_commitment=not digital_signature and not cert_sign,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=cert_sign,
        crl_sign=cert_sign,
        encipher_only=False,
        decipher_only=False,
    )


def _ca(
    subject: x509.Name,
    issuer: x509.Name,
    key: ec.EllipticCurvePublicKey,
    signer: ec.EllipticCurvePrivateKey,
    curve: Curve,
    *,
    path_length: int,
) -> x509.Certificate:
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(EPOCH)
        .not_valid_after(HORIZON)
        .add_extension(x509.BasicConstraints(ca=True, path_length=path_length), critical=True)
        .add_extension(_key_usage(cert_sign=True), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
    )
    if subject != issuer:
        authority_key = x509.AuthorityKeyIdentifier.from_issuer_public_key(signer.public_key())
        builder = builder.add_extension(authority_key, critical=False)
    return builder.sign(signer, curve.digest)


def timestamping_chain(organization: str, key: ec.EllipticCurvePublicKey) -> tuple[x509.Certificate, x509.Certificate]:
    """A timestamping leaf for `key` and its self-signed root; at least two certificates are asked for (trust 1.3)."""
    root_key = Curve.P256.generate()
    root_name = _name(organization, "sandbox-tsa-selfsigned")
    root = _ca(root_name, root_name, root_key.public_key(), root_key, Curve.P256, path_length=0)
    leaf = (
        x509.CertificateBuilder()
        .subject_name(_name(organization, "sandbox-tsa"))
        .issuer_name(root_name)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(EPOCH)
        .not_valid_after(HORIZON)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_key_usage(digital_signature=True), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.TIME_STAMPING]), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(root_key.public_key()), critical=False)
        .sign(root_key, hashes.SHA256())
    )
    return leaf, root
