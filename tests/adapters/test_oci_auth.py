"""Challenges, tokens and the credentials file."""

import pytest

from app.adapters.oci.auth import Challenge, RegistryLogin, TokenCache, parse_logins, read_challenge, read_token
from app.core.errors import DocumentInvalid, FetchError
from app.ports import Access


@pytest.mark.parametrize(
    ("values", "challenge"),
    [
        pytest.param(
            ['Bearer realm="https://ghcr.io/token",service="ghcr.io",scope="repository:a/b:pull"'],
            Challenge("bearer", "https://ghcr.io/token", "ghcr.io"),
            id="bearer",
        ),
        pytest.param(
            ['bearer realm = "https://x/t" , service=y'], Challenge("bearer", "https://x/t", "y"), id="spaces"
        ),
        pytest.param(['Basic realm="x"'], Challenge("basic"), id="basic"),
        pytest.param(['Basic realm="x"', 'Bearer realm="https://x/t"'], Challenge("bearer", "https://x/t"), id="both"),
        pytest.param(
            ['Bearer realm="https://first/t",realm="https://second/t"'],
            Challenge("bearer", "https://first/t"),
            id="twice",
        ),
        pytest.param(["Bearer"], None, id="no-realm"),
        pytest.param(['Bearer service="x"'], None, id="only-service"),
        pytest.param(['Bearer realm="unterminated'], None, id="unterminated"),
        pytest.param(["Negotiate"], None, id="other-scheme"),
        pytest.param([""], None, id="empty"),
        pytest.param([], None, id="none"),
        pytest.param(["Bearer " + "a=b," * 100_000], None, id="long"),
    ],
)
def test_a_challenge_is_bearer_else_basic_else_none(values: list[str], challenge: Challenge | None) -> None:
    assert read_challenge(values) == challenge


@pytest.mark.parametrize(
    ("body", "token", "seconds"),
    [
        pytest.param(b'{"token": "abc"}', "abc", 54.0, id="token"),
        pytest.param(b'{"access_token": "abc", "expires_in": 100}', "abc", 90.0, id="access-token"),
        pytest.param(b'{"token": "abc", "expires_in": 999999999}', "abc", 3240.0, id="long-lived"),
        pytest.param(b'{"token": "abc", "expires_in": -5}', "abc", 54.0, id="negative"),
        pytest.param(b'{"token": "abc", "expires_in": true}', "abc", 54.0, id="not-a-number"),
    ],
)
def test_a_token_is_good_for_less_than_it_says(body: bytes, token: str, seconds: float) -> None:
    assert read_token(body) == (token, pytest.approx(seconds))


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(b"no json", id="text"),
        pytest.param(b"[]", id="list"),
        pytest.param(b"{}", id="no-token"),
        pytest.param(b'{"token": 5}', id="number"),
        pytest.param(b'{"token": "a\\r\\nX: y"}', id="header-injection"),
        pytest.param(b'{"token": "a b"}', id="space"),
        pytest.param('{"token": "\u00e9"}'.encode(), id="not-ascii"),
        pytest.param(b'{"token": "' + b"a" * 40_000 + b'"}', id="long"),
        pytest.param(b"[" * 100_000, id="deep"),
    ],
)
def test_what_is_no_token_is_refused(body: bytes) -> None:
    with pytest.raises(FetchError) as caught:
        read_token(body)

    assert (caught.value.code, caught.value.retryable) == ("TOKEN_INVALID", False)


def test_a_cached_token_is_forgotten_when_it_ends() -> None:
    now = 0.0
    cache = TokenCache(clock=lambda: now)
    key = ("https://registry.example", "a/b", Access.ANONYMOUS)
    cache.put(key, "token", 10.0)

    assert cache.get(key) == "token"
    now = 10.0
    assert cache.get(key) is None


def test_a_token_belongs_to_one_repository_and_one_way_of_access() -> None:
    cache = TokenCache()
    cache.put(("https://registry.example", "a/b", Access.CREDENTIALED), "secret", 60.0)

    assert cache.get(("https://registry.example", "a/b", Access.ANONYMOUS)) is None
    assert cache.get(("https://registry.example", "a/c", Access.CREDENTIALED)) is None
    assert cache.get(("http://registry.example", "a/b", Access.CREDENTIALED)) is None


def test_the_cache_keeps_a_bounded_number_of_tokens() -> None:
    cache = TokenCache()
    for n in range(1025):
        cache.put(("https://registry.example", str(n), Access.ANONYMOUS), "token", 60.0)

    assert cache.get(("https://registry.example", "0", Access.ANONYMOUS)) is None
    assert cache.get(("https://registry.example", "1024", Access.ANONYMOUS)) == "token"


def test_credentials_are_read_by_normal_host() -> None:
    logins = parse_logins(
        '{"GHCR.io:443": {"user": "octocat", "password": "p:w"}, "docker.io": {"token": "t"},'
        ' "reg:5000": {"user": "u", "password": "p"}}'
    )

    assert logins == {
        "ghcr.io": RegistryLogin("octocat", "p:w"),
        "registry-1.docker.io": RegistryLogin(token="t"),
        "reg:5000": RegistryLogin("u", "p"),
    }
    assert logins["ghcr.io"].basic == "Basic b2N0b2NhdDpwOnc="


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("secret-text", id="text"),
        pytest.param("[]", id="list"),
        pytest.param('{"h": "secret-text"}', id="not-an-object"),
        pytest.param('{"h": {"user": "u"}}', id="no-password"),
        pytest.param('{"h": {"user": "u", "password": ""}}', id="empty-password"),
        pytest.param('{"h": {"user": "u", "password": 5}}', id="number"),
        pytest.param('{"h": {"user": "u", "password": "secret-text", "token": "secret-text"}}', id="both"),
        pytest.param('{"h": {"token": "secret-text", "extra": "x"}}', id="unknown-key"),
        pytest.param('{"h:x": {"token": "secret-text"}}', id="malformed-host"),
        pytest.param('{"h": {"token": "a"}, "h": {"token": "secret-text"}}', id="twice"),
    ],
)
def test_a_broken_credentials_file_is_named_without_its_secrets(text: str) -> None:
    with pytest.raises(DocumentInvalid) as caught:
        parse_logins(text)

    assert "secret-text" not in caught.value.message


def test_a_login_is_printed_without_its_secrets() -> None:
    assert repr(RegistryLogin("octocat", "secret", "secret")) == "RegistryLogin(user='octocat')"
