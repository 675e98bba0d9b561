"""The settings in force, and what can not work; each field says what it takes, its default and its meaning."""

import ipaddress
import os
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal, Self

from pydantic import Field, PrivateAttr, SecretStr, ValidationInfo, field_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

from app.config.kinds import (
    ApiUrl,
    Bytes,
    Count,
    DatabaseUrl,
    Days,
    Directory,
    File,
    Host,
    Hosts,
    Networks,
    OptionalFile,
    Prefixes,
    Rate,
    Roots,
    Seconds,
    Secret,
    Secrets,
    Unfit,
    split_names,
)
from app.config.rates import RateLimit
from app.config.wording import PREFIX, found, refusal
from app.core.gate import can_admit
from app.core.refs import is_registry_host
from app.core.tokens import is_bearer_token
from app.core.urls import http_host

_DATABASE = re.compile(r"sqlite(?:\+\w+)?:///(?!:memory:)[^?]|postgresql(?:\+\w+)?://")
_HOST = re.compile(r"[0-9A-Za-z.:%_-]{1,253}")
_NAME_BYTES = 63
"""The longest label of a host name (RFC 1035, 2.3.4)."""

Network = ipaddress.IPv4Network | ipaddress.IPv6Network


def _names(value: object) -> object:
    return split_names(value) if isinstance(value, str) else value


class Settings(BaseSettings):
    """The settings in force. Sizes are bytes and times are seconds unless the name says otherwise."""

    model_config = SettingsConfigDict(env_prefix=PREFIX, extra="ignore", frozen=True)

    database_url: DatabaseUrl = Field(
        "sqlite:///./var/evidence.db", description="SQLite file or postgresql+psycopg:// URL"
    )
    archive: Directory = Field("./var/archive", description="directory of archived bundles, an OCI layout by digest")
    host: Host = Field("127.0.0.1", description="address to listen on")
    port: int = Field(8080, ge=0, le=65535, description="port to listen on; 0 takes a free one")
    workers: int = Field(1, ge=1, le=64, description="server processes; more than one needs PostgreSQL")
    api: ApiUrl = Field("http://127.0.0.1:8080", description="where client verbs go")
    api_token: Secret = Field(
        SecretStr(""), description="bearer token that submit and verify --api send; unset sends none"
    )
    allowlist: File = Field(
        "./allowlist.yaml", description="who counts; watched, a broken file keeps the last good one"
    )
    pointers: Directory = Field("./evidence", description="committed pointer tree")
    trusted_root: Roots = Field("public-good", description="comma list of roots: public-good, or path;issuer=URL;...")
    trusted_registries: Prefixes = Field("ghcr.io/nvidia", description="comma list of registry[/path] prefixes")
    private_registries: Hosts = Field((), description="registry hosts on private addresses")
    plain_http_registries: Hosts = Field((), description="registry hosts without TLS")
    token_realms: Hosts = Field((), description="token servers other than the registry's own host")
    registry_credentials: OptionalFile = Field("", description="JSON file: host -> {user, password} or {token}")
    confirm_by: Literal["signer", "party"] = Field("signer", description="what is counted: signers or parties")
    confirm_threshold: int = Field(2, ge=2, le=100, description="passes that make CONFIRMED; at least 2")
    aged_after_days: Days = Field(30, description="whole days after attestedAt until a record is AGED")
    catalogue_token: Secrets = Field((), description="bearer token of PUT /recipes; unset answers 403")
    admin_token: Secrets = Field((), description="bearer token of administrative routes; unset answers 403")
    rate_limit: Rate = Field("100/s burst 200", description="all requests of one process; 0 is off")
    rate_limit_client: Rate = Field("20/s burst 100", description="POSTs of one client address; 0 is off")
    verify_processes: int = Field(
        default_factory=lambda: min(os.cpu_count() or 1, 4), ge=1, le=64, description="judging workers"
    )
    ingest_concurrency: int = Field(8, ge=1, le=256, description="ingests that run at once")
    pull_timeout_seconds: Seconds = Field(60, description="one whole pull, signature included")
    data_mask_identities: bool = Field(True, description="mask addresses in /data/*")  # noqa: FBT003
    sandbox: bool = Field(False, description="only sandbox roots; marks the database, shows a banner")  # noqa: FBT003
    log_level: Literal["debug", "info", "warning", "error"] = Field("info", description="least level that is logged")
    trusted_proxies: Networks = Field((), description="addresses and networks whose X-Forwarded-For is believed")

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

    _wrong: Mapping[str, str] = PrivateAttr(default_factory=dict)

    _split = field_validator(
        "private_registries", "plain_http_registries", "token_realms", "trusted_proxies", mode="before"
    )(_names)

    @field_validator("database_url")
    @classmethod
    def _database(cls, value: str) -> str:
        if not _DATABASE.match(value):
            raise Unfit(_database_shown(value))
        return value

    @field_validator("host")
    @classmethod
    def _host(cls, value: str) -> str:
        if not _HOST.fullmatch(value) or max(map(len, value.split("."))) > _NAME_BYTES:
            raise Unfit(found(value))
        return value

    @field_validator("api")
    @classmethod
    def _address(cls, value: str) -> str:
        if http_host(value) is None:
            raise Unfit(found(value))
        return value

    @field_validator("registry_credentials")
    @classmethod
    def _no_secret(cls, value: str) -> str:
        if value.lstrip().startswith("{"):
            raise Unfit("the JSON text itself, which is not shown")
        return value

    @field_validator("workers")
    @classmethod
    def _server_database(cls, value: int, info: ValidationInfo) -> int:
        if value > 1 and info.data.get("database_url", "").startswith("sqlite"):
            raise ValueError(
                f"expected 1 while AICR_EVIDENCE_DATABASE_URL is an SQLite file, got {value}: more than one needs "
                "a server database, postgresql+psycopg://..."
            )
        return value

    @field_validator("trusted_registries")
    @classmethod
    def _prefixes(cls, value: str) -> str:
        for prefix in split_names(value):
            if not can_admit(prefix.rstrip("/")):  # with a slash at its end it is legal and admits nothing (T10)
                raise Unfit(f"{found(prefix)}, which no reference begins with")
        return value

    @field_validator("private_registries", "plain_http_registries", "token_realms")
    @classmethod
    def _hosts(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for host in value:
            if not is_registry_host(host):
                raise Unfit(found(host))
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
        return tuple(SecretStr(token) for token in split_names(value)) if isinstance(value, str) else value

    @field_validator("catalogue_token", "admin_token")
    @classmethod
    def _two_at_most(cls, value: tuple[SecretStr, ...]) -> tuple[SecretStr, ...]:
        if len(value) > 2:
            raise Unfit(str(len(value)))
        return value

    @field_validator("api_token")
    @classmethod
    def _one(cls, value: SecretStr) -> SecretStr:
        if value.get_secret_value() and not is_bearer_token(value.get_secret_value()):
            raise Unfit("text that is none, which is not shown")
        return value

    @field_validator("rate_limit", "rate_limit_client")
    @classmethod
    def _rate(cls, value: str) -> str:
        RateLimit.parse(value)
        return value

    def without(self, wrong: Mapping[str, str]) -> Self:
        """Take away what could not be read; who reads one of those is told why instead of getting its default."""
        for name in wrong:
            self.__dict__.pop(name, None)
        self._wrong = dict(wrong)
        return self

    if not TYPE_CHECKING:  # for the type checker, a name that is no field stays an error

        def __getattr__(self, name: str) -> object:
            """Whatever is no ordinary attribute: a private one, or a setting that was taken away."""
            if name in type(self).model_fields and name in self._wrong:
                raise refusal({name: self._wrong[name]})
            return super().__getattr__(name)

    @property
    def proxies(self) -> tuple[Network, ...]:
        """`trusted_proxies` as networks; one address is a network of its own."""
        return tuple(_network(text) for text in self.trusted_proxies)

    @property
    def deadline_seconds(self) -> float:
        """The deadline of a whole `POST`: the pull and 20 seconds for judging and keeping (service 2)."""
        return self.pull_timeout_seconds + 20


def _database_shown(text: str) -> str:
    """A URL without its secrets; of what is no URL only that, since it may be one's password."""
    return found(text) if "://" in text or not text else "something else"


def _network(text: str) -> Network:
    """An address or a network; raises `ValueError` for what is none, or would believe everybody."""
    try:
        network = ipaddress.ip_network(text)
    except ValueError:
        raise Unfit(found(text)) from None
    if network.prefixlen == 0:
        raise ValueError(f"expected addresses of proxies, got {text}, which is everybody")
    if isinstance(network, ipaddress.IPv6Network) and network.network_address.ipv4_mapped is not None:
        raise ValueError(f"expected the IPv4 address itself, got {found(text)}")
    return network
