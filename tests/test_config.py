"""Settings: what can not work is refused at the start, and the setting is named."""

import os
import re

import pytest

from app.config import JUDGING, KEEPING, PREFIX, SERVING, STORE, WEIGHING, Settings, load_settings, survey
from app.core.errors import InputError


@pytest.fixture(autouse=True)
def _bare(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name.startswith(PREFIX):
            monkeypatch.delenv(name)


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        pytest.param(
            "HOST", "", "expected an address or a host name without port, got ''", id="empty-host-is-every-interface"
        ),
        pytest.param("HOST", "a b", "expected an address or a host name without port, got 'a b'", id="host"),
        pytest.param("HOST", "a" * 64, "expected an address or a host name without port", id="long-label"),
        pytest.param("ARCHIVE", "", "expected the path of a directory, got ''", id="empty-archive"),
        pytest.param("DATABASE_URL", "", "expected a database URL", id="empty-database"),
        pytest.param("DATABASE_URL", "mysql://u:secret@h/x", "got 'mysql://u:***@h/x'", id="other-database"),
        pytest.param("DATABASE_URL", "sqlite://", "expected a database URL", id="sqlite-without-file"),
        pytest.param("DATABASE_URL", "sqlite:///:memory:", "expected a database URL", id="sqlite-in-memory"),
        pytest.param(
            "WORKERS", "2", "more than one needs a server database, postgresql+psycopg://...", id="workers-on-sqlite"
        ),
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
        pytest.param(
            "SHUTDOWN_TIMEOUT_SECONDS", "inf", "a number of seconds over 0, at most 3600, got 'inf'", id="infinite"
        ),
        pytest.param(
            "PULL_TIMEOUT_SECONDS", "nan", "a number of seconds over 0, at most 3600, got 'nan'", id="not-a-number"
        ),
        pytest.param("JUDGE_TIMEOUT_SECONDS", "1e300", "over 0, at most 3600, got '1e300'", id="for-ever"),
        pytest.param("ATTEMPTS_RETENTION_DAYS", "99999999999", "a whole number of days from 1 to 36500", id="days"),
        pytest.param("JUDGE_MEMORY_BYTES", str(1 << 70), "a whole number of bytes from 1 to 1099511627776", id="bytes"),
        pytest.param("MAX_FILES", "0", "a whole number from 1 to 1000000, got '0'", id="count"),
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
        "settings can not be read: AICR_EVIDENCE_DATABASE_URL: expected a database URL: sqlite:/// and a file, or "
        "postgresql+psycopg://..., got 'mysql://h/x' (correct it or unset it: the default is "
        "sqlite:///./var/evidence.db); AICR_EVIDENCE_PORT: expected a whole number from 0 to 65535, got 'x' "
        "(correct it or unset it: the default is 8080)"
    )
    settings, problems = survey()
    assert sorted(problems) == ["database_url", "port", "workers"], "on the default database two workers do not work"
    assert (settings.database_url, settings.port, settings.workers) == ("sqlite:///./var/evidence.db", 8080, 1)


_UNSET = "(correct it or unset it: by default there is none)"


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        pytest.param(
            "SANDBOX",
            "maybe",
            "expected true or false, got 'maybe' (correct it or unset it: the default is false)",
            id="bool",
        ),
        pytest.param(
            "PORT",
            "tcp://u:hidden@10.0.0.1:80",
            "expected a whole number from 0 to 65535, got 'tcp://u:***@10.0.0.1:80' "
            "(correct it or unset it: the default is 8080)",
            id="int",
        ),
        pytest.param(
            "MAX_UNPACK_RATIO",
            "1",
            "expected a whole number from 2 to 1000000, got '1' (correct it or unset it: the default is 100)",
            id="over-a-bound",
        ),
        pytest.param(
            "PULL_TIMEOUT_SECONDS",
            "1m",
            "expected a number of seconds over 0, at most 3600, got '1m' (correct it or unset it: the default is 60)",
            id="float",
        ),
        pytest.param(
            "LOG_LEVEL",
            "INFO",
            "expected debug, info, warning or error, got 'INFO' (correct it or unset it: the default is info)",
            id="choice",
        ),
        pytest.param(
            "API",
            "ftp://u:hidden@h",
            "expected an http or https address of the service, such as http://127.0.0.1:8080, got 'ftp://u:***@h' "
            "(correct it or unset it: the default is http://127.0.0.1:8080)",
            id="url",
        ),
        pytest.param("TOKEN_REALMS", "a/b", f"expected host or host:port, got 'a/b' {_UNSET}", id="list"),
        pytest.param(
            "TRUSTED_PROXIES",
            "a",
            f"expected an address or a network such as 10.0.0.0/8, got 'a' {_UNSET}",
            id="networks",
        ),
        pytest.param(
            "POINTERS",
            "",
            "expected the path of a directory, got '' (correct it or unset it: the default is ./evidence)",
            id="directory",
        ),
        pytest.param(
            "ALLOWLIST",
            "a\udcff",
            "expected the path of a file, got bytes that are no UTF-8 "
            "(correct it or unset it: the default is ./allowlist.yaml)",
            id="file",
        ),
        pytest.param(
            "REGISTRY_CREDENTIALS",
            ' {"ghcr.io": {"token": "hidden"}}',
            f"expected the path of a file, or nothing, got the JSON text itself, which is not shown {_UNSET}",
            id="secrets-instead-of-their-file",
        ),
        pytest.param(
            "DATABASE_URL",
            "hidden",
            "expected a database URL: sqlite:/// and a file, or postgresql+psycopg://..., got something else "
            "(correct it or unset it: the default is sqlite:///./var/evidence.db)",
            id="password-instead-of-its-url",
        ),
        pytest.param(
            "CATALOGUE_TOKEN",
            "hidden,hidden,hidden",
            f"expected one token, or two comma-separated ones during rotation, got 3 {_UNSET}",
            id="token",
        ),
    ],
)
def test_each_kind_of_setting_is_answered_in_words_of_its_own(
    name: str, value: str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(PREFIX + name, value)
    with pytest.raises(InputError) as caught:
        load_settings()
    assert caught.value.message == f"settings can not be read: {PREFIX}{name}: {said}"
    assert survey()[1] == {name.lower(): said}


@pytest.mark.parametrize("name", sorted(Settings.model_fields.keys() - {"registry_credentials"}))
def test_no_setting_is_answered_in_the_words_of_a_library(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Bytes that are no text fit none of them; as the path of a file that is only read they are one."""
    monkeypatch.setenv(PREFIX + name.upper(), "\udcff" + ",x" * 3)
    said = survey()[1][name]
    assert re.match(r"expected [a-z0-9].*, got .* \((?:correct it or unset it: .+)\)$", said), said
    assert not re.search(r"Input|should|valid|String|parse", said)


def test_a_bad_setting_stops_only_who_reads_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(PREFIX + "PORT", "x")
    monkeypatch.setenv(PREFIX + "WORKERS", "2")
    monkeypatch.setenv(PREFIX + "MAX_DEPTH", "7")
    settings = load_settings(uses={"max_depth"})
    assert (settings.max_depth, settings.max_files) == (7, 4096)
    with pytest.raises(InputError) as caught:
        _ = settings.port
    assert caught.value.message == (
        "settings can not be read: AICR_EVIDENCE_PORT: expected a whole number from 0 to 65535, got 'x' "
        "(correct it or unset it: the default is 8080)"
    )
    with pytest.raises(InputError, match="AICR_EVIDENCE_WORKERS"):
        _ = settings.workers
    with pytest.raises(AttributeError):
        _ = settings.no_such_setting  # type: ignore[attr-defined]
    with pytest.raises(InputError) as at_once:
        load_settings(uses=SERVING)
    assert re.findall(r"AICR_EVIDENCE_[A-Z]+(?=: )", at_once.value.message) == [PREFIX + "PORT", PREFIX + "WORKERS"]


def test_an_option_wins_over_a_bad_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(PREFIX + "PORT", "x")
    monkeypatch.setenv(PREFIX + "HOST", "a b")
    settings = load_settings({"port": 80}, uses={"port"})
    assert settings.port == 80
    with pytest.raises(InputError, match="AICR_EVIDENCE_HOST"):
        _ = settings.host


@pytest.mark.parametrize("uses", [SERVING, KEEPING, JUDGING, WEIGHING, STORE])
def test_what_a_command_reads_are_settings(uses: frozenset[str]) -> None:
    assert uses <= Settings.model_fields.keys()
    assert uses
