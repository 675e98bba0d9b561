"""The rules of step 2 as small functions over one case, in the order in which they are asked (trust 1.2).

`CHECKS` is the registry: the judge runs it stage by stage, and `tools/mutate.py` takes one entry out at a time to see a
test fail. S17 compares with a pointer and is in `app.core.cross_check`.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from enum import Enum, auto
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding

from app.adapters.sigstore.certificate import CertificateFacts, unprintable
from app.adapters.sigstore.engine import VerifiedTime
from app.adapters.sigstore.envelope import MAX_JSON_TOKENS, Entry, Envelope
from app.adapters.sigstore.roots import Log, TrustRoot
from app.core.bundle import Statement
from app.core.errors import Category, DocumentInvalid
from app.core.jsontext import has_more_tokens
from app.core.refs import Digest
from app.core.report import Fault
from app.core.rules import RULES
from app.core.statement import (
    MAX_STATEMENT_TOKENS,
    check_coherence,
    refuse_statement_type,
    require_subject_digest,
)

MEDIA_TYPES: Final = frozenset(
    {"application/vnd.dev.sigstore.bundle.v0.3+json", "application/vnd.dev.sigstore.bundle+json;version=0.3"}
)
PAYLOAD_TYPE: Final = "application/vnd.in-toto+json"
ENTRY_KINDS: Final = {"dsse": "0.0.1", "hashedrekord": "0.0.2"}
MAX_TIMESTAMPS: Final = 32
MAX_LEAF_LIFETIME: Final = timedelta(minutes=30)
PULL_REQUEST_TRIGGERS: Final = frozenset({"pull_request", "pull_request_target"})
ENGINE_FAILED: Final = "sigstore verification failed"


class Stage(Enum):
    """How far a case must have come before a rule can be asked."""

    BYTES = auto()  # only `raw`
    DOCUMENT = auto()  # the JSON is read
    STATEMENT = auto()  # the payload is read
    CERTIFICATE = auto()  # the leaf is read
    LOG = auto()  # a root and a log are chosen
    VERIFIED = auto()  # the engine accepted
    WEIGHT = auto()  # everything holds; what is said here takes the weight only


@dataclass(slots=True)
class Case:
    """One bundle on its way through the stages; a field is there from its stage on."""

    raw: bytes
    max_bytes: int
    artifact: Digest | None
    evidence: bool  # must be recipe evidence; otherwise any statement will do (`verify --signature-only`)
    envelope: Envelope = field(init=False)
    statement: Statement = field(init=False)
    facts: CertificateFacts = field(init=False)
    certificate: x509.Certificate = field(init=False)
    root: TrustRoot = field(init=False)
    log: Log | None = field(init=False)
    times: Sequence[VerifiedTime] = field(init=False)

    @property
    def entry(self) -> Entry:
        """The log entry that counts: the first."""
        return self.envelope.entries[0]


@dataclass(frozen=True, slots=True)
class Check:
    """A rule at its stage; `judge` says what is wrong, or None."""

    rule: str
    stage: Stage
    judge: Callable[[Case], Fault | None]


def fault(rule: str, message: str, *, code: str | None = None, category: Category = Category.UNAUTHORIZED) -> Fault:
    """A fault of `rule` with its code and cure."""
    return Fault(code or RULES[rule].code, message, category, hint=RULES[rule].cure)


def _malformed(rule: str, message: str) -> Fault:
    return fault(rule, message, category=Category.INVALID_REQUEST)


def _unverified(rule: str, message: str) -> Fault:
    return fault(rule, f"{ENGINE_FAILED}: {message}")


def s1_size(case: Case) -> Fault | None:
    """Size and number of JSON values, before anything is parsed."""
    if len(case.raw) > case.max_bytes:
        return _malformed("S1", f"expected a Sigstore bundle of at most {case.max_bytes} bytes, got {len(case.raw)}")
    if has_more_tokens(case.raw, MAX_JSON_TOKENS):
        return _malformed("S1", f"expected a bundle of at most {MAX_JSON_TOKENS} JSON tokens, got more")
    return None


def s1_payload(case: Case) -> Fault | None:
    """The same for the payload, whose size is bounded already: ten million brackets are gigabytes when parsed."""
    if has_more_tokens(case.envelope.payload, MAX_STATEMENT_TOKENS):
        return _malformed("S1", f"expected a payload of at most {MAX_STATEMENT_TOKENS} JSON tokens, got more")
    return None


def s2_strict_json(case: Case) -> Fault | None:
    """Duplicates, case variants, unknown fields, constants, and numbers where a string is due."""
    defects = case.envelope.defects.json
    return _malformed("S2", f"the bundle is no strict JSON: {defects[0]}") if defects else None


def s3_media_type(case: Case) -> Fault | None:
    """Bundle format v0.3."""
    found = case.envelope.media_type
    if found in MEDIA_TYPES:
        return None
    return _malformed("S3", f"expected media type application/vnd.dev.sigstore.bundle.v0.3+json, got {found[:120]!r}")


def s4_payload_type(case: Case) -> Fault | None:
    """An in-toto statement, and nothing that another system signs in an envelope."""
    if not case.envelope.has_envelope:
        return _malformed("S4", "expected a bundle with a DSSE envelope, got none")
    found = case.envelope.payload_type
    if found == PAYLOAD_TYPE:
        return None
    return _malformed("S4", f"expected payload type {PAYLOAD_TYPE}, got {found[:120]!r}")


def s5_canonical_base64(case: Case) -> Fault | None:
    """Also a payload that is encoded twice: the engine verifies what it decodes to once, which is no statement."""
    defects = case.envelope.defects.base64
    if defects:
        return _malformed("S5", defects[0])
    if case.envelope.payload.lstrip()[:1] not in {b"{", b"["}:
        return _malformed("S5", "expected the decoded payload to be JSON, got something else (encoded twice?)")
    return None


def s6_counts(case: Case) -> Fault | None:
    """One signature, one entry, at most 32 timestamps."""
    document = case.envelope
    if document.signatures != 1:
        return _malformed("S6", f"expected exactly one signature, got {document.signatures}")
    if len(document.entries) != 1:
        return _malformed("S6", f"expected exactly one log entry, got {len(document.entries) or 'none'}")
    if document.timestamps > MAX_TIMESTAMPS:
        return _malformed("S6", f"expected at most {MAX_TIMESTAMPS} timestamps, got {document.timestamps}")
    return None


def s7_entry_kind(case: Case) -> Fault | None:
    """Kind and version are supported, and the body that the log signed says the same."""
    entry = case.entry
    if ENTRY_KINDS.get(entry.kind) != entry.version:
        found = f"{entry.kind[:40]}/{entry.version[:40]}"
        return _malformed("S7", f"expected a log entry dsse/0.0.1 or hashedrekord/0.0.2, got {found!r}")
    if (entry.body_kind, entry.body_version) != (entry.kind, entry.version):
        found = f"{entry.body_kind[:40]}/{entry.body_version[:40]}"
        return _malformed("S7", f"expected the entry's body to be {entry.kind}/{entry.version}, got {found!r}")
    return None


def s8_checkpoint(case: Case) -> Fault | None:
    """The proof is about the tree that the log signed."""
    entry = case.entry
    signed = entry.checkpoint
    if signed is None:
        return _unverified("S8", "expected an inclusion proof with a signed checkpoint, got none")
    if signed.size != entry.tree_size:
        return _unverified(
            "S8", f"the checkpoint is of a tree of {signed.size} entries, the proof of {entry.tree_size}"
        )
    if signed.root != entry.root_hash:
        return _unverified("S8", "the checkpoint's root hash is not the proof's")
    return None


def s9_log_index(case: Case) -> Fault | None:
    """What binds the log index: in v1 the promise over it, in v2 the proof, which has the same one."""
    entry = case.entry
    if entry.kind == "hashedrekord":
        if entry.promised or entry.integrated_time:
            return _malformed("S9", "expected no promise and no integrated time in a Rekor v2 entry, got one")
        if entry.log_index != entry.proof_index:
            return _malformed("S9", f"the entry has log index {entry.log_index}, its proof {entry.proof_index}")
        return None
    if not entry.promised:
        return _malformed("S9", "expected an inclusion promise in a Rekor v1 entry, got none")
    if entry.integrated_time <= 0:
        return _malformed("S9", "expected a positive integrated time in a Rekor v1 entry, got none")
    return None


def s10_known_log(case: Case) -> Fault | None:
    """The log is the root's, and the checkpoint is that log's own."""
    entry = case.entry
    if case.log is None:
        return _unverified(
            "S10",
            f"log {entry.log_id.hex()[:64]} is in no trusted root in force; "
            "refresh the trusted root if it is a new one",
        )
    if entry.checkpoint is not None and not case.log.wrote(entry.checkpoint.origin):
        return _unverified(
            "S10", f"expected a checkpoint written by log {case.log.name}, got origin {entry.checkpoint.origin[:120]!r}"
        )
    return None


def s11_windows(case: Case) -> Fault | None:
    """Both ends of every period, for the log's key, the authority and the CT log; the engine looks at starts only."""
    for time in case.times:
        if case.log is not None and not case.log.window.holds(time.at):
            return _unverified("S11", _outside(time.at, f"log {case.log.name}", case.log.window))
        windows = case.root.authorities.get(time.issuer.public_bytes(Encoding.DER), ())
        if not any(window.holds(time.at) for window in windows):
            return _unverified("S11", _outside(time.at, "the certificate authority", *windows))
    return _sct_window(case)


def _sct_window(case: Case) -> Fault | None:
    scts = case.certificate.extensions.get_extension_for_class(x509.PrecertificateSignedCertificateTimestamps).value
    for sct in scts:
        at = sct.timestamp.replace(tzinfo=UTC)
        window = case.root.ct_logs.get(sct.log_id)
        if window is None:
            return _unverified("S11", f"CT log {sct.log_id.hex()} is not in the trusted root")
        if not window.holds(at):
            return _unverified("S11", _outside(at, "the CT log", window))
    return None


def _outside(at: datetime, what: str, *windows: object) -> str:
    allowed = ", ".join(str(window) for window in windows) or "never"
    return f"{at.strftime('%Y-%m-%dT%H:%M:%SZ')} lies outside of the period for which the root trusts {what}: {allowed}"


def s12_timestamps(case: Case) -> Fault | None:
    """A timestamp that does not verify is no decoration: somebody put it there."""
    verified = sum(time.stamped for time in case.times)
    if verified == case.envelope.timestamps:
        return None
    return _unverified("S12", f"expected all of {case.envelope.timestamps} timestamps to verify, {verified} did")


def s13_certificate(case: Case) -> Fault | None:
    """A certificate, where others put a bare public key or a chain of their own."""
    if case.envelope.has_certificate:
        return None
    return _unverified("S13", "expected one signing certificate, got a public key, a chain or nothing")


def s13_keyless(case: Case) -> Fault | None:
    """A key of its own for this one signature."""
    if case.facts.key != "p-256":
        return _unverified("S13", f"expected an ECDSA P-256 signing key, got {case.facts.key}")
    if case.facts.lifetime > MAX_LEAF_LIFETIME:
        return _unverified("S13", f"expected a certificate for at most 30 minutes, got one for {case.facts.lifetime}")
    return None


def s14_identity(case: Case) -> Fault | None:
    """One name that people can read and slugs can be hashed over."""
    names = case.facts.names
    if len(names) != 1:
        return _unverified("S14", f"expected exactly one subject alternative name, got {len(names) or 'none'}")
    if names[0].kind not in {"email", "uri"}:
        return _unverified("S14", f"expected an e-mail address or a URI as identity, got a {names[0].kind}")
    if not names[0].value.strip():
        return _unverified("S14", "expected an identity, got an empty one")
    if (found := unprintable(names[0].value)) is not None:
        return _unverified("S14", f"expected an identity without control characters, got one with {found}")
    if not names[0].value.isascii():  # RFC 5280 4.2.1.6: an IA5String; look-alike letters end here
        return _unverified("S14", f"expected an identity of ASCII characters, got {names[0].value[:120]!a}")
    return None


def s15_issuer(case: Case) -> Fault | None:
    """One issuer, whichever extension is read."""
    facts = case.facts
    if not facts.issuer:
        return _unverified("S15", "expected the certificate to name its OIDC issuer, got none")
    if None not in {facts.issuer_raw, facts.issuer_v2} and facts.issuer_raw != facts.issuer_v2:
        return _unverified(
            "S15", f"the certificate names two issuers, {facts.issuer_v2!r:.120} and {facts.issuer_raw!r:.120}"
        )
    if (found := unprintable(facts.issuer)) is not None:
        return _unverified("S15", f"expected an issuer without control characters, got one with {found}")
    return None


def statement_subject(case: Case) -> Fault | None:
    """Evidence names what it is about by a sha256 digest (evidence-format 8.3, step 2.2)."""
    if not case.evidence:
        return None
    try:
        require_subject_digest(case.statement)
    except DocumentInvalid as err:
        return _malformed("STATEMENT", err.message)
    return None


def statement_coherence(case: Case) -> Fault | None:
    """Evidence is of a known predicate type, with the profile block that goes with it."""
    if not case.evidence:
        return None
    try:
        check_coherence(case.statement.predicate_type, case.statement.predicate)
    except DocumentInvalid as err:
        return _malformed("COHERENCE", err.message)
    return None


def root_issuer(case: Case) -> Fault | None:
    """A private root mints whatever name it likes; it is believed for its own issuers only (service 2)."""
    if case.root.speaks_for(case.facts.issuer):
        return None
    return _unverified("ROOT", f"trusted root {case.root.name!r} may not certify identities of {case.facts.issuer}")


def s16_statement(case: Case) -> Fault | None:
    """The statement is about exactly what was pulled; the engine looks at no subject."""
    try:
        refuse_statement_type(case.statement)
    except DocumentInvalid as err:
        return fault("S16", err.message, code="S16_STATEMENT_TYPE", category=Category.INVALID_REQUEST)
    subject = case.statement.subjects[0].sha256
    if case.artifact is not None and subject != case.artifact.hex:
        return _malformed("S16", f"subject sha256:{subject[:80]} does not match pulled artifact digest {case.artifact}")
    return None


def s18_caller(case: Case) -> Fault | None:
    """A reusable workflow signs with its own name for whoever calls it, and anybody can open a pull request."""
    claims, identity = case.facts.claims, case.facts.identity
    if claims.source_repository and claims.source_repository != _repository(identity):
        return fault(
            "S18",
            f"the certificate names {identity}, but a run of {claims.source_repository} asked for it",
            code="S18_OTHER_REPOSITORY",
        )
    if claims.trigger in PULL_REQUEST_TRIGGERS:
        return fault("S18", f"the certificate was issued to a run on {claims.trigger}", code="S18_PULL_REQUEST")
    return None


def _repository(identity: str) -> str:
    """The repository in a workflow identity: before `//` (GitLab), else host, owner and name (GitHub)."""
    scheme, slashes, rest = identity.partition("://")
    if not slashes:
        return ""
    project, double, _ = rest.partition("//")
    return f"{scheme}://{project if double else '/'.join(rest.split('/')[:3])}"


CHECKS: tuple[Check, ...] = (
    Check("S1", Stage.BYTES, s1_size),
    Check("S1", Stage.DOCUMENT, s1_payload),
    Check("S2", Stage.DOCUMENT, s2_strict_json),
    Check("S3", Stage.DOCUMENT, s3_media_type),
    Check("S4", Stage.DOCUMENT, s4_payload_type),
    Check("S6", Stage.DOCUMENT, s6_counts),
    Check("S5", Stage.DOCUMENT, s5_canonical_base64),
    Check("S7", Stage.DOCUMENT, s7_entry_kind),
    Check("S8", Stage.DOCUMENT, s8_checkpoint),
    Check("S9", Stage.DOCUMENT, s9_log_index),
    Check("S13", Stage.DOCUMENT, s13_certificate),
    Check("STATEMENT", Stage.STATEMENT, statement_subject),
    Check("COHERENCE", Stage.STATEMENT, statement_coherence),
    Check("S16", Stage.STATEMENT, s16_statement),
    Check("S13", Stage.CERTIFICATE, s13_keyless),
    Check("S14", Stage.CERTIFICATE, s14_identity),
    Check("S15", Stage.CERTIFICATE, s15_issuer),
    Check("S10", Stage.LOG, s10_known_log),
    Check("ROOT", Stage.VERIFIED, root_issuer),
    Check("S12", Stage.VERIFIED, s12_timestamps),
    Check("S11", Stage.VERIFIED, s11_windows),
    Check("S18", Stage.WEIGHT, s18_caller),
)
"""Every rule with the stage at which it is asked; within a stage, in this order."""


def first_fault(case: Case, stage: Stage) -> tuple[str, Fault] | None:
    """The first rule of `stage` that speaks, with what it says."""
    for check in CHECKS:
        if check.stage is stage and (said := check.judge(case)) is not None:
            return check.rule, said
    return None
