"""Transparency logs of the private Sigstore: Rekor v1 (signed entry timestamps) and v2 (checkpoints only).

A log appends canonical bodies and answers with proofs; `entries` makes the bodies. Values in trust 1.3.
"""

import base64
import hashlib
import json
import threading
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

import rfc8785
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, ed25519

from app.sandbox.sigstore.authority import Curve, spki
from app.sandbox.sigstore.merkle import MerkleTree, leaf_hash

V1_FIRST_INDEX: Final = 25_579
"""Entries of an imagined earlier shard, so that a v1 entry's global index differs from the index in its proof."""

SHARD_TREE_ID: Final = "1193050959916656506"

LogKey = ec.EllipticCurvePrivateKey | ed25519.Ed25519PrivateKey


class LogVersion(StrEnum):
    """The two Rekor generations."""

    V1 = "v1"
    V2 = "v2"


@dataclass(frozen=True, slots=True)
class Inclusion:
    """A proof of one entry in the tree of `tree_size`, with the signed checkpoint over it."""

    index: int  # in the shard's tree
    tree_size: int
    root: bytes
    hashes: tuple[bytes, ...]
    checkpoint: str


@dataclass(frozen=True, slots=True)
class LoggedEntry:
    """What a log keeps of an entry: canonical body, and the time of integration where the log tells one."""

    body: bytes
    integrated_at: int | None  # seconds


class TransparencyLog:
    """One log: a key, a tree, and the two statements that it signs."""

    def __init__(self, version: LogVersion, host: str, *, year: int = 2026) -> None:
        self.version = version
        if version is LogVersion.V1:
            self.key: LogKey = Curve.P256.generate()
            self.name = f"rekor.{host}"
            self.origin = f"{self.name} - {SHARD_TREE_ID}"
            self.first_index = V1_FIRST_INDEX
            self.log_id = hashlib.sha256(spki(self.key.public_key())).digest()
        else:
            self.key = ed25519.Ed25519PrivateKey.generate()
            self.name = self.origin = f"log{year}-1.rekor.{host}"
            self.first_index = 0
            self.log_id = note_key_id(self.origin, self.key.public_key())
        self.base_url = f"https://{self.name}"
        self._tree = MerkleTree()
        self._entries: list[LoggedEntry] = []
        self._by_leaf: dict[str, int] = {}
        self._lock = threading.Lock()

    @property
    def size(self) -> int:
        """Entries in the shard."""
        return len(self._entries)

    def append(self, body: bytes, integrated_at: int | None) -> Inclusion:
        """Add an entry and prove it in the tree that ends with it."""
        with self._lock:
            index = self._append(body, integrated_at)
            return self._inclusion(index, self._tree.size)

    def append_once(self, body: bytes, integrated_at: int | None) -> tuple[Inclusion, bool]:
        """As `append`, but the entry that is already there answers for an equal body; True when it is new."""
        with self._lock:
            known = self._by_leaf.get(leaf_hash(body).hex())
            index = self._append(body, integrated_at) if known is None else known
            return self._inclusion(index, self._tree.size), known is None

    def prove(self, index: int) -> Inclusion:
        """A proof of an entry in today's tree; raises `ValueError` for an index that is not there."""
        with self._lock:
            return self._inclusion(index, self._tree.size)

    def entry(self, index: int) -> LoggedEntry:
        """An entry by its index in the shard; raises `IndexError`."""
        if index < 0:
            raise IndexError(index)
        return self._entries[index]

    def find(self, leaf: str) -> int | None:
        """The index of the first entry with this leaf hash (hex)."""
        with self._lock:
            return self._by_leaf.get(leaf)

    def head(self) -> str:
        """A checkpoint over today's tree."""
        with self._lock:
            return self.checkpoint(self._tree.size, self._tree.root(self._tree.size))

    def root(self) -> bytes:
        """The root over today's tree."""
        with self._lock:
            return self._tree.root(self._tree.size)

    def tile(self, level: int, index: int, width: int) -> bytes | None:
        """`width` hashes of a tile of 256 (tlog-tiles); None when the tree is not that large yet."""
        with self._lock:
            levels = self._tree.levels
            row = levels[level * 8] if level * 8 < len(levels) else []
            start = index * 256
            return b"".join(row[start : start + width]) if start + width <= len(row) else None

    def checkpoint(self, size: int, root: bytes, *, origin: str | None = None, key: LogKey | None = None) -> str:
        """A signed note over (origin, size, root); the hint is the log id's, whatever key signs."""
        text = f"{origin or self.origin}\n{size}\n{base64.b64encode(root).decode()}\n"
        signature = self.log_id[:4] + sign(key or self.key, text.encode())
        return f"{text}\n\u2014 {self.name} {base64.b64encode(signature).decode()}\n"

    def promise(self, body: bytes, integrated_at: int, index: int, *, log_id: bytes | None = None) -> bytes:
        """A signed entry timestamp over the global `index` (trust 1.3)."""
        signed: dict[str, str | int] = {
            "body": base64.b64encode(body).decode(),
            "integratedTime": integrated_at,
            "logID": (log_id or self.log_id).hex(),
            "logIndex": index,
        }
        return sign(self.key, rfc8785.dumps(signed))

    def _append(self, body: bytes, integrated_at: int | None) -> int:
        self._entries.append(LoggedEntry(body, integrated_at))
        index = self._tree.append(body)
        self._by_leaf.setdefault(leaf_hash(body).hex(), index)
        return index

    def _inclusion(self, index: int, size: int) -> Inclusion:
        root = self._tree.root(size)
        path = self._tree.inclusion(index, size)
        return Inclusion(index, size, root, tuple(path), self.checkpoint(size, root))


def sign(key: LogKey, data: bytes) -> bytes:
    """A log's signature: ECDSA with SHA-256, or pure Ed25519."""
    if isinstance(key, ed25519.Ed25519PrivateKey):
        return key.sign(data)
    return key.sign(data, ec.ECDSA(hashes.SHA256()))


def note_key_id(origin: str, key: ed25519.Ed25519PublicKey) -> bytes:
    """A v2 log's id: the signed-note key hash, not cut to four bytes."""
    return hashlib.sha256(origin.encode() + b"\n\x01" + key.public_bytes_raw()).digest()


def canonical_json(value: object) -> bytes:
    """Sorted keys, no blanks: the form in which Rekor stores bodies (which hold only ASCII)."""
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()
