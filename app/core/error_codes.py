"""Codes that no other table holds, each with its cause and its cure.

Rules of a verdict are in `app.core.rules`, fetch codes in `app.adapters.oci.codes`, HTTP codes in `app.web.problems`;
`docs/errors.md` is generated from all of them.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from app.core.canonical.refusals import Refusal
from app.core.verdict import Staleness


@dataclass(frozen=True, slots=True)
class ErrorCode:
    """One stable code: `cause` says what was met, `cure` what to do about it, a line each."""

    code: str
    cause: str
    cure: str


def _table(*entries: ErrorCode) -> Mapping[str, ErrorCode]:
    return MappingProxyType({entry.code: entry for entry in entries})


_SIGN_EACH = "sign every bundle; signatures and log entries can not be moved"

REFUSALS: Mapping[str, ErrorCode] = _table(
    ErrorCode(
        "POINTER_INVALID",
        "The pointer that was submitted breaks a rule of its schema; the message names the field.",
        "write pointers from the signed bundle, not by hand",
    ),
    ErrorCode(
        "JUDGING_FAILED",
        "Something was thrown while the bundle was judged, so it does not count.",
        "verify the same bundle with the command line; if it fails there too, report it with the request id",
    ),
    ErrorCode(
        "LOG_ENTRY_REUSED",
        "The log entry already stands for another bundle.",
        _SIGN_EACH,
    ),
    ErrorCode(
        "SIGNATURE_REUSED",
        "The very same Sigstore bundle already stands for another bundle.",
        _SIGN_EACH,
    ),
    ErrorCode(
        "FIELD_TOO_LONG",
        "A signed name or version has more than 512 characters.",
        "run the validation with names and versions of a usual length",
    ),
    ErrorCode(
        "CONTENT_LIMIT",
        "The bundle directory has more files, a deeper path or more bytes than a bundle may have.",
        "keep logs and other files out of the bundle; raise the limit only for directories of your own",
    ),
    ErrorCode(
        "JSON_NOT_STRICT",
        "A statement is JSON that two readers could read differently: a key twice, or in another case.",
        "write the statement with a JSON serializer, not by hand",
    ),
)
"""What a bundle can be refused with beside the rules, and what a reader of documents says."""

OPERATION: Mapping[str, ErrorCode] = _table(
    ErrorCode(
        "ALLOWLIST_CHANGED",
        "Another process put a new allowlist into force while this one was writing.",
        "nothing: the list is taken over and the write is tried again; restart a process that keeps saying so",
    ),
    ErrorCode(
        "API_UNREACHABLE",
        "The command could not reach the service.",
        "start the service (`aicr evidence serve`), or name it with --api or AICR_EVIDENCE_API",
    ),
    ErrorCode(
        "ARCHIVE_DAMAGED",
        "A file of the archive is missing or is not what its digest says.",
        "submit the bundle again, which puts back what is lost; else restore its directory from a copy",
    ),
    ErrorCode(
        "ARCHIVE_INCOMPLETE",
        "A rebuild did not find every bundle that was acknowledged.",
        "restore the archive, or rebuild without what is missing",
    ),
    ErrorCode(
        "ARCHIVE_IN_USE",
        "Another service uses the same archive with another database.",
        "give every database an archive of its own: set AICR_EVIDENCE_ARCHIVE",
    ),
    ErrorCode(
        "DATABASE_IN_USE",
        "Another process holds the embedded database; the message names it.",
        "stop that process first, or use a server database for several processes",
    ),
    ErrorCode(
        "DATABASE_MODE",
        "A sandbox met the database of a real service, or the reverse.",
        "set another AICR_EVIDENCE_DATABASE_URL; the two never share one",
    ),
    ErrorCode(
        "DATABASE_NEWER",
        "The database was migrated by a newer release.",
        "run the release that migrated it, or a newer one",
    ),
    ErrorCode(
        "DATABASE_NOT_MIGRATED",
        "The server database is not at the revision of this release.",
        "run `aicr evidence migrate`",
    ),
    ErrorCode(
        "NO_VERDICT_IN_TIME",
        "The whole answer took longer than a submission may: PULL_TIMEOUT_SECONDS and 20 seconds.",
        "ask again in a moment; the work goes on, and `GET /attempts` tells how it ended",
    ),
    ErrorCode(
        "TRUST_ROOT_INVALID",
        "A trusted root can not be read, or two roots would speak for one issuer.",
        "check AICR_EVIDENCE_TRUSTED_ROOT; limit every private root to its issuers: `path;issuer=URL`",
    ),
    ErrorCode(
        "UNLISTED_QUOTA",
        "A source that is not on the allowlist holds as many records as UNLISTED_QUOTA lets it.",
        "have the signer listed; records of listed sources are not counted",
    ),
)
"""What the service and the commands end with for reasons of their own."""

ALLOWLIST_RULES: Mapping[str, ErrorCode] = _table(
    ErrorCode("J1", "The file can not be opened.", "check the path and its access rights"),
    ErrorCode("J2", "The file can not be read to its end.", "check the storage below it"),
    ErrorCode("J3", "The file is larger than 1 MiB.", "remove what is no entry"),
    ErrorCode(
        "J4",
        "The file is not one YAML document of mappings, lists and texts, or repeats a key.",
        "write plain YAML without anchors, tags and a second document",
    ),
    ErrorCode(
        "J5", "There is a key that is not known.", "use label, issuer, source and identityPattern; never identity"
    ),
    ErrorCode("J6", "schemaVersion is not 1.0 or 1.0.x.", "write `schemaVersion: 1.0.0`"),
    ErrorCode("J7", "An entry has no issuer.", "name the OIDC issuer of the signer's certificate"),
    ErrorCode("J8", "An entry has both source and identityPattern, or neither.", "keep exactly one of them"),
    ErrorCode("J9", "A firstParty entry has no identityPattern.", "write the workflow's pattern, or list it elsewhere"),
    ErrorCode("J10", "A community or partner entry has no source.", "write the signer's slug of 32 hex characters"),
    ErrorCode(
        "J11",
        "A source is not 32 lower-case hex characters.",
        "take it from `aicr evidence allowlist classify FILE --issuer I --identity S`",
    ),
    ErrorCode("J12", "A pattern does not start with ^ or does not end with $.", "anchor it at both ends"),
    ErrorCode("J13", "A pattern has no plain @.", "write the workflow's path, a plain @, and the refs it admits"),
    ErrorCode("J14", "A pattern is open left of the @.", "escape dots; no wildcard in owner, repository or workflow"),
    ErrorCode("J15", "A pattern does not compile.", "use RE2 syntax: no look-around, no back-reference"),
    ErrorCode("J16", "Two entries have the same label.", "give each entry a label of its own"),
    ErrorCode("J17", "Two entries have the same source.", "keep one of them: a signer has one class"),
    ErrorCode("J18", "Two patterns are about the same workflow.", "join their refs in one pattern"),
    ErrorCode("G1", "A pattern has an alternation that leaves its anchors.", "put alternatives in parentheses"),
    ErrorCode("G2", "A pattern ends with an escaped dollar sign.", "end with a plain $"),
    ErrorCode("G3", "A pattern has a class or a quotation left of the @.", "write the text itself, dots escaped"),
    ErrorCode("G4", "A pattern has nothing left of the @.", "name the workflow"),
    ErrorCode(
        "G5",
        "A pattern's @ or the character after it is no plain text, optional or repeated.",
        "follow the @ with refs/",
    ),
)
"""Rules of the allowlist file in the order in which they are asked; G1 to G5 are stricter than upstream."""

SET_ASIDE: Mapping[str, ErrorCode] = _table(
    ErrorCode("OTHER_RECIPE", "The run is about another recipe.", "submit it under its own recipe"),
    ErrorCode("PROFILE_INVALID", "The run's profile selection is none.", "write name=value"),
    ErrorCode("PROFILE_MISMATCH", "The selection does not give the profile in the name.", "publish the run again"),
    ErrorCode("PROFILE_CONFLICT", "The name belongs to a run with another selection.", "use another profile name"),
    ErrorCode("COORDINATE_MISMATCH", "The run's criteria lead to another place.", "publish the run again"),
    ErrorCode("CRITERIA_CONFLICT", "The name belongs to a recipe with other criteria.", "use criteria that tell apart"),
)
"""Why a record is shown beside a recipe and counted nowhere (`setAside`)."""

STALENESS: Mapping[Staleness, ErrorCode] = MappingProxyType(
    {
        reason: ErrorCode(reason.value, cause, cure)
        for reason, cause, cure in (
            (Staleness.DRIFTED, "The recipe has changed since.", "validate today's recipe"),
            (Staleness.NEVER_PUBLISHED, "The digest was in no catalogue version.", "validate a published recipe"),
            (Staleness.UNKNOWN_CURRENT, "No catalogue says what is current.", "push the catalogue"),
            (Staleness.LEGACY_PREDICATE, "The evidence is of type v1 or v2.", "run again with a current producer"),
            (Staleness.SUPERSEDED, "The same source has a newer record.", "nothing: the newer one counts"),
            (Staleness.AGED, "The run is older than AGED_AFTER_DAYS.", "validate again"),
            (Staleness.SIGNER_REMOVED, "The signer was on the list and is no more.", "ask who maintains the list"),
            (Staleness.BUNDLE_GONE, "No registry holds the bundle any more.", "push it again; the archive has it"),
            (Staleness.RETRACTED, "The record was retracted; the reason is shown.", "validate again"),
        )
    }
)
"""Why a record is not current; several can hold."""

RECIPE_CURES: Mapping[Refusal, str] = MappingProxyType(
    {
        Refusal.EMPTY: "name a file with a resolved recipe",
        Refusal.TOO_LARGE: "a resolved recipe is some tens of KB; look for data that does not belong there",
        Refusal.TOO_DEEP: "flatten the document",
        Refusal.TOO_MANY_NODES: "a resolved recipe has some thousand nodes; look for data that does not belong there",
        Refusal.NOT_UTF8: "save the file as UTF-8",
        Refusal.BYTE_ORDER_MARK: "remove U+FEFF from the text",
        Refusal.NOT_YAML: "correct the line that the message names",
        Refusal.UNKNOWN_ANCHOR: "define the anchor before its alias, or write the value out",
        Refusal.ESCAPED_SLASH: "write / without a backslash",
        Refusal.FLOW_QUESTION_MARK: "quote the question mark",
        Refusal.FLOW_EMPTY_KEY: "write braces around the pair",
        Refusal.FLOW_TAG: "put a space between the tag and the bracket",
        Refusal.FLOW_KEY: "put `? ` before the key, and its value on a new line",
        Refusal.TAG_ESCAPE: "remove the escape, or the tag",
        Refusal.DIRECTIVE: "remove the line",
        Refusal.UNSTABLE_ORDER: "remove the repeated key",
        Refusal.AMBIGUOUS_METADATA: "write metadata once, in place and without an alias",
    }
)
"""What to do about a recipe text that gets no digest; the refusals themselves are sentences already."""

CODES: Mapping[str, ErrorCode] = MappingProxyType({**REFUSALS, **OPERATION, **ALLOWLIST_RULES, **SET_ASIDE})
"""Every code of this module's tables but the states of a record."""
