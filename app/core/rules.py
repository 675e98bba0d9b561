"""Every rule that can speak in a verdict: its stable code, what it asks for, and what to do about it.

The table is data only. Signature rules are judged in `app.adapters.sigstore`, E rules in `app.core.findings`,
the rest where `docs/architecture.md` says; `docs/verification.md` is generated from here.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType

from app.core.report import StepName

RULE_SET_VERSION = 1
"""Grows whenever a rule starts to judge differently; part of the key of a cached verdict (trust 1.1)."""


class RuleKind(StrEnum):
    """Where a rule comes from, which decides what it changes."""

    UPSTREAM = "upstream"  # evidence-format 8.3: fails its step for everybody
    SIGNATURE = "signature"  # trust 1.2: fails step 2, with or without --strict; S18 is a finding that fails nothing
    FINDING = "finding"  # trust 2: a finding; fails with --strict and for every ingest


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule: `id` as the trust page numbers it, `code` stable, `title` and `cure` one line each.

    `subcodes` are finer codes that the same rule also speaks with; each starts with the rule's id.
    """

    id: str
    code: str
    title: str
    cure: str
    step: StepName
    kind: RuleKind
    subcodes: tuple[str, ...] = ()


def _signature(rule: str, code: str, title: str, cure: str, *subcodes: str) -> Rule:
    return Rule(rule, code, title, cure, StepName.SIGNATURE, RuleKind.SIGNATURE, subcodes)


def _finding(rule: str, code: str, title: str, cure: str) -> Rule:
    return Rule(rule, code, title, cure, StepName.MANIFEST, RuleKind.FINDING)


def _upstream(rule: str, code: str, step: StepName, title: str, cure: str, *subcodes: str) -> Rule:
    return Rule(rule, code, title, cure, step, RuleKind.UPSTREAM, subcodes)


_RESIGN = "sign the bundle again with a current `aicr` or `cosign`"
_REPUBLISH = "rebuild the bundle with the producer and publish it again"

_TABLE: tuple[Rule, ...] = (
    _upstream(
        "MATERIALIZE",
        "BUNDLE_NOT_READABLE",
        StepName.MATERIALIZE,
        "the bundle can be read: an artifact of the right type with one layer, or a directory with a manifest",
        "check that the reference or path is the one meant, that it may be read, and that the whole bundle is there",
    ),
    _upstream(
        "UNSIGNED",
        "SIGNATURE_MISSING",
        StepName.SIGNATURE,
        "evidence that is submitted, or whose signer somebody names, carries a signature",
        "sign the pushed bundle and attach the signature as a referrer",
    ),
    _upstream(
        "STATEMENT",
        "STATEMENT_MALFORMED",
        StepName.SIGNATURE,
        "the signed payload is an in-toto statement with a subject that has a sha256 digest",
        _REPUBLISH,
    ),
    _upstream(
        "COHERENCE",
        "PREDICATE_INCOHERENT",
        StepName.SIGNATURE,
        "the predicate type is a known recipe-evidence type and its profile block fits that type",
        "publish recipe evidence of type v3; v1 carries no profile block, v2 must carry one",
    ),
    _upstream(
        "SIGSTORE",
        "SIGNATURE_VERIFICATION_FAILED",
        StepName.SIGNATURE,
        "certificate chain, signature, log entry and times verify against a trusted root in force",
        "check that the bundle is unaltered and signed under a root in force (`aicr evidence trust show`)",
        "CERTIFICATE_CHAIN_UNTRUSTED",
    ),
    _upstream(
        "ROOT",
        "ROOT_NOT_FOR_ISSUER",
        StepName.SIGNATURE,
        "the root that verified may speak for the certificate's issuer",
        "add the issuer to that root in TRUSTED_ROOT only if its operator runs that issuer",
    ),
    _upstream(
        "PIN",
        "PIN_MISMATCH",
        StepName.SIGNATURE,
        "the signer is the one that the caller pinned",
        "compare the certificate's issuer and identity with --expected-issuer and --expected-identity-regexp",
        "PIN_UNSIGNED",
        "PIN_INVALID",
    ),
    _signature(
        "S1",
        "S1_BUNDLE_TOO_LARGE",
        "the Sigstore bundle is at most 10 MiB before anything parses it",
        "sign a statement of the usual size; raise the limit only for sources you trust",
    ),
    _signature(
        "S2",
        "S2_JSON_NOT_STRICT",
        "the bundle is strict JSON: no key twice or in another case, no NaN, no number where a 64-bit string is due",
        "write the bundle with a protobuf-JSON serializer, not by hand",
    ),
    _signature(
        "S3",
        "S3_MEDIA_TYPE",
        "the bundle's media type is the v0.3 one",
        "convert or sign again: bundles v0.1 and v0.2 are not accepted",
    ),
    _signature(
        "S4",
        "S4_PAYLOAD_TYPE",
        "the envelope's payload type is exactly application/vnd.in-toto+json",
        "sign an in-toto statement",
    ),
    _signature(
        "S5",
        "S5_BASE64_NOT_CANONICAL",
        "every base64 value decodes strictly and encodes back to the same text",
        "write the bundle with a protobuf-JSON serializer; do not wrap, pad or encode values twice",
    ),
    _signature(
        "S6",
        "S6_NOT_EXACTLY_ONE",
        "there is exactly one signature and one log entry, and at most 32 timestamps",
        _RESIGN,
    ),
    _signature(
        "S7",
        "S7_ENTRY_KIND",
        "the log entry is dsse 0.0.1 or hashedrekord 0.0.2, and its body says the same",
        _RESIGN,
    ),
    _signature(
        "S8",
        "S8_CHECKPOINT_MISMATCH",
        "the inclusion proof has the size and the root hash that the signed checkpoint states",
        "fetch the log entry again; the proof and its checkpoint must be of one tree",
    ),
    _signature(
        "S9",
        "S9_LOG_INDEX_UNBOUND",
        "a Rekor v1 entry has a promise and an integrated time; a v2 entry has none and one index only",
        "fetch the log entry again; without this the log index could be anything",
    ),
    _signature(
        "S10",
        "S10_LOG_UNKNOWN",
        "the log is one of the trusted root's, and the checkpoint was written by that log",
        "refresh the trusted root (a newer release carries one), or use a log that it names",
    ),
    _signature(
        "S11",
        "S11_OUTSIDE_ROOT_WINDOW",
        "every verified time lies in the period for which the root trusts the log, the authority and the CT log",
        "refresh the trusted root (a newer release carries one); keys that were retired sign nothing new",
    ),
    _signature(
        "S12",
        "S12_TIMESTAMP_INVALID",
        "every RFC 3161 timestamp in the bundle verifies",
        "remove the timestamp or ask a trusted timestamp authority for a new one",
    ),
    _signature(
        "S13",
        "S13_LEAF_NOT_KEYLESS",
        "the signing key is ECDSA P-256 and its certificate lives at most 30 minutes",
        "sign keyless through Fulcio; long-lived certificates and other keys are not accepted",
    ),
    _signature(
        "S14",
        "S14_IDENTITY_NOT_PLAIN",
        "the certificate names exactly one identity, an e-mail address or a URI, in visible ASCII characters",
        "sign with an identity provider that issues one plain identity",
    ),
    _signature(
        "S15",
        "S15_ISSUER_AMBIGUOUS",
        "the certificate names its OIDC issuer, and both issuer extensions agree when both are there",
        _RESIGN,
    ),
    _signature(
        "S16",
        "S16_SUBJECT_MISMATCH",
        "the statement is an in-toto v1 or v0.1 statement about exactly the artifact that was pulled",
        "sign the artifact that is referenced: subject[0].digest.sha256 must be its manifest digest",
        "S16_STATEMENT_TYPE",
    ),
    _signature(
        "S17",
        "S17_POINTER_SIGNER_MISMATCH",
        "identity, issuer and log index in the pointer are those of the certificate and the log entry",
        "write the pointer from the verified signature, never by hand",
        "S17_NO_SIGNATURE",
        "S17_IDENTITY_MISMATCH",
        "S17_ISSUER_MISMATCH",
        "S17_NO_LOG_ENTRY",
        "S17_LOG_INDEX_MISMATCH",
    ),
    _signature(
        "S18",
        "S18_CALLER_NOT_SIGNER",
        "a GitHub Actions certificate speaks for its own repository and was not issued to a pull request",
        "sign from a workflow of the repository that runs, on push, schedule or release; until then it has no weight",
        "S18_OTHER_REPOSITORY",
        "S18_PULL_REQUEST",
    ),
    _upstream(
        "PREDICATE",
        "PREDICATE_MALFORMED",
        StepName.PREDICATE,
        "the statement parses, and its recipe name is the one that the pointer names",
        _REPUBLISH,
    ),
    _upstream(
        "INVENTORY",
        "MANIFEST_INVENTORY",
        StepName.MANIFEST,
        "the bundle holds exactly the files that its manifest lists, with their sizes and digests",
        "publish the bundle again from the producer's output; add and change nothing",
    ),
    _upstream(
        "PHASES",
        "PHASE_DIGEST_MISMATCH",
        StepName.MANIFEST,
        "every phase of the predicate has its report with the digest that the predicate states",
        _REPUBLISH,
    ),
    _upstream(
        "IDENTITY",
        "RECIPE_IDENTITY_MISMATCH",
        StepName.MANIFEST,
        "name, digest and profile in the predicate and the pointer are those of the bundle's own recipe.yaml",
        _REPUBLISH,
    ),
    _finding(
        "E1",
        "E1_MANIFEST_NOT_EXACT",
        "the manifest lists each path once, counts its files, and no path is a link or differs only by case or form",
        _REPUBLISH,
    ),
    _finding(
        "E2",
        "E2_BOM_MISMATCH",
        "the bill of materials is there, with the digest and the number of components that the predicate states",
        _REPUBLISH,
    ),
    _finding(
        "E3",
        "E3_PHASE_COUNTS_MISMATCH",
        "counts in the predicate and in each report's summary are those of the report's own tests",
        "run the validation again; counts are never edited by hand",
    ),
    _finding(
        "E4",
        "E4_DUPLICATE_TEST",
        "a test name appears once in a phase",
        "give each check its own name, so that a pass can not hide a failure",
    ),
    _finding(
        "E5",
        "E5_POINTER_MISMATCH",
        "the pointer's predicate type, time and file name are those of the bundle it points to",
        "write the pointer from the signed bundle, never by hand",
    ),
    _finding(
        "E6",
        "E6_ATTESTED_IN_FUTURE",
        "the run is not dated later than its log entry plus 10 minutes",
        "set the clock of the machine that runs the validation",
    ),
    _finding(
        "E7",
        "E7_SIGNATURE_AMBIGUOUS",
        "the artifact has one signature, or it is said which one is meant",
        "submit the pointer that names the signer and the log index",
    ),
    _finding(
        "E8",
        "E8_RECIPE_NOT_COMPARABLE",
        "the recipe gives a name and a coordinate, and each row of the hardware match follows from it and fingerprint",
        "resolve the recipe with criteria and run the validation on hardware that matches them",
    ),
    _finding(
        "E9",
        "E9_STATEMENT_INCOMPLETE",
        "there is exactly one subject, and phases and reports match one to one; an empty phase is no pass",
        _REPUBLISH,
    ),
    _finding(
        "E10",
        "E10_TIMES_OUT_OF_ORDER",
        "each report starts before it stops and stops no later than the attestation plus 10 minutes",
        "set the clock of the machine that runs the validation",
    ),
)

RULES: Mapping[str, Rule] = MappingProxyType({rule.id: rule for rule in _TABLE})
"""Every rule by id, in the order in which they are explained."""

CODES: Mapping[str, Rule] = MappingProxyType({code: rule for rule in _TABLE for code in (rule.code, *rule.subcodes)})
"""Every code, finer ones too, to the rule that speaks with it."""
