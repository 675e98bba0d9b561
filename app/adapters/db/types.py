# ruff: noqa: ARG002 - the parameter list is TypeDecorator's
"""Column types that read back exactly what was written, on both databases, whatever a stranger sent.

PostgreSQL can store neither U+0000 nor a lone surrogate in text, and a JSON document may contain both. `Words` and
documents escape them reversibly: U+001B and four hex digits, so that text without these characters stays as it is.
"""

import json
import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime

from sqlalchemy import JSON, BigInteger, DateTime, Dialect, Integer, Text
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.types import TypeDecorator

MAX_INT = 2**63 - 1

_UNSTORABLE = re.compile("[\x00\x1b\ud800-\udfff]")
_SUSPECT = re.compile(r"\\u(?:0000|001b|d[89a-f])")  # in JSON text; a pair of surrogates is suspected for nothing
_ESCAPED = re.compile("\x1b([0-9a-f]{4})")


def escape(text: str) -> str:
    """`text` without characters that a database refuses."""
    return _UNSTORABLE.sub(lambda found: f"\x1b{ord(found[0]):04x}", text)


def unescape(text: str) -> str:
    """The inverse of `escape`."""
    return _ESCAPED.sub(lambda found: chr(int(found[1], 16)), text) if "\x1b" in text else text


def bounded(number: int) -> int:
    """`number` as a signed 64-bit column holds it; beyond that it says nothing about a cluster anyway."""
    return max(-MAX_INT, min(MAX_INT, number))


class Words(TypeDecorator[str]):
    """Text of a stranger."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: Dialect) -> str | None:
        """Escape on the way in."""
        return None if value is None else escape(value)

    def process_result_value(self, value: str | None, dialect: Dialect) -> str | None:
        """Unescape on the way out."""
        return None if value is None else unescape(value)


def dump_json(value: object) -> str:
    """JSON of a document column, escaped where a database would refuse a text in it."""
    text = json.dumps(value, separators=(",", ":"))
    return json.dumps(_each(value, escape), separators=(",", ":")) if _SUSPECT.search(text) else text


def load_json(text: str | bytes) -> object:
    """The inverse of `dump_json`."""
    raw = text.decode() if isinstance(text, bytes) else text
    value: object = json.loads(raw)
    return _each(value, unescape) if "\\u001b" in raw else value


Document = JSON().with_variant(JSONB(), "postgresql")
"""Plain JSON; an engine must be made with `dump_json` and `load_json`."""


class Instant(TypeDecorator[datetime]):
    """A time in UTC; SQLite keeps it without its zone, in a form that sorts."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        """To UTC; a time without a zone is a mistake of ours."""
        if value is None:
            return None
        if value.tzinfo is None:
            raise ValueError("expected a time with a zone, got one without")
        utc = value.astimezone(UTC)
        return utc.replace(tzinfo=None) if dialect.name == "sqlite" else utc

    def process_result_value(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        """Always with UTC as zone."""
        if value is None:
            return None
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


Key = BigInteger().with_variant(Integer, "sqlite")
"""64-bit integers; on SQLite the type that makes a primary key the row id."""


def _each(value: object, change: Callable[[str], str]) -> object:
    if isinstance(value, str):
        return change(value)
    if isinstance(value, Mapping):
        return {change(str(key)): _each(item, change) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_each(item, change) for item in value]
    return value
