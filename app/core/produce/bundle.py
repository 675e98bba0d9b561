"""A bundle's files from a recipe and what was measured, as upstream's producer makes them (evidence-format 1, 4, 5.1).

Pure and deterministic: the same input gives the same bytes. Writing, pushing and signing are elsewhere.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final

from app.core.bundle import BOM_FILE, MANIFEST_FILE, PHASES, RECIPE_FILE, SNAPSHOT_FILE, STATEMENT_FILE, ctrf_file
from app.core.canonical import ParsedRecipe
from app.core.criteria_match import match_criteria
from app.core.errors import DocumentInvalid, InputError, RecipeInvalid
from app.core.jsontext import go_json, parse_members
from app.core.policy import recipe_identity
from app.core.produce.ctrf import Report
from app.core.produce.snapshot import Fingerprint, Snapshot
from app.core.produce.statements import local_statement
from app.core.recipe import Recipe
from app.core.statement import RECIPE_EVIDENCE_V3
from app.core.versions import normalized_commit

SCHEMA_VERSION: Final = "1.0.0"
MAX_BOM_BYTES: Final = 8 << 20
DEFAULT_CYCLONEDX: Final = "1.6"
REDACTION: Final = ("minimal", "v4")
"""Policy and its current version."""

_SNAPSHOT_RULES: Final = ("snapshot.header.allowlist", "snapshot.measurements.allowlist")
_REPORT_RULES: Final = (
    "ctrf.tests.extra.allowlist",
    "ctrf.tests.omit:message",
    "ctrf.tests.omit:stdout",
    "ctrf.tests.runtimeProvenance.bound",
)
_MEDIA_TYPES: Final = (
    (".cdx.json", "application/vnd.cyclonedx+json"),
    (".intoto.jsonl", "application/vnd.in-toto+jsonl"),
    (".json", "application/json"),
    (".yaml", "application/yaml"),
    (".yml", "application/yaml"),
    (".log", "text/plain"),
)


@dataclass(frozen=True, slots=True)
class ProducerInput:
    """Everything that a bundle is made of.

    `recipe` is a resolved recipe in any form; its legacy canonical text is what ships. `snapshot` and `bom` can be
    given as bytes that ship as they are; without `bom` one is made from the recipe's components. `recipe_name` is
    used only for a recipe that gives no name, for which upstream makes no bundle. `full` keeps everything that a
    minimal bundle leaves out. `extra_files` are listed in the manifest beside the rest.
    """

    recipe: bytes
    attested_at: datetime
    reports: Mapping[str, Report] = field(default_factory=dict)
    fingerprint: Fingerprint = field(default_factory=Fingerprint)
    snapshot: Snapshot | bytes = field(default_factory=Snapshot)
    bom: bytes | None = None
    predicate_type: str = RECIPE_EVIDENCE_V3
    aicr_version: str = ""
    aicr_commit: str = ""
    validator_catalog_version: str = ""
    validator_images: tuple[tuple[str, str], ...] = ()  # (image, digest), the digest is normally empty
    recipe_name: str = ""
    full: bool = False
    extra_files: Mapping[str, bytes] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ProducedBundle:
    """The files by path below the bundle's root, and what describes them."""

    files: Mapping[str, bytes]
    predicate_type: str
    predicate: Mapping[str, object]
    recipe: Recipe
    recipe_name: str

    @property
    def manifest_digest(self) -> str:
        """The prefixed digest of `manifest.json`."""
        return _prefixed(self.files[MANIFEST_FILE])


def build_bundle(source: ProducerInput) -> ProducedBundle:
    """Build the files and the predicate; raises `InputError` for what upstream's producer would not make."""
    parsed = ParsedRecipe.parse(source.recipe)
    recipe_text = parsed.canonical(content_only=False)
    recipe = Recipe.decode(parsed)
    name = recipe.name or source.recipe_name
    if not name:
        raise RecipeInvalid("expected a recipe with a name, but it has no criteria to derive one from")
    unknown = sorted(set(source.reports) - set(PHASES))
    if unknown:
        raise InputError(f"expected reports of {', '.join(PHASES)}, got {unknown[0][:80]!r}")
    bom = source.bom if source.bom is not None else generated_bom(recipe, source.validator_images)
    snapshot = source.snapshot
    if isinstance(snapshot, Snapshot):
        snapshot = snapshot.encode(source.fingerprint, full=source.full)
    reports = {
        phase: source.reports[phase].encode(phase, full=source.full) for phase in PHASES if phase in source.reports
    }
    listed = {
        RECIPE_FILE: recipe_text,
        SNAPSHOT_FILE: snapshot,
        BOM_FILE: bom,
        **{ctrf_file(phase): data for phase, data in reports.items()},
        **source.extra_files,
    }
    manifest = manifest_json(listed)
    predicate: dict[str, object] = {
        "schemaVersion": SCHEMA_VERSION,
        "attestedAt": timestamp(source.attested_at),
        "aicrVersion": source.aicr_version,
        **_commit(source.aicr_commit),
        "validatorCatalogVersion": source.validator_catalog_version,
        "validatorImages": [{"image": image, "digest": digest} for image, digest in sorted(source.validator_images)]
        or None,
        "recipe": {"name": name, "digest": parsed.digest(source.predicate_type)},
        "fingerprint": source.fingerprint.to_json(),
        "criteriaMatch": _criteria_match(recipe, source.fingerprint),
        "phases": {phase: _phase(source.reports[phase], data) for phase, data in reports.items()},
        "bom": bom_reference(bom),
        "manifest": {"digest": _prefixed(manifest), "fileCount": len(listed)},
        **({} if source.full else _redaction(reported=bool(reports))),
        **_profile(recipe),
    }
    statement = local_statement(source.predicate_type, predicate)
    files = {**listed, MANIFEST_FILE: manifest, STATEMENT_FILE: statement}
    return ProducedBundle(files, source.predicate_type, predicate, recipe, name)


def timestamp(at: datetime) -> str:
    """RFC 3339 in UTC, whole seconds, `Z`; raises `ValueError` for a time without a zone."""
    if at.tzinfo is None:
        raise ValueError("expected a time with a zone")
    return at.astimezone(UTC).replace(microsecond=0).strftime("%Y-%m-%dT%H:%M:%SZ")


def media_type(path: str) -> str:
    """The manifest's media type of a path, empty for an unknown suffix."""
    return next((kind for suffix, kind in _MEDIA_TYPES if path.endswith(suffix)), "")


def manifest_json(files: Mapping[str, bytes]) -> bytes:
    """The manifest of `files`, sorted by the bytes of their paths."""
    entries: list[dict[str, object]] = []
    for path in sorted(files, key=str.encode):
        entry: dict[str, object] = {"path": path, "size": len(files[path]), "sha256": _prefixed(files[path])}
        if kind := media_type(path):
            entry["mediaType"] = kind
        entries.append(entry)
    return go_json({"schemaVersion": SCHEMA_VERSION, "files": entries})


def bom_reference(bom: bytes) -> dict[str, object]:
    """The predicate's `bom`; raises `DocumentInvalid` unless the document is a JSON object (F5-F7)."""
    document = parse_members(bom, {"components", "specVersion"}, max_bytes=MAX_BOM_BYTES, what=BOM_FILE)
    if not isinstance(document, dict):
        raise DocumentInvalid(f"{BOM_FILE}: expected a JSON object")
    components = document.get("components")
    version = document.get("specVersion")
    return {
        "format": "CycloneDX",
        "version": version if isinstance(version, str) and version else DEFAULT_CYCLONEDX,
        "digest": _prefixed(bom),
        "imageCount": len(components) if isinstance(components, list) else 0,
    }


def generated_bom(recipe: Recipe, validator_images: tuple[tuple[str, str], ...]) -> bytes:
    """A CycloneDX document of the recipe's enabled components and the validator images."""
    components = [{"type": "application", "name": part.name} for part in recipe.components if part.enabled]
    images = [{"type": "container", "name": image} for image, _ in sorted(validator_images)]
    return go_json(
        {
            "bomFormat": "CycloneDX",
            "specVersion": DEFAULT_CYCLONEDX,
            "version": 1,
            "components": components + images,
        }
    )


def _prefixed(data: bytes) -> str:
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


def _commit(text: str) -> dict[str, object]:
    commit = normalized_commit(text)
    return {"aicrCommit": commit} if commit else {}


def _criteria_match(recipe: Recipe, fingerprint: Fingerprint) -> dict[str, object]:
    result = match_criteria(recipe.criteria, fingerprint)
    rows = [
        {"dimension": row.dimension}
        | ({"recipeRequires": row.requires} if row.requires else {})
        | ({"fingerprintProvides": row.provides} if row.provides else {})
        | {"match": row.match}
        for row in result.dimensions
    ]
    return {"matched": result.matched, "perDimension": rows}


def _phase(report: Report, data: bytes) -> dict[str, object]:
    summary = report.summary()
    return {**{name: summary[name] for name in ("passed", "failed", "skipped")}, "ctrfDigest": _prefixed(data)}


def _redaction(*, reported: bool) -> dict[str, object]:
    policy, version = REDACTION
    applied = sorted({*_SNAPSHOT_RULES, *(_REPORT_RULES if reported else ())})
    return {"redaction": {"policy": policy, "version": version, "applied": applied}}


def _profile(recipe: Recipe) -> dict[str, object]:
    profile = recipe.selected_profile
    if profile is None:
        return {}
    block: dict[str, object] = {"selection": profile.selection}
    if profile.advertiser:
        block["advertiser"] = profile.advertiser
    block["policyDescriptorIdentity"] = recipe_identity(recipe)
    return {"profile": block}
