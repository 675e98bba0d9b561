"""Which of several signatures is the one that is meant (rule E7, trust 2).

Anybody who can push to a repository can attach a signature to what lies there, so that "the first one" is an
attacker's choice. A pointer says which one it means; without one, a strict judgement wants all to be of one signer.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from app.core.bundle import RawSignature, SignatureRefused, VerifiedSignature
from app.core.cross_check import SignerClaim, cross_check
from app.core.summary import instant

Outcome = VerifiedSignature | SignatureRefused
PIN_RULE = "PIN"


@dataclass(frozen=True, slots=True)
class Choice:
    """The signature that is judged: its place among `count`, its outcome, and why it is not certain, if so.

    `candidates` are all outcomes of an uncertain choice, for the caller to choose from.
    """

    index: int
    count: int
    outcome: Outcome
    ambiguous: str = ""
    candidates: tuple[tuple[RawSignature, Outcome], ...] = ()

    def details(self) -> dict[str, object]:
        """The candidates as data; signers by slug, since a refusal is shown to strangers."""
        rows = [_row(index, raw, outcome) for index, (raw, outcome) in enumerate(self.candidates)]
        return {"signatures": rows} if rows else {}


def choose_signature(
    signatures: Sequence[RawSignature],
    verify: Callable[[RawSignature], Outcome],
    *,
    claim: SignerClaim | None,
    strict: bool,
) -> Choice:
    """Choose among at least one signature: the one that the pointer's claim names, else the first.

    A strict judgement without a claim takes the earliest when all are of one signer; otherwise the choice is
    ambiguous, and the first one that verifies is reported.
    """
    count = len(signatures)
    if count == 1:
        return Choice(0, 1, verify(signatures[0]))
    if claim is not None:
        return _claimed(signatures, verify, claim)
    if not strict:
        return Choice(0, count, verify(signatures[0]))
    outcomes = [verify(raw) for raw in signatures]
    meant = [
        (index, outcome)
        for index, outcome in enumerate(outcomes)
        if not (isinstance(outcome, SignatureRefused) and outcome.rule == PIN_RULE)
    ]
    verified = [(index, outcome) for index, outcome in meant if isinstance(outcome, VerifiedSignature)]
    if not verified:
        return Choice(0, count, outcomes[0])
    if len(verified) == len(meant) and len({outcome.signer.canonical_id for _, outcome in verified}) == 1:
        index, earliest = min(verified, key=lambda pair: pair[1].place)
        return Choice(index, count, earliest)
    index, first = verified[0]
    return Choice(
        index,
        count,
        first,
        ambiguous=f"the artifact has {count} signatures that are not all of one signer, and no pointer names one",
        candidates=tuple(zip(signatures, outcomes, strict=True)),
    )


def _claimed(
    signatures: Sequence[RawSignature], verify: Callable[[RawSignature], Outcome], claim: SignerClaim
) -> Choice:
    first: Outcome | None = None
    for index, raw in enumerate(signatures):
        outcome = verify(raw)
        first = first or outcome
        if isinstance(outcome, VerifiedSignature) and cross_check(claim, outcome) is None:
            return Choice(index, len(signatures), outcome)
    assert first is not None  # noqa: S101 - there is at least one signature
    return Choice(0, len(signatures), first)


def _row(index: int, raw: RawSignature, outcome: Outcome) -> dict[str, object]:
    row: dict[str, object] = {"index": index}
    if raw.referrer is not None:
        row["referrer"] = str(raw.referrer)
    if isinstance(outcome, SignatureRefused):
        return {**row, "code": outcome.code}
    return {
        **row,
        "source": outcome.signer.slug,
        "issuer": outcome.signer.issuer,
        "logId": outcome.log.log_id,
        "rekorLogIndex": outcome.log.index,
        "loggedAt": instant(outcome.logged_at),
    }
