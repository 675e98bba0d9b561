"""Where bundles and pointers come from: a registry, a directory, a tar, a committed tree."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from app.core.bundle import Content, RawSignature
from app.core.input_form import PathKind
from app.core.refs import Digest, OciRef
from app.core.tree_listing import TreeListing


class Access(StrEnum):
    """Whether a pull may use configured credentials; an anonymous `POST` never does (service 2)."""

    ANONYMOUS = "anonymous"
    CREDENTIALED = "credentialed"


@dataclass(frozen=True, slots=True)
class PullOptions:
    """How one pull behaves; the host flags hold for the reference's own host only (trust 3)."""

    timeout_seconds: float
    access: Access = Access.ANONYMOUS
    plain_http: bool = False
    insecure_tls: bool = False
    private_host: bool = False  # a person named this host himself: loopback and private addresses allowed


@dataclass(frozen=True, slots=True)
class Artifact:
    """A resolved artifact: exact manifest and its signatures, no layer yet."""

    ref: OciRef  # pinned to `digest`
    digest: Digest
    manifest: bytes
    config: bytes
    layer_digest: Digest
    layer_size: int
    signatures: tuple[RawSignature, ...]


@dataclass(frozen=True, slots=True)
class Pulled:
    """An artifact on disk: `directory` holds the unpacked bundle, `layer` is the exact blob's file."""

    artifact: Artifact
    directory: str
    layer: str


class BundleSource(Protocol):
    """A registry, read as an attacker's (trust 3)."""

    def resolve(self, ref: OciRef, options: PullOptions, /) -> Artifact:
        """Manifest and signature referrers of `ref`; raises `FetchError`."""

    def pull(self, artifact: Artifact, options: PullOptions, /) -> AbstractContextManager[Pulled]:
        """The layer in a private directory that is gone when the context ends; raises `FetchError`."""


class ContentReader(Protocol):
    """Gathers a directory into a value."""

    def read(self, directory: str, /) -> Content:
        """Every entry hashed, `CAPTURED_LIMITS` files read once, no link followed.

        Raises `NotFoundError`, `DocumentInvalid` (code CONTENT_LIMIT) and, for a storage fault, `FetchError`.
        """


OpenArchive = Callable[[str], AbstractContextManager[Pulled]]
"""Opens a tar that `GET .../archive` served: the artifact in a private directory that is gone when the context ends.

Bounded like a pull; raises `FetchError`.
"""


class PointerTree(Protocol):
    """Pointer files and the committed tree on disk."""

    def kind_of(self, path: str, /) -> PathKind:
        """What stands at a path."""

    def read_pointer(self, path: str, /) -> bytes:
        """A pointer file's bytes; raises `PointerInvalid` for a link, a special file or more than 1 MiB."""

    def read_file(self, path: str, /, *, max_bytes: int) -> bytes:
        """Any regular file's bytes; raises `NotFoundError`, `InputError` and, for a storage fault, `FetchError`."""

    def listing(self, root: str, /) -> TreeListing:
        """A tree down to its source directories; raises `NotFoundError` when the root can not be read."""

    def write(self, path: str, data: bytes, /) -> None:
        """Replace a file in one step; durable once this returns."""

    def relocate(self, path: str, /) -> str:
        """Move a signed flat pointer to its canonical place; raises `ConflictError` rather than overwrite."""
