"""Token buckets: how many requests one process takes, and how many of them one client may post (service 2).

A bucket is two numbers; the time is an argument. Which header says what is in `app.web.middleware`.
"""

import ipaddress
import math
import re
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network

MAX_HOPS = 32
"""Addresses of `X-Forwarded-For` that are looked at, from the right; there are never that many proxies."""

_PORT = re.compile(r":[0-9]{1,5}$")
"""Some proxies write the port of the connection after an IPv4 address or a bracket."""

MAX_CLIENTS = 20_000
"""Buckets kept at once; the least recently used goes first, so a flood of addresses costs no memory."""


@dataclass(frozen=True, slots=True)
class Grant:
    """What a bucket answered: `wait_seconds` is 0 for a request that may pass, `full_in` is when it is full again."""

    allowed: bool
    limit: int
    remaining: int
    wait_seconds: float
    full_in: float
    per_second: float


class TokenBucket:
    """`per_second` tokens flow in, `burst` are held; a request takes one."""

    __slots__ = ("_at", "_burst", "_per_second", "_tokens")

    def __init__(self, per_second: float, burst: int) -> None:
        self._per_second = per_second
        self._burst = burst
        self._tokens = float(burst)
        self._at: float | None = None

    def take(self, now: float) -> Grant:
        """Take one token at `now` (seconds of a clock that never runs backwards)."""
        if self._at is not None:
            self._tokens = min(float(self._burst), self._tokens + max(0.0, now - self._at) * self._per_second)
        self._at = now
        allowed = self._tokens >= 1
        if allowed:
            self._tokens -= 1
        wait = 0.0 if allowed else (1 - self._tokens) / self._per_second
        full_in = (self._burst - self._tokens) / self._per_second
        return Grant(allowed, self._burst, math.floor(self._tokens), wait, full_in, self._per_second)


class ClientBuckets:
    """One bucket a client, at most `MAX_CLIENTS` of them."""

    def __init__(self, per_second: float, burst: int, *, max_clients: int = MAX_CLIENTS) -> None:
        self._per_second = per_second
        self._burst = burst
        self._max = max_clients
        self._buckets: OrderedDict[str, TokenBucket] = OrderedDict()

    def take(self, client: str, now: float) -> Grant:
        """Take one token of `client`'s bucket."""
        bucket = self._buckets.pop(client, None) or TokenBucket(self._per_second, self._burst)
        self._buckets[client] = bucket
        if len(self._buckets) > self._max:
            self._buckets.popitem(last=False)
        return bucket.take(now)


def client_key(peer: str, forwarded: str, trusted_proxies: Sequence[Network]) -> str:
    """Who is asking: the peer, or the right-most address of `X-Forwarded-For` that is no trusted proxy.

    Each proxy writes on the right whom it saw, so everything left of an address that is not trusted may be invented,
    and the header of a peer that is not trusted says nothing. An IPv6 client is its /64, since one customer holds
    that many addresses. The key is never logged.
    """
    client = _address(peer)
    if client is None:
        return peer
    for hop in reversed([part for part in forwarded.split(",")[-MAX_HOPS:] if part.strip()]):
        if not any(client in network for network in trusted_proxies):
            break
        seen = _address(hop)
        if seen is None:
            break  # a proxy of ours wrote no address: count the one that it has itself
        client = seen
    if isinstance(client, ipaddress.IPv6Address):
        return str(ipaddress.ip_network((client, 64), strict=False))
    return str(client)


def _address(text: str) -> Address | None:
    """An address with or without a port, an IPv4 address as such however it is written; None for what is none."""
    bare = text.strip()
    if bare.startswith("[") or bare.count(":") == 1:
        bare = _PORT.sub("", bare).removeprefix("[").removesuffix("]")
    try:
        address = ipaddress.ip_address(bare.partition("%")[0])
    except ValueError:
        return None
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return mapped or address
