"""Settings: what can not work is refused at the start, and the setting is named."""

import os

import pytest

from app.config import PREFIX, load_settings, survey
from app.core.errors import InputError


@pytest.fixture(autouse=True)
def _bare(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name.startswith(PREFIX):
            monkeypatch.delenv(name)


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        pytest.param("HOST", "", "String should have at least 1 character", id="empty-host-is-every-interface"),
        pytest.param("HOST", "a b", "expected an address or a host name without port, got 'a b'", id="host"),
        pytest.param("HOST", "a" * 64, "expected an address or a host name without port", id="long-label"),
        pytest.param("ARCHIVE", "", "String should have at least 1 character", id="empty-archive"),
        pytest.param("DATABASE_URL", "", "String should have at least 1 character", id="empty-database"),
        pytest.param("DATABASE_URL", "mysql://u:secret@h/x", "expected a database URL", id="other-database"),
        pytest.param("DATABASE_URL", "sqlite://", "expected a database URL", id="sqlite-without-file"),
        pytest.param("DATABASE_URL", "sqlite:///:memory:", "expected a database URL", id="sqlite-in-memory"),
        pytest.param("WORKERS", "2", "more than one needs a server database", id="workers-on-sqlite"),
        pytest.param("PRIVATE_REGISTRIES", "http://x", "expected host or host:port, got 'http://x'", id="private"),
        pytest.param("PRIVATE_REGISTRIES", "u:secret@h", "expected host or host:port, got 'u:***@h'", id="login"),
        pytest.param("PLAIN_HTTP_REGISTRIES", "x:0", "expected host or host:port, got 'x:0'", id="plain-http"),
        pytest.param("TOKEN_REALMS", "ok,x/y", "expected host or host:port, got 'x/y'", id="realms"),
        pytest.param("TRUSTED_REGISTRIES", "https://ghcr.io", "expected registry[/path]", id="prefix-url"),
        pytest.param("TRUSTED_REGISTRIES", "ghcr.io/nvidia,a b", "got 'a b'", id="prefix-space"),
        pytest.param("TRUSTED_REGISTRIES", "h/../x", "got 'h/../x'", id="prefix-parent"),
        pytest.param("TRUSTED_PROXIES", "x", "an address or a network such as 10.0.0.0/8, got 'x'", id="proxy"),
        pytest.param("TRUSTED_PROXIES", "http://u:secret@h", "got 'http://u:***@h'", id="proxy-with-login"),
        pytest.param("TRUSTED_PROXIES", "10.0.0.1/8", "expected an address or a network", id="host-bits"),
        pytest.param("TRUSTED_PROXIES", "10.0.0.1,0.0.0.0/0", "which is everybody", id="everybody"),
        pytest.param("TRUSTED_PROXIES", "::ffff:10.0.0.1", "expected the IPv4 address itself", id="mapped"),
        pytest.param("SHUTDOWN_TIMEOUT_SECONDS", "inf", "finite number", id="infinite"),
        pytest.param("PULL_TIMEOUT_SECONDS", "nan", "finite number", id="not-a-number"),
        pytest.param("JUDGE_TIMEOUT_SECONDS", "1e300", "less than or equal to 3600", id="for-ever"),
        pytest.param("ATTEMPTS_RETENTION_DAYS", "99999999999", "less than or equal to 36500", id="days"),
        pytest.param("JUDGE_MEMORY_BYTES", str(1 << 70), "less than or equal to", id="bytes"),
        pytest.param("MAX_FILES", "0", "greater than 0", id="count"),
        pytest.param("RATE_LIMIT", "1e-320/s burst 1", "expected a rate from 0.001/s", id="no-rate"),
        pytest.param("RATE_LIMIT", "nan/s burst 1", "expected a rate from 0.001/s", id="nan-rate"),
        pytest.param("RATE_LIMIT_CLIENT", "1/s burst " + "9" * 400, "expected a rate from 0.001/s", id="burst"),
        pytest.param("ADMIN_TOKEN", "secret,secret,secret", "expected one token, or two", id="tokens"),
    ],
)
def test_a_setting_that_can_not_work_is_refused_by_its_name(
    name: str, value: str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(PREFIX + name, value)
    with pytest.raises(InputError) as caught:
        load_settings()
    assert caught.value.message.startswith(f"settings can not be read: {PREFIX}{name}: ")
    assert said in caught.value.message
    assert "secret" not in caught.value.message
    settings, problems = survey()
    assert list(problems) == [name.lower()]
    monkeypatch.delenv(PREFIX + name)
    assert settings == load_settings()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        pytest.param("HOST", "::1", id="ipv6"),
        pytest.param("HOST", "service_1.example.org", id="name"),
        pytest.param("DATABASE_URL", "sqlite:////var/lib/x.db", id="absolute-file"),
        pytest.param("DATABASE_URL", "postgresql://h/x", id="no-driver"),
        pytest.param("TRUSTED_REGISTRIES", "", id="nothing-is-trusted"),
        pytest.param("TRUSTED_REGISTRIES", " ghcr.io/nvidia , localhost:5000,", id="list"),
        pytest.param("TRUSTED_REGISTRIES", "ghcr.io/nvidia/", id="a slash at the end admits nothing (T10)"),
        pytest.param("PRIVATE_REGISTRIES", "registry:5000,[::1]:5000,[fd00::1]", id="hosts"),
        pytest.param("TRUSTED_PROXIES", "10.0.0.0/8,127.0.0.1,fd00::/8", id="networks"),
        pytest.param("RATE_LIMIT", "0", id="off"),
        pytest.param("CATALOGUE_TOKEN", "", id="no-token"),
        pytest.param("SHUTDOWN_TIMEOUT_SECONDS", "0.5", id="half-a-second"),
    ],
)
def test_what_can_work_is_taken(name: str, value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(PREFIX + name, value)
    load_settings()


def test_every_bad_setting_is_named_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(PREFIX + "DATABASE_URL", "mysql://h/x")
    monkeypatch.setenv(PREFIX + "WORKERS", "2")
    monkeypatch.setenv(PREFIX + "PORT", "x")
    with pytest.raises(InputError) as caught:
        load_settings()
    assert caught.value.message == (
        "settings can not be read: AICR_EVIDENCE_PORT: Input should be a valid integer, unable to parse string as an "
        "integer; AICR_EVIDENCE_DATABASE_URL: expected a database URL: sqlite:/// and a file, or postgresql+psycopg://..."
    )
    settings, problems = survey()
    assert sorted(problems) == ["database_url", "port", "workers"], "on the default database two workers do not work"
    assert (settings.database_url, settings.port, settings.workers) == ("sqlite:///./var/evidence.db", 8080, 1)
