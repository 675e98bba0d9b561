"""The logs as services: proposed entries in, checked against their signature, inclusion out (Rekor v1 and v2)."""

import base64
import json
from collections.abc import Mapping
from datetime import datetime
from http import HTTPStatus
from typing import Any, Final

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, utils

from app.sandbox.sigstore.entries import (
    b64,
    dsse_body,
    hashedrekord_v1_body,
    hashedrekord_v2_body,
    pae,
    registry_digest,
)
from app.sandbox.sigstore.log import SHARD_TREE_ID, Inclusion, TransparencyLog, canonical_json
from app.sandbox.sigstore.merkle import leaf_hash
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

_SHARD_PREFIX: Final = f"{int(SHARD_TREE_ID):016x}"
_HASHES: Final[Mapping[int, hashes.SHA256 | hashes.SHA384 | hashes.SHA512]] = {
    32: hashes.SHA256(),
    48: hashes.SHA384(),
    64: hashes.SHA512(),
}


class RekorV1:
    """`/api/v1/log`: entries with a signed entry timestamp; an equal entry is refused and pointed to."""

    def __init__(self, log: TransparencyLog) -> None:
        self._log = log

    def create(self, proposed: Mapping[str, Any], *, now: datetime) -> dict[str, Any]:
        """Check, log and answer with one `{uuid: entry}`; 409 with a location for what is already there."""
        body = canonical_json(_proposed(proposed))
        proof, new = self._log.append_once(body, int(now.timestamp()))
        if not new:
            raise ServiceRefused(
                HTTPStatus.CONFLICT,
                "an equivalent entry already exists in the transparency log",
                location=f"/api/v1/log/entries/{_uuid(body)}",
            )
        return self._answer(proof)

    def by_index(self, index: str) -> dict[str, Any]:
        """An entry by its global index."""
        try:
            place = int(index) - self._log.first_index
            self._log.entry(place)
        except (ValueError, IndexError) as err:
            raise ServiceRefused(HTTPStatus.NOT_FOUND, f"expected a log index of this shard, found {index!r}") from err
        return self._answer(self._log.prove(place))

    def by_uuid(self, uuid: str) -> dict[str, Any]:
        """An entry by its hash, with or without the shard's prefix."""
        place = self._log.find(uuid[-64:])
        if place is None:
            raise ServiceRefused(HTTPStatus.NOT_FOUND, "expected the uuid of an entry of this shard")
        return self._answer(self._log.prove(place))

    def info(self) -> dict[str, Any]:
        """Today's tree."""
        head = self._log.head()
        size, root = head.split("\n")[1:3]
        return {
            "rootHash": base64.b64decode(root).hex(),
            "treeSize": int(size),
            "signedTreeHead": head,
            "treeID": SHARD_TREE_ID,
            "inactiveShards": [],
        }

    def public_key(self) -> bytes:
        """The log's key as PEM."""
        return self._log.key.public_key().public_bytes(
            serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
        )

    def _answer(self, proof: Inclusion) -> dict[str, Any]:
        entry = self._log.entry(proof.index)
        integrated = entry.integrated_at or 0
        index = self._log.first_index + proof.index
        return {
            _uuid(entry.body): {
                "body": b64(entry.body),
                "integratedTime": integrated,
                "logID": self._log.log_id.hex(),
                "logIndex": index,
                "verification": {
                    "inclusionProof": {
                        "checkpoint": proof.checkpoint,
                        "hashes": [sibling.hex() for sibling in proof.hashes],
                        "logIndex": proof.index,
                        "rootHash": proof.root.hex(),
                        "treeSize": proof.tree_size,
                    },
                    "signedEntryTimestamp": b64(self._log.promise(entry.body, integrated, index)),
                },
            }
        }


class RekorV2:
    """`/api/v2/log/entries`: `hashedrekord` 0.0.2 only; an envelope is logged by the digest of its PAE."""

    def __init__(self, log: TransparencyLog) -> None:
        self._log = log

    def create(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Check, log and answer with a TransparencyLogEntry in protobuf JSON."""
        if "hashedRekordRequestV002" in request:
            body = _hashedrekord_v2(child(request, "hashedRekordRequestV002"))
        elif "dsseRequestV002" in request:
            body = _dsse_v2(child(request, "dsseRequestV002"))
        else:
            raise bad_request("expected hashedRekordRequestV002 or dsseRequestV002")
        canonical = canonical_json(body)
        proof, _ = self._log.append_once(canonical, None)
        return {
            "logIndex": str(proof.index),
            "logId": {"keyId": b64(self._log.log_id)},
            "kindVersion": {"kind": "hashedrekord", "version": "0.0.2"},
            "inclusionProof": {
                "logIndex": str(proof.index),
                "rootHash": b64(proof.root),
                "treeSize": str(proof.tree_size),
                "hashes": [b64(sibling) for sibling in proof.hashes],
                "checkpoint": {"envelope": proof.checkpoint},
            },
            "canonicalizedBody": b64(canonical),
        }

    def checkpoint(self) -> str:
        """Today's signed tree head."""
        return self._log.head()

    def tile(self, path: str) -> bytes:
        """A hash tile, `level/index` or `level/index.p/width` (tlog-tiles), small logs only: index below 1000."""
        level, _, rest = path.partition("/")
        index, _, width = rest.partition(".p/")
        if not (level.isdecimal() and index.isdecimal() and (width or "256").isdecimal()):
            raise bad_request(f"expected level/index[.p/width], found {path!r}")
        found = self._log.tile(int(level[:3]), int(index[:3]), int((width or "256")[:3]))
        if found is None:
            raise ServiceRefused(HTTPStatus.NOT_FOUND, "expected a tile of the tree as it is today")
        return found


def _uuid(body: bytes) -> str:
    return _SHARD_PREFIX + leaf_hash(body).hex()


def _certificate(data: bytes, *, form: str) -> x509.Certificate:
    try:
        return x509.load_pem_x509_certificate(data) if form == "PEM" else x509.load_der_x509_certificate(data)
    except ValueError as err:
        raise bad_request(f"expected a {form} certificate as verifier") from err


def _envelope(value: Mapping[str, Any]) -> tuple[str, bytes, bytes]:
    """(payload type, payload, the one signature) of a DSSE envelope."""
    signatures = value.get("signatures")
    if not isinstance(signatures, list) or len(signatures) != 1 or not isinstance(signatures[0], Mapping):
        raise bad_request("expected an envelope with one signature")
    return text(value, "payloadType"), decoded(value, "payload"), decoded(signatures[0], "sig")


def _checked(certificate: x509.Certificate, payload_type: str, payload: bytes, signature: bytes) -> bytes:
    """The PAE, once the signature over it holds."""
    message = pae(payload_type, payload)
    if not verifies(_key_of(certificate), signature, message):
        raise bad_request("expected a signature that verifies over the envelope")
    return message


def _key_of(certificate: x509.Certificate) -> LeafPublicKey:
    try:
        return leaf_key(certificate.public_key())
    except (ValueError, UnsupportedAlgorithm) as err:
        raise bad_request("expected a certificate with a readable key") from err


def _proposed(entry: Mapping[str, Any]) -> dict[str, Any]:
    match (entry.get("kind"), entry.get("apiVersion")):
        case ("dsse", "0.0.1"):
            return _dsse(child(child(entry, "spec"), "proposedContent"))
        case ("hashedrekord", "0.0.1"):
            return _hashedrekord(child(entry, "spec"))
        case (kind, version):
            raise bad_request(f"expected a dsse or hashedrekord entry 0.0.1, found {kind!r} {version!r}")


def _dsse(content: Mapping[str, Any]) -> dict[str, Any]:
    raw = text(content, "envelope")
    try:
        parsed = json.loads(raw)
    except (ValueError, RecursionError) as err:
        raise bad_request("expected JSON in the envelope") from err
    verifiers = content.get("verifiers")
    if not isinstance(parsed, Mapping) or not isinstance(verifiers, list) or len(verifiers) != 1:
        raise bad_request("expected an envelope and one verifier")
    payload_type, payload, signature = _envelope(parsed)
    certificate = _certificate(decoded({"verifiers": verifiers[0]}, "verifiers"), form="PEM")
    _checked(certificate, payload_type, payload, signature)
    return dsse_body(raw.encode(), payload, [signature], [certificate])


def _hashedrekord(spec: Mapping[str, Any]) -> dict[str, Any]:
    digest = child(child(spec, "data"), "hash")
    signature = child(spec, "signature")
    verifier = decoded(child(signature, "publicKey"), "content")
    content = decoded(signature, "content")
    value, algorithm = text(digest, "value"), text(digest, "algorithm")
    try:
        hashed = bytes.fromhex(value)
    except ValueError as err:
        raise bad_request("expected a hexadecimal hash") from err
    _prehashed(_certificate(verifier, form="PEM"), content, hashed)
    return hashedrekord_v1_body(value, algorithm, content, verifier)


def _hashedrekord_v2(request: Mapping[str, Any]) -> dict[str, Any]:
    digest = decoded(request, "digest")
    signature = child(request, "signature")
    raw = decoded(child(child(signature, "verifier"), "x509Certificate"), "rawBytes")
    certificate = _certificate(raw, form="DER")
    content = decoded(signature, "content")
    _prehashed(certificate, content, digest)
    return hashedrekord_v2_body(digest, content, certificate)


def _dsse_v2(request: Mapping[str, Any]) -> dict[str, Any]:
    payload_type, payload, signature = _envelope(child(request, "envelope"))
    verifiers = request.get("verifiers")
    if not isinstance(verifiers, list) or len(verifiers) != 1 or not isinstance(verifiers[0], Mapping):
        raise bad_request("expected one verifier")
    certificate = _certificate(decoded(child(verifiers[0], "x509Certificate"), "rawBytes"), form="DER")
    message = _checked(certificate, payload_type, payload, signature)
    return hashedrekord_v2_body(registry_digest(certificate, message), signature, certificate)


def _prehashed(certificate: x509.Certificate, signature: bytes, digest: bytes) -> None:
    """Refuse a signature that is not the ECDSA key's over this digest."""
    key, algorithm = _key_of(certificate), _HASHES.get(len(digest))
    if not isinstance(key, ec.EllipticCurvePublicKey) or algorithm is None:
        raise bad_request("expected an ECDSA certificate and a SHA-2 digest")
    try:
        key.verify(signature, digest, ec.ECDSA(utils.Prehashed(algorithm)))
    except InvalidSignature as err:
        raise bad_request("expected a signature that verifies over the digest") from err
