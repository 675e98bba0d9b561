"""Whose account is behind a signer, and how strangers' text is shown to people (trust 5, 6).

A party is a hint at common control, never an authority: it raises a remark, and what is counted only where
`confirm_by` says so.
"""

import re
import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

from app.core.identity import GITHUB_ACTIONS_ISSUER, SignerIdentity

_NOREPLY = re.compile(r"(?:(?P<number>[0-9]{1,20})\+)?(?P<login>[^@+\s]+)@users\.noreply\.github\.com", re.IGNORECASE)
_NUMBER = re.compile(r"[0-9]{1,20}")
# Every repetition is bounded, since a stranger's text is searched (RFC 5321: 64 characters before the `@`).
_ADDRESS_IN_TEXT = re.compile(
    r"[^\s@/:<>()\[\]{}\"'`,;|]{1,64}@(?:[A-Za-z0-9-]{1,63}\.){1,10}[A-Za-z]{2,63}(?![A-Za-z0-9-])"
)
_INVISIBLE = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})


@dataclass(frozen=True, slots=True)
class Account:
    """An account, an address or a bare slug; texts are case-folded.

    A GitHub account has a `login`, a `number` or both; the number wins, since logins can change hands.
    """

    login: str = ""
    number: str = ""
    address: str = ""
    slug: str = ""

    @property
    def name(self) -> str:
        """`github:<login>`, the exact address, or the slug; whoever shows it masks it."""
        if self.login or self.number:
            return f"github:{self.login or self.number}"
        return self.address or self.slug


def party_of(signer: SignerIdentity) -> str:
    """The party's name, exact; two signers of one party can have two names, so compare by `parties_of`."""
    return account_of(signer).name


def account_of(signer: SignerIdentity) -> Account:
    """The party of one signer: repository owner, GitHub account of a noreply address, address, else the slug."""
    claims = signer.claims
    if signer.issuer == GITHUB_ACTIONS_ISSUER:
        owner = _first_path_part(claims.source_owner or claims.source_repository or signer.identity)
        number = claims.source_owner_id if _NUMBER.fullmatch(claims.source_owner_id) else ""
        if owner or number:
            return Account(login=owner, number=number)
    if noreply := _NOREPLY.fullmatch(signer.identity):
        return Account(login=noreply["login"].casefold(), number=noreply["number"] or "")
    if is_address(signer.identity):
        return Account(address=signer.identity.casefold())
    return Account(slug=signer.slug)


def parties_of(signers: Mapping[str, SignerIdentity]) -> Mapping[str, str]:
    """Source id -> party key, equal for signers of one party.

    A login without a number is the account of that login whose number another signer shows, if exactly one does.
    """
    found = {source: account_of(signer) for source, signer in signers.items()}
    numbers: dict[str, set[str]] = {}
    for party in found.values():
        if party.login and party.number:
            numbers.setdefault(party.login, set()).add(party.number)
    return {source: _key(party, numbers.get(party.login, set())) for source, party in found.items()}


def _key(party: Account, numbers: set[str]) -> str:
    if party.number:
        return f"github#{party.number}"
    if party.login:
        return f"github#{next(iter(numbers))}" if len(numbers) == 1 else f"github:{party.login}"
    return f"address:{party.address}" if party.address else f"slug:{party.slug}"


def _first_path_part(url: str) -> str:
    """The owner in `https://github.com/<owner>/...`, case-folded; empty for any other text."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return ""
    if parts.scheme != "https" or not parts.netloc:
        return ""
    return parts.path.strip("/").partition("/")[0].casefold()


def is_address(identity: str) -> bool:
    """Whether an identity has the shape of an e-mail address, which is masked and never a URI."""
    local, at, domain = identity.rpartition("@")
    return bool(at and local and domain) and "://" not in identity and "/" not in domain


def is_personal_address(identity: str) -> bool:
    """An address that leads to a person: any but GitHub's noreply ones."""
    return is_address(identity) and not _NOREPLY.fullmatch(identity)


def mask_address(address: str) -> str:
    """`octocat@example.org` -> `o…t@example.org`; one or two characters before the `@` become `…`."""
    local, at, domain = address.rpartition("@")
    if not at:
        return address
    return f"…@{domain}" if len(local) < 3 else f"{local[0]}…{local[-1]}@{domain}"


def mask_identity(identity: str) -> str:
    """A certificate identity as strangers may see it: an address masked, a URI as it is but for addresses in it."""
    if is_address(identity):
        scheme, colon, rest = identity.partition(":")
        return f"{scheme}:{mask_address(rest)}" if colon and scheme == "mailto" else mask_address(identity)
    return mask_text(identity)


def mask_text(text: str) -> str:
    """Free text with every address in it masked."""
    return _ADDRESS_IN_TEXT.sub(lambda found: mask_address(found[0]), text)


def visible(text: str, *, keep: Iterable[str] = ()) -> str:
    """Text with control, bidi and zero-width characters spelled out as escapes, so that nothing is hidden by them.

    `keep` names characters that stay, for example the line feed in a block of text.
    """
    kept = frozenset(keep)
    if text.isascii() and text.isprintable():
        return text
    return "".join(ch if ch in kept or unicodedata.category(ch) not in _INVISIBLE else _spelled(ch) for ch in text)


def _spelled(ch: str) -> str:
    code = ord(ch)
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
