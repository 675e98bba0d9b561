"""CTRF phase reports as the producer writes them, and what a minimal bundle leaves out (evidence-format 9, 1.6).

Reading reports is in `app.core.ctrf`.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from app.core.jsontext import go_json

STATUSES: Final = ("passed", "failed", "skipped", "pending", "other")
_BY_EXIT_CODE: Final = {0: "passed", 1: "failed", 2: "skipped"}

_COUNT: Final = re.compile(r"[0-9]{1,5}")
_ONE_OF: Final[Mapping[str, frozenset[str]]] = {
    "skipReason": frozenset({"no-gpu-nodes", "no-schedulable-gpu-nodes", "nodes-busy", "named-in-skip-checks"}),
    "runtimeSource": frozenset({"delivered-artifact", "recipe-supplied-runtime", "cluster-capability"}),
}
_COUNTS: Final = frozenset({"nodesValidated", "nodesTotal"})
_HEX_DIGEST: Final = re.compile(r"[0-9a-f]{64}")
_PATH: Final = re.compile(r"[A-Za-z0-9._/*\-\[\]]{1,256}")
MAX_PATHS: Final = 1024


def status_of_exit_code(code: int) -> str:
    """What a check container's exit code means (F10): 0, 1 and 2 are named, anything else is `other`."""
    return _BY_EXIT_CODE.get(code, "other")


@dataclass(frozen=True, slots=True)
class RuntimeProvenance:
    """What ran against what was shipped; digests are bare hex, paths name the values that differ."""

    shipped_digest: str
    derived_digest: str
    overridden_paths: tuple[str, ...] = ()
    inherited_paths: tuple[str, ...] = ()

    def to_json(self) -> dict[str, object]:
        """Keys `shippedDigest, derivedDigest, overriddenPaths?, inheritedPaths?`; paths sorted, each once."""
        out: dict[str, object] = {"shippedDigest": self.shipped_digest, "derivedDigest": self.derived_digest}
        for key, paths in (("overriddenPaths", self.overridden_paths), ("inheritedPaths", self.inherited_paths)):
            if paths:
                out[key] = sorted(set(paths))
        return out

    @property
    def bounded(self) -> bool:
        """Whether a minimal bundle may carry it."""
        paths = {*self.overridden_paths, *self.inherited_paths}
        return (
            all(_HEX_DIGEST.fullmatch(digest) for digest in (self.shipped_digest, self.derived_digest))
            and len(paths) <= MAX_PATHS
            and all(_PATH.fullmatch(path) for path in paths)
        )


@dataclass(frozen=True, slots=True)
class Check:
    """One test of a report; `duration_ms` is what it took."""

    name: str
    status: str = "passed"
    duration_ms: int = 0
    message: str = ""
    stdout: tuple[str, ...] = ()
    extra: Mapping[str, str] = field(default_factory=dict)
    runtime_provenance: RuntimeProvenance | None = None

    def redacted(self) -> "Check":
        """The check as a minimal bundle carries it: no message, no output, only known `extra` values."""
        provenance = self.runtime_provenance
        return Check(
            self.name,
            self.status,
            self.duration_ms,
            extra={key: value for key, value in self.extra.items() if _may_carry(key, value)},
            runtime_provenance=provenance if provenance and provenance.bounded else None,
        )

    def to_json(self, phase: str) -> dict[str, object]:
        """The test's object; the suite is the phase."""
        out: dict[str, object] = {"name": self.name, "status": self.status, "duration": self.duration_ms}
        out["suite"] = [phase]
        if self.message:
            out["message"] = self.message
        if self.stdout:
            out["stdout"] = list(self.stdout)
        if self.extra:
            out["extra"] = {key: self.extra[key] for key in sorted(self.extra)}
        if self.runtime_provenance:
            out["runtimeProvenance"] = self.runtime_provenance.to_json()
        return out


@dataclass(frozen=True, slots=True)
class Report:
    """One phase's report; `checks` None is an absent list, which is written as null.

    `counts` replaces the numbers that are otherwise counted from the checks.
    """

    checks: tuple[Check, ...] | None
    start_ms: int = 0
    stop_ms: int = 0
    timestamp: str = ""
    generated_by: str = "aicr"
    tool: str = "aicr"
    tool_version: str = ""
    report_format: str = "CTRF"
    spec_version: str = "0.0.1"
    environment: Mapping[str, str] = field(default_factory=dict)
    counts: Mapping[str, int] | None = None

    def summary(self) -> Mapping[str, int]:
        """`tests` and one number a status."""
        if self.counts is not None:
            return {name: self.counts.get(name, 0) for name in ("tests", *STATUSES)}
        checks = self.checks or ()
        return {"tests": len(checks)} | {s: sum(check.status == s for check in checks) for s in STATUSES}

    def encode(self, phase: str, *, full: bool) -> bytes:
        """The bytes of `ctrf/<phase>.json`."""
        checks = self.checks if full or self.checks is None else tuple(check.redacted() for check in self.checks)
        tool: dict[str, object] = {"name": self.tool}
        if self.tool_version:
            tool["version"] = self.tool_version
        results: dict[str, object] = {
            "tool": tool,
            "summary": {**self.summary(), "start": self.start_ms, "stop": self.stop_ms},
            "tests": None if checks is None else [check.to_json(phase) for check in checks],
        }
        if self.environment:
            results["environment"] = dict(self.environment)
        return go_json(
            {
                "reportFormat": self.report_format,
                "specVersion": self.spec_version,
                "timestamp": self.timestamp,
                "generatedBy": self.generated_by,
                "results": results,
            }
        )


def _may_carry(key: str, value: str) -> bool:
    if key in _COUNTS:
        return _COUNT.fullmatch(value) is not None
    return value in _ONE_OF.get(key, ())
