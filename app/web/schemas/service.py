"""Who counts, and the service itself."""

from collections.abc import Mapping
from datetime import datetime

from app.web.schemas.base import Schema, Sha256, SourceClassField


class EntryOut(Schema):
    """One entry of the allowlist in force."""

    source_class: str = SourceClassField
    label: str
    issuer: str
    source: str
    identity_pattern: str


class AllowlistOut(Schema):
    """The allowlist in force; `problem` says why a newer file is not."""

    sha256: Sha256
    since: datetime
    status: str
    problem: str | None
    entries: list[EntryOut]


class AllowlistVersionOut(Schema):
    """One allowlist that was in force from `since` on, and what it changed."""

    sha256: Sha256
    since: datetime
    added: list[EntryOut]
    removed: list[EntryOut]


class SourceOut(Schema):
    """One source over all recipes: who it is and why it counts or not."""

    source: str
    source_id: str
    identity: str
    issuer: str
    label: str
    source_class: str = SourceClassField
    allowlisted: bool
    why: str
    party: str
    records: int
    recipes: list[str]
    first_seen: datetime
    last_seen: datetime
    links: Mapping[str, str]


class Health(Schema):
    """The process answers."""

    status: str
    timestamp: datetime


class Ready(Schema):
    """Whether every part answers; `parts` names each."""

    status: str
    parts: Mapping[str, str]
    timestamp: datetime
    reason: str | None = None
