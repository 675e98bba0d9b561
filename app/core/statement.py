"""In-toto statements: reading a payload, and whether predicate type and profile block agree (evidence-format 1.1, 3.1).

Whether a subject is the pulled artifact is rule S16 in the signature judge; whether there is exactly one, rule E9.
"""

import re
from collections.abc import Mapping
from typing import Final, NoReturn

from app.core.bundle import PHASES, Statement, Subject
from app.core.errors import DocumentInvalid
from app.core.jsontext import MAX_TOKENS, JsonValue, parse_json, refuse_case_variants

STATEMENT_V1: Final = "https://in-toto.io/Statement/v1"
STATEMENT_V01: Final = "https://in-toto.io/Statement/v0.1"
STATEMENT_TYPES: Final = (STATEMENT_V1, STATEMENT_V01)

RECIPE_EVIDENCE_V1: Final = "https://aicr.run/recipe-evidence/v1"
RECIPE_EVIDENCE_V2: Final = "https://aicr.run/recipe-evidence/v2"
RECIPE_EVIDENCE_V3: Final = "https://aicr.run/recipe-evidence/v3"
RECIPE_EVIDENCE_TYPES: Final = (RECIPE_EVIDENCE_V1, RECIPE_EVIDENCE_V2, RECIPE_EVIDENCE_V3)

MAX_STATEMENT_BYTES: Final = 10 << 20
MAX_STATEMENT_TOKENS: Final = 200_000
"""Signed or not; an honest statement has some hundreds (`core.jsontext.has_more_tokens`)."""

JSON_NOT_STRICT: Final = "JSON_NOT_STRICT"
"""Code of the `DocumentInvalid` that says that two readers could see two statements in one payload (S2)."""

_SELECTION = re.compile(r"[A-Za-z0-9._-]+=[A-Za-z0-9._-]+")
_SHA256 = re.compile(r"[0-9A-Fa-f]{64}")

_Shape = Mapping[str, "_Shape | None"]


def _keys(*names: str, **nested: _Shape) -> _Shape:
    return {**dict.fromkeys(names), **nested}


_DIMENSION = _keys("value", "source", "note", "version")
_PREDICATE: _Shape = _keys(
    "schemaVersion",
    "attestedAt",
    "aicrVersion",
    "aicrCommit",
    "validatorCatalogVersion",
    validatorImages=_keys("image", "digest"),
    recipe=_keys("name", "digest"),
    fingerprint=_keys(
        service=_DIMENSION,
        accelerator=_DIMENSION,
        gpuModel=_DIMENSION,
        os=_DIMENSION,
        k8sVersion=_DIMENSION,
        region=_DIMENSION,
        nodeCount=_DIMENSION,
        gpuNodeCount=_DIMENSION,
    ),
    criteriaMatch=_keys("matched", perDimension=_keys("dimension", "recipeRequires", "fingerprintProvides", "match")),
    phases=_keys(**dict.fromkeys(PHASES, _keys("passed", "failed", "skipped", "ctrfDigest"))),
    bom=_keys("format", "version", "digest", "imageCount"),
    manifest=_keys("digest", "fileCount"),
    redaction=_keys("policy", "version", "applied"),
    profile=_keys("selection", "advertiser", "policyDescriptorIdentity"),
)
"""Every key that some reader of a predicate looks for (evidence-format 1.2-1.7)."""

_STATEMENT: _Shape = _keys("_type", "predicateType", "predicate", subject=_keys("name", "digest"))


def read_statement(payload: bytes) -> Statement:
    """Read any signed in-toto statement, with a subject and an object as predicate; raises `DocumentInvalid`.

    Subjects without a sha256 digest get an empty one. A known key in another case is refused: Go's decoder would
    read it and Python's would not, so two verifiers would see two different statements. How many tokens a payload may
    have was asked before (S1).
    """
    document = _load(payload, MAX_TOKENS)
    statement_type = document.get("_type")
    if not isinstance(statement_type, str):
        raise DocumentInvalid("expected a statement with a _type, got none")
    return _statement(payload, document, statement_type, _subjects(document.get("subject")))


def read_unsigned_statement(payload: bytes) -> Statement:
    """Read a bundle's unsigned statement, of which only type and predicate are used; raises `DocumentInvalid`.

    What it says of itself decides nothing (evidence-format 8.3, step 3): a subject that is missing or malformed is
    none, a `_type` that is missing or no text is empty. Rules E9 and S16 find both.
    """
    document = _load(payload, MAX_STATEMENT_TOKENS)
    statement_type = document.get("_type")
    try:
        subjects = _subjects(document.get("subject"))
    except DocumentInvalid:
        subjects = ()
    return _statement(payload, document, statement_type if isinstance(statement_type, str) else "", subjects)


def _statement(
    payload: bytes, document: Mapping[str, JsonValue], statement_type: str, subjects: tuple[Subject, ...]
) -> Statement:
    """The parts that every reader needs: predicate type and predicate."""
    predicate_type = document.get("predicateType")
    if not isinstance(predicate_type, str) or not predicate_type:
        raise DocumentInvalid("expected a statement with a predicateType, got none")
    predicate = document.get("predicate")
    if predicate is None:
        predicate = {}
    if not isinstance(predicate, dict):
        raise DocumentInvalid("expected a predicate that is a JSON object, got something else")
    return Statement(payload, statement_type, predicate_type, subjects, predicate)


def _load(payload: bytes, max_tokens: int) -> Mapping[str, JsonValue]:
    """The payload as a strict JSON object, in which no known key is spelled in another case."""
    try:
        document = parse_json(payload, max_bytes=MAX_STATEMENT_BYTES, max_tokens=max_tokens, what="statement")
        _refuse_variants(document, _STATEMENT)
        if isinstance(document, dict) and document.get("predicateType") in RECIPE_EVIDENCE_TYPES:
            _refuse_variants(document.get("predicate"), _PREDICATE)
    except DocumentInvalid as err:
        raise DocumentInvalid(err.message, code=JSON_NOT_STRICT) from err
    if not isinstance(document, dict):
        raise DocumentInvalid("expected a statement that is a JSON object, got something else")
    return document


def _subjects(value: object) -> tuple[Subject, ...]:
    if not isinstance(value, list) or not value:
        raise DocumentInvalid("expected a statement with at least one subject, got none")
    subjects: list[Subject] = []
    for entry in value:
        if not isinstance(entry, dict):
            raise DocumentInvalid("expected a subject that is a JSON object, got something else")
        digest = entry.get("digest")
        if not isinstance(digest, dict):
            raise DocumentInvalid("expected a subject with a digest set, got none")
        name, sha256 = entry.get("name", ""), digest.get("sha256", "")
        if not isinstance(name, str) or not isinstance(sha256, str):
            raise DocumentInvalid("expected a subject's name and sha256 to be text, got something else")
        subjects.append(Subject(name, sha256))
    return tuple(subjects)


def _refuse_variants(value: object, shape: _Shape) -> None:
    """Refuse a key that reads like a known one to Go's folding decoder but is spelled differently."""
    if isinstance(value, list):
        for item in value:
            _refuse_variants(item, shape)
        return
    if not isinstance(value, dict):
        return
    if not value.keys() <= shape.keys():
        refuse_case_variants(value, shape)
    for name, nested in shape.items():
        if nested is not None and name in value:
            _refuse_variants(value[name], nested)


def refuse_statement_type(statement: Statement) -> None:
    """Raise `DocumentInvalid` unless the statement says that it is an in-toto statement v1 or v0.1 (S16)."""
    if statement.type not in STATEMENT_TYPES:
        raise DocumentInvalid(f"expected statement type {STATEMENT_V1}, got {statement.type[:80]!r}")


def require_subject_digest(statement: Statement) -> None:
    """Raise `DocumentInvalid` unless the first subject has a sha256 digest of 64 hex characters."""
    sha256 = statement.subjects[0].sha256
    if not _SHA256.fullmatch(sha256):
        raise DocumentInvalid(
            f"expected subject[0].digest.sha256 to be 64 hex characters, got {sha256[:80]!r}"
            if sha256
            else "expected subject[0] with a sha256 digest, got none"
        )


def check_coherence(predicate_type: str, predicate: Mapping[str, object]) -> None:
    """Raise `DocumentInvalid` unless type and profile block belong together (evidence-format 1.1, C1-C9)."""
    if predicate_type not in RECIPE_EVIDENCE_TYPES:
        raise DocumentInvalid(
            f"unexpected predicateType {predicate_type[:200]!r}: expected one of the recipe-evidence types v1, v2, v3"
        )
    block = predicate.get("profile")
    if block is None:
        if predicate_type == RECIPE_EVIDENCE_V2:
            _incoherent(predicate_type, "requires the predicate profile block, got none")
        return
    if predicate_type == RECIPE_EVIDENCE_V1:
        _incoherent(predicate_type, "cannot carry a profile block")
    if not isinstance(block, dict):
        _incoherent(predicate_type, "requires a profile block that is an object")
    selection, identity = block.get("selection"), block.get("policyDescriptorIdentity")
    if not (isinstance(selection, str) and selection and isinstance(identity, str) and identity):
        _incoherent(predicate_type, "requires both selection and policyDescriptorIdentity in the profile block")
    if not _SELECTION.fullmatch(selection):
        _incoherent(predicate_type, f"has a malformed selection {selection[:80]!r}: expected name=value")


def _incoherent(predicate_type: str, problem: str) -> NoReturn:
    raise DocumentInvalid(f"predicate type {predicate_type} {problem}")
