"""The strict registry reader: an artifact with its signatures, or a `FetchError`; nothing is believed (trust 3).

Which registries may be asked at all is decided before (`core.gate`); whether a signature holds, after.
"""

import hashlib
import os
import re
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import TypeVar

from app.adapters.oci.addresses import HostRules, Resolver, system_resolver
from app.adapters.oci.auth import Authorizer, RegistryLogin, TokenCache
from app.adapters.oci.codes import fetch_error, status_error
from app.adapters.oci.limits import MIB, ByteBudget, Deadline, ReaderLimits
from app.adapters.oci.manifest import (
    EMPTY_CONFIG,
    INDEX_TYPE,
    MANIFEST_TYPE,
    SIGNATURE_TYPE,
    Descriptor,
    parse_index,
    parse_main,
    parse_signature,
    signature_entries,
)
from app.adapters.oci.transport import Response, TlsContexts, Url, Wire
from app.adapters.oci.unpack import unpack_layer
from app.adapters.oci.workdir import prepare_root, private_directory
from app.core.bundle import RawSignature
from app.core.errors import Category, DocumentInvalid, FetchError
from app.core.jsontext import parse_json
from app.core.refs import Digest, OciRef
from app.ports import Artifact, Pulled, PullOptions

_T = TypeVar("_T")

_BACKOFF_SECONDS = 0.25
_MAX_ERROR_BODY_BYTES = 16 << 10
_MAX_RETRY_AFTER_SECONDS = 24 * 3600
_REGISTRY_CODE = re.compile(r"[A-Z_]{1,64}")
_NEXT_LINK = re.compile(r'<([^<>]*)>\s*(?:;[^,<>]*)?;\s*rel="?next"?', re.IGNORECASE)


class OciRegistry:
    """Implements `ports.BundleSource` over HTTP; safe to share between threads."""

    def __init__(
        self,
        *,
        tmp: str,
        limits: ReaderLimits | None = None,
        private_hosts: Collection[str] = (),
        plain_http_hosts: Collection[str] = (),
        token_realms: Collection[str] = (),
        credentials: Mapping[str, RegistryLogin] | None = None,
        budget: ByteBudget | None = None,
        ca_file: str | None = None,
        resolver: Resolver = system_resolver,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._tmp = tmp
        self._limits = limits or ReaderLimits()
        self._rules = HostRules.of(private=private_hosts, plain_http=plain_http_hosts, realms=token_realms)
        self._logins = dict(credentials or {})
        self._budget = budget or ByteBudget(1024 * MIB)
        self._tls = TlsContexts(ca_file)
        self._tokens = TokenCache()
        self._resolver = resolver
        self._sleep = sleep
        prepare_root(tmp)

    def resolve(self, ref: OciRef, options: PullOptions, /) -> Artifact:
        """Manifest and signature referrers; a tag is resolved once and pinned to what it gave."""
        with self._session(ref, options) as session:
            digest, manifest = session.manifest(ref.target, pinned=ref.digest)
            main = parse_main(manifest, self._limits)
            subject = Descriptor(MANIFEST_TYPE, digest, len(manifest))
            return Artifact(
                ref=ref.at(digest),
                digest=digest,
                manifest=manifest,
                config=EMPTY_CONFIG,
                layer_digest=main.layer.digest,
                layer_size=main.layer.size,
                signatures=session.signatures(subject),
            )

    @contextmanager
    def pull(self, artifact: Artifact, options: PullOptions, /) -> Iterator[Pulled]:
        """The layer, hashed on its way to disk and unpacked below `bundle/` of a private directory."""
        main = parse_main(artifact.manifest, self._limits)
        cost = self._limits.unpacked_cost(main.layer.size)
        with self._session(artifact.ref, options) as session:
            reservation = self._budget.reserve(cost, session.deadline)
            with reservation as shrink, private_directory(self._tmp) as private:
                layer = str(Path(private, "layer.tar.gz"))
                session.blob_to_file(main.layer, layer)
                directory = str(Path(private, "bundle"))
                written = unpack_layer(
                    layer,
                    directory,
                    digest=main.layer.digest,
                    size=main.layer.size,
                    tar_digest=main.tar_digest,
                    limits=self._limits,
                    tick=session.deadline.remaining,
                )
                session.close()
                shrink(main.layer.size + written)
                yield Pulled(artifact, directory, layer)

    @contextmanager
    def _session(self, ref: OciRef, options: PullOptions) -> Iterator["_Session"]:
        own = self._rules.origin(ref.registry, plain_http=options.plain_http)
        wire = Wire(
            own=own,
            options=options,
            rules=self._rules,
            limits=self._limits,
            deadline=Deadline(options.timeout_seconds),
            resolver=self._resolver,
            tls=self._tls,
        )
        auth = Authorizer(wire, ref.repository, options.access, self._logins, self._tokens)
        session = _Session(wire, auth, ref.repository, self._sleep)
        try:
            yield session
        finally:
            session.close()


class _Session:
    """The requests of one pull against one repository."""

    def __init__(self, wire: Wire, auth: Authorizer, repository: str, sleep: Callable[[float], None]) -> None:
        self.deadline = wire.deadline
        self._wire = wire
        self._limits = wire.limits
        self._auth = auth
        self._repository = repository
        self._sleep = sleep

    def close(self) -> None:
        """Drop the connections; asking again afterwards opens new ones."""
        self._wire.close()

    # --- what a pull asks for ----------------------------------------------------------------------

    def manifest(self, target: str, *, pinned: Digest | None) -> tuple[Digest, bytes]:
        """A manifest by digest or tag, as bytes that were hashed first."""

        def read(response: Response) -> tuple[Digest, bytes]:
            data = self._body(response, self._limits.manifest_bytes)
            digest = Digest(hashlib.sha256(data).hexdigest())
            if pinned is not None and digest != pinned:
                raise fetch_error("DIGEST_MISMATCH", f"expected manifest {pinned}, got bytes of {digest}")
            self._announced(response, digest)
            return digest, data

        return self._fetch(self._url(f"manifests/{target}"), f"{MANIFEST_TYPE}, {INDEX_TYPE}", read)

    def signatures(self, subject: Descriptor) -> tuple[RawSignature, ...]:
        """Every Sigstore bundle about `subject`, in the registry's order; none is an unsigned artifact."""
        found: list[RawSignature] = []
        left = self._limits.signatures_bytes
        for entry in signature_entries(self._referrers(subject), self._limits):
            data = self._exact(f"manifests/{entry.digest}", entry, MANIFEST_TYPE)
            layer = parse_signature(data, subject=subject, limits=self._limits).layer
            left -= len(data) + layer.size
            if left < 0:
                raise fetch_error(
                    "BODY_TOO_LARGE", f"all signatures together are over {self._limits.signatures_bytes} bytes"
                )
            bundle = self._exact(f"blobs/{layer.digest}", layer, "*/*")
            found.append(RawSignature(bundle, entry.digest, data))
        return tuple(found)

    def blob_to_file(self, descriptor: Descriptor, path: str) -> None:
        """Stream a blob to a new file; it has exactly the descriptor's bytes once this returns."""

        def read(response: Response) -> None:
            try:
                handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
                with os.fdopen(handle, "wb", buffering=0) as out:
                    for chunk in self._verified(response, descriptor):
                        out.write(chunk)
            except OSError as err:
                raise fetch_error("STORAGE_UNAVAILABLE", f"the layer can not be written: {err.strerror}") from err

        self._fetch(self._url(f"blobs/{descriptor.digest}"), "*/*", read)

    # --- referrers ---------------------------------------------------------------------------------

    def _referrers(self, subject: Descriptor) -> tuple[Descriptor, ...]:
        """The referrers API, else the fallback tag; only a missing tag means that there are none."""
        first = self._url(f"referrers/{subject.digest}")
        try:
            listed = self._pages(Url(first.origin, f"{first.target}?artifactType={_QUOTED_SIGNATURE_TYPE}"))
        except FetchError as err:
            if err.http_status != 404 or err.details.get("registryCode") == "NAME_UNKNOWN":
                raise
            listed = None
        if listed is not None:
            return listed
        try:
            _, data = self.manifest(f"sha256-{subject.digest.hex}", pinned=None)
        except FetchError as err:
            if err.http_status != 404 or err.details.get("registryCode") == "NAME_UNKNOWN":
                raise
            return ()
        return parse_index(data, self._limits)

    def _pages(self, url: Url) -> tuple[Descriptor, ...] | None:
        """Every page of the listing; None when the first answer is no index, which sends us to the tag."""
        entries: list[Descriptor] = []
        total = 0
        seen: set[str] = set()
        page: Url | None = url
        while page is not None:
            seen.add(str(page))
            if len(seen) > self._limits.referrers:
                raise fetch_error("REFERRERS_TOO_MANY", f"the listing has more than {self._limits.referrers} pages")
            data, link = self._fetch(page, INDEX_TYPE, self._read_page)
            if data is None:
                if len(seen) == 1:
                    return None
                raise fetch_error("MANIFEST_INVALID", "a later page of the referrer listing is no index")
            total += len(data)
            if total > self._limits.manifest_bytes:
                raise fetch_error("BODY_TOO_LARGE", f"referrer listing is over {self._limits.manifest_bytes} bytes")
            entries.extend(parse_index(data, self._limits))
            page = self._next_page(page, link)
            if page is not None and str(page) in seen:
                raise fetch_error("MANIFEST_INVALID", "the referrer listing's pages run in a circle")
        return tuple(entries)

    def _read_page(self, response: Response) -> tuple[bytes | None, str | None]:
        media_type = (response.header("content-type") or "").partition(";")[0].strip().lower()
        if media_type != INDEX_TYPE:
            return None, None
        return self._body(response, self._limits.manifest_bytes), response.header("link")

    def _next_page(self, page: Url, link: str | None) -> Url | None:
        if not link:
            return None
        match = _NEXT_LINK.search(link[:8192])
        if match is None:
            return None
        target = page.join(match[1])
        if target is None or target.origin != self._wire.own:
            raise fetch_error("REDIRECT_REFUSED", "the referrer listing's next page is not on the registry itself")
        return target

    # --- one request -------------------------------------------------------------------------------

    def _url(self, path: str) -> Url:
        return Url(self._wire.own, f"/v2/{self._repository}/{path}")

    def _fetch(self, url: Url, accept: str, read: Callable[[Response], _T]) -> _T:
        """Ask and read, again after a transient fault, within the deadline and at most `retries` times more."""
        attempt = 0
        while True:
            try:
                with self._authorized(url, accept) as response:
                    if response.status != 200:
                        raise self._answer(response)
                    return read(response)
            except FetchError as err:
                slow = err.http_status is None and err.category is Category.TIMEOUT
                if not err.retryable or slow or err.code == "STORAGE_UNAVAILABLE" or attempt >= self._limits.retries:
                    raise
                pause = err.retry_after_seconds
                wait = _BACKOFF_SECONDS * 2**attempt if pause is None else float(pause)
                if wait >= self.deadline.remaining():
                    raise
            self._sleep(wait)
            attempt += 1

    @contextmanager
    def _authorized(self, url: Url, accept: str) -> Iterator[Response]:
        """The answer to a request, after at most one challenge of the registry itself."""
        credential = self._auth.credential
        with self._wire.get(url, {"Accept": accept}, credential=credential) as response:
            challenged = response.status == 401 and response.url.origin == self._wire.own
            answered = self._auth.answer(response) if challenged else None
            if answered is None:
                yield response
                return
        with self._wire.get(url, {"Accept": accept}, credential=answered) as response:
            yield response

    def _answer(self, response: Response) -> FetchError:
        """The error of any status but 200; of the body only a registry error code in its own alphabet is kept."""
        pause = _retry_after(response.header("retry-after")) if response.status in {429, 503} else None
        error = status_error(
            response.status,
            f"{response.url.origin.name} answered {response.status} for {self._repository}",
            retry_after_seconds=pause,
        )
        if response.status < 500:
            code = _registry_code(response)
            if code:
                error.details["registryCode"] = code
        return error

    # --- bodies ------------------------------------------------------------------------------------

    def _body(self, response: Response, cap: int) -> bytes:
        """A whole body of unknown size, at most `cap` bytes."""
        length = response.header("content-length")
        if length is not None and length.isascii() and length.isdigit() and int(length[:20]) > cap:
            raise fetch_error("BODY_TOO_LARGE", f"body has {length[:20]} bytes, at most {cap}")
        data = bytearray()
        for chunk in response.chunks():
            data += chunk
            if len(data) > cap:
                raise fetch_error("BODY_TOO_LARGE", f"body is over {cap} bytes")
        return bytes(data)

    def _exact(self, path: str, descriptor: Descriptor, accept: str) -> bytes:
        """Content of a descriptor that was already held against its cap."""
        return self._fetch(self._url(path), accept, lambda response: b"".join(self._verified(response, descriptor)))

    def _verified(self, response: Response, descriptor: Descriptor) -> Iterator[bytes]:
        """The body chunk by chunk; ends only if size and digest are the descriptor's."""
        length = response.header("content-length")
        if length is not None and length != str(descriptor.size):
            raise fetch_error("SIZE_MISMATCH", f"expected {descriptor.size} bytes, announced are {length[:20]}")
        self._announced(response, descriptor.digest)
        hasher = hashlib.sha256()
        size = 0
        for chunk in response.chunks():
            size += len(chunk)
            if size > descriptor.size:
                raise fetch_error("SIZE_MISMATCH", f"expected {descriptor.size} bytes, the body goes on")
            hasher.update(chunk)
            yield chunk
        if size != descriptor.size:
            raise fetch_error("SIZE_MISMATCH", f"expected {descriptor.size} bytes, got {size}")
        if hasher.hexdigest() != descriptor.digest.hex:
            raise fetch_error(
                "DIGEST_MISMATCH", f"expected bytes of {descriptor.digest}, got sha256:{hasher.hexdigest()}"
            )

    @staticmethod
    def _announced(response: Response, digest: Digest) -> None:
        """A registry that announces another digest than it serves is not believed at all."""
        for value in response.values("docker-content-digest"):
            if value != str(digest):
                raise fetch_error("DIGEST_MISMATCH", f"expected {digest}, the registry announced {value[:80]!r}")


_QUOTED_SIGNATURE_TYPE = SIGNATURE_TYPE.replace("/", "%2F").replace("+", "%2B")


def _retry_after(value: str | None) -> int | None:
    """Seconds of a `Retry-After`, as a number or a date (RFC 9110 10.2.3); None when it is neither."""
    if value is None:
        return None
    if value.isascii() and value.isdigit():
        return min(int(value[:9]), _MAX_RETRY_AFTER_SECONDS)
    try:
        seconds = parsedate_to_datetime(value).timestamp() - time.time()
    except (ValueError, OverflowError):
        return None
    return min(max(0, round(seconds)), _MAX_RETRY_AFTER_SECONDS)


def _registry_code(response: Response) -> str:
    """The first error code of a distribution error body, "" when there is none to trust."""
    body = bytearray()
    try:
        for chunk in response.chunks():
            body += chunk
            if len(body) > _MAX_ERROR_BODY_BYTES:
                return ""
        document = parse_json(bytes(body))
    except (FetchError, DocumentInvalid):
        return ""
    errors = document.get("errors") if isinstance(document, dict) else None
    first = errors[0] if isinstance(errors, list) and errors else None
    code = first.get("code") if isinstance(first, dict) else None
    return code if isinstance(code, str) and _REGISTRY_CODE.fullmatch(code) else ""
