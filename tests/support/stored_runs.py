"""Runs as the store takes them, made by hand: every field has a value that tells it from the others."""

import hashlib
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from app.core.bundle import DimensionMatch, Figure, LogEntry, PhaseSummary, Run, TestOutcome
from app.core.coordinate import Coordinate, Criteria
from app.core.identity import GITHUB_ACTIONS_ISSUER, GITHUB_OAUTH_ISSUER, GithubClaims, SignerIdentity
from app.core.refs import Digest
from app.ports import Received

T0 = datetime(2026, 5, 8, 10, 0, 0, 250_000, tzinfo=UTC)
RECIPE = "h100-eks-ubuntu-training-kubeflow"
V3 = "https://aicr.run/recipe-evidence/v3"

OCTOCAT = SignerIdentity(GITHUB_OAUTH_ISSUER, "1234567+octocat@users.noreply.github.com")
DEV_ONE = SignerIdentity(GITHUB_OAUTH_ISSUER, "dev-one@example.org")
WORKFLOW = SignerIdentity(
    GITHUB_ACTIONS_ISSUER,
    "https://github.com/acme-lab/aicr-attest/.github/workflows/attest.yaml@refs/heads/main",
    GithubClaims(
        trigger="push",
        source_repository="https://github.com/acme-lab/aicr-attest",
        source_repository_id="771",
        source_owner="https://github.com/acme-lab",
        source_owner_id="88",
        run_url="https://github.com/acme-lab/aicr-attest/actions/runs/1/attempts/1",
        source_ref="refs/heads/main",
    ),
)


def hexed(text: str) -> str:
    """Any 64 hex characters, the same for the same text."""
    return hashlib.sha256(text.encode()).hexdigest()


def at(hours: float) -> datetime:
    """`T0` and so many hours."""
    return T0 + timedelta(hours=hours)


def make_run(number: int, signer: SignerIdentity = WORKFLOW, **changes: Any) -> Run:
    """The run of bundle `number`: attested `number` hours after `T0`, logged two minutes later, received at +1 h."""
    results = changes.pop(
        "results",
        (
            TestOutcome("deployment", "operator-health", "passed", 1200, "", "kubernetes"),
            TestOutcome("conformance", "dra-support", "skipped", None, "no DRA driver", ""),
        ),
    )
    run = Run(
        digest=Digest(hexed(f"bundle {number}")),
        signer=signer,
        recipe=RECIPE,
        criteria=Criteria("eks", "h100", "ubuntu", "training", "kubeflow", nodes=4),
        coordinate=Coordinate("eks", "h100-ubuntu", "training-kubeflow"),
        profile="",
        profile_selection="",
        predicate_type=V3,
        recipe_digest=hexed("recipe"),
        aicr_version="v1.0.0",
        aicr_commit="0123456789abcdef0123456789abcdef01234567",
        k8s_version="1.33",
        k8s_constraint=">= 1.32.4",
        attested_at=at(number),
        logged_at=at(number) + timedelta(minutes=2),
        received_at=at(number + 1),
        log=LogEntry("rekor.example.org", hexed("log"), number, number + 1, "dsse"),
        root="sandbox",
        root_sha256=hexed("root"),
        signature_sha256=hexed(f"signature {number} {signer.identity}"),
        exit=0,
        phases=(PhaseSummary("deployment", 1, 0, 0, f"sha256:{hexed(f'ctrf {number}')}"),),
        results=results,
        prints=(("ctrf", f"sha256:{hexed(f'ctrf {number}')}"), ("snapshot", hexed(f"snapshot {number}"))),
        dimensions=(DimensionMatch("accelerator", "matched", "h100", "h100"),),
        hardware_matched=True,
        remarks=("signed-late",),
        overridden_paths=("components.a.version",),
        validator_images=("registry.example.org/validator:v1",),
        recipe_text=f"name: {RECIPE}\n",
        figures=(
            Figure("performance", "nccl-all-reduce-bw", "nccl-all-reduce-bandwidth", 488.37, "GB/s"),
            Figure("performance", "inference", "inference-throughput", 1e9 / 3, "tok/s"),
        ),
    )
    return replace(run, **changes)


def outcome(name: str, status: str, **more: Any) -> TestOutcome:
    """A result of the deployment phase (test modules can not import a class whose name starts with Test)."""
    return TestOutcome("deployment", name, status, **more)


PASS = (outcome("operator-health", "passed", duration_ms=1),)
FAIL = (outcome("operator-health", "failed", duration_ms=1),)


def received(run: Run, **changes: Any) -> Received:
    """How a run reached us: from a registry, anonymously, unless changed."""
    reference = f"registry.example.org/evidence@{run.digest}"
    return replace(Received(run.received_at, reference, public=True), **changes)
