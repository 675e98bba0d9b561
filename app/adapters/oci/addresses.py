"""Which hosts may be talked to: names, schemes, and the addresses behind them (trust 3).

The lookup is injected, so that the rule is a pure function of its answer; connecting is in `transport`.
"""

import ipaddress
import queue
import re
import socket
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Self

from app.adapters.oci.codes import fetch_error
from app.adapters.oci.limits import Deadline
from app.core.errors import ReferenceInvalid

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Resolver = Callable[[str, int], list[str]]
"""(host, port) -> textual addresses; raises OSError."""

DEFAULT_PORTS = {"http": 80, "https": 443}
_PORT = re.compile(r"[0-9]{1,5}")

_V4 = ipaddress.IPv4Network
_V6 = ipaddress.IPv6Network

_RESERVED_V4 = tuple(
    _V4(net)
    for net in (
        "0.0.0.0/8",
        "10.0.0.0/8",
        "100.64.0.0/10",
        "127.0.0.0/8",
        "169.254.0.0/16",
        "172.16.0.0/12",
        "192.0.0.0/24",
        "192.0.2.0/24",
        "192.88.99.0/24",
        "192.168.0.0/16",
        "198.18.0.0/15",
        "198.51.100.0/24",
        "203.0.113.0/24",
        "224.0.0.0/4",
        "240.0.0.0/4",
    )
)
"""IANA's special-purpose IPv4 registry, less the anycast services."""

_GLOBAL_V6 = _V6("2000::/3")
_RESERVED_V6 = tuple(
    _V6(net)
    for net in (
        "2001::/23",  # Teredo, ORCHID, benchmarking and other protocol assignments
        "2001:db8::/32",
        "2002::/16",  # 6to4 carries an IPv4 address of the sender's choice
        "3fff::/20",
    )
)

_PRIVATE = tuple(
    ipaddress.ip_network(net)
    for net in (
        "10.0.0.0/8",
        "100.64.0.0/10",
        "127.0.0.0/8",
        "172.16.0.0/12",
        "192.168.0.0/16",
        "::1/128",
        "fc00::/7",
    )
)
"""What a host named as private may resolve to besides public addresses; never link-local or multicast."""

_METADATA = frozenset(ipaddress.ip_address(text) for text in ("169.254.169.254", "100.100.100.200", "fd00:ec2::254"))


def is_public(address: Address) -> bool:
    """Whether `address` is ordinary unicast on the Internet; mapped, NAT64 and tunnelled forms are not."""
    if isinstance(address, ipaddress.IPv4Address):
        return not any(address in net for net in _RESERVED_V4)
    return address in _GLOBAL_V6 and not any(address in net for net in _RESERVED_V6)


def is_admitted(address: Address, *, private: bool) -> bool:
    """Whether a connection to `address` is allowed; cloud metadata services never are."""
    if address in _METADATA:
        return False
    if is_public(address):
        return True
    return private and any(address in net for net in _PRIVATE if net.version == address.version)


@dataclass(frozen=True, slots=True)
class Origin:
    """Scheme, host and port: the unit that credentials and host flags belong to."""

    scheme: str
    host: str
    port: int

    @property
    def name(self) -> str:
        """`host`, or `host:port` when the port is not the scheme's own; settings are compared with it."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == DEFAULT_PORTS[self.scheme] else f"{host}:{self.port}"

    def __str__(self) -> str:
        return f"{self.scheme}://{self.name}"


def split_host(text: str) -> tuple[str, int | None]:
    """Lower-case host without trailing dot or brackets, and the port when one is given.

    Raises `ReferenceInvalid` for what is no port: nobody was asked, so trying again would change nothing.
    """
    head, port = text, None
    bracket = text.rfind("]")
    colon = text.rfind(":")
    if colon > bracket:
        head, digits = text[:colon], text[colon + 1 :]
        if not (_PORT.fullmatch(digits) and 0 < int(digits) < 65536):
            raise ReferenceInvalid(f"expected a port from 1 to 65535, got {digits[:20]!r}")
        port = int(digits)
    return head.lower().rstrip(".").removeprefix("[").removesuffix("]"), port


def api_host(host: str, port: int | None) -> str:
    """Docker Hub's name in references is not the host of its API."""
    hub = host in {"docker.io", "index.docker.io"} and port in {None, 443}
    return "registry-1.docker.io" if hub else host


def _entries(hosts: Iterable[str], defaults: frozenset[int]) -> frozenset[str]:
    names = set()
    for text in hosts:
        if not text.strip():
            continue
        host, port = split_host(text.strip())
        bare = f"[{host}]" if ":" in host else host
        names.add(bare if port is None or port in defaults else f"{bare}:{port}")
    return frozenset(names)


@dataclass(frozen=True, slots=True)
class HostRules:
    """The settings about hosts: `host` means the scheme's own port, `host:port` exactly that port."""

    private: frozenset[str] = frozenset()
    plain_http: frozenset[str] = frozenset()
    realms: frozenset[str] = frozenset()

    @classmethod
    def of(cls, *, private: Iterable[str] = (), plain_http: Iterable[str] = (), realms: Iterable[str] = ()) -> Self:
        """Rules from setting values."""
        return cls(
            _entries(private, frozenset({80, 443})),
            _entries(plain_http, frozenset({80})),
            _entries(realms, frozenset({80, 443})),
        )

    def origin(self, registry: str, *, plain_http: bool = False) -> Origin:
        """Where a registry's API is."""
        host, port = split_host(registry)
        host = api_host(host, port)
        plain = Origin("http", host, port or 80)
        return plain if plain_http or plain.name in self.plain_http else Origin("https", host, port or 443)

    def allows_scheme(self, origin: Origin) -> bool:
        """Encrypted always, http only to hosts named for it."""
        return origin.scheme == "https" or origin.name in self.plain_http


def system_resolver(host: str, port: int) -> list[str]:
    """The operating system's lookup."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, proto=socket.IPPROTO_TCP)
    return [str(entry[4][0]) for entry in found]


def resolve_checked(
    origin: Origin, *, private: bool, resolver: Resolver, deadline: Deadline, timeout_seconds: float
) -> tuple[str, ...]:
    """The addresses of a host that may be connected to, in the resolver's order.

    Raises `FetchError`: REGISTRY_UNREACHABLE when nothing resolves, ADDRESS_REFUSED when nothing is admitted.
    Addresses that are not admitted are left out, so a mixed answer can not steer a connection inside.
    """
    try:
        texts = [str(ipaddress.ip_address(origin.host))]
    except ValueError:
        texts = _look_up(origin, resolver, min(timeout_seconds, deadline.remaining()))
    admitted: list[str] = []
    for text in texts:
        try:
            address = ipaddress.ip_address(text)
        except ValueError:
            continue  # a scoped address (fe80::1%eth0) is link-local by nature
        if is_admitted(address, private=private) and text not in admitted:
            admitted.append(text)
    if not admitted:
        raise fetch_error("ADDRESS_REFUSED", f"{origin.name} has no public address to connect to")
    return tuple(admitted)


def _look_up(origin: Origin, resolver: Resolver, timeout_seconds: float) -> list[str]:
    """Resolve on a thread of its own: the system's lookup knows no timeout."""
    answer: queue.SimpleQueue[list[str] | OSError] = queue.SimpleQueue()

    def work() -> None:
        try:
            answer.put(resolver(origin.host, origin.port))
        except (OSError, UnicodeError) as err:
            answer.put(OSError(str(err)))

    threading.Thread(target=work, name="oci-lookup", daemon=True).start()
    try:
        found = answer.get(timeout=timeout_seconds)
    except queue.Empty as err:
        raise fetch_error("REGISTRY_TIMEOUT", f"the name {origin.host} did not resolve in time") from err
    if isinstance(found, OSError):
        raise fetch_error("REGISTRY_UNREACHABLE", f"the name {origin.host} does not resolve") from found
    return found
