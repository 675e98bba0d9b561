"""What people are shown of an identity: an allowlist label, else a masked address, else the identity (trust 5).

Only signed bytes (`/bundle`, `/predicate`) and offline `verify` are exact; everything else passes through here.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from app.core.allowlist import Allowlist
from app.core.party import is_address, mask_address, mask_identity

_TOKEN = re.compile(r"[^\s\"'`<>()\[\]{}|,;\\]+")
_DOMAIN = re.compile(r"(?:[\w-]+\.)+[\w-]{2,}")
_LOCAL_STARTS_AFTER = "/:=&?"


@dataclass(frozen=True, slots=True)
class Shown:
    """One identity as it may be shown; `label` is empty when the allowlist gives none."""

    identity: str
    label: str


@dataclass(frozen=True, slots=True)
class Masking:
    """Masks with the labels of one allowlist."""

    allowlist: Allowlist

    def signer(self, issuer: str, identity: str) -> Shown:
        """The label where there is one, never the address beside it."""
        label = self.allowlist.classify(issuer, identity).label
        if label and is_address(identity):
            return Shown(label, label)
        return Shown(mask_identity(identity) if is_address(identity) else MASK.text(identity), label)

    def party(self, party: str, shown: Shown) -> str:
        """A party that is an address is shown as its signer is."""
        masked = MASK.text(party)
        return shown.label if shown.label and masked != party else masked

    def replacements(self, issuer: str, identity: str) -> "Replacements":
        """For texts that may quote this signer in full."""
        return Replacements({identity: self.signer(issuer, identity).identity} if is_address(identity) else {})


@dataclass(frozen=True, slots=True)
class Replacements:
    """Masks texts; `known` maps exact identities to what is shown instead, whatever form they have."""

    known: Mapping[str, str] = field(default_factory=dict)

    def text(self, text: str) -> str:
        """Every address in `text` masked; linear in its length."""
        for exact, shown in self.known.items():
            text = text.replace(exact, shown)
        return _TOKEN.sub(_mask_token, text) if "@" in text else text

    def tree(self, value: object) -> object:
        """Every string of a JSON value masked, keys too."""
        match value:
            case str():
                return self.text(value)
            case Mapping():
                return {self.text(str(key)): self.tree(item) for key, item in value.items()}
            case list() | tuple():
                return [self.tree(item) for item in value]
            case _:
                return value

    def mapping(self, value: Mapping[str, object] | None) -> dict[str, object] | None:
        """An object of JSON masked, None left as it is."""
        return None if value is None else {self.text(key): self.tree(item) for key, item in value.items()}


MASK = Replacements()
"""Masks addresses by their form alone."""


def _mask_token(match: re.Match[str]) -> str:
    token = match.group()
    head, at, tail = token.rpartition("@")
    if not at:
        return token
    start = max(head.rfind(ch) for ch in _LOCAL_STARTS_AFTER) + 1
    local = head[start:]
    domain = _DOMAIN.match(tail)
    if domain is None or not local:
        return token
    return head[:start] + mask_address(f"{local}@{domain.group()}") + tail[domain.end() :]
