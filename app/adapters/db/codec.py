"""Rows <-> core values.

Columns of `records` are what is searched, compared or held unique; the rest of a run is one JSON document, `detail`.
Reading back gives the run that was written, but for durations beyond 64 bits.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import datetime
from typing import Any

from sqlalchemy import RowMapping

from app.adapters.db.types import bounded
from app.core.bundle import DimensionMatch, Figure, LogEntry, PhaseSummary, Run, TestOutcome
from app.core.catalogue import CatalogueVersion
from app.core.coordinate import Coordinate, Criteria
from app.core.errors import InputError
from app.core.identity import GithubClaims, SignerIdentity
from app.core.latest import precedence, retention_key
from app.core.refs import Digest
from app.core.versions import kubernetes_minor

MAX_INDEXED_CHARS = 512
"""PostgreSQL's index rows end at 2,704 bytes; 512 characters are at most 2,048."""

WEIGHTLESS = "weightless"
"""The key in `latest` of a source's column of weightless runs; the other column has the empty key."""

Values = dict[str, Any]

_CATALOGUE_DETAIL = ("commit", "ref", "at", "declared", "floors", "criteria", "profileSelection")


def hashed(*parts: str) -> str:
    """A short key of a tuple of texts; no two tuples share their input."""
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:32]


def text_sha256(data: bytes) -> str:
    """The key of a row of `texts`."""
    return hashlib.sha256(data).hexdigest()


def encode_text(text: str) -> bytes:
    """A text as bytes of `texts`; lone surrogates survive."""
    return text.encode("utf-8", "surrogatepass")


def decode_text(data: bytes) -> str:
    """The inverse of `encode_text`."""
    return bytes(data).decode("utf-8", "surrogatepass")


def check_lengths(run: Run, party: str) -> None:
    """Raise `InputError` for a name or version that no index can hold; no real one is so long."""
    fields = {
        "recipe": run.recipe,
        "AICR version": run.aicr_version,
        "Kubernetes version": run.k8s_version,
        "predicate type": run.predicate_type,
        "party": party,
    } | {f"{kind} print": value for kind, value in run.prints}
    for name, value in fields.items():
        if len(value) > MAX_INDEXED_CHARS:
            raise InputError(
                f"expected at most {MAX_INDEXED_CHARS} characters of {name}, got {len(value)}", code="FIELD_TOO_LONG"
            )
    if not run.recipe:
        raise InputError("expected a recipe name, got none")


def record_values(record_id: int, run: Run, reference: str, party: str) -> Values:
    """One row of `records`."""
    return {
        "id": record_id,
        "digest": run.digest.hex,
        "source_id": run.source_id,
        "recipe": run.recipe,
        "signature_sha256": run.signature_sha256,
        "log_id": run.log.log_id,
        "log_index": run.log.index,
        "predicate_type": run.predicate_type,
        "recipe_digest": run.recipe_digest,
        "aicr_version": run.aicr_version,
        "aicr_commit": run.aicr_commit,
        "k8s_version": run.k8s_version,
        "k8s_minor": kubernetes_minor(run.k8s_version),
        "attested_at": run.attested_at,
        "logged_at": run.logged_at,
        "received_at": run.received_at,
        "party": party,
        "source_owner": run.signer.claims.source_owner,
        "exit": run.exit,
        "weightless": run.weightless,
        "public": run.public,
        "reference": reference,
        "recipe_text": text_sha256(encode_text(run.recipe_text)) if run.recipe_text else None,
        "detail": _detail(run),
    }


def result_values(record_id: int, run: Run) -> list[Values]:
    """Rows of `results`, in the order of the run."""
    return [
        {
            "record_id": record_id,
            "position": position,
            "phase": result.phase,
            "name": result.name,
            "status": result.status,
            "duration_ms": None if result.duration_ms is None else bounded(result.duration_ms),
            "skip_reason": result.skip_reason,
            "runtime_source": result.runtime_source,
        }
        for position, result in enumerate(run.results)
    ]


def figure_values(record_id: int, run: Run) -> list[Values]:
    """Rows of `figures`, in the order of the run."""
    return [
        {
            "record_id": record_id,
            "position": position,
            "phase": figure.phase,
            "check_name": figure.check,
            "name": figure.name,
            "value": figure.value,
            "unit": figure.unit,
        }
        for position, figure in enumerate(run.figures)
    ]


def print_values(record_id: int, run: Run, *, weighs: bool) -> list[Values]:
    """Rows of `run_prints`."""
    return [
        {"value": value, "kind": kind, "record_id": record_id, "recipe": run.recipe, "weighs": weighs}
        for kind, value in sorted(set(run.prints))
    ]


def latest_values(record_id: int, run: Run, *, weighs: bool) -> list[Values]:
    """The rows of `latest` that a run may become, one a scope."""
    attested_at, logged_at, digest = precedence(run)
    row = {
        "recipe": run.recipe,
        "weighs": weighs,
        "source_id": run.source_id,
        "record_id": record_id,
        "attested_at": attested_at,
        "logged_at": logged_at,
        "digest": digest,
    }
    return [
        row | {"scope": "run", "key": hashed(*retention_key(run))},
        row | {"scope": "source", "key": column_of(run)},
    ]


def column_of(run: Run) -> str:
    """The key in `latest` of a run's column, where `scope` is `source`."""
    return WEIGHTLESS if run.weightless else ""


def claim_values(record_id: int, run: Run, *, weighs: bool) -> Values:
    """The row of `name_claims` that a run may become; grouped as in `core.latest.earliest_claims`."""
    c = run.criteria
    key = hashed(
        run.source_id,
        "weightless" if run.weightless else "",
        *(c.service, c.accelerator, c.os, c.intent, c.platform),
        run.profile_selection,
    )
    return {
        "recipe": run.recipe,
        "weighs": weighs,
        "key": key,
        "record_id": record_id,
        "logged_at": run.logged_at,
        "log_id": run.log.log_id,
        "log_index": run.log.index,
        "digest": run.digest.hex,
    }


def criteria_of(detail: Mapping[str, Any]) -> Criteria:
    """The criteria in a `detail`."""
    return Criteria(**detail["criteria"])


def run_of(
    row: RowMapping,
    results: Sequence[RowMapping] = (),
    recipe_text: str = "",
    figures: Sequence[RowMapping] = (),
) -> Run:
    """A run from a row of `records` joined with `sources`."""
    detail: Mapping[str, Any] = row["detail"]
    log = detail["log"]
    return Run(
        digest=Digest(row["digest"]),
        signer=SignerIdentity(row["issuer"], row["identity"], GithubClaims(**detail["claims"])),
        recipe=row["recipe"],
        criteria=criteria_of(detail),
        coordinate=Coordinate(*detail["coordinate"]),
        profile=detail["profile"],
        profile_selection=detail["profileSelection"],
        predicate_type=row["predicate_type"],
        recipe_digest=row["recipe_digest"],
        aicr_version=row["aicr_version"],
        aicr_commit=row["aicr_commit"],
        k8s_version=row["k8s_version"],
        k8s_constraint=detail["k8sConstraint"],
        attested_at=row["attested_at"],
        logged_at=row["logged_at"],
        received_at=row["received_at"],
        log=LogEntry(log["log"], row["log_id"], row["log_index"], log["proofIndex"], log["kind"]),
        root=detail["root"],
        root_sha256=detail["rootSha256"],
        signature_sha256=row["signature_sha256"],
        exit=row["exit"],
        phases=tuple(PhaseSummary(*phase) for phase in detail["phases"]),
        results=tuple(result_of(result) for result in results),
        prints=tuple((kind, value) for kind, value in detail["prints"]),
        dimensions=tuple(DimensionMatch(*dimension) for dimension in detail["dimensions"]),
        hardware_matched=detail["hardwareMatched"],
        weightless=row["weightless"],
        public=row["public"],
        remarks=tuple(detail["remarks"]),
        overridden_paths=tuple(detail["overriddenPaths"]),
        validator_images=tuple(detail["validatorImages"]),
        recipe_text=recipe_text,
        figures=tuple(figure_of(figure) for figure in figures),
    )


def result_of(row: RowMapping) -> TestOutcome:
    """One test outcome."""
    return TestOutcome(
        row["phase"], row["name"], row["status"], row["duration_ms"], row["skip_reason"], row["runtime_source"]
    )


def figure_of(row: RowMapping) -> Figure:
    """One measured figure."""
    return Figure(row["phase"], row["check_name"], row["name"], row["value"], row["unit"])


def catalogue_data(version: CatalogueVersion) -> Values:
    """A version as the event table keeps it: everything but its `seq` and `text`."""
    return {
        "recipe": version.recipe,
        "legacy": version.legacy,
        "contentOnly": version.content_only,
        "commit": version.commit,
        "ref": version.ref,
        "at": None if version.at is None else version.at.isoformat(),
        "declared": None if version.declared is None else [list(check) for check in version.declared],
        "floors": dict(version.floors or {}),
        "retired": version.retired,
        "criteria": None if version.criteria is None else asdict(version.criteria),
        "profileSelection": version.profile_selection,
        "text": text_sha256(encode_text(version.text)) if version.text else None,
    }


def catalogue_values(seq: int, recorded_at: datetime, data: Mapping[str, Any]) -> Values:
    """A row of `catalogue_versions` from the event that says it."""
    return {
        "seq": seq,
        "recipe": data["recipe"],
        "recorded_at": recorded_at,
        "legacy": data["legacy"],
        "content_only": data["contentOnly"],
        "retired": data["retired"],
        "text_sha256": data["text"],
        "detail": {key: data[key] for key in _CATALOGUE_DETAIL},
    }


def catalogue_of(row: RowMapping, text: str = "") -> CatalogueVersion:
    """A version from its row."""
    detail: Mapping[str, Any] = row["detail"]
    return CatalogueVersion(
        recipe=row["recipe"],
        legacy=row["legacy"],
        content_only=row["content_only"],
        recorded_at=row["recorded_at"],
        commit=detail["commit"],
        ref=detail["ref"],
        at=None if detail["at"] is None else datetime.fromisoformat(detail["at"]),
        declared=None if detail["declared"] is None else tuple((phase, name) for phase, name in detail["declared"]),
        floors=dict(detail["floors"]),
        text=text,
        retired=row["retired"],
        seq=row["seq"],
        criteria=None if detail["criteria"] is None else Criteria(**detail["criteria"]),
        profile_selection=detail["profileSelection"],
    )


def _detail(run: Run) -> Values:
    return {
        "claims": asdict(run.signer.claims),
        "criteria": asdict(run.criteria),
        "coordinate": [run.coordinate.group, run.coordinate.dashboard, run.coordinate.tab],
        "profile": run.profile,
        "profileSelection": run.profile_selection,
        "k8sConstraint": run.k8s_constraint,
        "log": {"log": run.log.log, "proofIndex": run.log.proof_index, "kind": run.log.kind},
        "root": run.root,
        "rootSha256": run.root_sha256,
        "phases": [[p.phase, p.passed, p.failed, p.skipped, p.ctrf_digest] for p in run.phases],
        "dimensions": [[d.dimension, d.match, d.requires, d.provides] for d in run.dimensions],
        "hardwareMatched": run.hardware_matched,
        "remarks": list(run.remarks),
        "overriddenPaths": list(run.overridden_paths),
        "validatorImages": list(run.validator_images),
        "prints": [list(one) for one in run.prints],
    }
