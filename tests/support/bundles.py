"""Bundles made by hand for tests, independent of the producer in `app.core.produce`: files as a dict, then a directory.

Every part can be replaced before the digests are computed (`Sample`), or afterwards (`files[...] = ...`).
"""

import hashlib
import json
from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from pathlib import Path

from app.core.canonical import subject_digest
from app.core.errors import RecipeInvalid

V1 = "https://aicr.run/recipe-evidence/v1"
V2 = "https://aicr.run/recipe-evidence/v2"
V3 = "https://aicr.run/recipe-evidence/v3"

RECIPE = b"""apiVersion: aicr.run/v1
constraints:
    - name: K8s.server.version
      value: '>= 1.32.4'
criteria:
    accelerator: h100
    intent: training
    os: ubuntu
    service: eks
kind: RecipeResult
metadata:
    version: v0.42.0
"""
PROFILED_RECIPE = b"""apiVersion: aicr.run/v1beta2
componentRefs:
    - name: gpu-operator
criteria:
    accelerator: h100
    intent: training
    os: ubuntu
    service: aks
kind: RecipeResult
metadata:
    selectedProfile:
        advertiser: external
        name: gpuStack
        ownedPaths:
            gpu-operator:
                - devicePlugin.enabled
        value: operator-managed
"""
NAME = "h100-eks-ubuntu-training"
PROFILED_NAME = "h100-aks-ubuntu-training-gpustack-operator-managed"
PROFILE_BLOCK = {
    "selection": "gpuStack=operator-managed",
    "advertiser": "external",
    "policyDescriptorIdentity": "993bfe01fc07ffa0a65353ace107d46218cb5d476fe40a845c5d5061ca453142",
}
ATTESTED_AT = "2026-05-08T10:23:11Z"
START_MS = 1778235000000  # 2026-05-08T10:10:00Z


def sha256(data: bytes) -> str:
    """Bare hex."""
    return hashlib.sha256(data).hexdigest()


def ctrf(tests: list[dict[str, object]], /, **summary: object) -> dict[str, object]:
    """A report whose summary is counted from its tests, unless `summary` says otherwise."""
    statuses = ("passed", "failed", "skipped", "pending", "other")
    counted: dict[str, object] = {"tests": len(tests)}
    counted |= {status: sum(test["status"] == status for test in tests) for status in statuses}
    counted |= {"start": START_MS, "stop": START_MS + 60_000}
    return {
        "reportFormat": "CTRF",
        "specVersion": "0.0.1",
        "timestamp": ATTESTED_AT,
        "generatedBy": "aicr",
        "results": {"tool": {"name": "aicr"}, "summary": counted | summary, "tests": tests},
    }


def check(name: str, status: str = "passed", duration: int = 1000, **more: object) -> dict[str, object]:
    """One test of a report."""
    return {"name": name, "status": status, "duration": duration, **more}


def default_reports() -> dict[str, dict[str, object]]:
    """Three phases, everything passed."""
    return {
        "deployment": ctrf([check("operator-health", duration=1501), check("expected-resources", duration=2203)]),
        "performance": ctrf([check("nccl-all-reduce-bw", duration=61_007)]),
        "conformance": ctrf([check("gpu-operator-health", duration=904), check("dra-support", "skipped", 0)]),
    }


def fingerprint(service: str = "eks", accelerator: str = "h100", os: str = "ubuntu") -> dict[str, object]:
    """A captured cluster."""
    return {
        "service": {"value": service, "source": "k8s.node.provider"},
        "accelerator": {"value": accelerator, "source": "gpu.hardware.model"},
        "gpuModel": {"value": "NVIDIA H100"},
        "os": {"value": os, "version": "24.04", "source": "os.release"},
        "k8sVersion": {"value": "1.33.4"},
        "region": {"value": ""},
        "nodeCount": {"value": 4},
        "gpuNodeCount": {"value": 2},
    }


def criteria_match(
    requires_service: str = "eks", captured: Mapping[str, str] | None = None, **match: str
) -> dict[str, object]:
    """Six rows for a recipe of `requires_service`/h100/ubuntu/training.

    `captured` replaces what a cluster as required would show, `match` single outcomes.
    """
    shown = captured or {}
    rows = [
        ("service", requires_service, requires_service, "matched"),
        ("accelerator", "h100", "h100", "matched"),
        ("os", "ubuntu", "ubuntu", "matched"),
        ("intent", "training", "", "unknown"),
        ("platform", "", "", "matched"),
        ("nodes", "", "4", "matched"),
    ]
    dimensions = [
        {
            "dimension": name,
            **({"recipeRequires": requires} if requires else {}),
            **({"fingerprintProvides": shown.get(name, provides)} if shown.get(name, provides) else {}),
            "match": match.get(name, outcome),
        }
        for name, requires, provides, outcome in rows
    ]
    return {"matched": all(row["match"] != "mismatched" for row in dimensions), "perDimension": dimensions}


@dataclass
class Sample:
    """What goes into a bundle; `files()` computes every digest from it."""

    recipe: bytes = RECIPE
    name: str = NAME
    predicate_type: str = V3
    profile: dict[str, object] | None = None
    reports: dict[str, dict[str, object]] = field(default_factory=default_reports)
    bom: bytes = b'{"bomFormat":"CycloneDX","specVersion":"1.6","components":[{"name":"a"},{"name":"b"}]}'
    snapshot: bytes = b"kind: Snapshot\nmeasurements: []\n"
    extra: dict[str, bytes] = field(default_factory=dict)  # listed in the manifest
    predicate: dict[str, object] = field(default_factory=dict)  # replaces keys of the predicate
    phases: dict[str, dict[str, object]] = field(default_factory=dict)  # replaces keys of single phases
    service: str = "eks"
    subject: str = ""

    def body(self) -> dict[str, bytes]:
        """Every listed file."""
        reports = {f"ctrf/{phase}.json": go_json(report) for phase, report in self.reports.items()}
        return {
            "recipe.yaml": self.recipe,
            "snapshot.yaml": self.snapshot,
            "bom.cdx.json": self.bom,
            **reports,
            **self.extra,
        }

    def files(self) -> dict[str, bytes]:
        """The whole bundle, with its unsigned statement."""
        body = self.body()
        manifest = manifest_of(body)
        predicate = self.predicate_of(body, manifest)
        subject = self.subject or str(predicate["recipe"]["digest"])  # type: ignore[index]
        statement = statement_of(predicate, self.predicate_type, f"recipe:{self.name}", subject)
        return {**body, "manifest.json": manifest, "statement.intoto.json": statement}

    def predicate_of(self, body: Mapping[str, bytes], manifest: bytes) -> dict[str, object]:
        """The predicate that describes `body`."""
        phases = {}
        for phase, report in self.reports.items():
            tests = report["results"]["tests"] or []  # type: ignore[index]
            counts = {s: sum(test["status"] == s for test in tests) for s in ("passed", "failed", "skipped")}
            phases[phase] = {
                **counts,
                "ctrfDigest": f"sha256:{sha256(body[f'ctrf/{phase}.json'])}",
                **self.phases.get(phase, {}),
            }
        try:
            digest = subject_digest(self.recipe, predicate_type=self.predicate_type)
        except RecipeInvalid:
            digest = "0" * 64
        predicate: dict[str, object] = {
            "schemaVersion": "1.0.0",
            "attestedAt": ATTESTED_AT,
            "aicrVersion": "v0.42.0",
            "aicrCommit": "abc1234",
            "validatorCatalogVersion": "v1",
            "validatorImages": None,
            "recipe": {"name": self.name, "digest": digest},
            "fingerprint": fingerprint(self.service),
            "criteriaMatch": criteria_match(self.service),
            "phases": phases,
            "bom": {
                "format": "CycloneDX",
                "version": "1.6",
                "digest": f"sha256:{sha256(self.bom)}",
                "imageCount": 2,
            },
            "manifest": {"digest": f"sha256:{sha256(manifest)}", "fileCount": len(body)},
            "redaction": {"policy": "minimal", "version": "v4", "applied": ["snapshot.header.allowlist"]},
        }
        if self.profile is not None:
            predicate["profile"] = self.profile
        return deepcopy(predicate | self.predicate)


def profiled(**changes: object) -> Sample:
    """A profiled AKS bundle."""
    sample = Sample(recipe=PROFILED_RECIPE, name=PROFILED_NAME, profile=dict(PROFILE_BLOCK), service="aks")
    for name, value in changes.items():
        setattr(sample, name, value)
    return sample


def go_json(value: object) -> bytes:
    """Indented by two with a final newline, as Go's encoder writes it."""
    return (json.dumps(value, indent=2) + "\n").encode()


def manifest_of(body: Mapping[str, bytes]) -> bytes:
    """The manifest of `body`."""
    files = [
        {"path": path, "size": len(data), "sha256": f"sha256:{sha256(data)}"} for path, data in sorted(body.items())
    ]
    return go_json({"schemaVersion": "1.0.0", "files": files})


def statement_of(predicate: object, predicate_type: str, name: str, subject_sha256: str) -> bytes:
    """An in-toto statement."""
    return json.dumps(
        {
            "_type": "https://in-toto.io/Statement/v1",
            "subject": [{"name": name, "digest": {"sha256": subject_sha256}}],
            "predicateType": predicate_type,
            "predicate": predicate,
        }
    ).encode()


def write(directory: Path, files: Mapping[str, bytes]) -> Path:
    """Put `files` below `directory` and give it back."""
    for path, data in files.items():
        target = directory / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(data)
    return directory
