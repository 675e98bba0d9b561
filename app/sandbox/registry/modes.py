"""The ways in which a registry can be hostile, and what each does."""

from dataclasses import dataclass
from enum import StrEnum


class Hostility(StrEnum):
    """One hostile mode; the first group is how a registry serves, the second what it holds."""

    WRONG_MANIFEST = "wrong-manifest"  # other bytes of the same length
    WRONG_BLOB = "wrong-blob"
    WRONG_CONTENT_DIGEST = "wrong-content-digest"  # right bytes, wrong Docker-Content-Digest
    ENDLESS_BODY = "endless-body"
    DRIP = "drip"  # one byte a second
    TRUNCATED = "truncated"  # the connection closes half way
    REDIRECT_ELSEWHERE = "redirect-elsewhere"
    REDIRECT_PRIVATE = "redirect-private"  # to the cloud metadata address
    REDIRECT_LOOP = "redirect-loop"
    REALM_ELSEWHERE = "realm-elsewhere"
    AUTH_LOOP = "auth-loop"  # 401 for every token that its own realm hands out
    RATE_LIMITED = "rate-limited"
    SERVER_ERROR = "server-error"
    INDEX_LOOP = "index-loop"  # the listing's next page is itself
    NESTED_INDEX = "nested-index"
    MANY_REFERRERS = "many-referrers"
    FOREIGN_REFERRER = "foreign-referrer"  # a signature of another artifact
    PLANTED_TAG = "planted-tag"  # the same, through the fallback tag

    GZIP_BOMB = "gzip-bomb"
    TAR_BOMB = "tar-bomb"  # thousands of small files
    TRAVERSAL = "traversal"
    ABSOLUTE = "absolute"
    PAX_PATH = "pax-path"  # a harmless name that an extended header replaces
    SYMLINK = "symlink"
    HARDLINK = "hardlink"
    DEVICE = "device"
    DUPLICATE_ENTRY = "duplicate-entry"
    CASE_TWINS = "case-twins"
    SECOND_MEMBER = "second-member"  # two gzip members
    TRAILING_GARBAGE = "trailing-garbage"
    DUPLICATE_TITLES = "duplicate-titles"  # two layers of one title
    DUPLICATE_KEYS = "duplicate-keys"  # a manifest that says `layers` twice
    LOOKALIKE_KEYS = "lookalike-keys"  # `Layers` beside `layers`


SERVING = frozenset(list(Hostility)[: list(Hostility).index(Hostility.GZIP_BOMB)])
"""Modes of serving; the others are contents, made by `SandboxRegistry.plant`."""


@dataclass(slots=True)
class Behaviour:
    """How a hostile mode is tuned."""

    mode: Hostility
    elsewhere: str = "https://elsewhere.invalid"  # base URL of the other host
    retry_after_seconds: int | None = 1
    failures: int | None = None  # answers that fail before it recovers; None never recovers
    drip_seconds: float = 1.0
    referrers: int = 10_000

    def fails_now(self) -> bool:
        """Count one failing answer down."""
        if self.failures is None:
            return True
        self.failures -= 1
        return self.failures >= 0
