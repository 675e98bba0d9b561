"""Sample runs: who validated what, with which results. What they must come to stands in `expected.json`."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from app.core.produce import Captured, Check, Counted, Fingerprint, ProducedBundle, ProducerInput, Report, Snapshot
from app.core.produce import build_bundle as build
from app.sandbox.demo.recipes import CHECKS, EARLIER, RECIPES, SampleRecipe
from app.sandbox.identities import (
    DEV_TWO,
    OCTOCAT,
    PARTNER,
    STRANGER,
    UAT_AWS,
    UAT_AWS_BRANCH,
    UAT_GCP,
    SandboxIdentity,
    WorkflowRun,
    email_identity,
    workflow_identity,
)

AICR_VERSION = "v0.42.0"

OCTOCAT_WORKFLOW = workflow_identity(
    WorkflowRun("octocat/aicr-attest", ".github/workflows/attest.yaml", repository_id="770077007", owner_id="1234567")
)
NEWCOMER = email_identity("newcomer@example.org")

FORGED = "forged"
UNSIGNED = "unsigned"


@dataclass(frozen=True, slots=True)
class Sample:
    """One run. `results` names only what did not pass; `copies` takes another sample's reports as they are."""

    name: str
    recipe: str
    signer: SandboxIdentity
    days_ago: float
    results: Mapping[str, str] = field(default_factory=dict)
    earlier: bool = False  # validated the earlier version of the recipe
    copies: str = ""
    fault: str = ""
    rekor: str = "v2"


SAMPLES = (
    Sample("aws", "agreed", UAT_AWS, 1.1, rekor="v1"),
    Sample("octocat", "agreed", OCTOCAT, 2.3),
    Sample("partner", "agreed", PARTNER, 3.2),
    Sample("gcp-alone", "alone", UAT_GCP, 0.7),
    Sample("aws-disputed", "disputed", UAT_AWS, 1.4),
    Sample("partner-disputed", "disputed", PARTNER, 0.9, {"nccl-all-reduce-bw": "failed"}),
    Sample("octocat-failing", "failing", OCTOCAT, 4.1, {"driver-version": "failed", "gang-scheduling": "skipped"}),
    Sample("stranger", "unlisted", STRANGER, 0.5),
    Sample("octocat-profiled", "profiled", OCTOCAT, 1.9, rekor="v1"),
    Sample("dev-two-profiled", "profiled", DEV_TWO, 2.8),
    Sample("aws-drifted", "drifted", UAT_AWS, 5.0, earlier=True),
    Sample("dev-two-drifted", "drifted", DEV_TWO, 5.5, earlier=True),
    Sample("aws-main", "branch", UAT_AWS, 1.6),
    Sample("aws-branch", "branch", UAT_AWS_BRANCH, 0.4),
    Sample("octocat-person", "one-party", OCTOCAT, 2.2),
    Sample("octocat-workflow", "one-party", OCTOCAT_WORKFLOW, 1.3),
    Sample("aws-original", "copied", UAT_AWS, 2.6),
    Sample("dev-two-copy", "copied", DEV_TWO, 2.1, copies="aws-original"),
    Sample("gcp-waiting", "waiting", UAT_GCP, 1.7),
    Sample("newcomer", "waiting", NEWCOMER, 1.2),
    Sample("forged", "agreed", UAT_GCP, 0.2, fault=FORGED),
    Sample("unsigned", "agreed", DEV_TWO, 0.3, fault=UNSIGNED),
)


def recipe_of(sample: Sample) -> SampleRecipe:
    """The recipe version that the sample validated."""
    return EARLIER[sample.recipe] if sample.earlier else RECIPES[sample.recipe]


def build_bundle(sample: Sample, now: datetime) -> ProducedBundle:
    """The sample's bundle as the producer makes it; each sample measured its own durations, a copy measured none."""
    recipe = recipe_of(sample)
    measured = next(other for other in SAMPLES if other.name == sample.copies) if sample.copies else sample
    attested_at = (now - timedelta(days=sample.days_ago)).replace(microsecond=0)
    started = (now - timedelta(days=measured.days_ago, minutes=40)).replace(microsecond=0)
    return build(
        ProducerInput(
            recipe=recipe.text,
            attested_at=attested_at,
            reports={phase: _report(measured, phase, started) for phase in CHECKS},
            fingerprint=_fingerprint(recipe),
            snapshot=_snapshot(measured, started),
            aicr_version=AICR_VERSION,
            aicr_commit=hashlib.sha256(AICR_VERSION.encode()).hexdigest()[:40],
            validator_catalog_version="v0.42.0",
            validator_images=(("ghcr.io/nvidia/aicr-validators:v0.42.0", ""),),
        )
    )


def forge(bundle: ProducedBundle) -> Mapping[str, bytes]:
    """The bundle with a result changed after it was signed; everything unsigned is made to fit again."""
    files = dict(bundle.files)
    files["ctrf/performance.json"] = files["ctrf/performance.json"].replace(b'"duration": ', b'"duration": 9')
    return files


def _report(sample: Sample, phase: str, started: datetime) -> Report:
    checks = tuple(
        Check(
            name,
            sample.results.get(name, "passed"),
            _duration_ms(sample, name),
            extra={"skipReason": "nodes-busy"} if sample.results.get(name) == "skipped" else {"nodesTotal": "4"},
        )
        for name in CHECKS[phase]
    )
    start_ms = int(started.timestamp() * 1000)
    return Report(
        checks,
        start_ms=start_ms,
        stop_ms=start_ms + sum(check.duration_ms for check in checks),
        timestamp=f"{started:%Y-%m-%dT%H:%M:%SZ}",
        tool_version=AICR_VERSION,
    )


def _duration_ms(sample: Sample, check: str) -> int:
    return 2_000 + int.from_bytes(hashlib.sha256(f"{sample.name}/{check}".encode()).digest()[:2])


def _fingerprint(recipe: SampleRecipe) -> Fingerprint:
    c = recipe.criteria
    return Fingerprint(
        service=Captured(c.service, "k8s.node.provider"),
        accelerator=Captured(c.accelerator, "nodeTopology.label.nvidia.com/gpu.product"),
        os=Captured(c.os, "os.release"),
        k8s_version=Captured("1.33.5", "k8s.server.version"),
        node_count=Counted(5, "nodeTopology.summary.node-count"),
        gpu_node_count=Counted(4, "nodeTopology.label.nvidia.com/gpu.product"),
    )


def _snapshot(sample: Sample, started: datetime) -> Snapshot:
    recipe = recipe_of(sample)
    return Snapshot(
        measurements={
            "K8s.server": {"version": "v1.33.5", "platform": "linux/amd64"},
            "GPU.hardware": {"gpu-present": "true", "gpu-count": "32", "model": recipe.criteria.accelerator.upper()},
        },
        timestamp=f"{started:%Y-%m-%dT%H:%M:%SZ}",
        version=AICR_VERSION,
        metadata={"cluster": sample.name},
    )
