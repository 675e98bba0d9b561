"""Publishing a produced bundle: pack, sign, push, attach (evidence-format 5, 3).

The signature is made before anything is pushed, so that a signer who is refused leaves nothing behind. Twice is once:
every part is named by its digest.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol, TypeVar

from app.core.produce import ProducedBundle, artifact_statement
from app.core.refs import Digest, OciRef

SignStatement = Callable[[bytes], bytes]
"""A statement in, the exact Sigstore bundle out."""


class Packed(Protocol):
    """A bundle as an artifact, not pushed yet."""

    @property
    def digest(self) -> Digest:
        """The digest that it will have in every registry."""


P = TypeVar("P", bound=Packed)


class ArtifactRegistry(Protocol[P]):
    """Where bundles are pushed."""

    def pack(self, files: Mapping[str, bytes], /, *, predicate_type: str, version: str) -> P:
        """The artifact of these files; the same files give the same digest."""

    def push(self, packed: P, ref: OciRef, /) -> None:
        """Push under the tag of `ref`; raises `FetchError`."""

    def attach(self, packed: P, ref: OciRef, signature: bytes, /) -> Digest:
        """Push the signature as a referrer; raises `FetchError`."""


@dataclass(frozen=True, slots=True)
class Published:
    """A pushed, signed bundle."""

    ref: OciRef  # pinned
    digest: Digest
    signature: bytes
    referrer: Digest


def publish(
    bundle: ProducedBundle, ref: OciRef, *, version: str, registry: ArtifactRegistry[P], sign: SignStatement
) -> Published:
    """Publish under the tag of `ref`; raises what signing and pushing raise."""
    packed = registry.pack(bundle.files, predicate_type=bundle.predicate_type, version=version)
    statement = artifact_statement(bundle.predicate_type, bundle.predicate, str(ref), packed.digest.hex)
    signature = sign(statement)
    registry.push(packed, ref)
    referrer = registry.attach(packed, ref, signature)
    return Published(ref.at(packed.digest), packed.digest, signature, referrer)
