"""What an archived bundle still holds, and the signatures that a lost index named.

Only bytes that have the digest of their name count; `archive` puts back what is missing when a bundle comes in again.
"""

import hashlib
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from app.adapters.oci.durable import Writing, write_new, writing
from app.adapters.oci.layout import BLOBS, CONTENT_NOTE, LAYOUT_FILE, LAYOUT_MARK, Layout
from app.adapters.oci.limits import ReaderLimits
from app.adapters.oci.manifest import (
    EMPTY_DIGEST,
    MANIFEST_TYPE,
    SIGNATURE_TYPE,
    Descriptor,
    parse_main,
    parse_signature,
)
from app.adapters.oci.pack import sha256
from app.core.errors import FetchError, StoreError
from app.core.refs import Digest

_HEX = re.compile(r"[0-9a-f]{64}")
_READ_BYTES = 256 << 10


def has_bytes(path: Path, digest: Digest) -> bool:
    """Whether a regular file is there and hashes to `digest`; raises `OSError` for a disk that does not answer."""
    if path.is_symlink() or not path.is_file():
        return False
    hasher = hashlib.sha256()
    with path.open("rb") as source:
        while piece := source.read(_READ_BYTES):
            hasher.update(piece)
    return hasher.hexdigest() == digest.hex


def missing(held: Path, blobs: Mapping[Digest, bytes]) -> dict[Path, Writing]:
    """Where each of the blobs belongs that is not there to the last byte, and what writes it."""
    places = {digest: held / digest.hex for digest in blobs}
    return {place: writing(blobs[digest]) for digest, place in places.items() if not has_bytes(place, digest)}


def is_marked(root: Path) -> bool:
    """Whether the layout's mark is there."""
    return has_bytes(root / LAYOUT_FILE, sha256(LAYOUT_MARK))


def is_whole(layout: Layout, signature: Descriptor, limits: ReaderLimits) -> bool:
    """Whether artifact and signature are there to the last byte; raises `FetchError` for what is not."""
    main, manifest = layout.main()
    layout.signature(signature, Descriptor(MANIFEST_TYPE, main.digest, main.size))
    blobs = (EMPTY_DIGEST, parse_main(manifest, limits).layer.digest)
    return all(has_bytes(layout.blob_path(digest), digest) for digest in blobs)


def salvaged(layout: Layout, subject: Descriptor, limits: ReaderLimits) -> tuple[Descriptor, ...]:
    """The index entries of every whole signature of `subject` among the blobs, oldest first."""
    found: list[tuple[float, str, Descriptor]] = []
    for path in (layout.root / BLOBS).iterdir():
        if not _HEX.fullmatch(path.name) or path.is_symlink() or not path.is_file():
            continue
        status = path.stat()
        if status.st_size > limits.referrer_manifest_bytes:
            continue
        entry = Descriptor(MANIFEST_TYPE, Digest(path.name), status.st_size, SIGNATURE_TYPE)
        try:
            data = layout.read(entry, limits.referrer_manifest_bytes)
            content = parse_signature(data, subject=subject, limits=limits).layer.digest
        except FetchError:
            continue  # another blob, or a damaged one
        if has_bytes(layout.blob_path(content), content):
            note = {CONTENT_NOTE: content.hex}
            listed = Descriptor(MANIFEST_TYPE, entry.digest, entry.size, SIGNATURE_TYPE, note)
            found.append((status.st_mtime, path.name, listed))
    return tuple(entry for _, _, entry in sorted(found, key=lambda each: each[:2]))


def copy_checked(source: Path, target: Path, digest: Digest) -> None:
    """A new file of exactly `digest`; raises `StoreError` for a source that is something else."""
    hasher = hashlib.sha256()

    def pieces() -> Iterator[bytes]:
        with source.open("rb") as reading:
            while piece := reading.read(_READ_BYTES):
                hasher.update(piece)
                yield piece

    write_new(target, pieces())
    if hasher.hexdigest() != digest.hex:
        raise StoreError(f"expected a layer of {digest}, the file has sha256:{hasher.hexdigest()}")
