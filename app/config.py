"""Every setting of the service, read once from `AICR_EVIDENCE_*` (service 2).

Nothing else reads the environment; `aicr evidence settings` prints what is in force, from where, and the default.
"""

import ipaddress
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Literal, Self

from pydantic import Field, SecretStr, ValidationError, ValidationInfo, field_validator
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from app.core.errors import InputError
from app.core.gate import can_admit
from app.core.refs import is_registry_host
from app.core.urls import masked_url

PREFIX = "AICR_EVIDENCE_"
BAD = "(bad)"

_DATABASE = re.compile(r"sqlite(?:\+\w+)?:///(?!:memory:)[^?]|postgresql(?:\+\w+)?://")
_HOST = re.compile(r"[0-9A-Za-z.:%_-]{1,253}")
_NAME_BYTES = 63
"""The longest label of a host name (RFC 1035, 2.3.4)."""

MOST_BYTES = 1 << 40
MOST_DAYS = 36_500
MOST_SECONDS = 3600

Network = ipaddress.IPv4Network | ipaddress.IPv6Network

Bytes = Annotated[int, Field(gt=0, le=MOST_BYTES)]
Count = Annotated[int, Field(gt=0, le=1_000_000)]
Days = Annotated[int, Field(ge=1, le=MOST_DAYS)]
Seconds = Annotated[float, Field(gt=0, le=MOST_SECONDS, allow_inf_nan=False)]
Text = Annotated[str, Field(min_length=1)]

Names = Annotated[tuple[str, ...], NoDecode]
"""A comma list: spaces trimmed, empty items dropped."""

Secrets = Annotated[tuple[SecretStr, ...], NoDecode]
"""One bearer token, or two comma-separated ones during rotation."""


def _split_names(text: str) -> tuple[str, ...]:
    return tuple(item.strip() for item in text.split(",") if item.strip())


def _names(value: object) -> object:
    return _split_names(value) if isinstance(value, str) else value


class Settings(BaseSettings):
    """The settings in force. Sizes are bytes and times are seconds unless the name says otherwise."""

    model_config = SettingsConfigDict(env_prefix=PREFIX, extra="ignore", frozen=True)

    database_url: Text = Field("sqlite:///./var/evidence.db", description="SQLite file or postgresql+psycopg:// URL")
    archive: Text = Field("./var/archive", description="directory of archived bundles, an OCI layout by digest")
    host: Text = Field("127.0.0.1", description="address to listen on")
    port: int = Field(8080, ge=0, le=65535, description="port to listen on; 0 takes a free one")
    workers: int = Field(1, ge=1, le=64, description="server processes; more than one needs PostgreSQL")
    api: str = Field("http://127.0.0.1:8080", description="where client verbs go")
    allowlist: Text = Field(
        "./allowlist.yaml", description="who counts; watched, a broken file keeps the last good one"
    )
    pointers: Text = Field("./evidence", description="committed pointer tree")
    trusted_root: Text = Field("public-good", description="comma list of roots: public-good, or path;issuer=URL;...")
    trusted_registries: str = Field("ghcr.io/nvidia", description="comma list of registry[/path] prefixes")
    private_registries: Names = Field((), description="registry hosts on private addresses")
    plain_http_registries: Names = Field((), description="registry hosts without TLS")
    token_realms: Names = Field((), description="token servers other than the registry's own host")
    registry_credentials: str = Field("", description="JSON file: host -> {user, password} or {token}")
    confirm_by: Literal["signer", "party"] = Field("signer", description="what is counted: signers or parties")
    confirm_threshold: int = Field(2, ge=2, le=100, description="passes that make CONFIRMED; at least 2")
    aged_after_days: Days = Field(30, description="whole days after attestedAt until a record is AGED")
    catalogue_token: Secrets = Field((), description="bearer token of PUT /recipes; unset answers 403")
    admin_token: Secrets = Field((), description="bearer token of administrative routes; unset answers 403")
    rate_limit: str = Field("100/s burst 200", description="all requests of one process; 0 is off")
    rate_limit_client: str = Field("20/s burst 100", description="POSTs of one client address; 0 is off")
    verify_processes: int = Field(
        default_factory=lambda: min(os.cpu_count() or 1, 4), ge=1, le=64, description="judging workers"
    )
    ingest_concurrency: int = Field(8, ge=1, le=256, description="ingests that run at once")
    pull_timeout_seconds: Seconds = Field(60, description="one whole pull, signature included")
    data_mask_identities: bool = Field(True, description="mask addresses in /data/*")  # noqa: FBT003
    sandbox: bool = Field(False, description="only sandbox roots; marks the database, shows a banner")  # noqa: FBT003
    log_level: Literal["debug", "info", "warning", "error"] = Field("info", description="least level that is logged")
    trusted_proxies: Names = Field((), description="addresses and networks whose X-Forwarded-For is believed")

    max_signature_bytes: Bytes = Field(10 << 20, description="one Sigstore bundle")
    max_manifest_bytes: Bytes = Field(4 << 20, description="one OCI manifest")
    max_blob_bytes: Bytes = Field(64 << 20, description="one blob")
    max_unpacked_bytes: Bytes = Field(256 << 20, description="an unpacked bundle")
    max_unpack_ratio: int = Field(100, gt=1, le=1_000_000, description="unpacked size over packed size")
    max_files: Count = Field(4096, description="files of one bundle")
    max_path_bytes: Count = Field(512, description="one path in a bundle")
    max_depth: Count = Field(16, description="directory levels in a bundle")
    max_referrers: Count = Field(64, description="signature referrers that are looked at")
    max_inflight_bytes: Bytes = Field(512 << 20, description="bytes shared by all running ingests")
    max_body_bytes: Bytes = Field(1 << 20, description="a request body; a bulk catalogue may have 8 times as much")
    judge_timeout_seconds: Seconds = Field(30, description="one judging job")
    judge_memory_bytes: Bytes = Field(1 << 30, description="address space of a judging worker over its start")
    attempts_retention_days: Days = Field(90, description="how long attempts are kept")
    unlisted_quota: int = Field(
        200, ge=0, le=1_000_000_000, description="records of one source that is on no list; 0 is off"
    )
    shutdown_timeout_seconds: Seconds = Field(30, description="how long running requests may finish")

    _split = field_validator(
        "private_registries", "plain_http_registries", "token_realms", "trusted_proxies", mode="before"
    )(_names)

    @field_validator("database_url")
    @classmethod
    def _database(cls, value: str) -> str:
        if not _DATABASE.match(value):
            raise ValueError("expected a database URL: sqlite:/// and a file, or postgresql+psycopg://...")
        return value

    @field_validator("host")
    @classmethod
    def _host(cls, value: str) -> str:
        if not _HOST.fullmatch(value) or max(map(len, value.split("."))) > _NAME_BYTES:
            raise ValueError(f"expected an address or a host name without port, got {masked_url(value)[:80]!r}")
        return value

    @field_validator("workers")
    @classmethod
    def _server_database(cls, value: int, info: ValidationInfo) -> int:
        if value > 1 and info.data.get("database_url", "").startswith("sqlite"):
            raise ValueError("more than one needs a server database: set DATABASE_URL to postgresql+psycopg://...")
        return value

    @field_validator("trusted_registries")
    @classmethod
    def _prefixes(cls, value: str) -> str:
        for prefix in _split_names(value):
            if not can_admit(prefix.rstrip("/")):  # with a slash at its end it is legal and admits nothing (T10)
                raise ValueError(
                    f"expected registry[/path], such as ghcr.io/nvidia, got {masked_url(prefix)[:80]!r}, "
                    "which no reference begins with"
                )
        return value

    @field_validator("private_registries", "plain_http_registries", "token_realms")
    @classmethod
    def _hosts(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for host in value:
            if not is_registry_host(host):
                raise ValueError(f"expected host or host:port, got {masked_url(host)[:80]!r}")
        return value

    @field_validator("trusted_proxies")
    @classmethod
    def _proxies(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for text in value:
            _network(text)
        return value

    @field_validator("catalogue_token", "admin_token", mode="before")
    @classmethod
    def _tokens(cls, value: object) -> object:
        return tuple(SecretStr(token) for token in _split_names(value)) if isinstance(value, str) else value

    @field_validator("catalogue_token", "admin_token")
    @classmethod
    def _two_at_most(cls, value: tuple[SecretStr, ...]) -> tuple[SecretStr, ...]:
        if len(value) > 2:
            raise ValueError(f"expected one token, or two during rotation, got {len(value)}")
        return value

    @field_validator("rate_limit", "rate_limit_client")
    @classmethod
    def _rate(cls, value: str) -> str:
        RateLimit.parse(value)
        return value

    @property
    def proxies(self) -> tuple[Network, ...]:
        """`trusted_proxies` as networks; one address is a network of its own."""
        return tuple(_network(text) for text in self.trusted_proxies)

    @property
    def deadline_seconds(self) -> float:
        """The deadline of a whole `POST`: the pull and 20 seconds for judging and keeping (service 2)."""
        return self.pull_timeout_seconds + 20


def _network(text: str) -> Network:
    """An address or a network; raises `ValueError` for what is none, or would believe everybody."""
    try:
        network = ipaddress.ip_network(text)
    except ValueError:
        got = masked_url(text)[:80]
        raise ValueError(f"expected an address or a network such as 10.0.0.0/8, got {got!r}") from None
    if network.prefixlen == 0:
        raise ValueError(f"expected addresses of proxies, got {text}, which is everybody")
    if isinstance(network, ipaddress.IPv6Network) and network.network_address.ipv4_mapped is not None:
        raise ValueError(f"expected the IPv4 address itself, got {text[:80]!r}")
    return network


_LEAST_RATE, _MOST_RATE = 0.001, 1e6


@dataclass(frozen=True, slots=True)
class RateLimit:
    """A token bucket: `per_second` tokens flow in, `burst` are held; None of it when off."""

    per_second: float
    burst: int

    @classmethod
    def parse(cls, text: str) -> Self | None:
        """Read `100/s burst 200`; `0` is off."""
        if text.strip() == "0":
            return None
        parts = text.split()
        try:
            if len(parts) != 3 or parts[1] != "burst" or not parts[0].endswith("/s"):
                raise ValueError  # noqa: TRY301
            limit = cls(float(parts[0][:-2]), int(parts[2]))
        except ValueError:
            raise ValueError(f"expected a rate such as '100/s burst 200', or 0, got {text!r}") from None
        if not _LEAST_RATE <= limit.per_second <= _MOST_RATE or not 1 <= limit.burst <= _MOST_RATE:
            raise ValueError(f"expected a rate from 0.001/s and a burst from 1, to a million each, got {text!r}")
        return limit


def load_settings(overrides: Mapping[str, object] | None = None) -> Settings:
    """Read the environment; `overrides` by field name, from options of a command, win.

    Raises `InputError` naming everything that is bad.
    """
    given = dict(overrides or {})
    try:
        return Settings(**given)  # type: ignore[arg-type]
    except ValidationError as err:
        lines = [
            f"{'the option for ' if name in given else ''}{PREFIX}{name.upper()}: {what}"
            for name, what in _problems(err).items()
        ]
        raise InputError(
            "settings can not be read: " + "; ".join(lines),
            hint="`aicr evidence settings` lists every name and default, and marks what is bad",
        ) from err


def survey() -> tuple[Settings, Mapping[str, str]]:
    """The settings of the environment with each bad one at its default, and what is wrong with it by field name."""
    bad: dict[str, str] = {}
    while True:
        try:
            return Settings(**{name: _default(name) for name in bad}), bad  # type: ignore[arg-type]
        except ValidationError as err:
            found = _problems(err)
            if found.keys() <= bad.keys():
                raise
            bad |= found


def _problems(err: ValidationError) -> dict[str, str]:
    """What is wrong, by field name; never with a value that could be a secret."""
    return {
        str(problem["loc"][0]): problem["msg"].removeprefix("Value error, ")
        for problem in reversed(err.errors(include_url=False, include_input=False))
    }


def _default(name: str) -> object:
    return Settings.model_fields[name].get_default(call_default_factory=True, validated_data={})


@dataclass(frozen=True, slots=True)
class SettingLine:
    """One line of `aicr evidence settings`; `problem` says why a value can not be used."""

    name: str
    value: str
    source: str  # environment or default
    default: str
    meaning: str
    problem: str | None = None


def describe(
    settings: Settings, problems: Mapping[str, str], environment: Mapping[str, str]
) -> tuple[SettingLine, ...]:
    """All settings with their source; secrets are hidden, and so is a value with a problem, whatever it holds."""
    present = {name.lower() for name in environment}
    lines = []
    for name, info in Settings.model_fields.items():
        variable = PREFIX + name.upper()
        secret = name.endswith("_token")
        value = getattr(settings, name)
        shown = ("(set, hidden)" if value else "(unset)") if secret else _show(value)
        lines.append(
            SettingLine(
                name=variable,
                value=BAD if name in problems else shown,
                source="environment" if variable.lower() in present else "default",
                default="(unset)" if secret else _show(_default(name)),
                meaning=info.description or "",
                problem=problems.get(name),
            )
        )
    return tuple(lines)


def _show(value: object) -> str:
    if isinstance(value, str):
        return masked_url(value) if "://" in value else value
    if isinstance(value, tuple):
        return ",".join(str(v) for v in value)
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:g}" if isinstance(value, float) else str(value)


def unknown_variables(environment: Mapping[str, str]) -> tuple[str, ...]:
    """Variables that carry the prefix and name no setting: most likely a typing error."""
    known = {PREFIX + name.upper() for name in Settings.model_fields} | {PREFIX + "TEST_BUNDLES"}
    return tuple(sorted(name for name in environment if name.startswith(PREFIX) and name not in known))
