"""Who judges: the signature engine, and the judge over a whole bundle."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol

from app.core.bundle import Pins, RawSignature, SignatureRefused, Verdict, VerifiedSignature
from app.core.refs import Digest
from app.core.report import InputKind


class BundleVerifier(Protocol):
    """Signature, transparency log and certificate: rules S1-S16 and S18 (trust 1.2)."""

    def verify(
        self, bundle: bytes, /, *, artifact: Digest | None, pins: Pins, now: datetime
    ) -> VerifiedSignature | SignatureRefused:
        """Judge one Sigstore bundle; with `artifact`, its subject must be that digest.

        Never raises for bad input: whatever the engine throws is a refusal with a code.
        """


@dataclass(frozen=True, slots=True)
class JudgeJob:
    """All that a judging worker needs; picklable and small (files stay in `directory`)."""

    directory: str
    input: InputKind
    received_at: datetime
    digest: Digest | None = None
    signatures: tuple[RawSignature, ...] = ()
    pointer: bytes | None = None
    pointer_name: str = ""  # file name of the pointer, when it came from a file (E5)
    pins: Pins = field(default_factory=Pins)
    strict: bool = True
    public: bool = True


class Judge(Protocol):
    """Turns an unpacked bundle into a verdict, in this process or in a supervised worker."""

    def judge(self, job: JudgeJob, /) -> Verdict:
        """Raises only `JudgeUnavailable` and `JudgeCrashed`."""
