"""A distribution 1.1 registry over loopback HTTP: push, pull, tags, referrers, and hostile modes on demand."""

import ssl
import threading
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Self

from app.adapters.oci.pack import BundleArtifact, SignatureArtifact, describe_index, describe_signature
from app.core.refs import Digest, OciRef
from app.sandbox.registry.auth import AuthMode, Gatekeeper, RegistryAuth
from app.sandbox.registry.contents import hostile_artifact
from app.sandbox.registry.handler import LoopbackServer, RegistryHandler, Seen
from app.sandbox.registry.modes import SERVING, Behaviour, Hostility
from app.sandbox.registry.store import RegistryStore, parse_object

SAMPLE_FILES: Mapping[str, bytes] = {
    "recipe.yaml": b"kind: RecipeResult\n",
    "manifest.json": b"{}",
    "ctrf/deployment.json": b"{}",
}
"""What `plant` packs when it is given no files; it looks like a bundle and verifies as none."""


class SandboxRegistry:
    """A registry in this process; use it as a context manager, or call `start` and `stop`.

    With `referrers_api` off it answers 404 there, as registries before distribution 1.1 do.
    """

    def __init__(
        self,
        *,
        referrers_api: bool = True,
        auth: RegistryAuth | None = None,
        tls: ssl.SSLContext | None = None,
        port: int = 0,
        referrers_page: int = 100,
    ) -> None:
        self.store = RegistryStore()
        self.gatekeeper = Gatekeeper(auth or RegistryAuth())
        self.referrers_api = referrers_api
        self.referrers_page = referrers_page
        self.log: list[Seen] = []
        self.stopping = threading.Event()
        self._modes: dict[str, Behaviour] = {}
        self._scheme = "https" if tls else "http"
        self._server = LoopbackServer(("127.0.0.1", port), RegistryHandler, self, tls)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)

    @property
    def host(self) -> str:
        """`127.0.0.1:port`, as it stands in references and settings."""
        return f"127.0.0.1:{self._server.server_address[1]}"

    @property
    def url(self) -> str:
        """The base URL."""
        return f"{self._scheme}://{self.host}"

    def start(self) -> Self:
        """Serve on a thread."""
        self._thread.start()
        return self

    def stop(self) -> None:
        """Stop serving and drop every connection."""
        self.stopping.set()
        if self._thread.is_alive():
            self._server.shutdown()
            self._thread.join()
        self._server.server_close()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    # --- content without HTTP ------------------------------------------------------------------------

    def seed(
        self,
        repository: str,
        artifact: BundleArtifact,
        signatures: Sequence[SignatureArtifact] = (),
        *,
        tag: str | None = None,
    ) -> OciRef:
        """Hold an artifact with its signatures as if they had been pushed; the pinned reference."""
        for blob in (artifact.config, artifact.layer):
            self.store.put_blob(repository, blob)
        self._put(repository, artifact.manifest, tag)
        for signature in signatures:
            self.store.put_blob(repository, signature.content)
            self._put(repository, signature.manifest, signature.tag)
        if signatures and not self.referrers_api:
            index = describe_index(tuple(signature.descriptor for signature in signatures))
            self._put(repository, index, f"sha256-{artifact.digest.hex}")
        return self.ref(repository, artifact.digest)

    def ref(self, repository: str, digest: Digest) -> OciRef:
        """A pinned reference to this registry."""
        return OciRef(self.host, repository, None, digest)

    def _put(self, repository: str, manifest: bytes, tag: str | None) -> None:
        media_type = str(_media_type(manifest))
        self.store.put_manifest(repository, tag or "sha256:", media_type, manifest)

    # --- hostility -----------------------------------------------------------------------------------

    def misbehave(self, behaviour: Behaviour | Hostility | None, repository: str = "") -> None:
        """Serve `repository` (all of them when empty) in a hostile mode from now on; None ends it."""
        if behaviour is None:
            self._modes.pop(repository, None)
        else:
            self._modes[repository] = behaviour if isinstance(behaviour, Behaviour) else Behaviour(behaviour)

    def behaviour(self, repository: str) -> Behaviour | None:
        """The mode in force for a repository."""
        return self._modes.get(repository) or self._modes.get("")

    def plant(
        self,
        behaviour: Behaviour | Hostility,
        repository: str = "",
        *,
        files: Mapping[str, bytes] = SAMPLE_FILES,
        bundle: bytes = b'{"sample":"bundle"}',
    ) -> OciRef:
        """Hold a signed-looking artifact that shows one hostile mode; its pinned reference."""
        tuned = behaviour if isinstance(behaviour, Behaviour) else Behaviour(behaviour)
        name = repository or f"hostile/{tuned.mode.value}"
        artifact = hostile_artifact(tuned.mode, files)
        ref = self.seed(name, artifact, (describe_signature(artifact.descriptor, bundle),))
        if tuned.mode in SERVING:
            self.misbehave(tuned, name)
        return ref


def _media_type(manifest: bytes) -> object:
    return parse_object(manifest).get("mediaType") or "application/vnd.oci.image.manifest.v1+json"


__all__ = ["SAMPLE_FILES", "AuthMode", "RegistryAuth", "SandboxRegistry", "Seen"]
