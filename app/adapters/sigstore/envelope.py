"""Reading a Sigstore bundle's JSON: one pass that notes every defect and decodes every value.

Nothing is decided here. The notes belong to rules S2 and S5, which judge them in `rules`; the values that an
unjudged defect leaves behind are the ones that the engine would see (last key wins, junk in base64 is skipped).
"""

import base64
import binascii
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Final

from app.core.errors import DocumentInvalid
from app.core.jsontext import has_more_tokens

MAX_JSON_TOKENS: Final = 10_000
"""Tokens that a bundle may have (`core.jsontext.has_more_tokens`); the largest honest one has some hundreds."""

_INT64: Final = re.compile(r"0|[1-9][0-9]{0,18}")
_SURROGATE: Final = re.compile("[\ud800-\udfff]")
_MAX_INT64: Final = (1 << 63) - 1


class Kind(Enum):
    """Scalar kinds of protobuf JSON that occur in a bundle."""

    TEXT = "text"
    BYTES = "bytes"
    INT64 = "int64"


@dataclass(frozen=True, slots=True)
class Repeated:
    """A list of `item`."""

    item: "Shape"


Shape = Kind | Repeated | dict[str, "Shape"]

_CERTIFICATE: Shape = {"rawBytes": Kind.BYTES}
_ENTRY: Shape = {
    "logIndex": Kind.INT64,
    "logId": {"keyId": Kind.BYTES},
    "kindVersion": {"kind": Kind.TEXT, "version": Kind.TEXT},
    "integratedTime": Kind.INT64,
    "inclusionPromise": {"signedEntryTimestamp": Kind.BYTES},
    "inclusionProof": {
        "logIndex": Kind.INT64,
        "rootHash": Kind.BYTES,
        "treeSize": Kind.INT64,
        "hashes": Repeated(Kind.BYTES),
        "checkpoint": {"envelope": Kind.TEXT},
    },
    "canonicalizedBody": Kind.BYTES,
}
BUNDLE: Final[Shape] = {
    "mediaType": Kind.TEXT,
    "verificationMaterial": {
        "certificate": _CERTIFICATE,
        "x509CertificateChain": {"certificates": Repeated(_CERTIFICATE)},
        "publicKey": {"hint": Kind.TEXT},
        "tlogEntries": Repeated(_ENTRY),
        "timestampVerificationData": {"rfc3161Timestamps": Repeated({"signedTimestamp": Kind.BYTES})},
    },
    "dsseEnvelope": {
        "payload": Kind.BYTES,
        "payloadType": Kind.TEXT,
        "signatures": Repeated({"sig": Kind.BYTES, "keyid": Kind.TEXT}),
    },
    "messageSignature": {
        "messageDigest": {"algorithm": Kind.TEXT, "digest": Kind.BYTES},
        "signature": Kind.BYTES,
    },
}
"""The v0.3 bundle as sigstore's protobuf definitions have it; `x509CertificateChain` only so that S13 can name it."""


@dataclass(slots=True)
class Defects:
    """What is wrong with the JSON (S2) and with its base64 (S5), first one first."""

    json: list[str] = field(default_factory=list)
    base64: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A log's signed note; the engine verifies its signature by the key hint, whatever name stands beside it."""

    origin: str
    size: int
    root: bytes

    @property
    def log(self) -> str:
        """The log's name: a v1 origin is followed by ` - <tree id>`."""
        return self.origin.partition(" - ")[0]


@dataclass(frozen=True, slots=True)
class Entry:
    """A transparency-log entry with the kind and version that its own body states; 0 and empty when absent."""

    kind: str
    version: str
    body_kind: str
    body_version: str
    log_id: bytes
    log_index: int
    integrated_time: int
    promised: bool
    proof_index: int
    tree_size: int
    root_hash: bytes
    checkpoint: Checkpoint | None


@dataclass(frozen=True, slots=True)
class Envelope:
    """A bundle's values, decoded; `document` is the same JSON as the engine takes it."""

    document: Mapping[str, Any]
    defects: Defects
    media_type: str
    payload_type: str
    payload: bytes
    has_envelope: bool
    has_certificate: bool
    signatures: int
    timestamps: int
    entries: tuple[Entry, ...]


def read_envelope(raw: bytes) -> Envelope:
    """Read a bundle; raises `DocumentInvalid` only when it is no JSON object at all."""
    defects = Defects()
    document = _load(raw, defects, "bundle")
    if not isinstance(document, dict):
        raise DocumentInvalid("expected a Sigstore bundle that is a JSON object, got something else")
    value = _walk(document, BUNDLE, "bundle", defects)
    material: dict[str, Any] = value.get("verificationMaterial", {})
    envelope: dict[str, Any] = value.get("dsseEnvelope", {})
    stamps: dict[str, Any] = material.get("timestampVerificationData", {})
    return Envelope(
        document=document,
        defects=defects,
        media_type=value.get("mediaType", ""),
        payload_type=envelope.get("payloadType", ""),
        payload=envelope.get("payload", b""),
        has_envelope="dsseEnvelope" in value and "messageSignature" not in value,
        has_certificate="certificate" in material and not {"publicKey", "x509CertificateChain"} & material.keys(),
        signatures=len(envelope.get("signatures", ())),
        timestamps=len(stamps.get("rfc3161Timestamps", ())),
        entries=tuple(_entry(entry, defects) for entry in material.get("tlogEntries", ())[:2]),
    )


def _load(raw: bytes, defects: Defects, where: str) -> object:
    """JSON of any shape; duplicates, case variants and constants are noted, syntax errors raise `DocumentInvalid`."""

    def pairs(items: list[tuple[str, object]]) -> dict[str, object]:
        value = dict(items)
        twice = _repeated(items)
        if twice is not None:
            defects.json.append(f"key {twice[:80]!r} appears twice in one object of the {where}")
        return value

    def constant(name: str) -> None:
        defects.json.append(f"{name} in the {where} is no JSON")

    try:
        text = raw.decode("utf-8")
        return json.loads(text, object_pairs_hook=pairs, parse_constant=constant)
    except (ValueError, RecursionError) as err:
        problem = "nested too deep" if isinstance(err, RecursionError) else str(err)[:200]
        raise DocumentInvalid(f"expected the {where} to be one JSON document: {problem}") from err


def _repeated(items: Sequence[tuple[str, object]]) -> str | None:
    """The first key that is there already, in this or another spelling that some decoder takes for the same."""
    seen: set[str] = set()
    for key, _ in items:
        folded = key.replace("_", "").casefold()
        if folded in seen:
            return key
        seen.add(folded)
    return None


def _walk(value: object, shape: Shape, where: str, defects: Defects) -> Any:  # noqa: ANN401  as many types as JSON has
    if isinstance(shape, dict):
        return _message(value, shape, where, defects)
    if isinstance(shape, Repeated):
        return _list(value, shape.item, where, defects)
    text = _text(value, where, defects)
    if shape is Kind.BYTES:
        return _bytes(text, where, defects)
    return _int64(text, where, defects) if shape is Kind.INT64 else text


def _message(value: object, shape: dict[str, Shape], where: str, defects: Defects) -> dict[str, Any]:
    if not isinstance(value, dict):
        defects.json.append(f"expected an object at {where}, got {_named(value)}")
        return {}
    out: dict[str, Any] = {}
    for key, item in value.items():
        name = key if key in shape else _camel(key)
        if name not in shape:
            defects.json.append(f"unknown field {key[:80]!r} at {where}")
        elif item is not None:  # protobuf JSON: null is absent
            out[name] = _walk(item, shape[name], f"{where}.{name}", defects)
    return out


def _list(value: object, item: Shape, where: str, defects: Defects) -> list[Any]:
    if not isinstance(value, list):
        defects.json.append(f"expected a list at {where}, got {_named(value)}")
        return []
    return [_walk(element, item, f"{where}[{index}]", defects) for index, element in enumerate(value)]


def _text(value: object, where: str, defects: Defects) -> str:
    if not isinstance(value, str):
        defects.json.append(f"expected a string at {where}, got {_named(value)}")
        return ""
    if not value.isascii() and _SURROGATE.search(value):
        defects.json.append(f"half a surrogate pair at {where}")
        return ""
    return value


def _int64(text: str, where: str, defects: Defects) -> int:
    """A 64-bit integer: protobuf JSON writes it as a string of plain decimal digits."""
    if not text:
        return 0
    if _INT64.fullmatch(text) and int(text) <= _MAX_INT64:
        return int(text)
    defects.json.append(f"expected a 64-bit integer as a decimal string at {where}, got {text[:40]!r}")
    return 0


def _bytes(text: str, where: str, defects: Defects) -> bytes:
    """Base64 that encodes back to itself; otherwise noted, and read as leniently as the engine does."""
    try:
        data = base64.b64decode(text, validate=True)
        if base64.b64encode(data).decode() == text:
            return data
    except (ValueError, binascii.Error):
        pass
    defects.base64.append(f"base64 at {where} is not canonical: decoding and encoding gives another text")
    try:
        return base64.b64decode(text)
    except (ValueError, binascii.Error):
        return b""


def _entry(value: Mapping[str, Any], defects: Defects) -> Entry:
    proof: Mapping[str, Any] = value.get("inclusionProof", {})
    kind: Mapping[str, Any] = value.get("kindVersion", {})
    body_kind, body_version = _body(value.get("canonicalizedBody", b""), defects)
    return Entry(
        kind=kind.get("kind", ""),
        version=kind.get("version", ""),
        body_kind=body_kind,
        body_version=body_version,
        log_id=value.get("logId", {}).get("keyId", b""),
        log_index=value.get("logIndex", 0),
        integrated_time=value.get("integratedTime", 0),
        promised="inclusionPromise" in value,
        proof_index=proof.get("logIndex", 0),
        tree_size=proof.get("treeSize", 0),
        root_hash=proof.get("rootHash", b""),
        checkpoint=_checkpoint(proof.get("checkpoint", {}).get("envelope", ""), defects),
    )


def _body(body: bytes, defects: Defects) -> tuple[str, str]:
    """Kind and version in a canonicalized body; empty when it says none, which no entry may."""
    if has_more_tokens(body, MAX_JSON_TOKENS):
        return "", ""
    try:
        document = _load(body, defects, "canonicalized body")
    except DocumentInvalid as err:
        defects.json.append(err.message)
        return "", ""
    if not isinstance(document, dict):
        return "", ""
    kind, version = document.get("kind"), document.get("apiVersion")
    return (kind if isinstance(kind, str) else ""), (version if isinstance(version, str) else "")


def _checkpoint(text: str, defects: Defects) -> Checkpoint | None:
    """A signed note (C2SP tlog-checkpoint); None when it is none."""
    note, blank, signatures = text.partition("\n\n")
    lines = note.split("\n")
    if not blank or len(lines) < 3 or not lines[0] or not signatures.endswith("\n"):
        return None
    if not _INT64.fullmatch(lines[1]):
        return None
    where = "bundle.verificationMaterial.tlogEntries[0].inclusionProof.checkpoint"
    for line in signatures[:-1].split("\n"):
        dash, _, rest = line.partition(" ")
        name, _, signature = rest.partition(" ")
        if dash != "\u2014" or not name or not signature:
            return None
        _bytes(signature, where, defects)
    return Checkpoint(lines[0], int(lines[1]), _bytes(lines[2], where, defects))


def _camel(key: str) -> str:
    """Protobuf JSON also takes a field's original name, `media_type` for `mediaType`."""
    head, *rest = key.split("_")
    return head + "".join(part[:1].upper() + part[1:] for part in rest)


def _named(value: object) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "a boolean"
        case int() | float():
            return "a number"
        case str():
            return "a string"
        case Sequence():
            return "a list"
        case _:
            return "an object"
