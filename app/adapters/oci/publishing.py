"""The registry side of publishing: packs, pushes and attaches for `services.publish`."""

from collections.abc import Mapping

from app.adapters.oci.pack import BundleArtifact, describe_bundle
from app.adapters.oci.writer import Writer
from app.core.refs import Digest, OciRef


class OciPublisher:
    """Implements `services.publish.ArtifactRegistry` over a `Writer`."""

    def __init__(self, writer: Writer) -> None:
        self._writer = writer

    def pack(self, files: Mapping[str, bytes], /, *, predicate_type: str, version: str) -> BundleArtifact:
        """One deterministic layer and its manifest."""
        return describe_bundle(files, predicate_type=predicate_type, version=version)

    def push(self, packed: BundleArtifact, ref: OciRef, /) -> None:
        """Push under the tag of `ref`."""
        self._writer.push_artifact(packed, ref)

    def attach(self, packed: BundleArtifact, ref: OciRef, signature: bytes, /) -> Digest:
        """Push the signature as a referrer."""
        return self._writer.attach_signature(ref, packed.descriptor, signature)
