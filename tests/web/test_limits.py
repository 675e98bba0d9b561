"""Token buckets, with time as an argument."""

import ipaddress

import pytest

from app.web.limits import ClientBuckets, TokenBucket, client_key

PROXIES = tuple(ipaddress.ip_network(text) for text in ("127.0.0.0/8", "10.0.0.7", "2001:db8:9::/48"))


def test_a_bucket_gives_its_burst_and_refills_with_time() -> None:
    bucket = TokenBucket(per_second=2, burst=3)
    assert [bucket.take(0).allowed for _ in range(4)] == [True, True, True, False]
    refused = bucket.take(0)
    assert (refused.remaining, refused.wait_seconds, refused.full_in) == (0, 0.5, 1.5)
    assert bucket.take(0.5).allowed
    assert not bucket.take(0.5).allowed
    assert bucket.take(100).remaining == 2


def test_a_clock_that_runs_backwards_gives_nothing() -> None:
    bucket = TokenBucket(per_second=1, burst=1)
    assert bucket.take(10).allowed
    assert not bucket.take(3).allowed


def test_clients_do_not_take_from_one_another_and_are_bounded() -> None:
    buckets = ClientBuckets(per_second=0.001, burst=1, max_clients=2)
    assert buckets.take("a", 0).allowed
    assert buckets.take("b", 0).allowed
    assert not buckets.take("a", 0).allowed
    assert buckets.take("c", 0).allowed
    assert not buckets.take("a", 0).allowed
    assert buckets.take("b", 0).allowed  # forgotten in between


@pytest.mark.parametrize(
    ("peer", "forwarded", "expected"),
    [
        pytest.param("192.0.2.9", "198.51.100.1", "192.0.2.9", id="not-a-proxy"),
        pytest.param("127.0.0.1", "198.51.100.1", "198.51.100.1", id="proxy"),
        pytest.param("127.0.0.1", "1.2.3.4, 198.51.100.1", "198.51.100.1", id="nearest-hop"),
        pytest.param("127.0.0.1", "198.51.100.1, 10.0.0.7", "198.51.100.1", id="chain-of-proxies"),
        pytest.param("127.0.0.1", "10.0.0.7", "10.0.0.7", id="only-proxies"),
        pytest.param("127.0.0.1", "", "127.0.0.1", id="no-header"),
        pytest.param("127.0.0.1", "<script>", "127.0.0.1", id="no-address"),
        pytest.param("127.9.9.9", "198.51.100.1", "198.51.100.1", id="proxy-of-a-network"),
        pytest.param("10.0.0.8", "198.51.100.1", "10.0.0.8", id="beside-the-proxy"),
        pytest.param("127.0.0.1", "198.51.100.1, unknown, 10.0.0.7", "10.0.0.7", id="nothing-left-of-no-address"),
        pytest.param("127.0.0.1", "198.51.100.1, , 10.0.0.7,", "198.51.100.1", id="empty-items"),
        pytest.param("127.0.0.1", "198.51.100.1:4711", "198.51.100.1", id="address-with-port"),
        pytest.param("127.0.0.1", "[2001:db8:1:2::5]:4711", "2001:db8:1:2::/64", id="ipv6-with-port"),
        pytest.param("127.0.0.1", "1.2.3.4, [2001:db8:1:2::5]", "2001:db8:1:2::/64", id="ipv6-in-brackets"),
        pytest.param("2001:db8:9::1", "::ffff:198.51.100.1", "198.51.100.1", id="ipv6-proxy"),
        pytest.param("::ffff:127.0.0.1", "198.51.100.1", "198.51.100.1", id="mapped-proxy"),
        pytest.param("127.0.0.1", "198.51.100.1" + ", 127.0.0.2" * 40, "127.0.0.2", id="more-hops-than-proxies"),
        pytest.param("fe80::1%eth0", "", "fe80::/64", id="scoped"),
        pytest.param("", "198.51.100.1", "", id="no-peer"),
        pytest.param("2001:db8:1:2:3:4:5:6", "", "2001:db8:1:2::/64", id="ipv6-customer"),
        pytest.param("::ffff:192.0.2.9", "", "192.0.2.9", id="mapped"),
    ],
)
def test_a_client_is_the_nearest_address_that_is_no_proxy(peer: str, forwarded: str, expected: str) -> None:
    assert client_key(peer, forwarded, PROXIES) == expected


def test_without_trusted_proxies_the_header_names_nobody() -> None:
    assert client_key("127.0.0.1", "198.51.100.1", ()) == "127.0.0.1"
