"""The producer: a bundle's files, its predicate and its statements from plain values, without I/O or a clock."""

from app.core.produce.bundle import (
    ProducedBundle,
    ProducerInput,
    bom_reference,
    build_bundle,
    generated_bom,
    manifest_json,
    media_type,
    timestamp,
)
from app.core.produce.ctrf import Check, Report, RuntimeProvenance, status_of_exit_code
from app.core.produce.plain_yaml import plain_yaml, reads_as_text
from app.core.produce.snapshot import Captured, Counted, Fingerprint, Snapshot
from app.core.produce.statements import artifact_statement, local_statement
from app.core.versions import normalized_commit

__all__ = [
    "Captured",
    "Check",
    "Counted",
    "Fingerprint",
    "ProducedBundle",
    "ProducerInput",
    "Report",
    "RuntimeProvenance",
    "Snapshot",
    "artifact_statement",
    "bom_reference",
    "build_bundle",
    "generated_bom",
    "local_statement",
    "manifest_json",
    "media_type",
    "normalized_commit",
    "plain_yaml",
    "reads_as_text",
    "status_of_exit_code",
    "timestamp",
]
