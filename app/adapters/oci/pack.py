"""A bundle's files become exactly one artifact: same files, same bytes, same digest (evidence-format 5.2, 5.3).

Pure functions, so that a signature can be made over the digest before anything is pushed.
"""

import hashlib
import io
import json
import re
import struct
import tarfile
import zlib
from collections.abc import Mapping
from dataclasses import dataclass

from app.adapters.oci.limits import ReaderLimits
from app.adapters.oci.manifest import (
    ARTIFACT_TYPE,
    CREATED,
    EMPTY_CONFIG,
    EMPTY_DIGEST,
    EMPTY_TYPE,
    INDEX_TYPE,
    LAYER_TYPE,
    MANIFEST_TYPE,
    SIGNATURE_TYPE,
    TAR_DIGEST,
    TITLE,
    UNPACK,
    VENDOR,
    Descriptor,
)
from app.adapters.oci.tar import PathRules
from app.core.errors import FetchError, InputError
from app.core.refs import Digest

_EPOCH = "1970-01-01T00:00:00Z"
_GZIP_HEADER = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x02\xff"  # no time, best compression, unknown system
_PREDICATE_VERSION = re.compile(r"/recipe-evidence/(v[1-9][0-9]?)")
_NOT_SLUG = re.compile(r"[^a-z0-9_.-]")
_MAX_SLUG_CHARS = 80


@dataclass(frozen=True, slots=True)
class BundleArtifact:
    """The main artifact in memory; `digest` is the bundle digest, what a signature is about."""

    manifest: bytes
    config: bytes
    layer: bytes
    digest: Digest
    layer_digest: Digest
    tar_digest: Digest

    @property
    def descriptor(self) -> Descriptor:
        """The subject of its signatures."""
        return Descriptor(MANIFEST_TYPE, self.digest, len(self.manifest))


@dataclass(frozen=True, slots=True)
class SignatureArtifact:
    """A signature referrer in memory; `content` is the Sigstore bundle, `tag` what it is pushed under."""

    manifest: bytes
    config: bytes
    content: bytes
    digest: Digest
    content_digest: Digest
    artifact_type: str

    @property
    def tag(self) -> str:
        """The referrer's own digest in bare hex."""
        return self.digest.hex

    @property
    def descriptor(self) -> Descriptor:
        """What a listing of referrers says about it."""
        return Descriptor(MANIFEST_TYPE, self.digest, len(self.manifest), self.artifact_type)


def sha256(data: bytes) -> Digest:
    """The digest of some bytes."""
    return Digest(hashlib.sha256(data).hexdigest())


def canonical_json(document: object) -> bytes:
    """Compact JSON in the given key order, as Go writes a manifest."""
    return json.dumps(document, separators=(",", ":"), ensure_ascii=False).encode()


def pack_tar(files: Mapping[str, bytes]) -> bytes:
    """A tar of `files` (path -> content): sorted, parents first, no times, no owners (O12).

    Raises `InputError` for a path that the strict reader would refuse.
    """
    rules = PathRules(ReaderLimits())
    for path in files:
        try:
            admitted = rules.admit(path.encode(), directory=False)
        except FetchError as err:
            raise InputError(f"file can not go into a bundle: {err.message}", hint=err.hint) from err
        if admitted != path:
            raise InputError(f"expected a plain relative path, got {path[:120]!r}")
    parents = {path.rsplit("/", depth)[0] for path in files for depth in range(1, path.count("/") + 1)}
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for path in sorted(parents | set(files), key=str.encode):
            entry = tarfile.TarInfo(path)
            if path in parents:
                entry.type, entry.mode = tarfile.DIRTYPE, 0o755
                archive.addfile(entry)
            else:
                entry.size, entry.mode = len(files[path]), 0o644
                archive.addfile(entry, io.BytesIO(files[path]))
        end = archive.offset
    return out.getvalue()[:end] + bytes(1024)  # the library pads to 10 KiB; two zero blocks end an archive


def gzip_member(data: bytes) -> bytes:
    """One deterministic gzip member: level 9, no time, OS byte 255."""
    engine = zlib.compressobj(9, zlib.DEFLATED, -15)
    body = engine.compress(data) + engine.flush()
    return _GZIP_HEADER + body + struct.pack("<II", zlib.crc32(data), len(data) & 0xFFFFFFFF)


def describe_bundle(files: Mapping[str, bytes], *, predicate_type: str, version: str) -> BundleArtifact:
    """The main artifact of a bundle's files; `version` is the producer's (evidence-format 5.2, O11)."""
    tar = pack_tar(files)
    layer = gzip_member(tar)
    known = _PREDICATE_VERSION.search(predicate_type)
    sentence = "Signed validation evidence for an AICR recipe"
    sentence += f" (recipe-evidence/{known[1]})." if known else "."
    annotations = {
        CREATED: _EPOCH,
        "org.opencontainers.image.description": sentence,
        "org.opencontainers.image.source": "https://github.com/NVIDIA/aicr",
        TITLE: "AICR Recipe Evidence",
        VENDOR: "NVIDIA",
        "org.opencontainers.image.version": version,
    }
    layer_annotations = {TITLE: ".", UNPACK: "true", TAR_DIGEST: str(sha256(tar))}
    manifest = canonical_json(
        {
            "schemaVersion": 2,
            "mediaType": MANIFEST_TYPE,
            "artifactType": ARTIFACT_TYPE,
            "config": _EMPTY.to_json(),
            "layers": [Descriptor(LAYER_TYPE, sha256(layer), len(layer), annotations=layer_annotations).to_json()],
            "annotations": dict(sorted(annotations.items())),
        }
    )
    return BundleArtifact(manifest, EMPTY_CONFIG, layer, sha256(manifest), sha256(layer), sha256(tar))


def describe_referrer(*, artifact_type: str, content: bytes, subject: Descriptor | None) -> SignatureArtifact:
    """A referrer with one layer (evidence-format 5.3, O13, O14); raises `InputError` for a missing part."""
    if not artifact_type:
        raise InputError("ArtifactType is required")
    if not content:
        raise InputError("LayerContent must be non-empty")
    if subject is None:
        raise InputError("Subject.Digest is required")
    layer = Descriptor(artifact_type, sha256(content), len(content), annotations={TITLE: "payload"})
    manifest = canonical_json(
        {
            "schemaVersion": 2,
            "mediaType": MANIFEST_TYPE,
            "artifactType": artifact_type,
            "config": _EMPTY.to_json(),
            "layers": [layer.to_json()],
            "subject": Descriptor(subject.media_type, subject.digest, subject.size).to_json(),
            "annotations": {CREATED: _EPOCH, VENDOR: "NVIDIA"},
        }
    )
    return SignatureArtifact(manifest, EMPTY_CONFIG, content, sha256(manifest), layer.digest, artifact_type)


def describe_signature(subject: Descriptor, bundle: bytes) -> SignatureArtifact:
    """The referrer that carries a Sigstore bundle about `subject`."""
    return describe_referrer(artifact_type=SIGNATURE_TYPE, content=bundle, subject=subject)


def describe_index(entries: tuple[Descriptor, ...]) -> bytes:
    """An image index of `entries`: the fallback tag's content, or a layout's."""
    return canonical_json(
        {"schemaVersion": 2, "mediaType": INDEX_TYPE, "manifests": [entry.to_json() for entry in entries]}
    )


def default_tag(recipe: str, manifest_digest: Digest) -> str:
    """The tag of a push that names none (evidence-format 5.2); `manifest_digest` is the predicate's."""
    slug = _NOT_SLUG.sub("-", recipe.lower()).strip("-.")[:_MAX_SLUG_CHARS].strip("-.")
    return f"{slug or 'recipe'}-{manifest_digest.hex[:12]}"


_EMPTY = Descriptor(EMPTY_TYPE, EMPTY_DIGEST, len(EMPTY_CONFIG))
