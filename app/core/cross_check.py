"""Rule S17: the signer that a pointer claims is the one that signed (evidence-format 8.3 step 2.6, 11.8).

A log index of 0 is a real index (trust 1.2), unlike upstream, which reads it as "none".
"""

from dataclasses import dataclass

from app.core.bundle import VerifiedSignature
from app.core.errors import Category
from app.core.report import Fault
from app.core.rules import RULES


@dataclass(frozen=True, slots=True)
class SignerClaim:
    """The `signer` of a pointer; an empty part is not compared, `None` is no claim about the log."""

    identity: str
    issuer: str
    rekor_log_index: int | None = None


@dataclass(frozen=True, slots=True)
class SignerFacts:
    """What a signature says about itself; `log_index` is None when it has no log entry."""

    identity: str
    issuer: str
    log_index: int | None


def facts_of(signature: VerifiedSignature) -> SignerFacts:
    """The facts of a verified signature, which always has an entry."""
    return SignerFacts(signature.signer.identity, signature.signer.issuer, signature.log.index)


def cross_check(claim: SignerClaim | None, signature: SignerFacts | VerifiedSignature | None) -> Fault | None:
    """Compare what the pointer claims with the signature; None when they agree or nothing is claimed."""
    if claim is None:
        return None
    if signature is None:
        return _fault(
            "S17_NO_SIGNATURE", f"no signature: the pointer claims {claim.identity!r}, the bundle is unsigned"
        )
    facts = facts_of(signature) if isinstance(signature, VerifiedSignature) else signature
    if claim.identity and claim.identity != facts.identity:
        return _fault(
            "S17_IDENTITY_MISMATCH",
            f"identity mismatch: the pointer claims {claim.identity!r}, the certificate says {facts.identity!r}",
        )
    if claim.issuer and claim.issuer != facts.issuer:
        return _fault(
            "S17_ISSUER_MISMATCH",
            f"issuer mismatch: the pointer claims {claim.issuer!r}, the certificate says {facts.issuer!r}",
        )
    if claim.rekor_log_index is None:
        return None
    if facts.log_index is None:
        return _fault(
            "S17_NO_LOG_ENTRY",
            f"no Rekor entry in the signature: the pointer claims index {claim.rekor_log_index}",
        )
    if claim.rekor_log_index != facts.log_index:
        return _fault(
            "S17_LOG_INDEX_MISMATCH",
            f"Rekor log index mismatch: the pointer claims {claim.rekor_log_index}, the entry has {facts.log_index}",
        )
    return None


def _fault(code: str, message: str) -> Fault:
    return Fault(code, message, Category.UNAUTHORIZED, hint=RULES["S17"].cure)
