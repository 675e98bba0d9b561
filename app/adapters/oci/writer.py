"""Pushing artifacts and signatures through `oras`, which is for what we write, never for what we judge (trust 3).

The library is held to a deadline, few retries, the one registry that was named, and its own or named token
servers; every digest that a registry reports back is compared with ours. What is pushed is made in `pack`.
"""

import tempfile
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from app.adapters.oci.addresses import HostRules
from app.adapters.oci.auth import RegistryLogin
from app.adapters.oci.codes import fetch_error
from app.adapters.oci.limits import Deadline, ReaderLimits
from app.adapters.oci.manifest import (
    EMPTY_CONFIG,
    EMPTY_DIGEST,
    INDEX_TYPE,
    MANIFEST_TYPE,
    Descriptor,
    parse_index,
    parse_main,
    parse_signature,
)
from app.adapters.oci.pack import (
    BundleArtifact,
    SignatureArtifact,
    canonical_json,
    describe_bundle,
    describe_index,
    describe_signature,
    sha256,
)
from app.adapters.oci.pusher import Pusher
from app.core.errors import ReferenceInvalid
from app.core.jsontext import parse_json
from app.core.refs import Digest, OciRef
from app.ports import Pulled

_INDEX_ATTEMPTS = 3


class Writer:
    """Publishes to the registry that a reference names; twice is once, since everything goes by digest."""

    def __init__(
        self,
        *,
        credentials: Mapping[str, RegistryLogin] | None = None,
        plain_http_hosts: Collection[str] = (),
        token_realms: Collection[str] = (),
        plain_http: bool = False,
        insecure_tls: bool = False,
        ca_file: str | None = None,
        docker_logins: bool = False,
        timeout_seconds: float = 120.0,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._rules = HostRules.of(plain_http=plain_http_hosts, realms=token_realms)
        self._logins = dict(credentials or {})
        self._plain_http = plain_http
        self._verify: bool | str = False if insecure_tls else ca_file or True
        self._docker_logins = docker_logins
        self._timeout = timeout_seconds
        self._sleep = sleep
        self._limits = ReaderLimits()

    def push_bundle(self, files: Mapping[str, bytes], ref: OciRef, *, predicate_type: str, version: str) -> Digest:
        """Pack and push a bundle's files under `ref.tag`; its digest."""
        return self.push_artifact(describe_bundle(files, predicate_type=predicate_type, version=version), ref)

    def push_artifact(self, artifact: BundleArtifact, ref: OciRef) -> Digest:
        """Push a described bundle under `ref.tag`, or by digest alone when there is none."""
        with self._pusher(ref) as pusher, tempfile.TemporaryDirectory() as scratch:
            pusher.blob(EMPTY_DIGEST, _file(scratch, EMPTY_CONFIG))
            pusher.blob(artifact.layer_digest, _file(scratch, artifact.layer))
            pusher.manifest(ref.tag or str(artifact.digest), MANIFEST_TYPE, artifact.manifest)
        return artifact.digest

    def attach_signature(self, ref: OciRef, subject: Descriptor, bundle: bytes) -> Digest:
        """Push a Sigstore bundle as referrer of `subject` in the repository of `ref`; the referrer's digest.

        Where the registry does not take note of the subject itself, the fallback tag's index is extended.
        """
        signature = describe_signature(subject, bundle)
        with self._pusher(ref) as pusher:
            self._attach(pusher, subject, signature)
        return signature.digest

    def mirror(self, pulled: Pulled, ref: OciRef) -> Digest:
        """Copy a pulled artifact with all its signatures, byte for byte; its digest."""
        artifact = pulled.artifact
        main = parse_main(artifact.manifest, self._limits)
        subject = Descriptor(MANIFEST_TYPE, artifact.digest, len(artifact.manifest))
        with self._pusher(ref) as pusher, tempfile.TemporaryDirectory() as scratch:
            pusher.blob(EMPTY_DIGEST, _file(scratch, artifact.config))
            pusher.blob(main.layer.digest, Path(pulled.layer))
            pusher.manifest(ref.tag or str(artifact.digest), MANIFEST_TYPE, artifact.manifest)
            for raw in artifact.signatures:
                signature = describe_signature(subject, raw.bundle)
                if raw.referrer is not None and raw.referrer_manifest is not None:
                    layer = parse_signature(raw.referrer_manifest, subject=subject, limits=self._limits).layer
                    signature = SignatureArtifact(
                        raw.referrer_manifest,
                        EMPTY_CONFIG,
                        raw.bundle,
                        raw.referrer,
                        layer.digest,
                        signature.artifact_type,
                    )
                self._attach(pusher, subject, signature)
        return artifact.digest

    def _attach(self, pusher: Pusher, subject: Descriptor, signature: SignatureArtifact) -> None:
        with tempfile.TemporaryDirectory() as scratch:
            pusher.blob(EMPTY_DIGEST, _file(scratch, signature.config))
            pusher.blob(signature.content_digest, _file(scratch, signature.content))
        if not pusher.manifest(signature.tag, MANIFEST_TYPE, signature.manifest):
            self._extend_fallback(pusher, f"sha256-{subject.digest.hex}", signature.descriptor)

    def _extend_fallback(self, pusher: Pusher, tag: str, entry: Descriptor) -> None:
        """List `entry` under the fallback tag, and look again: another writer may replace the index between."""
        for _ in range(_INDEX_ATTEMPTS):
            held = pusher.read_manifest(tag, self._limits.manifest_bytes)
            if held is not None and any(known.digest == entry.digest for known in parse_index(held, self._limits)):
                return
            pusher.manifest(tag, INDEX_TYPE, extended_index(held, entry))
        raise fetch_error("REGISTRY_ERROR", f"the registry does not keep the referrer index {tag}")

    @contextmanager
    def _pusher(self, ref: OciRef) -> Iterator[Pusher]:
        origin = self._rules.origin(ref.registry, plain_http=self._plain_http)
        pusher = Pusher(
            origin,
            ref.repository,
            rules=self._rules,
            login=self._logins.get(origin.name),
            verify=self._verify,
            docker_logins=self._docker_logins,
            deadline=Deadline(self._timeout),
            sleep=self._sleep,
        )
        try:
            yield pusher
        finally:
            pusher.close()


def extended_index(held: bytes | None, entry: Descriptor) -> bytes:
    """An index with `entry` added at its end; whatever else it says stays."""
    if held is None:
        return describe_index((entry,))
    document = parse_json(held)
    if not isinstance(document, dict):
        raise ReferenceInvalid("expected an index under the fallback tag")
    listed = document.get("manifests")
    return canonical_json({**document, "manifests": [*(listed if isinstance(listed, list) else []), entry.to_json()]})


def _file(directory: str, data: bytes) -> Path:
    path = Path(directory, sha256(data).hex)
    path.write_bytes(data)
    return path
