"""What manifests and indexes must look like to be evidence (evidence-format 5.2-5.4, trust 3).

Bytes first: a caller has hashed them before they come here. Pure functions; every refusal is a `FetchError`
with code MANIFEST_INVALID, or BODY_TOO_LARGE for a descriptor over its cap.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from app.adapters.oci.codes import fetch_error
from app.adapters.oci.limits import ReaderLimits
from app.core.errors import DocumentInvalid, ReferenceInvalid
from app.core.jsontext import parse_json, refuse_case_variants
from app.core.refs import Digest

MANIFEST_TYPE = "application/vnd.oci.image.manifest.v1+json"
INDEX_TYPE = "application/vnd.oci.image.index.v1+json"
ARTIFACT_TYPE = "application/vnd.nvidia.aicr.artifact"
SIGNATURE_TYPE = "application/vnd.dev.sigstore.bundle.v0.3+json"
LAYER_TYPE = "application/vnd.oci.image.layer.v1.tar+gzip"
EMPTY_TYPE = "application/vnd.oci.empty.v1+json"
EMPTY_CONFIG = b"{}"
EMPTY_DIGEST = Digest("44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a")

TITLE = "org.opencontainers.image.title"
CREATED = "org.opencontainers.image.created"
VENDOR = "org.opencontainers.image.vendor"
UNPACK = "io.deis.oras.content.unpack"
TAR_DIGEST = "io.deis.oras.content.digest"

_MAX_DEPTH = 32
_MANIFEST_KEYS = frozenset({"schemaVersion", "mediaType", "artifactType", "config", "layers", "subject", "annotations"})
_INDEX_KEYS = frozenset({"schemaVersion", "mediaType", "artifactType", "manifests", "subject", "annotations"})
_DESCRIPTOR_KEYS = frozenset({"mediaType", "digest", "size", "urls", "annotations", "data", "artifactType", "platform"})


@dataclass(frozen=True, slots=True)
class Descriptor:
    """One content descriptor; `size` in bytes."""

    media_type: str
    digest: Digest
    size: int
    artifact_type: str = ""
    annotations: Mapping[str, str] | None = None

    def to_json(self) -> dict[str, object]:
        """Keys in the order of the OCI image specification."""
        out: dict[str, object] = {"mediaType": self.media_type, "digest": str(self.digest), "size": self.size}
        if self.annotations:
            out["annotations"] = dict(sorted(self.annotations.items()))
        if self.artifact_type:
            out["artifactType"] = self.artifact_type
        return out


@dataclass(frozen=True, slots=True)
class MainManifest:
    """An evidence artifact's manifest: its one layer, and the tar's own digest when it is annotated."""

    layer: Descriptor
    tar_digest: Digest | None


@dataclass(frozen=True, slots=True)
class SignatureManifest:
    """A signature referrer's manifest: the one layer is the Sigstore bundle."""

    layer: Descriptor


def parse_main(data: bytes, limits: ReaderLimits) -> MainManifest:
    """Read an evidence manifest (evidence-format 5.2)."""
    document = _document(data, limits.manifest_bytes, MANIFEST_TYPE, _MANIFEST_KEYS)
    artifact_type = document.get("artifactType")
    if artifact_type != ARTIFACT_TYPE:
        raise _invalid(f"expected artifactType {ARTIFACT_TYPE}, got {_show(artifact_type)}")
    config = _descriptor(document.get("config"), "config")
    if (config.media_type, config.digest, config.size) != (EMPTY_TYPE, EMPTY_DIGEST, len(EMPTY_CONFIG)):
        raise _invalid(f"expected the empty config, got {config.media_type!r} {config.digest}")
    layer = _only_layer(document)
    if layer.media_type != LAYER_TYPE:
        raise _invalid(f"expected a layer of {LAYER_TYPE}, got {layer.media_type!r}")
    if layer.size > limits.blob_bytes:
        raise fetch_error("BODY_TOO_LARGE", f"layer has {layer.size} bytes, at most {limits.blob_bytes}")
    annotated = (layer.annotations or {}).get(TAR_DIGEST)
    return MainManifest(layer, None if annotated is None else _digest(annotated, TAR_DIGEST))


def parse_signature(data: bytes, *, subject: Descriptor, limits: ReaderLimits) -> SignatureManifest:
    """Read a signature referrer's manifest (evidence-format 5.3); it must be about `subject`."""
    document = _document(data, limits.referrer_manifest_bytes, MANIFEST_TYPE, _MANIFEST_KEYS)
    if document.get("artifactType") != SIGNATURE_TYPE:
        found = _show(document.get("artifactType"))
        raise fetch_error("REFERRER_INVALID", f"expected a referrer of {SIGNATURE_TYPE}, got {found}")
    if "subject" not in document:
        raise fetch_error("REFERRER_INVALID", "the referrer names no subject")
    about = _descriptor(document["subject"], "subject")
    if (about.media_type, about.digest, about.size) != (subject.media_type, subject.digest, subject.size):
        raise fetch_error("REFERRER_INVALID", f"expected a referrer of {subject.digest}, it is about {about.digest}")
    layer = _only_layer(document)
    if layer.size > limits.signature_bytes:
        raise fetch_error("BODY_TOO_LARGE", f"signature has {layer.size} bytes, at most {limits.signature_bytes}")
    return SignatureManifest(layer)


def parse_index(data: bytes, limits: ReaderLimits) -> tuple[Descriptor, ...]:
    """The descriptors of an image index, in its order."""
    document = _document(data, limits.manifest_bytes, INDEX_TYPE, _INDEX_KEYS)
    manifests = document.get("manifests")
    if manifests is None:  # Go writes null for an empty list
        return ()
    if not isinstance(manifests, list):
        raise _invalid("expected the index's manifests as a list")
    return tuple(_descriptor(entry, "index entry") for entry in manifests)


def signature_entries(entries: tuple[Descriptor, ...], limits: ReaderLimits) -> tuple[Descriptor, ...]:
    """The Sigstore bundles of a referrer listing, filtered here because a registry may not filter, each once.

    A matching entry that is itself an index is refused: following it would let a listing nest.
    """
    wanted: dict[Digest, Descriptor] = {}
    for entry in entries:
        if entry.artifact_type != SIGNATURE_TYPE:
            continue
        if entry.media_type != MANIFEST_TYPE:
            raise fetch_error("REFERRER_INVALID", f"expected a referrer manifest, got {entry.media_type!r}")
        if entry.size > limits.referrer_manifest_bytes:
            raise fetch_error(
                "BODY_TOO_LARGE", f"referrer manifest has {entry.size} bytes, at most {limits.referrer_manifest_bytes}"
            )
        wanted.setdefault(entry.digest, entry)
        if len(wanted) > limits.referrers:
            raise fetch_error("REFERRERS_TOO_MANY", f"more than {limits.referrers} signature referrers")
    return tuple(wanted.values())


def _document(data: bytes, max_bytes: int, media_type: str, keys: frozenset[str]) -> Mapping[str, object]:
    try:
        document = parse_json(data, max_bytes=max_bytes, max_depth=_MAX_DEPTH, what="manifest")
    except DocumentInvalid as err:
        raise _invalid(err.message) from err
    if not isinstance(document, dict):
        raise _invalid("expected the manifest as a JSON object")
    _no_lookalikes(document, keys)
    if document.get("schemaVersion") != 2 or document.get("schemaVersion") is True:
        raise _invalid(f"expected schemaVersion 2, got {_show(document.get('schemaVersion'))}")
    if document.get("mediaType") != media_type:
        raise _invalid(f"expected mediaType {media_type}, got {_show(document.get('mediaType'))}")
    return document


def _only_layer(document: Mapping[str, object]) -> Descriptor:
    layers = document.get("layers")
    if not isinstance(layers, list) or len(layers) != 1:
        count = len(layers) if isinstance(layers, list) else 0
        raise _invalid(f"expected exactly one layer, got {count}")
    return _descriptor(layers[0], "layer")


def _descriptor(value: object, what: str) -> Descriptor:
    if not isinstance(value, dict):
        raise _invalid(f"expected {what} as a descriptor")
    _no_lookalikes(value, _DESCRIPTOR_KEYS)
    media_type, size = value.get("mediaType"), value.get("size")
    if not isinstance(media_type, str) or not media_type:
        raise _invalid(f"{what} has no media type")
    if not isinstance(size, int) or isinstance(size, bool) or size < 0:
        raise _invalid(f"expected the size of {what} as a whole number, got {_show(size)}")
    artifact_type = value.get("artifactType", "")
    if not isinstance(artifact_type, str):
        raise _invalid(f"expected the artifactType of {what} as text")
    annotations = value.get("annotations")
    if annotations is not None and not (
        isinstance(annotations, dict) and all(isinstance(text, str) for text in annotations.values())
    ):
        raise _invalid(f"expected the annotations of {what} as texts")
    return Descriptor(media_type, _digest(value.get("digest"), what), size, artifact_type, annotations)


def _digest(value: object, what: str) -> Digest:
    try:
        return Digest.parse(value if isinstance(value, str) else "")
    except ReferenceInvalid as err:
        raise _invalid(f"expected a sha256 digest for {what}, got {_show(value)}") from err


def _no_lookalikes(document: Mapping[str, object], keys: frozenset[str]) -> None:
    """Refuse `Layers` beside or instead of `layers`: Go's decoder takes either, ours one."""
    try:
        refuse_case_variants(document, keys)
    except DocumentInvalid as err:
        raise _invalid(err.message) from err


def _show(value: object) -> str:
    return repr(value)[:80]


def _invalid(message: str) -> Exception:
    return fetch_error("MANIFEST_INVALID", message)
