"""Making one Sigstore bundle in process: certificate, envelope, log entry, timestamps; faults as asked.

The steps are those of a real signer: (1) a leaf certificate for an ephemeral key, (2) the DSSE signature,
(3) the log entry, (4) timestamps, (5) the bundle.
"""

import json
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, padding, rsa

from app.sandbox.identities import SandboxIdentity
from app.sandbox.sigstore.authority import (
    CertificateAuthority,
    CtLog,
    Curve,
    LeafProfile,
    certificate_der,
)
from app.sandbox.sigstore.entries import b64, dsse_body, hashedrekord_v2_body, pae, registry_digest
from app.sandbox.sigstore.extensions import (
    FULCIO_ARC,
    ISSUER,
    ISSUER_RAW,
    encoded,
    identity_extensions,
)
from app.sandbox.sigstore.faults import Faults, Honest, LeafKey, Promise, Stamp
from app.sandbox.sigstore.log import Inclusion, LogVersion, TransparencyLog, canonical_json
from app.sandbox.sigstore.timestamping import TimestampAuthority

SigningKey = ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey | ed25519.Ed25519PrivateKey


@dataclass(frozen=True, slots=True)
class Instance:
    """The parts that a bundle is made with, and the foreign ones that spoil it."""

    ca: CertificateAuthority
    ct_log: CtLog
    timestamping: TimestampAuthority
    foreign_ct_log: CtLog
    foreign_timestamping: TimestampAuthority


def mint(
    instance: Instance,
    log: TransparencyLog,
    statement: bytes,
    identity: SandboxIdentity,
    *,
    at: datetime,
    faults: Faults,
) -> bytes:
    """A bundle over `statement`, signed by `identity` at `at` (UTC, whole seconds are used)."""
    at = at.replace(microsecond=0)
    key = _leaf_key(faults.leaf_key)
    certificate = issue_leaf(instance, key, identity, at=at, faults=faults)
    signed = statement if faults.signed_payload is None else faults.signed_payload
    message = pae(faults.payload_type, signed)
    signatures = [_sign(key, message) for _ in range(faults.signatures)]
    envelope = {
        "payload": b64(statement),
        "payloadType": faults.payload_type,
        "signatures": [{"sig": b64(signature)} for signature in signatures],
    }
    body = _body(log, certificate, signed, signatures, faults)
    entry = _entry(log, body, at, faults)
    material: dict[str, Any] = {"tlogEntries": [entry] * faults.tlog_entries}
    leaf = {"rawBytes": b64(certificate_der(certificate))}
    if faults.certificate_chain:
        material["x509CertificateChain"] = {"certificates": [leaf]}
    else:
        material["certificate"] = leaf
    tokens = _tokens(instance, log, signatures[0] if signatures else b"", at, faults)
    material["timestampVerificationData"] = {"rfc3161Timestamps": [{"signedTimestamp": b64(token)} for token in tokens]}
    bundle: dict[str, Any] = {
        "mediaType": faults.media_type,
        "verificationMaterial": material,
        "dsseEnvelope": envelope,
    }
    if faults.document is not None:
        faults.document(bundle)
    return json.dumps(bundle, separators=(",", ":")).encode()


def issue_leaf(
    instance: Instance, key: SigningKey, identity: SandboxIdentity, *, at: datetime, faults: Faults
) -> x509.Certificate:
    """(1) The leaf certificate of `identity`."""
    values: dict[int, str] = identity_extensions(identity)
    for number, chosen in ((ISSUER_RAW, faults.issuer_raw), (ISSUER, faults.issuer), *faults.extensions.items()):
        if isinstance(chosen, Honest):
            continue
        if chosen is None:
            values.pop(number, None)
        else:
            values[number] = chosen
    extensions = encoded(values) | {f"{FULCIO_ARC}.{number}": raw for number, raw in faults.raw_extensions.items()}
    issued = at - faults.leaf_age
    profile = LeafProfile(
        not_before=issued,
        not_after=issued + faults.leaf_lifetime,
        names=((identity.kind, identity.value),) if faults.names is None else faults.names,
        extensions=extensions,
        sct=faults.sct,
        sct_at=faults.sct_at,
        code_signing=faults.code_signing,
        digital_signature=faults.digital_signature,
    )
    return instance.ca.issue(key.public_key(), profile, instance.ct_log, instance.foreign_ct_log)


def _leaf_key(kind: LeafKey) -> SigningKey:
    match kind:
        case LeafKey.P256:
            return Curve.P256.generate()
        case LeafKey.P384:
            return Curve.P384.generate()
        case LeafKey.ED25519:
            return ed25519.Ed25519PrivateKey.generate()
        case LeafKey.RSA:
            return _rsa_key()


@cache
def _rsa_key() -> rsa.RSAPrivateKey:
    """One RSA key for all: making one takes longer than a hundred bundles."""
    return rsa.generate_private_key(public_exponent=65537, key_size=2048)


def _sign(key: SigningKey, message: bytes) -> bytes:
    """(2) ECDSA signs with SHA-256 on every curve, as the engine verifies it."""
    match key:
        case ec.EllipticCurvePrivateKey():
            return key.sign(message, ec.ECDSA(hashes.SHA256()))
        case rsa.RSAPrivateKey():
            return key.sign(message, padding.PKCS1v15(), hashes.SHA256())
        case _:
            return key.sign(message)


def _body(
    log: TransparencyLog,
    certificate: x509.Certificate,
    payload: bytes,
    signatures: list[bytes],
    faults: Faults,
) -> dict[str, Any]:
    """(3) What is logged about the envelope."""
    if log.version is LogVersion.V1:
        submitted = {
            "payload": b64(payload),
            "payloadType": faults.payload_type,
            "signatures": [{"sig": b64(signature)} for signature in signatures],
        }
        body = dsse_body(canonical_json(submitted), payload, signatures, [certificate] * len(signatures))
    else:
        digest = registry_digest(certificate, pae(faults.payload_type, payload))
        body = hashedrekord_v2_body(digest, signatures[0] if signatures else b"", certificate)
    return body if faults.body is None else faults.body(body)


def _entry(log: TransparencyLog, logged: dict[str, Any], at: datetime, faults: Faults) -> dict[str, Any]:
    """(3) The log's answer, as the bundle carries it."""
    v1 = log.version is LogVersion.V1
    body = canonical_json(logged)
    integrated = faults.integrated_at
    if isinstance(integrated, Honest):
        integrated = int(at.timestamp()) if v1 else None
    proof = log.append(body, integrated)
    true_index = log.first_index + proof.index
    index = true_index if faults.log_index is None else faults.log_index
    kind, version = faults.kind_version or (("dsse", "0.0.1") if v1 else ("hashedrekord", "0.0.2"))
    entry: dict[str, Any] = {
        "logIndex": str(index),
        "logId": {"keyId": b64(faults.log_id or log.log_id)},
        "kindVersion": {"kind": kind, "version": version},
    }
    if integrated is not None:
        entry["integratedTime"] = str(integrated)
    promise = faults.promise
    if isinstance(promise, Honest):
        promise = Promise.GOOD if v1 else Promise.ABSENT
    if promise is not Promise.ABSENT:
        stated = true_index if promise is Promise.FOR_TRUE_INDEX else index
        timestamp = log.promise(body, integrated or 0, stated, log_id=faults.log_id)
        if promise is Promise.ALTERED:
            timestamp = timestamp[:-1] + bytes([timestamp[-1] ^ 1])
        entry["inclusionPromise"] = {"signedEntryTimestamp": b64(timestamp)}
    if faults.inclusion_proof:
        entry["inclusionProof"] = _proof(log, proof, faults)
    entry["canonicalizedBody"] = b64(body)
    return entry


def _proof(log: TransparencyLog, proof: Inclusion, faults: Faults) -> dict[str, Any]:
    checkpoint = proof.checkpoint
    resigned = (faults.checkpoint_origin, faults.checkpoint_size, faults.checkpoint_root)
    if faults.checkpoint_by_stranger or any(value is not None for value in resigned):
        stranger = TransparencyLog(log.version, "stranger.example").key if faults.checkpoint_by_stranger else None
        checkpoint = log.checkpoint(
            proof.tree_size if faults.checkpoint_size is None else faults.checkpoint_size,
            faults.checkpoint_root or proof.root,
            origin=faults.checkpoint_origin,
            key=stranger,
        )
    path = proof.hashes if faults.proof_hashes is None else faults.proof_hashes
    return {
        "logIndex": str(proof.index if faults.proof_index is None else faults.proof_index),
        "rootHash": b64(faults.proof_root or proof.root),
        "treeSize": str(proof.tree_size if faults.proof_tree_size is None else faults.proof_tree_size),
        "hashes": [b64(sibling) for sibling in path],
        "checkpoint": {"envelope": checkpoint},
    }


def _tokens(instance: Instance, log: TransparencyLog, signature: bytes, at: datetime, faults: Faults) -> list[bytes]:
    """(4) Timestamps over the raw signature."""
    wanted = faults.stamps
    if isinstance(wanted, Honest):
        wanted = () if log.version is LogVersion.V1 else (Stamp.GOOD,)
    moment = faults.stamped_at or at
    return [_token(instance, kind, signature, moment) for kind in wanted]


def _token(instance: Instance, kind: Stamp, signature: bytes, at: datetime) -> bytes:
    match kind:
        case Stamp.GOOD:
            return instance.timestamping.stamp(signature, at)
        case Stamp.OTHER_MESSAGE:
            return instance.timestamping.stamp(signature + b"?", at)
        case Stamp.FOREIGN:
            return instance.foreign_timestamping.stamp(signature, at)
        case Stamp.REFUSED:
            return instance.timestamping.stamp(signature, at, status=2)
        case Stamp.MALFORMED:
            return b"\x30\x03no!"
