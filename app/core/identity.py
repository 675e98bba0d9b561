"""Who signed: what a verified certificate says, and the identifiers that derive from it.

Which class a signer has is decided in `core.allowlist`; whether two signers count once, in `core.corroborate`.
"""

import hashlib
from dataclasses import dataclass, field
from enum import StrEnum
from functools import lru_cache

from app.core.errors import InputError

GITHUB_ACTIONS_ISSUER = "https://token.actions.githubusercontent.com"
GITHUB_OAUTH_ISSUER = "https://github.com/login/oauth"


class SourceClass(StrEnum):
    """Classes of corroboration 1; a signer that is not listed is shown as a reported community source."""

    FIRST_PARTY = "first-party"
    COMMUNITY = "community"
    PARTNER = "partner"


@dataclass(frozen=True, slots=True)
class GithubClaims:
    """Fulcio's GitHub extensions that are kept (trust 1.2); every value is empty when the OID is absent."""

    trigger: str = ""  # .20 build trigger: push, schedule, pull_request, ...
    source_repository: str = ""  # .12, an https URL
    source_repository_id: str = ""  # .15
    source_owner: str = ""  # .16, an https URL
    source_owner_id: str = ""  # .17
    run_url: str = ""  # .21
    source_ref: str = ""  # .14


@dataclass(frozen=True, slots=True)
class SignerIdentity:
    """A verified (issuer, identity) pair; made only from a certificate that passed verification."""

    issuer: str
    identity: str
    claims: GithubClaims = field(default_factory=GithubClaims)

    @property
    def canonical_id(self) -> str:
        """All 64 hex of sha256(issuer LF identity) (corroboration 0)."""
        return canonical_source_id(self.issuer, self.identity)

    @property
    def slug(self) -> str:
        """The first 32 hex of the canonical id: directory name and allowlist key."""
        return self.canonical_id[:32]


@lru_cache(maxsize=8192)  # one verdict asks for the same few signers thousands of times
def canonical_source_id(issuer: str, identity: str) -> str:
    """Hash a signer; raises `InputError` for an empty part or a part with a line break."""
    if not issuer or not identity:
        raise InputError("issuer and identity must both be non-empty to derive a source slug")
    if any(ch in text for text in (issuer, identity) for ch in "\r\n"):
        raise InputError("issuer and identity must not contain a line break")
    return hashlib.sha256(f"{issuer}\n{identity}".encode()).hexdigest()


def source_slug(issuer: str, identity: str) -> str:
    """The 32-hex slug of a signer (evidence-format 7.1)."""
    return canonical_source_id(issuer, identity)[:32]
