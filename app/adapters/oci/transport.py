"""One pull's connections: each host resolved once, addresses checked, redirects by hand, a deadline on each read.

What is asked and what the bytes mean is in `reader`; who may be asked for a token in `auth`.
"""

import ssl
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from urllib.parse import urljoin, urlsplit

import httpcore

from app.adapters.oci.addresses import DEFAULT_PORTS, HostRules, Origin, Resolver, resolve_checked
from app.adapters.oci.codes import fetch_error
from app.adapters.oci.limits import Deadline, ReaderLimits
from app.ports import PullOptions

MAX_URL_CHARS = 8192
REDIRECTS = frozenset({301, 302, 303, 307, 308})
CHUNK_BYTES = 64 << 10


@dataclass(frozen=True, slots=True)
class Url:
    """An absolute http(s) URL whose host is in normal form; `target` is path and query."""

    origin: Origin
    target: str

    @classmethod
    def parse(cls, text: str) -> "Url | None":
        """Read a URL; None for anything but plain http(s) without user part, in visible ASCII."""
        if len(text) > MAX_URL_CHARS or not all("!" <= ch <= "~" for ch in text) or "\\" in text:
            return None
        try:
            parts = urlsplit(text)
            port = parts.port
        except ValueError:
            return None
        scheme = parts.scheme.lower()
        host = (parts.hostname or "").rstrip(".")
        if scheme not in DEFAULT_PORTS or not host or "@" in parts.netloc or "%" in host or port == 0:
            return None
        target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        return cls(Origin(scheme, host, port or DEFAULT_PORTS[scheme]), target)

    def join(self, reference: str) -> "Url | None":
        """Resolve a `Location` or `Link` reference against this URL."""
        if len(reference) > MAX_URL_CHARS:
            return None
        try:
            return Url.parse(urljoin(str(self), reference))
        except ValueError:
            return None

    def __str__(self) -> str:
        return f"{self.origin}{self.target}"


@dataclass(frozen=True, slots=True)
class Credential:
    """An Authorization value and the one origin that may see it."""

    origin: Origin
    value: str


class Response:
    """A final answer; the body is read once, with every wire fault as a `FetchError`."""

    def __init__(self, url: Url, inner: httpcore.Response) -> None:
        self.url = url
        self.status: int = inner.status
        self._inner = inner

    def values(self, name: str) -> list[str]:
        """Every value of a header, as text."""
        wanted = name.lower().encode()
        return [value.decode("latin-1").strip() for key, value in self._inner.headers if key.lower() == wanted]

    def header(self, name: str) -> str | None:
        """The first value of a header."""
        found = self.values(name)
        return found[0] if found else None

    def chunks(self) -> Iterator[bytes]:
        """The body as it comes; not decoded, since no content coding was asked for."""
        with wire_faults(self.url.origin):
            yield from self._inner.iter_stream()


@contextmanager
def wire_faults(origin: Origin) -> Iterator[None]:
    """Turn whatever the HTTP engine raises into a `FetchError`."""
    try:
        yield
    except httpcore.TimeoutException as err:
        raise fetch_error("REGISTRY_TIMEOUT", f"{origin.name} did not answer in time") from err
    except (httpcore.NetworkError, httpcore.ProtocolError, httpcore.UnsupportedProtocol) as err:
        reason = str(err)[:200] or type(err).__name__
        raise fetch_error("REGISTRY_UNREACHABLE", f"the exchange with {origin.name} broke: {reason}") from err
    except (OSError, ValueError) as err:
        raise fetch_error("REGISTRY_UNREACHABLE", f"the exchange with {origin.name} broke") from err


class _DeadlineStream(httpcore.NetworkStream):
    """A stream whose every operation ends at the pull's deadline."""

    def __init__(self, inner: httpcore.NetworkStream, deadline: Deadline) -> None:
        self._inner = inner
        self._deadline = deadline

    def _bound(self, timeout: float | None) -> float:
        left = self._deadline.remaining()
        return left if timeout is None else min(timeout, left)

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        return self._inner.read(max_bytes, self._bound(timeout))

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._inner.write(buffer, self._bound(timeout))

    def close(self) -> None:
        self._inner.close()

    def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore.NetworkStream:
        secured = self._inner.start_tls(ssl_context, server_hostname, self._bound(timeout))
        return _DeadlineStream(secured, self._deadline)

    def get_extra_info(self, info: str) -> object:
        return self._inner.get_extra_info(info)


class _PinnedBackend(httpcore.NetworkBackend):
    """Connects to addresses that were checked, never to a name."""

    def __init__(self, addresses: Callable[[str, int], tuple[str, ...]], deadline: Deadline) -> None:
        self._addresses = addresses
        self._deadline = deadline
        self._inner = httpcore.SyncBackend()

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None,
    ) -> httpcore.NetworkStream:
        fault: Exception | None = None
        for address in self._addresses(host, port)[:4]:
            left = self._deadline.remaining()
            bound = left if timeout is None else min(timeout, left)
            try:
                stream = self._inner.connect_tcp(address, port, bound, local_address, socket_options or ())
            except (httpcore.ConnectError, httpcore.ConnectTimeout) as err:
                fault = err
                continue
            return _DeadlineStream(stream, self._deadline)
        raise fault or httpcore.ConnectError("no address")


class TlsContexts:
    """One verifying and one permissive context for the whole process, made when first needed: loading is slow.

    The verifying one trusts the system's roots, or only those of `ca_file`. TLS 1.2 at least (evidence-format 5.4).
    """

    def __init__(self, ca_file: str | None = None) -> None:
        self._ca_file = ca_file
        self._lock = threading.Lock()
        self._made: dict[bool, ssl.SSLContext] = {}
        if ca_file is not None:
            self.get(insecure=False)  # a missing file is found at start

    def get(self, *, insecure: bool) -> ssl.SSLContext:
        """The context of a pool."""
        with self._lock:
            if insecure not in self._made:
                self._made[insecure] = _permissive() if insecure else self._verifying()
            return self._made[insecure]

    def _verifying(self) -> ssl.SSLContext:
        context = ssl.create_default_context(cafile=self._ca_file)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        return context


def _permissive() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


class Wire:
    """The network as one pull sees it; made per pull, closed with it."""

    def __init__(
        self,
        *,
        own: Origin,
        options: PullOptions,
        rules: HostRules,
        limits: ReaderLimits,
        deadline: Deadline,
        resolver: Resolver,
        tls: TlsContexts,
    ) -> None:
        self.own = own
        self.rules = rules
        self.limits = limits
        self.deadline = deadline
        self._options = options
        self._resolver = resolver
        self._tls = tls
        self._resolved: dict[tuple[str, int], tuple[str, ...]] = {}
        self._pools: dict[tuple[bool, bool], httpcore.ConnectionPool] = {}

    def close(self) -> None:
        """Drop every connection."""
        for pool in self._pools.values():
            pool.close()

    def allows_scheme(self, origin: Origin) -> bool:
        """Encrypted always, http to hosts named for it and to the registry that the caller asked that way."""
        return origin == self.own or self.rules.allows_scheme(origin)

    @contextmanager
    def get(
        self, url: Url, headers: Mapping[str, str], *, credential: Credential | None, redirects: int | None = None
    ) -> Iterator[Response]:
        """Ask for `url`; follows at most `redirects` hops (the limit by default), each with the same checks.

        The credential goes to its own origin only, on the first request and on every hop.
        """
        left = self.limits.redirects if redirects is None else redirects
        while True:
            if not self.allows_scheme(url.origin):
                raise fetch_error("REDIRECT_REFUSED", f"expected https, got {url.origin}")
            with self._send(url, headers, credential) as response:
                location = response.header("location")
                if response.status not in REDIRECTS or location is None or redirects == 0:
                    yield response
                    return
            target = url.join(location)
            if target is None:
                raise fetch_error("REDIRECT_REFUSED", f"{url.origin.name} redirected to a malformed address")
            if left == 0:
                raise fetch_error("REDIRECT_REFUSED", f"more than {self.limits.redirects} redirects")
            left -= 1
            url = target

    @contextmanager
    def _send(self, url: Url, headers: Mapping[str, str], credential: Credential | None) -> Iterator[Response]:
        self.deadline.remaining()
        sent = {"User-Agent": "aicr-evidence", "Accept-Encoding": "identity", **headers}
        if credential is not None and credential.origin == url.origin:
            sent["Authorization"] = credential.value
        timeouts = {
            "connect": self.limits.connect_timeout_seconds,
            "read": self.limits.read_timeout_seconds,
            "write": self.limits.read_timeout_seconds,
            "pool": self.limits.connect_timeout_seconds,
        }
        pool = self._pool(url.origin)
        request = httpcore.Request(
            "GET",
            httpcore.URL(
                scheme=url.origin.scheme.encode(),
                host=url.origin.host.encode(),
                port=url.origin.port,
                target=url.target.encode(),
            ),
            headers=[*sent.items(), ("Host", url.origin.name)],
            extensions={"timeout": timeouts},
        )
        with wire_faults(url.origin):
            answer = pool.handle_request(request)
        try:
            yield Response(url, answer)
        finally:
            answer.close()

    def _pool(self, origin: Origin) -> httpcore.ConnectionPool:
        tls = origin.scheme == "https"
        insecure = tls and self._options.insecure_tls and origin == self.own
        pool = self._pools.get((tls, insecure))
        if pool is None:
            pool = self._pools[tls, insecure] = httpcore.ConnectionPool(
                ssl_context=self._tls.get(insecure=insecure) if tls else None,
                network_backend=_PinnedBackend(self._addresses, self.deadline),
                max_connections=4,
                http1=True,
                http2=False,
                retries=0,
            )
        return pool

    def _addresses(self, host: str, port: int) -> tuple[str, ...]:
        """Checked addresses of a host; looked up once a pull, so the answer can not change under the check."""
        known = self._resolved.get((host, port))
        if known is None:
            own = host == self.own.host and port == self.own.port
            names = {Origin("https", host, port).name, Origin("http", host, port).name}
            known = self._resolved[host, port] = resolve_checked(
                Origin("https", host, port),
                private=(own and self._options.private_host) or not names.isdisjoint(self.rules.private),
                resolver=self._resolver,
                deadline=self.deadline,
                timeout_seconds=self.limits.connect_timeout_seconds,
            )
        return known
