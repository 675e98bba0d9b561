"""A whole service on a real socket and database, fed with bundles that say exactly what a test is about.

Signatures are minted without HTTP, so that a bundle costs milliseconds; everything that the service does is real.
"""

import itertools
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx

from app.adapters.oci.pack import BundleArtifact, describe_bundle, describe_signature
from app.core.coordinate import Criteria
from app.core.produce import (
    Captured,
    Check,
    Counted,
    Fingerprint,
    ProducedBundle,
    ProducerInput,
    Report,
    RuntimeProvenance,
    Snapshot,
    artifact_statement,
    build_bundle,
)
from app.core.refs import OciRef
from app.core.statement import RECIPE_EVIDENCE_V3
from app.sandbox.demo.recipes import SampleRecipe
from app.sandbox.identities import SandboxIdentity
from tests.support.endtoend import Service, service
from tests.support.service import Stage, open_stage

TOKEN = "catalogue-token"
CHECKS = {"deployment": {"operator-health": "passed"}}
_numbers = itertools.count(1)

Results = Mapping[str, Mapping[str, str]]


def recipe(accelerator: str, **changes: Any) -> SampleRecipe:
    """A sample recipe that no other test of the module uses, told apart by its accelerator."""
    facts = {"service": "eks", "os": "ubuntu", "intent": "training", "platform": "", **changes.pop("criteria", {})}
    return SampleRecipe(Criteria(accelerator=accelerator, **facts), **changes)


def name_of(sample: SampleRecipe) -> str:
    """The name that its text gives."""
    c = sample.criteria
    parts = [c.accelerator, c.service, c.os, c.intent, *([c.platform] if c.platform else [])]
    return "-".join([*parts, *(["gpustack-operator-managed"] if sample.profiled else [])])


@dataclass(frozen=True)
class Evidence:
    """What one bundle says; `number` tells it from every other one, unless two share it on purpose."""

    recipe: SampleRecipe
    signer: SandboxIdentity
    results: Results = field(default_factory=lambda: CHECKS)
    days_ago: float = 1.0
    version: str = "v1.0.0"
    commit: str = ""
    k8s: str = "1.33.5"
    images: Sequence[tuple[str, str]] = (("ghcr.io/nvidia/aicr-validators:v1.0.0", ""),)
    overridden: Sequence[str] = ()
    stdout: Sequence[str] = ()
    accelerator: str = ""  # of the cluster, the recipe's when empty
    predicate_type: str = RECIPE_EVIDENCE_V3
    skip_reason: str = "nodes-busy"
    text: bytes = b""  # of the recipe, when it is not the sample's
    number: int = field(default_factory=lambda: next(_numbers))


@dataclass(frozen=True)
class Live:
    """The service, what stands around it, and short words for both."""

    stage: Stage
    service: Service

    # --- in ---

    def publish(self, evidence: Evidence) -> OciRef:
        """Build, sign and hold a bundle; its pinned reference."""
        produced = self.build(evidence)
        artifact = describe_bundle(produced.files, predicate_type=produced.predicate_type, version=evidence.version)
        return self.sign(produced, artifact, evidence.signer)

    def sign(self, produced: ProducedBundle, artifact: BundleArtifact, signer: SandboxIdentity) -> OciRef:
        """Hold an artifact with one signature."""
        name = f"{self.stage.registry.host}/aicr/{signer.signer.slug}"
        statement = artifact_statement(produced.predicate_type, produced.predicate, name, artifact.digest.hex)
        signature = describe_signature(artifact.descriptor, self.stage.sigstore.mint(statement, signer))
        return self.stage.registry.seed(f"aicr/{signer.signer.slug}", artifact, (signature,))

    def build(self, evidence: Evidence) -> ProducedBundle:
        """The bundle as the producer makes it."""
        at = (self.stage.now - timedelta(days=evidence.days_ago)).replace(microsecond=0)
        # Of the number alone, so that two bundles of one number share reports and snapshot and no others do.
        started = self.stage.now.replace(microsecond=0) - timedelta(days=100, seconds=evidence.number)
        criteria = evidence.recipe.criteria
        return build_bundle(
            ProducerInput(
                recipe=evidence.text or evidence.recipe.text,
                attested_at=at,
                reports={
                    phase: _report(evidence, checks, int(started.timestamp() * 1000))
                    for phase, checks in evidence.results.items()
                },
                fingerprint=Fingerprint(
                    service=Captured(criteria.service),
                    accelerator=Captured(evidence.accelerator or criteria.accelerator),
                    os=Captured(criteria.os),
                    k8s_version=Captured(evidence.k8s),
                    node_count=Counted(5),
                    gpu_node_count=Counted(4),
                ),
                snapshot=Snapshot(
                    metadata={"cluster": str(evidence.number)}, timestamp=f"{started:%Y-%m-%dT%H:%M:%SZ}"
                ),
                predicate_type=evidence.predicate_type,
                aicr_version=evidence.version,
                aicr_commit=evidence.commit,
                validator_images=tuple(evidence.images),
                full=bool(evidence.stdout),
            )
        )

    def submit(self, evidence: Evidence) -> dict[str, Any]:
        """Publish and submit what must be stored; the answer."""
        answer = self.service.submit(self.publish(evidence))
        assert answer.status_code == 201, answer.text
        body: dict[str, Any] = answer.json()
        return body

    def push(self, *samples: SampleRecipe, commit: str = "c0ffee0", replace_all: bool = False, **more: Any) -> Any:
        """Today's catalogue entries in bulk."""
        entries = [{"recipe": sample.text.decode(), **more} for sample in samples]
        return self.put("/recipes" + ("?replace=true" if replace_all else ""), {"recipes": entries, "commit": commit})

    def put(self, path: str, body: Any) -> Any:
        """A catalogue push that must succeed."""
        answer = self.try_put(path, json=body)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def try_put(self, path: str, **sent: Any) -> httpx.Response:
        """A catalogue push."""
        headers = {"Authorization": f"Bearer {TOKEN}", **sent.pop("headers", {})}
        return self.service.http.put(path, headers=headers, **sent)

    # --- out ---

    def get(self, path: str, **parameters: str) -> Any:
        """A read that must succeed."""
        answer = self.service.http.get(path, params=parameters or None)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def recipe(self, sample: SampleRecipe, **lens: str) -> dict[str, Any]:
        """One recipe through a lens."""
        body: dict[str, Any] = self.get(f"/recipes/{name_of(sample)}", **lens)
        return body

    def line(self, sample: SampleRecipe) -> dict[str, Any]:
        """Its line in the catalogue."""
        items = self.get("/recipes", limit="500")["items"]
        found: dict[str, Any] = next(item for item in items if item["recipe"] == name_of(sample))
        return found

    def standing(self, sample: SampleRecipe, signer: SandboxIdentity) -> dict[str, Any]:
        """One source on a recipe."""
        sources = self.recipe(sample)["sources"]
        found: dict[str, Any] = next(one for one in sources if one["source"] == signer.signer.slug)
        return found

    def remarks(self, sample: SampleRecipe, signer: SandboxIdentity) -> dict[str, dict[str, Any]]:
        """Remarks on one source by code."""
        return {remark["code"]: remark for remark in self.standing(sample, signer)["remarks"]}

    def reasons(self, sample: SampleRecipe, signer: SandboxIdentity) -> dict[str, dict[str, Any]]:
        """Reasons of one source's staleness by name."""
        return {reason["reason"]: reason for reason in self.standing(sample, signer)["staleness"]}

    def row(self, sample: SampleRecipe, name: str = "operator-health", **lens: str) -> dict[str, Any]:
        """One row of the grid in view."""
        found: dict[str, Any] = next(row for row in self.recipe(sample, **lens)["rows"] if row["name"] == name)
        return found


def variant(evidence: Evidence, **changes: Any) -> Evidence:
    """The same but for what is named, as a bundle of its own."""
    return replace(evidence, **{"number": next(_numbers), **changes})


@contextmanager
def living(directory: Path, allowlist: str, **settings: object) -> Iterator[Live]:
    """A service of its own over a registry and a Sigstore of its own."""
    directory.mkdir(parents=True, exist_ok=True)
    with open_stage(directory) as stage, on_stage(stage, directory / "service", allowlist, **settings) as live:
        yield live


@contextmanager
def on_stage(stage: Stage, directory: Path, allowlist: str, **settings: object) -> Iterator[Live]:
    """A service over a stage that stands already; the same directory is the same service again."""
    chosen: dict[str, object] = {"sandbox": True, "catalogue_token": TOKEN, **settings}
    hosts = [stage.registry.host]
    with service(directory, str(stage.trusted_root), hosts, allowlist, **chosen) as up:
        yield Live(stage, up)


def _report(evidence: Evidence, checks: Mapping[str, str], start_ms: int) -> Report:
    made = tuple(
        Check(
            name,
            status,
            1000 * evidence.number + position,
            stdout=tuple(evidence.stdout),
            extra={"skipReason": evidence.skip_reason} if status == "skipped" and evidence.skip_reason else {},
            runtime_provenance=RuntimeProvenance("0" * 64, "1" * 64, tuple(evidence.overridden))
            if evidence.overridden
            else None,
        )
        for position, (name, status) in enumerate(checks.items())
    )
    return Report(made, start_ms=start_ms, stop_ms=start_ms + 1000 * 60 * 20, tool_version=evidence.version)
