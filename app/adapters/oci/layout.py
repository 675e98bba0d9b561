"""An OCI image layout that holds one evidence artifact with its signatures (evidence-format 5, service 6).

Reading believes nothing: every blob is held against its descriptor, wherever the layout came from.
"""

import os
import stat
from collections.abc import Iterator
from pathlib import Path

from app.adapters.oci.codes import fetch_error
from app.adapters.oci.limits import ReaderLimits
from app.adapters.oci.manifest import (
    ARTIFACT_TYPE,
    EMPTY_CONFIG,
    MANIFEST_TYPE,
    SIGNATURE_TYPE,
    Descriptor,
    parse_index,
    parse_main,
    parse_signature,
)
from app.adapters.oci.pack import canonical_json, describe_index, describe_signature, sha256
from app.core.bundle import RawSignature
from app.core.errors import DocumentInvalid
from app.core.jsontext import parse_json
from app.core.refs import Digest, OciRef
from app.ports import Artifact

LAYOUT_FILE = "oci-layout"
INDEX_FILE = "index.json"
BLOBS = "blobs/sha256"
CONTENT_NOTE = "run.aicr.evidence.signature"
"""Index annotation of our own layouts: the Sigstore bundle's sha256 in bare hex, found without reading blobs."""
LAYOUT_MARK = canonical_json({"imageLayoutVersion": "1.0.0"})

_ARCHIVE_HOST = "archive.invalid"
"""A host that never resolves: an archived artifact's reference says only its digest."""


def archive_ref(digest: Digest) -> OciRef:
    """The reference of an artifact that came from no registry."""
    return OciRef(_ARCHIVE_HOST, "bundle", digest=digest)


def signature_parts(artifact: Artifact, signature: RawSignature) -> tuple[Descriptor, dict[Digest, bytes]]:
    """(index entry, blobs) of a signature; one that came without a referrer manifest gets the standard one."""
    manifest = signature.referrer_manifest
    if manifest is None:
        subject = Descriptor(MANIFEST_TYPE, artifact.digest, len(artifact.manifest))
        manifest = describe_signature(subject, signature.bundle).manifest
    content = sha256(signature.bundle)
    note = {CONTENT_NOTE: content.hex}
    entry = Descriptor(MANIFEST_TYPE, sha256(manifest), len(manifest), SIGNATURE_TYPE, note)
    return entry, {entry.digest: manifest, content: signature.bundle}


def main_entry(artifact: Artifact) -> Descriptor:
    """The index entry of the artifact itself."""
    return Descriptor(MANIFEST_TYPE, artifact.digest, len(artifact.manifest), ARTIFACT_TYPE)


class Layout:
    """A layout directory; raises `FetchError` for whatever does not fit."""

    def __init__(self, root: Path, limits: ReaderLimits) -> None:
        self.root = root
        self._limits = limits

    def blob_path(self, digest: Digest) -> Path:
        """Where a blob lies."""
        return self.root / BLOBS / digest.hex

    def entries(self) -> tuple[Descriptor, ...]:
        """The index, after the layout's mark was seen."""
        mark = self._read(self.root / LAYOUT_FILE, 4096, LAYOUT_FILE)
        try:
            document = parse_json(mark, max_bytes=4096, what=LAYOUT_FILE)
        except DocumentInvalid as err:
            raise fetch_error("LAYOUT_INVALID", err.message) from err
        if not isinstance(document, dict) or document.get("imageLayoutVersion") != "1.0.0":
            raise fetch_error("LAYOUT_INVALID", "expected an OCI image layout of version 1.0.0")
        return parse_index(self.index(), self._limits)

    def index(self) -> bytes:
        """The exact index."""
        return self._read(self.root / INDEX_FILE, self._limits.manifest_bytes, INDEX_FILE)

    def main(self) -> tuple[Descriptor, bytes]:
        """The one evidence artifact: its entry and its manifest."""
        named = [entry for entry in self.entries() if entry.artifact_type == ARTIFACT_TYPE]
        if len(named) == 1:
            return named[0], self.read(named[0], self._limits.manifest_bytes)
        found = [(entry, data) for entry, data, kind in self._manifests() if kind == ARTIFACT_TYPE]
        if len(found) != 1:
            raise fetch_error("LAYOUT_INVALID", f"expected exactly one evidence artifact, the layout has {len(found)}")
        return found[0]

    def signatures(self) -> tuple[RawSignature, ...]:
        """Every signature of the artifact, in the index's order."""
        main, _ = self.main()
        subject = Descriptor(MANIFEST_TYPE, main.digest, main.size)
        out: dict[Digest, RawSignature] = {}
        left = self._limits.signatures_bytes
        for entry, data, kind in self._manifests():
            if kind != SIGNATURE_TYPE or entry.digest in out:
                continue
            if len(out) == self._limits.referrers:
                raise fetch_error("REFERRERS_TOO_MANY", f"more than {self._limits.referrers} signatures")
            left -= len(data) + parse_signature(data, subject=subject, limits=self._limits).layer.size
            if left < 0:
                raise fetch_error("BODY_TOO_LARGE", f"all signatures are over {self._limits.signatures_bytes} bytes")
            out[entry.digest] = self.signature(entry, subject, data)
        return tuple(out.values())

    def signature(self, entry: Descriptor, subject: Descriptor, data: bytes | None = None) -> RawSignature:
        """One signature by its index entry; `data` is its manifest when it was read already."""
        manifest = self.read(entry, self._limits.referrer_manifest_bytes) if data is None else data
        layer = parse_signature(manifest, subject=subject, limits=self._limits).layer
        return RawSignature(self.read(layer, self._limits.signature_bytes), entry.digest, manifest)

    def artifact(self) -> Artifact:
        """The artifact with its signatures; the layer stays where it is."""
        entry, manifest = self.main()
        layer = parse_main(manifest, self._limits).layer
        return Artifact(
            ref=archive_ref(entry.digest),
            digest=entry.digest,
            manifest=manifest,
            config=EMPTY_CONFIG,
            layer_digest=layer.digest,
            layer_size=layer.size,
            signatures=self.signatures(),
        )

    def read(self, descriptor: Descriptor, cap: int) -> bytes:
        """A blob that has exactly its descriptor's size and digest."""
        if descriptor.size > cap:
            raise fetch_error("BODY_TOO_LARGE", f"blob has {descriptor.size} bytes, at most {cap}")
        data = self._read(self.blob_path(descriptor.digest), descriptor.size, f"blob {descriptor.digest}")
        if len(data) != descriptor.size:
            raise fetch_error("SIZE_MISMATCH", f"expected {descriptor.size} bytes, got {len(data)}")
        if sha256(data) != descriptor.digest:
            raise fetch_error("DIGEST_MISMATCH", f"expected bytes of {descriptor.digest}, got {sha256(data)}")
        return data

    def _manifests(self) -> Iterator[tuple[Descriptor, bytes, str]]:
        """(entry, manifest, artifact type) of every manifest that the index lists; not all say the type there."""
        entries = {entry.digest: entry for entry in self.entries() if entry.media_type == MANIFEST_TYPE}
        if len(entries) > 2 * self._limits.referrers:
            raise fetch_error("REFERRERS_TOO_MANY", f"the layout lists {len(entries)} manifests")
        for entry in entries.values():
            data = self.read(entry, self._limits.manifest_bytes)
            try:
                document = parse_json(data, max_bytes=self._limits.manifest_bytes, what="manifest")
            except DocumentInvalid as err:
                raise fetch_error("MANIFEST_INVALID", err.message) from err
            kind = document.get("artifactType") if isinstance(document, dict) else None
            yield entry, data, kind if isinstance(kind, str) else ""

    @staticmethod
    def _read(path: Path, cap: int, what: str) -> bytes:
        """A regular file of at most `cap` bytes, no link followed."""
        try:
            handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
        except (FileNotFoundError, NotADirectoryError) as err:
            raise fetch_error("LAYOUT_INVALID", f"the layout has no {what}") from err
        except OSError as err:
            raise fetch_error("STORAGE_UNAVAILABLE", f"{what} can not be read: {err.strerror}") from err
        with os.fdopen(handle, "rb") as source:
            if not stat.S_ISREG(os.fstat(source.fileno()).st_mode):
                raise fetch_error("LAYOUT_INVALID", f"{what} is no regular file")
            data = source.read(cap + 1)
        if len(data) > cap:
            raise fetch_error("BODY_TOO_LARGE", f"{what} is over {cap} bytes")
        return data


def layout_index(main: Descriptor, signatures: tuple[Descriptor, ...]) -> bytes:
    """The index of a layout: the artifact first, then its signatures."""
    return describe_index((main, *signatures))
