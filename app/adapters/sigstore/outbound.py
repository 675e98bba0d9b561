"""The wire of signing: sigstore's own clients, held to their configured URLs, to time and to size.

The library's clients have no timeout, follow redirects and read proxies and `.netrc` from the environment; a token
and a signature must go where the signing configuration says and nowhere else.
"""

import socket
import threading
from collections.abc import Mapping
from contextlib import suppress
from ipaddress import ip_address
from typing import Any, Final
from urllib.parse import urlsplit
from weakref import WeakSet

import requests
from requests.adapters import HTTPAdapter
from sigstore._internal.fulcio import FulcioClient
from sigstore._internal.rekor import RekorLogSubmitter
from sigstore._internal.rekor.client import RekorClient
from sigstore._internal.rekor.client_v2 import RekorV2Client
from sigstore._internal.timestamp import TimestampAuthorityClient
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.connectionpool import HTTPConnectionPool, HTTPSConnectionPool

from app.core.errors import InputError
from app.core.urls import masked_url

MAX_ANSWER_BYTES: Final = 4 << 20
"""Certificate chains, log entries and timestamps are some kilobytes; anything near this is no such answer."""

_CHUNK_BYTES: Final = 1 << 16

Client = FulcioClient | RekorClient | RekorV2Client | TimestampAuthorityClient


class BoundedAdapter(HTTPAdapter):
    """One request within a deadline, its answer within a size, no retries; a redirect is an error.

    A read timeout starts anew with every byte, so a watch ends the connection itself when the time is up.
    """

    def __init__(self, timeout_seconds: float) -> None:
        self._timeout = timeout_seconds
        self._opened: WeakSet[HTTPConnection] = WeakSet()
        super().__init__(max_retries=0)

    def init_poolmanager(self, *args: Any, **kwargs: Any) -> None:  # noqa: ANN401  requests' signature
        """Pools whose connections are known to the watch."""
        super().init_poolmanager(*args, **kwargs)
        self.poolmanager.pool_classes_by_scheme = _watched_pools(self._opened)

    def send(  # noqa: PLR0917  requests' signature, as are the flags
        self,
        request: requests.PreparedRequest,
        stream: bool = False,  # noqa: FBT001, FBT002
        timeout: float | tuple[float | None, float | None] | None = None,
        verify: bool | str = True,  # noqa: FBT001, FBT002
        cert: Any = None,  # noqa: ANN401
        proxies: Mapping[str, str] | None = None,
    ) -> requests.Response:
        """Send, read the whole answer, and refuse what is late, too large or elsewhere."""
        del stream, timeout, proxies
        late = threading.Event()
        watch = threading.Timer(self._timeout, self._end, args=(late,))
        watch.daemon = True
        watch.start()
        try:
            response = super().send(request, stream=True, timeout=self._timeout, verify=verify, cert=cert)
            response._content = _bounded(response)  # noqa: SLF001  what `Response.content` does when it reads
        except requests.RequestException as err:
            if late.is_set():
                raise self._too_late(request) from err
            raise
        finally:
            watch.cancel()
        if late.is_set():  # a head that was cut short reads as a short head
            raise self._too_late(request)
        if response.is_redirect:
            raise requests.TooManyRedirects("expected an answer, got a redirect", response=response)
        return response

    def _too_late(self, request: requests.PreparedRequest) -> requests.Timeout:
        return requests.Timeout(f"expected an answer within {self._timeout:g} s", request=request)

    def _end(self, late: threading.Event) -> None:
        late.set()
        for connection in tuple(self._opened):
            if connection.sock is not None:
                with suppress(OSError):
                    connection.sock.shutdown(socket.SHUT_RDWR)


def _bounded(response: requests.Response) -> bytes:
    body = bytearray()
    for chunk in response.iter_content(_CHUNK_BYTES):
        body += chunk
        if len(body) > MAX_ANSWER_BYTES:
            response.close()
            raise requests.ConnectionError(
                f"expected at most {MAX_ANSWER_BYTES} bytes, got more", request=response.request
            )
    return bytes(body)


def _watched_pools(opened: WeakSet[HTTPConnection]) -> dict[str, type[HTTPConnectionPool]]:
    class Plain(HTTPConnection):
        def connect(self) -> None:
            opened.add(self)
            super().connect()

    class Tls(HTTPSConnection):
        def connect(self) -> None:
            opened.add(self)
            super().connect()

    class PlainPool(HTTPConnectionPool):
        ConnectionCls = Plain

    class TlsPool(HTTPSConnectionPool):
        ConnectionCls = Tls

    return {"http": PlainPool, "https": TlsPool}


def bind(client: Client | RekorLogSubmitter, *, timeout_seconds: float) -> None:
    """Hold a client of the library to the rules above; raises `InputError` for a URL that would leak the token.

    Plain http is for loopback only.
    """
    if not isinstance(client, Client):
        raise InputError(f"expected a Rekor v1 or v2 client, got {type(client).__name__}")
    check_url(client.url)
    session = client.session if isinstance(client, FulcioClient) else client._session  # noqa: SLF001  not public
    session.trust_env = False
    adapter = BoundedAdapter(timeout_seconds)
    session.mount("https://", adapter)
    session.mount("http://", adapter)


def check_url(url: str) -> None:
    """Refuse what is neither https nor plain http on loopback."""
    split = urlsplit(url)
    if split.scheme == "https" and split.hostname:
        return
    if split.scheme == "http" and _is_loopback(split.hostname or ""):
        return
    raise InputError(
        f"expected an https URL in the signing configuration, got {masked_url(url)[:200]!r}",
        hint="plain http is accepted for loopback addresses only: an identity token would be readable on the way",
    )


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False
