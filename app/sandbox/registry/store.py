"""What the sandbox registry holds, in memory: blobs, manifests, tags, referrers and running uploads."""

import hashlib
import json
import threading
import uuid
from dataclasses import dataclass, field


def digest_of(data: bytes) -> str:
    """The prefixed sha256."""
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


@dataclass(slots=True)
class Repository:
    """One repository's content; manifests keep their order of arrival."""

    blobs: dict[str, bytes] = field(default_factory=dict)
    manifests: dict[str, tuple[str, bytes]] = field(default_factory=dict)  # digest -> media type, bytes
    tags: dict[str, str] = field(default_factory=dict)


class RegistryStore:
    """Every repository of one registry, safe to share between threads."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._repositories: dict[str, Repository] = {}
        self._uploads: dict[str, tuple[str, bytearray]] = {}

    def put_blob(self, name: str, data: bytes) -> str:
        """Keep a blob; its digest."""
        digest = digest_of(data)
        with self._lock:
            self._repository(name).blobs[digest] = data
        return digest

    def blob(self, name: str, digest: str) -> bytes | None:
        """A blob's bytes."""
        with self._lock:
            held = self._repositories.get(name)
            return held.blobs.get(digest) if held else None

    def mount(self, name: str, digest: str, source: str) -> bool:
        """Make a blob of `source` one of `name`."""
        with self._lock:
            data = self.blob(source, digest)
            if data is None:
                return False
            self._repository(name).blobs[digest] = data
            return True

    def put_manifest(self, name: str, reference: str, media_type: str, data: bytes) -> str:
        """Keep a manifest under its digest, and under a tag when `reference` is one; its digest."""
        digest = digest_of(data)
        with self._lock:
            held = self._repository(name)
            held.manifests[digest] = (media_type, data)
            if not reference.startswith("sha256:"):
                held.tags[reference] = digest
        return digest

    def manifest(self, name: str, reference: str) -> tuple[str, str, bytes] | None:
        """(digest, media type, bytes) by digest or tag."""
        with self._lock:
            held = self._repositories.get(name)
            if held is None:
                return None
            digest = held.tags.get(reference, reference)
            found = held.manifests.get(digest)
            return (digest, *found) if found else None

    def delete(self, name: str, kind: str, reference: str) -> bool:
        """Remove a tag, a manifest with its tags, or a blob."""
        with self._lock:
            held = self._repositories.get(name)
            if held is None:
                return False
            if kind == "blobs":
                return held.blobs.pop(reference, None) is not None
            if reference in held.tags:
                del held.tags[reference]
                return True
            held.tags = {tag: digest for tag, digest in held.tags.items() if digest != reference}
            return held.manifests.pop(reference, None) is not None

    def knows(self, name: str) -> bool:
        """Whether anything was ever pushed to `name`."""
        with self._lock:
            return name in self._repositories

    def tags(self, name: str) -> list[str]:
        """A repository's tags, sorted."""
        with self._lock:
            held = self._repositories.get(name)
            return sorted(held.tags) if held else []

    def referrers(self, name: str, subject: str) -> list[dict[str, object]]:
        """Descriptors of the manifests whose subject is `subject`, in order of arrival."""
        with self._lock:
            held = self._repositories.get(name)
            manifests = list(held.manifests.items()) if held else []
        found: list[dict[str, object]] = []
        for digest, (media_type, data) in manifests:
            document = parse_object(data)
            about = document.get("subject")
            if not isinstance(about, dict) or about.get("digest") != subject:
                continue
            entry: dict[str, object] = {"mediaType": media_type, "digest": digest, "size": len(data)}
            config = document.get("config")
            kind = document.get("artifactType") or (config.get("mediaType") if isinstance(config, dict) else None)
            if kind:
                entry["artifactType"] = kind
            if document.get("annotations"):
                entry["annotations"] = document["annotations"]
            found.append(entry)
        return found

    def open_upload(self, name: str) -> str:
        """A new upload's id."""
        with self._lock:
            upload = uuid.uuid4().hex
            self._uploads[upload] = (name, bytearray())
            return upload

    def append(self, name: str, upload: str, data: bytes) -> int | None:
        """Add to an upload; its size so far, None when there is no such upload."""
        with self._lock:
            held = self._uploads.get(upload)
            if held is None or held[0] != name:
                return None
            held[1].extend(data)
            return len(held[1])

    def close_upload(self, name: str, upload: str) -> bytes | None:
        """End an upload and hand out its bytes."""
        with self._lock:
            held = self._uploads.get(upload)
            if held is None or held[0] != name:
                return None
            del self._uploads[upload]
            return bytes(held[1])

    def _repository(self, name: str) -> Repository:
        return self._repositories.setdefault(name, Repository())


def parse_object(data: bytes) -> dict[str, object]:
    """A JSON object, empty for anything else."""
    try:
        document = json.loads(data)
    except (ValueError, RecursionError):
        return {}
    return document if isinstance(document, dict) else {}
