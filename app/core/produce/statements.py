"""In-toto statements as a producer writes them: over the recipe, and over the pushed artifact (evidence-format 3.1)."""

import json
import re
from collections.abc import Mapping
from typing import Final

from app.core.errors import InputError
from app.core.statement import STATEMENT_V1, check_coherence

_SHA256: Final = re.compile(r"[0-9a-f]{64}")


def local_statement(predicate_type: str, predicate: Mapping[str, object]) -> bytes:
    """The unsigned statement of a bundle directory; its subject is the recipe.

    Raises `InputError` for a predicate without recipe name or digest, or whose type and profile block disagree.
    """
    name, digest = _recipe_of(predicate)
    check_coherence(predicate_type, predicate)
    return _encode(f"recipe:{name}", digest, predicate_type, predicate)


def artifact_statement(
    predicate_type: str, predicate: Mapping[str, object], oci_reference: str, artifact_digest_hex: str
) -> bytes:
    """The statement that is signed; its subject is the pushed artifact.

    `oci_reference` is registry/repository with a tag or digest, `artifact_digest_hex` the manifest's bare digest.
    Raises `InputError` (C11-C13) before anything is built.
    """
    reference = oci_reference.removeprefix("oci://")
    if not reference:
        raise InputError("OCI reference is required for an artifact statement, got none")
    if not artifact_digest_hex:
        raise InputError("artifact digest is required for an artifact statement, got none")
    if not _SHA256.fullmatch(artifact_digest_hex):
        raise InputError(f"artifact digest must be 64 hex characters, got {artifact_digest_hex[:80]!r}")
    _recipe_of(predicate)
    check_coherence(predicate_type, predicate)
    return _encode(reference, artifact_digest_hex, predicate_type, predicate)


def _recipe_of(predicate: Mapping[str, object]) -> tuple[str, str]:
    if not predicate:
        raise InputError("predicate is required for a statement, got none")
    recipe = predicate.get("recipe")
    name, digest = (recipe.get(key) for key in ("name", "digest")) if isinstance(recipe, Mapping) else (None, None)
    if not (isinstance(name, str) and isinstance(digest, str) and name and digest):
        raise InputError("predicate.recipe.{name,digest} must be populated, got an empty one")
    if not _SHA256.fullmatch(digest):
        raise InputError(f"predicate.recipe.digest must be 64 hex characters, got {digest[:80]!r}")
    return name, digest


def _encode(name: str, sha256: str, predicate_type: str, predicate: Mapping[str, object]) -> bytes:
    """The predicate's keys come out sorted, as they do after a protobuf Struct."""
    body = json.dumps(predicate, sort_keys=True, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    head = json.dumps(
        {
            "_type": STATEMENT_V1,
            "subject": [{"name": name, "digest": {"sha256": sha256}}],
            "predicateType": predicate_type,
        },
        ensure_ascii=False,
        separators=(",", ":"),
    )
    return f'{head[:-1]},"predicate":{body}}}'.encode()
