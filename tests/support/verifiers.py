"""A verifier without cryptography, for tests of what comes after the signature."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime

from app.core.bundle import (
    LogEntry,
    Pins,
    SignatureRefused,
    Statement,
    Subject,
    VerifiedSignature,
)
from app.core.identity import GITHUB_OAUTH_ISSUER, SignerIdentity
from app.core.refs import Digest

DIGEST = Digest("ab" * 32)
LOGGED_AT = datetime(2026, 5, 8, 10, 24, tzinfo=UTC)
RECEIVED_AT = datetime(2026, 5, 8, 11, 0, tzinfo=UTC)
OCTOCAT = SignerIdentity(GITHUB_OAUTH_ISSUER, "1234567+octocat@users.noreply.github.com")
ALICE = SignerIdentity(GITHUB_OAUTH_ISSUER, "alice@example.org")


@dataclass
class FakeVerifier:
    """Answers by the bundle's bytes; an unknown bundle is refused as the engine would."""

    outcomes: Mapping[bytes, VerifiedSignature | SignatureRefused] = field(default_factory=dict)

    def verify(
        self, bundle: bytes, /, *, artifact: Digest | None, pins: Pins, now: datetime
    ) -> VerifiedSignature | SignatureRefused:
        outcome = self.outcomes.get(bundle)
        if outcome is None:
            return SignatureRefused("SIGSTORE", "SIGNATURE_VERIFICATION_FAILED", "sigstore verification failed")
        if isinstance(outcome, VerifiedSignature) and pins.issuer not in {None, outcome.signer.issuer}:
            return SignatureRefused("PIN", "PIN_MISMATCH", "expected another issuer")
        return outcome


def signed(
    predicate: Mapping[str, object],
    predicate_type: str,
    *,
    signer: SignerIdentity = OCTOCAT,
    index: int = 42,
    logged_at: datetime = LOGGED_AT,
    subjects: int = 1,
    weightless: str = "",
) -> VerifiedSignature:
    """What a verifier says about a signature over an artifact statement."""
    return VerifiedSignature(
        signer=signer,
        statement=Statement(
            payload=b"{}",
            type="https://in-toto.io/Statement/v1",
            predicate_type=predicate_type,
            subjects=(Subject("ghcr.io/octocat/aicr-evidence:v1", DIGEST.hex),) * subjects,
            predicate=predicate,
        ),
        log=LogEntry("log.example.org", "cd" * 32, index, index, "hashedrekord"),
        logged_at=logged_at,
        root="sandbox",
        root_sha256="ef" * 32,
        bundle_sha256="01" * 32,
        weightless=weightless,
    )
