"""Everything that a test may want wrong, late, missing or doubled in a bundle, signed anew around the fault.

The default of every field is what an honest signer gets. "Re-signed" means that the log signs over the fault, so that
only a rule that looks at the meaning can find it; "after" means that nothing is signed again.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import Enum, StrEnum
from typing import Any, Final

from app.sandbox.identities import SanKind
from app.sandbox.sigstore.authority import Sct
from app.sandbox.sigstore.entries import IN_TOTO

BUNDLE_TYPE: Final = "application/vnd.dev.sigstore.bundle.v0.3+json"


class Honest(Enum):
    """Stands for "what the honest signer would write" where None means "leave it out"."""

    VALUE = "honest"


HONEST: Final = Honest.VALUE


class LeafKey(StrEnum):
    """Key types of the leaf; only P-256 is keyless Sigstore (S13)."""

    P256 = "P-256"
    P384 = "P-384"
    RSA = "RSA"
    ED25519 = "Ed25519"


class Stamp(StrEnum):
    """Kinds of RFC 3161 timestamps."""

    GOOD = "good"
    OTHER_MESSAGE = "other-message"  # well signed, over something else
    FOREIGN = "foreign"  # by an authority that no root knows
    REFUSED = "refused"  # a response with status rejection around a good token
    MALFORMED = "malformed"  # no DER


class Promise(StrEnum):
    """How the inclusion promise (SET) is made."""

    GOOD = "good"  # over the index, time, body and log id as the bundle shows them
    FOR_TRUE_INDEX = "for-true-index"  # over the log's own index even when `log_index` claims another
    ALTERED = "altered"  # one bit off
    ABSENT = "absent"


@dataclass(frozen=True, slots=True)
class Faults:
    """What to do otherwise; pass to `PrivateSigstore.mint(..., faults=Faults(...))`."""

    # Certificate: rules S13, S14, S15 and S18.
    leaf_key: LeafKey = LeafKey.P256
    leaf_lifetime: timedelta = timedelta(minutes=10)
    leaf_age: timedelta = timedelta(seconds=2)  # how long before `at` the certificate was issued; may be negative
    names: tuple[tuple[SanKind, str], ...] | None = None  # SAN list; () leaves the extension out
    issuer_raw: str | Honest | None = HONEST  # .1.1
    issuer: str | Honest | None = HONEST  # .1.8
    extensions: Mapping[int, str | None] = field(default_factory=dict)  # by number; None takes one out
    raw_extensions: Mapping[int, bytes] = field(default_factory=dict)  # exact values, whatever the encoding
    sct: Sct = Sct.GOOD
    sct_at: datetime | None = None
    code_signing: bool = True
    digital_signature: bool = True

    # Envelope: rules S4, S6 and S16.
    payload_type: str = IN_TOTO
    signatures: int = 1
    signed_payload: bytes | None = None  # the signature and the log entry are about this payload instead

    # Log entry, re-signed: rules S7 to S10.
    body: Callable[[dict[str, Any]], dict[str, Any]] | None = None  # canonicalized body before it is logged
    integrated_at: int | Honest | None = HONEST  # seconds; None leaves it out
    promise: Promise | Honest = HONEST  # v1 GOOD, v2 ABSENT
    log_index: int | None = None  # claimed global index
    checkpoint_origin: str | None = None
    checkpoint_size: int | None = None
    checkpoint_root: bytes | None = None
    checkpoint_by_stranger: bool = False  # signed by a key that no root knows, under our log's hint

    # Log entry, after.
    kind_version: tuple[str, str] | None = None
    log_id: bytes | None = None  # the promise is made over it
    proof_index: int | None = None
    proof_tree_size: int | None = None
    proof_root: bytes | None = None
    proof_hashes: tuple[bytes, ...] | None = None
    inclusion_proof: bool = True
    tlog_entries: int = 1

    # Timestamps, rules S6 and S12: v1 none, v2 one unless said otherwise.
    stamps: tuple[Stamp, ...] | Honest = HONEST
    stamped_at: datetime | None = None

    # Bundle, after: rule S3.
    media_type: str = BUNDLE_TYPE
    certificate_chain: bool = False  # `x509CertificateChain` instead of `certificate`, as older formats have it
    document: Callable[[dict[str, Any]], object] | None = None  # last edit of the JSON value, in place


HONESTLY: Final = Faults()


def stamps(count: int) -> tuple[Stamp, ...]:
    """`count` good timestamps; each is its own token, so none is a duplicate (limits: 32 pass, 33 do not)."""
    return (Stamp.GOOD,) * count
