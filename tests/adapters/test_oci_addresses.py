"""Which addresses, hosts and URLs the reader may talk to."""

import ipaddress

import pytest

from app.adapters.oci.addresses import HostRules, Origin, is_admitted, is_public, resolve_checked
from app.adapters.oci.limits import Deadline
from app.adapters.oci.transport import Url
from app.core.errors import FetchError, ReferenceInvalid


@pytest.mark.parametrize(
    ("text", "public"),
    [
        pytest.param("140.82.112.33", True, id="public"),
        pytest.param("8.8.8.8", True, id="public-dns"),
        pytest.param("2606:50c0:8000::153", True, id="public-v6"),
        pytest.param("127.0.0.1", False, id="loopback"),
        pytest.param("127.8.9.1", False, id="loopback-net"),
        pytest.param("0.0.0.0", False, id="unspecified"),
        pytest.param("0.1.2.3", False, id="this-network"),
        pytest.param("10.1.2.3", False, id="private-10"),
        pytest.param("172.16.0.1", False, id="private-172"),
        pytest.param("172.32.0.1", True, id="after-private-172"),
        pytest.param("192.168.1.1", False, id="private-192"),
        pytest.param("100.64.0.1", False, id="carrier-nat"),
        pytest.param("100.128.0.1", True, id="after-carrier-nat"),
        pytest.param("169.254.169.254", False, id="metadata"),
        pytest.param("169.254.1.1", False, id="link-local"),
        pytest.param("192.0.0.170", False, id="protocol-assignments"),
        pytest.param("192.0.2.1", False, id="documentation"),
        pytest.param("198.18.0.1", False, id="benchmarking"),
        pytest.param("224.0.0.1", False, id="multicast"),
        pytest.param("240.0.0.1", False, id="reserved"),
        pytest.param("255.255.255.255", False, id="broadcast"),
        pytest.param("::", False, id="unspecified-v6"),
        pytest.param("::1", False, id="loopback-v6"),
        pytest.param("::ffff:8.8.8.8", False, id="mapped"),
        pytest.param("::ffff:127.0.0.1", False, id="mapped-loopback"),
        pytest.param("::127.0.0.1", False, id="compatible"),
        pytest.param("64:ff9b::7f00:1", False, id="nat64"),
        pytest.param("64:ff9b:1::1", False, id="nat64-local"),
        pytest.param("2002:7f00:1::", False, id="6to4"),
        pytest.param("2001:0:4136:e378:8000:63bf:3fff:fdd2", False, id="teredo"),
        pytest.param("2001:db8::1", False, id="documentation-v6"),
        pytest.param("fc00::1", False, id="ula"),
        pytest.param("fd00:ec2::254", False, id="metadata-v6"),
        pytest.param("fe80::1", False, id="link-local-v6"),
        pytest.param("fec0::1", False, id="site-local"),
        pytest.param("ff02::1", False, id="multicast-v6"),
    ],
)
def test_only_ordinary_unicast_is_public(text: str, *, public: bool) -> None:
    address = ipaddress.ip_address(text)

    assert is_public(address) is public
    assert is_admitted(address, private=False) is public


@pytest.mark.parametrize(
    ("text", "admitted"),
    [
        pytest.param("127.0.0.1", True, id="loopback"),
        pytest.param("10.1.2.3", True, id="private"),
        pytest.param("100.64.0.1", True, id="carrier-nat"),
        pytest.param("fc00::1", True, id="ula"),
        pytest.param("::1", True, id="loopback-v6"),
        pytest.param("8.8.8.8", True, id="public"),
        pytest.param("169.254.169.254", False, id="metadata"),
        pytest.param("100.100.100.200", False, id="metadata-carrier"),
        pytest.param("fd00:ec2::254", False, id="metadata-v6"),
        pytest.param("169.254.1.1", False, id="link-local"),
        pytest.param("::ffff:127.0.0.1", False, id="mapped"),
        pytest.param("224.0.0.1", False, id="multicast"),
        pytest.param("0.0.0.0", False, id="unspecified"),
    ],
)
def test_a_private_host_may_be_private_but_never_a_metadata_service(text: str, *, admitted: bool) -> None:
    assert is_admitted(ipaddress.ip_address(text), private=True) is admitted


@pytest.mark.parametrize(
    "host",
    [
        pytest.param("127.0.0.1", id="dotted"),
        pytest.param("0x7f.1", id="hexadecimal"),
        pytest.param("2130706433", id="decimal"),
        pytest.param("0177.0.0.1", id="octal"),
    ],
)
def test_every_spelling_of_loopback_is_refused(host: str) -> None:
    """Where the system reads an odd spelling as an address, that address is what is checked."""

    def resolver(_name: str, _port: int) -> list[str]:
        return ["127.0.0.1"]

    with pytest.raises(FetchError) as caught:
        resolve_checked(
            Origin("https", host, 443), private=False, resolver=resolver, deadline=Deadline(5), timeout_seconds=5
        )

    assert caught.value.code == "ADDRESS_REFUSED"


def test_the_order_of_the_lookup_is_kept_and_repeats_are_dropped() -> None:
    found = resolve_checked(
        Origin("https", "example.org", 443),
        private=False,
        resolver=lambda _name, _port: ["8.8.8.8", "10.0.0.1", "1.1.1.1", "8.8.8.8"],
        deadline=Deadline(5),
        timeout_seconds=5,
    )

    assert found == ("8.8.8.8", "1.1.1.1")


@pytest.mark.parametrize(
    ("registry", "plain", "origin"),
    [
        pytest.param("ghcr.io", [], "https://ghcr.io", id="https"),
        pytest.param("GHCR.io.", [], "https://ghcr.io", id="normal-form"),
        pytest.param("ghcr.io:443", [], "https://ghcr.io", id="default-port"),
        pytest.param("ghcr.io:8443", [], "https://ghcr.io:8443", id="port"),
        pytest.param("docker.io", [], "https://registry-1.docker.io", id="docker-hub"),
        pytest.param("reg:5000", ["reg:5000"], "http://reg:5000", id="plain"),
        pytest.param("reg:5001", ["reg:5000"], "https://reg:5001", id="plain-on-another-port"),
        pytest.param("reg", ["reg"], "http://reg", id="plain-without-port"),
        pytest.param("reg:443", ["reg"], "https://reg", id="plain-is-port-80"),
        pytest.param("[::1]:5000", ["[::1]:5000"], "http://[::1]:5000", id="ipv6"),
    ],
)
def test_a_registry_is_https_unless_it_is_named(registry: str, plain: list[str], origin: str) -> None:
    assert str(HostRules.of(plain_http=plain).origin(registry)) == origin


@pytest.mark.parametrize("port", ["65536", "0", "99999", "9" * 5000, "-1", "", "٣"])
def test_what_is_no_port_makes_a_reference_invalid(port: str) -> None:
    with pytest.raises(ReferenceInvalid, match="expected a port from 1 to 65535"):
        HostRules().origin(f"example.org:{port}")


@pytest.mark.parametrize(
    ("location", "url"),
    [
        pytest.param("https://Example.org/a?b=c", "https://example.org/a?b=c", id="absolute"),
        pytest.param("/v2/x", "https://registry.example/v2/x", id="path"),
        pytest.param("?last=3", "https://registry.example/v2/a/tags?last=3", id="query"),
        pytest.param("//other.example/x", "https://other.example/x", id="scheme-relative"),
        pytest.param("https://example.org:443/", "https://example.org/", id="default-port"),
        pytest.param("https://example.org./", "https://example.org/", id="trailing-dot"),
        pytest.param("https://[2606::1]/x", "https://[2606::1]/x", id="ipv6"),
        pytest.param("https://example.org/a#b", "https://example.org/a", id="fragment"),
        pytest.param("https://user:secret@example.org/", None, id="user-part"),
        pytest.param("https://example.org\\@evil.example/", None, id="backslash"),
        pytest.param("ftp://example.org/", None, id="scheme"),
        pytest.param("file:///etc/passwd", None, id="file"),
        pytest.param("https:///x", "https://registry.example/x", id="no-host-stays-here"),
        pytest.param("https://example.org:99999/", None, id="port-out-of-range"),
        pytest.param("https://example.org:0/", None, id="port-zero"),
        pytest.param("https://[::1/x", None, id="broken-ipv6"),
        pytest.param("https://exa mple.org/", None, id="space"),
        pytest.param("https://example.org/\r\nX: y", None, id="header-injection"),
        pytest.param("https://ex\u0430mple.org/", None, id="homoglyph"),
        pytest.param("https://example.org/" + "a" * 9000, None, id="long"),
    ],
)
def test_a_redirect_target_is_an_absolute_url_in_normal_form_or_nothing(location: str, url: str | None) -> None:
    base = Url.parse("https://registry.example/v2/a/tags")
    assert base is not None

    target = base.join(location)

    assert (None if target is None else str(target)) == url
