"""Digests and OCI references: `parse()` and `str()` round-trip (evidence-format 5.4, 11.7).

Normalisation of trusted-registry prefixes and the gate itself (corroboration 4.4) are in `core.gate`.
"""

import re
from dataclasses import dataclass
from typing import Self

from app.core.errors import ReferenceInvalid

MAX_REFERENCE_CHARS = 1024
MAX_REPOSITORY_CHARS = 255
DOCKER_HUB = "docker.io"
_DOCKER_HUB_NAMES = frozenset({DOCKER_HUB, "index.docker.io"})

_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
_HOST = re.compile(
    r"(?:[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?(?:\.[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?)*\.?"
    r"|\[[0-9A-Fa-f:.]+\])(?::[0-9]{1,5})?"
)
_REPOSITORY = re.compile(r"[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*(?:/[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*)*")
_TAG = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,127}")


@dataclass(frozen=True, slots=True, order=True)
class Digest:
    """A sha256 digest; `str()` is the prefixed form `sha256:<64 lowercase hex>`."""

    hex: str

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read the prefixed form; raises `ReferenceInvalid` for anything else."""
        if not _DIGEST.fullmatch(text):
            raise ReferenceInvalid(f"expected sha256: and 64 lowercase hex characters, got {text[:80]!r}")
        return cls(text[7:])

    def __str__(self) -> str:
        return f"sha256:{self.hex}"


@dataclass(frozen=True, slots=True)
class OciRef:
    """`registry/repository` with a tag or a digest; with both, the digest wins (evidence-format 5.4)."""

    registry: str
    repository: str
    tag: str | None = None
    digest: Digest | None = None

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read a reference, with or without `oci://`; Docker-style names get `docker.io` and `library/`.

        Raises `ReferenceInvalid` when no tag or digest is given or any part is malformed.
        """
        if len(text) > MAX_REFERENCE_CHARS:
            raise ReferenceInvalid(f"reference has {len(text)} characters, at most {MAX_REFERENCE_CHARS}")
        rest = text.removeprefix("oci://")
        digest: Digest | None = None
        if "@" in rest:
            rest, _, digest_text = rest.partition("@")
            digest = Digest.parse(digest_text)
        tag: str | None = None
        if rest.rfind(":") > rest.rfind("/"):
            rest, _, tag = rest.rpartition(":")
            if not _TAG.fullmatch(tag):
                raise ReferenceInvalid(f"expected a tag after ':', got {tag[:80]!r}")
        if digest is None and tag is None:
            raise ReferenceInvalid(
                f"reference {text[:120]!r} has neither tag nor digest",
                hint="write registry/repository@sha256:<64 hex>",
            )
        first, slash, remainder = rest.partition("/")
        if slash and ("." in first or ":" in first or first == "localhost" or first != first.lower()):
            registry, repository = first, remainder
        else:
            registry, repository = DOCKER_HUB, rest
        if registry in _DOCKER_HUB_NAMES:
            registry = DOCKER_HUB
            repository = repository if "/" in repository else f"library/{repository}"
        if not _HOST.fullmatch(registry):
            raise ReferenceInvalid(f"expected a registry host, got {registry[:80]!r}")
        if len(repository) > MAX_REPOSITORY_CHARS:
            raise ReferenceInvalid(f"repository has {len(repository)} characters, at most {MAX_REPOSITORY_CHARS}")
        if not _REPOSITORY.fullmatch(repository):
            raise ReferenceInvalid(f"expected a lower-case repository path, got {repository[:120]!r}")
        return cls(registry, repository, None if digest else tag, digest)

    @property
    def pinned(self) -> bool:
        """Whether the target is a digest."""
        return self.digest is not None

    @property
    def target(self) -> str:
        """The digest, else the tag."""
        return str(self.digest) if self.digest else str(self.tag)

    def at(self, digest: Digest) -> "OciRef":
        """The same repository, pinned to `digest`."""
        return OciRef(self.registry, self.repository, None, digest)

    def __str__(self) -> str:
        name = f"{self.registry}/{self.repository}"
        return f"{name}@{self.digest}" if self.digest else f"{name}:{self.tag}"


def is_registry_host(text: str) -> bool:
    """Whether `text` is `host`, `host:port` or `[address]:port`, as a reference may begin."""
    if not _HOST.fullmatch(text):
        return False
    port = text[text.rindex("]") + 1 :] if "]" in text else text
    return ":" not in port or 0 < int(port.rpartition(":")[2]) < 65536


def is_repository(text: str) -> bool:
    """Whether `text` is a path of a registry, whole or its first segments."""
    return len(text) <= MAX_REPOSITORY_CHARS and _REPOSITORY.fullmatch(text) is not None


def is_pinned_target(target: str) -> bool:
    """Upstream's test: the target starts with `sha256:`; `sha512:` is no pin (O1, O2)."""
    return target.startswith("sha256:")
