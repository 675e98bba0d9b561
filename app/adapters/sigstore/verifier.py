"""Step 2 of the report: judging one Sigstore bundle (evidence-format 8.3, trust 1).

Sigstore is the engine; the rules before and after it are in `rules`. Whatever goes wrong while judging is a refusal
with a code, never an exception and never an acceptance.
"""

import hashlib
import json
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from cryptography.x509 import Certificate
from sigstore.errors import CertValidationError, VerificationError
from sigstore.models import Bundle
from sigstore.verify import policy

from app.adapters.sigstore.certificate import read_certificate
from app.adapters.sigstore.engine import Engine, load_bundle
from app.adapters.sigstore.envelope import read_envelope
from app.adapters.sigstore.roots import Log, TrustRoot, TrustRoots
from app.adapters.sigstore.rules import ENGINE_FAILED, Case, Stage, fault, first_fault
from app.core.bundle import LogEntry, Pins, SignatureRefused, Statement, VerifiedSignature
from app.core.errors import Category, DocumentInvalid, InputError
from app.core.identity import SignerIdentity
from app.core.pins import CompiledPins, compile_pins
from app.core.refs import Digest
from app.core.report import Fault
from app.core.rules import RULES
from app.core.statement import JSON_NOT_STRICT, read_statement

MAX_MESSAGE_CHARS: Final = 400
REFRESH: Final = (
    "refresh the trusted root (a newer release carries one), or name the root of the instance that signed "
    "(--trusted-root)"
)

_NO_PINS: Final = Pins()

# Sigstore logs what it rejects, with text that strangers wrote; the verdict says it better.
logging.getLogger("sigstore").addHandler(logging.NullHandler())
logging.getLogger("sigstore").propagate = False


@dataclass(frozen=True, slots=True)
class SignatureLimits:
    """Limits of one Sigstore bundle; `max_bundle_bytes` as upstream (evidence-format 3.3)."""

    max_bundle_bytes: int = 10 << 20


@dataclass(frozen=True, slots=True)
class SignatureOnly:
    """What `verify --signature-only` says of a bundle with any predicate; all of it is verified."""

    signature: VerifiedSignature
    payload_type: str

    @property
    def subject(self) -> dict[str, object]:
        """The first subject as it was signed: its name and its whole digest set."""
        first = json.loads(self.signature.statement.payload)["subject"][0]
        return {"name": first.get("name", ""), "digest": first["digest"]}

    def to_json(self) -> dict[str, object]:
        """The keys of service 4; times UTC with `Z`."""
        signature = self.signature
        return {
            "identity": signature.signer.identity,
            "issuer": signature.signer.issuer,
            "root": signature.root,
            "log": signature.log.log,
            "logId": signature.log.log_id,
            "logIndex": signature.log.index,
            "loggedAt": signature.logged_at.strftime("%Y-%m-%dT%H:%M:%SZ"),
            "payloadType": self.payload_type,
            "predicateType": signature.statement.predicate_type,
            "subject": self.subject,
        }


class _Refused(Exception):
    """Carries a refusal out of the stages; never leaves this module."""

    def __init__(self, rule: str, said: Fault) -> None:
        super().__init__(said.message)
        self.rule = rule
        self.fault = said


class SigstoreVerifier:
    """The port `BundleVerifier` over the roots in force; safe to share between threads, one a process is enough."""

    def __init__(self, roots: TrustRoots, limits: SignatureLimits | None = None) -> None:
        self.roots = roots
        self.limits = limits or SignatureLimits()

    def verify(
        self,
        bundle: bytes,
        /,
        *,
        artifact: Digest | None,
        pins: Pins,
        now: datetime,  # noqa: ARG002  the port's; no rule of this step looks at a clock, times come from the log
    ) -> VerifiedSignature | SignatureRefused:
        """Judge a bundle of recipe evidence; with `artifact`, its first subject must be that digest."""
        judged = self._judge(bundle, artifact, pins, evidence=True)
        return judged.signature if isinstance(judged, SignatureOnly) else judged

    def verify_signature_only(
        self, bundle: bytes, /, *, artifact: Digest | None = None, pins: Pins = _NO_PINS
    ) -> SignatureOnly | SignatureRefused:
        """Judge a bundle with any in-toto predicate by the same rules, recipe evidence apart."""
        return self._judge(bundle, artifact, pins, evidence=False)

    def _judge(
        self, raw: bytes, artifact: Digest | None, pins: Pins, *, evidence: bool
    ) -> SignatureOnly | SignatureRefused:
        case = Case(raw, self.limits.max_bundle_bytes, artifact, evidence)
        try:
            return self._run(case, compile_pins(pins))
        except _Refused as refused:
            said = refused.fault
            return SignatureRefused(refused.rule, said.code, said.message, said.category, said.hint)
        except InputError as err:
            return SignatureRefused("PIN", "PIN_INVALID", err.message, err.category, err.hint)
        except (MemoryError, KeyboardInterrupt, SystemExit):
            raise
        except BaseException as err:  # noqa: BLE001  Rust panics are no Exception; judging ends in a verdict (trust 1.1)
            return _engine_refusal(err)

    def _run(self, case: Case, pins: CompiledPins) -> SignatureOnly:
        """The stages: (0) bytes, (1) JSON, (2) statement, (3) certificate, (4) log, (5) engine, (6) weight."""
        # (0) bytes, before anything parses them
        _ask(case, Stage.BYTES)
        # (1) JSON, noted defects and decoded values
        try:
            case.envelope = read_envelope(case.raw)
        except DocumentInvalid as err:
            raise _Refused("S2", fault("S2", err.message, category=Category.INVALID_REQUEST)) from err
        _ask(case, Stage.DOCUMENT)
        # (2) statement, signed but not yet known to be
        case.statement = _statement(case.envelope.payload)
        _ask(case, Stage.STATEMENT)
        # (3) certificate, claimed but not yet known to be issued
        bundle = load_bundle(case.envelope.document)
        case.certificate = bundle.signing_certificate
        case.facts = read_certificate(case.certificate)
        _ask(case, Stage.CERTIFICATE)
        # (4) and (5), under each root that knows the log; the first refusal stands when none accepts.
        first: _Refused | None = None
        for root, log in self._candidates(case.entry.log_id):
            case.root, case.log = root, log
            try:
                _verify(case, bundle, pins)
                break
            except _Refused as refused:
                first = first or refused
        else:
            raise first or _Refused("S10", fault("S10", "no trusted root is in force"))
        # (6) weight: S18 refuses nothing
        weight = first_fault(case, Stage.WEIGHT)
        return _accept(case, "" if weight is None else f"{weight[1].code}: {weight[1].message}")

    def _candidates(self, log_id: bytes) -> Sequence[tuple[TrustRoot, Log | None]]:
        known = [(root, log) for root in self.roots.roots if (log := root.logs.get(log_id)) is not None]
        return known or [(root, None) for root in self.roots.roots]


class _SignerPolicy:
    """The certificate's own identity and issuer, plus the caller's pins; `missed` is the pin that does not hold."""

    def __init__(self, case: Case, pins: CompiledPins) -> None:
        facts = case.facts
        self._own = policy.AllOf(
            [
                policy.Identity(identity=facts.identity),
                policy.OIDCIssuer(facts.issuer) if facts.issuer_v2 is None else policy.OIDCIssuerV2(facts.issuer),
            ]
        )
        self._pin_fault = pins.fault(facts.issuer, facts.identity)
        self.missed: str | None = None

    def verify(self, cert: Certificate) -> None:
        """Raise `VerificationError` unless everything holds."""
        self._own.verify(cert)
        if self._pin_fault is not None:
            self.missed = self._pin_fault
            raise VerificationError(self._pin_fault)


def _ask(case: Case, stage: Stage) -> None:
    said = first_fault(case, stage)
    if said is not None:
        raise _Refused(*said)


def _statement(payload: bytes) -> Statement:
    """The payload as a statement; a key twice or in two spellings is S2, anything else malformed."""
    try:
        return read_statement(payload)
    except DocumentInvalid as err:
        rule = "S2" if err.code == JSON_NOT_STRICT else "STATEMENT"
        raise _Refused(rule, fault(rule, err.message, category=Category.INVALID_REQUEST)) from err


def _verify(case: Case, bundle: Bundle, pins: CompiledPins) -> None:
    """Log rules, engine, rules on what it verified, all under one root."""
    _ask(case, Stage.LOG)
    engine = Engine(case.root.material if case.log is None else case.log.material)
    signer = _SignerPolicy(case, pins)
    try:
        payload = engine.run(bundle, signer)
    except VerificationError as err:
        if signer.missed is None:
            raise _engine_refused(err) from err
        raise _Refused("PIN", fault("PIN", f"{ENGINE_FAILED}: {signer.missed}")) from err
    if payload != case.envelope.payload:
        raise _Refused("SIGSTORE", fault("SIGSTORE", f"{ENGINE_FAILED}: the engine verified another payload"))
    case.times = engine.times
    _ask(case, Stage.VERIFIED)


def _accept(case: Case, weightless: str) -> SignatureOnly:
    entry, facts = case.entry, case.facts
    checkpoint = entry.checkpoint
    signature = VerifiedSignature(
        signer=SignerIdentity(facts.issuer, facts.identity, facts.claims),
        statement=case.statement,
        log=LogEntry(
            log=checkpoint.log if checkpoint is not None else "",
            log_id=entry.log_id.hex(),
            index=entry.log_index,
            proof_index=entry.proof_index,
            kind=entry.kind,
        ),
        logged_at=min(time.at for time in case.times).astimezone(UTC),
        root=case.root.name,
        root_sha256=case.root.sha256,
        bundle_sha256=hashlib.sha256(case.raw).hexdigest(),
        weightless=weightless,
    )
    return SignatureOnly(signature, case.envelope.payload_type)


def _engine_refusal(err: BaseException) -> SignatureRefused:
    refused = _engine_refused(err)
    said = refused.fault
    return SignatureRefused(refused.rule, said.code, said.message, said.category, said.hint)


def _engine_refused(err: BaseException) -> _Refused:
    """The engine's refusal, or whatever broke while judging, as one code; chains get their own advice."""
    text = " ".join(str(part) for part in err.args) or type(err).__name__
    shown = "".join(char if char.isprintable() else "\ufffd" for char in " ".join(text.split()))[:MAX_MESSAGE_CHARS]
    if isinstance(err, CertValidationError):
        message = f"{ENGINE_FAILED}: {shown}; {REFRESH}"
        said = Fault("CERTIFICATE_CHAIN_UNTRUSTED", message, Category.UNAUTHORIZED, hint=REFRESH)
    else:
        known = isinstance(err, VerificationError)
        message = f"{ENGINE_FAILED}: {shown}" if known else f"{ENGINE_FAILED}: malformed bundle ({shown})"
        said = Fault(RULES["SIGSTORE"].code, message, Category.UNAUTHORIZED, hint=RULES["SIGSTORE"].cure)
    return _Refused("SIGSTORE", said)
