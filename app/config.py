"""Every setting of the service, read once from `AICR_EVIDENCE_*` (service 2).

Nothing else reads the environment; `aicr evidence settings` prints what is in force, from where, and the default.
"""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Literal, Self

from pydantic import Field, SecretStr, ValidationError, field_validator, model_validator
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from app.core.errors import InputError

PREFIX = "AICR_EVIDENCE_"

_PASSWORD = re.compile(r"(://[^:/@]*:)[^@]*@")

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

    database_url: str = Field("sqlite:///./var/evidence.db", description="SQLite file or postgresql+psycopg:// URL")
    archive: str = Field("./var/archive", description="directory of archived bundles, an OCI layout by digest")
    host: str = Field("127.0.0.1", description="address to listen on")
    port: int = Field(8080, ge=0, le=65535, description="port to listen on; 0 takes a free one")
    workers: int = Field(1, ge=1, le=64, description="server processes; more than one needs PostgreSQL")
    api: str = Field("http://127.0.0.1:8080", description="where client verbs go")
    allowlist: str = Field("./allowlist.yaml", description="who counts; watched, a broken file keeps the last good one")
    pointers: str = Field("./evidence", description="committed pointer tree")
    trusted_root: str = Field("public-good", description="comma list of roots: public-good, or path;issuer=URL;...")
    trusted_registries: str = Field("ghcr.io/nvidia", description="comma list of registry[/path] prefixes")
    private_registries: Names = Field((), description="registry hosts on private addresses")
    plain_http_registries: Names = Field((), description="registry hosts without TLS")
    token_realms: Names = Field((), description="token servers other than the registry's own host")
    registry_credentials: str = Field("", description="JSON file: host -> {username, password} or {token}")
    confirm_by: Literal["signer", "party"] = Field("signer", description="what is counted: signers or parties")
    confirm_threshold: int = Field(2, ge=2, le=100, description="passes that make CONFIRMED; at least 2")
    aged_after_days: int = Field(30, ge=1, description="whole days after attestedAt until a record is AGED")
    catalogue_token: Secrets = Field((), description="bearer token of PUT /recipes; unset answers 403")
    admin_token: Secrets = Field((), description="bearer token of administrative routes; unset answers 403")
    rate_limit: str = Field("100/s burst 200", description="all requests of one process; 0 is off")
    rate_limit_client: str = Field("20/s burst 100", description="POSTs of one client address; 0 is off")
    verify_processes: int = Field(
        default_factory=lambda: min(os.cpu_count() or 1, 4), ge=1, le=64, description="judging workers"
    )
    ingest_concurrency: int = Field(8, ge=1, le=256, description="ingests that run at once")
    pull_timeout_seconds: float = Field(60, gt=0, le=3600, description="one whole pull, signature included")
    data_mask_identities: bool = Field(True, description="mask addresses in /data/*")  # noqa: FBT003
    sandbox: bool = Field(False, description="only sandbox roots; marks the database, shows a banner")  # noqa: FBT003
    log_level: Literal["debug", "info", "warning", "error"] = Field("info", description="least level that is logged")
    trusted_proxies: Names = Field((), description="addresses whose X-Forwarded-For is believed")

    max_signature_bytes: int = Field(10 << 20, gt=0, description="one Sigstore bundle")
    max_manifest_bytes: int = Field(4 << 20, gt=0, description="one OCI manifest")
    max_blob_bytes: int = Field(64 << 20, gt=0, description="one blob")
    max_unpacked_bytes: int = Field(256 << 20, gt=0, description="an unpacked bundle")
    max_unpack_ratio: int = Field(100, gt=1, description="unpacked size over packed size")
    max_files: int = Field(4096, gt=0, description="files of one bundle")
    max_path_bytes: int = Field(512, gt=0, description="one path in a bundle")
    max_depth: int = Field(16, gt=0, description="directory levels in a bundle")
    max_referrers: int = Field(64, gt=0, description="signature referrers that are looked at")
    max_inflight_bytes: int = Field(512 << 20, gt=0, description="bytes shared by all running ingests")
    max_body_bytes: int = Field(1 << 20, gt=0, description="a request body; a bulk catalogue may have 8 times as much")
    judge_timeout_seconds: float = Field(30, gt=0, description="one judging job")
    judge_memory_bytes: int = Field(1 << 30, gt=0, description="address space of a judging worker over its start")
    attempts_retention_days: int = Field(90, ge=1, description="how long attempts are kept")
    unlisted_quota: int = Field(200, ge=0, description="records of one source that is on no list; 0 is off")
    shutdown_timeout_seconds: float = Field(30, gt=0, description="how long running requests may finish")

    _split = field_validator(
        "private_registries", "plain_http_registries", "token_realms", "trusted_proxies", mode="before"
    )(_names)

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

    @model_validator(mode="after")
    def _server_database(self) -> Self:
        if self.workers > 1 and self.database_url.startswith("sqlite"):
            raise ValueError("WORKERS above 1 needs a server database: set DATABASE_URL to postgresql+psycopg://...")
        return self

    @property
    def deadline_seconds(self) -> float:
        """The deadline of a whole `POST`: the pull and 20 seconds for judging and keeping (service 2)."""
        return self.pull_timeout_seconds + 20


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
        if not 0 < limit.per_second < 1e9 or limit.burst < 1:
            raise ValueError(f"expected a positive rate and burst, got {text!r}")
        return limit


def load_settings(overrides: Mapping[str, object] | None = None) -> Settings:
    """Read the environment; `overrides` by field name win. Raises `InputError` naming every bad variable."""
    try:
        return Settings(**dict(overrides or {}))  # type: ignore[arg-type]
    except ValidationError as err:
        lines = []
        for problem in err.errors(include_url=False, include_input=False):
            where = ".".join(str(part) for part in problem["loc"]).upper() or "settings"
            lines.append(f"{PREFIX}{where}: {problem['msg'].removeprefix('Value error, ')}")
        raise InputError(
            "settings can not be read: " + "; ".join(lines),
            hint="`aicr evidence settings` lists every name and default",
        ) from err


@dataclass(frozen=True, slots=True)
class SettingLine:
    """One line of `aicr evidence settings`."""

    name: str
    value: str
    source: str  # environment or default
    default: str
    meaning: str


def describe(settings: Settings, environment: Mapping[str, str]) -> tuple[SettingLine, ...]:
    """All settings with their source; secrets are hidden."""
    lines = []
    for name, info in Settings.model_fields.items():
        variable = PREFIX + name.upper()
        secret = name.endswith("_token")
        value = getattr(settings, name)
        default = info.get_default(call_default_factory=True, validated_data={})
        lines.append(
            SettingLine(
                name=variable,
                value=("(set, hidden)" if value else "(unset)") if secret else _show(value),
                source="environment" if variable.lower() in {k.lower() for k in environment} else "default",
                default="(unset)" if secret else _show(default),
                meaning=info.description or "",
            )
        )
    return tuple(lines)


def _show(value: object) -> str:
    if isinstance(value, str):
        return _PASSWORD.sub(r"\1***@", value)
    if isinstance(value, tuple):
        return ",".join(str(v) for v in value)
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:g}" if isinstance(value, float) else str(value)


def unknown_variables(environment: Mapping[str, str]) -> tuple[str, ...]:
    """Variables that carry the prefix and name no setting: most likely a typing error."""
    known = {PREFIX + name.upper() for name in Settings.model_fields} | {PREFIX + "TEST_BUNDLES"}
    return tuple(sorted(name for name in environment if name.startswith(PREFIX) and name not in known))
