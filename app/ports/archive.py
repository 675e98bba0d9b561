"""Where bundles are kept as they came."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Protocol

from app.core.bundle import RawSignature
from app.core.refs import Digest
from app.ports.fetch import Artifact, Pulled


class BundleArchive(Protocol):
    """Bundles as they came, as an OCI layout by digest (service 6)."""

    def put(self, artifact: Artifact, signature: RawSignature, layer: str, /) -> None:
        """Keep manifest, config, layer, referrer manifest and Sigstore bundle; durable once this returns."""

    def holds(self, digest: Digest, signature_sha256: str, /) -> bool:
        """Whether this bundle is archived with this signature."""

    def open(self, digest: Digest, /) -> AbstractContextManager[Pulled]:
        """The archived artifact, unpacked into a private directory; raises `NotFoundError`."""

    def signature(self, digest: Digest, signature_sha256: str, /) -> RawSignature:
        """The exact Sigstore bundle; raises `NotFoundError`."""

    def sweep(self, known: Callable[[Digest, str], bool], /) -> int:
        """Remove what no record names (left by a crash); returns how many bundles and signatures went."""
