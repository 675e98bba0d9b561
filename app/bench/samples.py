"""What is measured with: a recipe of 20 KB as a producer writes it, three reports, really signed bundles.

Everything is invented and made fresh; nothing here is believed by anybody but this process.
"""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory

from app.adapters.oci.pack import BundleArtifact, describe_bundle
from app.bootstrap.container import build_judge
from app.bootstrap.judging import BuildJudge
from app.config import JUDGING, load_settings
from app.core.bundle import MANIFEST_FILE, STATEMENT_FILE, RawSignature
from app.core.produce import (
    Captured,
    Check,
    Counted,
    Fingerprint,
    ProducedBundle,
    ProducerInput,
    Report,
    Snapshot,
    artifact_statement,
    build_bundle,
    local_statement,
    manifest_json,
)
from app.core.refs import Digest
from app.core.report import InputKind
from app.ports import JudgeJob
from app.sandbox.identities import OCTOCAT, PARTNER, UAT_AWS, SandboxIdentity
from app.sandbox.sigstore import Curve, LogVersion, PrivateSigstore

RECIPE_BYTES = 20_000
AICR_VERSION = "v0.42.0"
SIGNERS: tuple[SandboxIdentity, ...] = (UAT_AWS, OCTOCAT, PARTNER)
CHECKS = {
    "deployment": ("operator-health", "expected-resources", "driver-version", "gpu-operator-version"),
    "performance": ("nccl-all-reduce-bw", "inference-perf"),
    "conformance": ("dra-support", "gang-scheduling", "accelerator-metrics", "pod-autoscaling", "robust-controller"),
}

_NOW = datetime.now(UTC)  # noqa: TID251 - samples are signed now, like real ones


def sample_recipe(size: int = RECIPE_BYTES, *, driver: str = "580.105.08", outside_form: bool = False) -> bytes:
    """A resolved recipe of about `size` bytes; its mix of styles is that of real ones.

    With `outside_form` it holds one letter that keeps it off the short way of the canonicalizer.
    """
    parts = [
        "apiVersion: aicr.run/v1",
        "constraints:",
        "    - name: K8s.server.version",
        "      value: '>= 1.32.4'",
        "    - name: OS.release.ID",
        "      value: ubuntu",
        "criteria:",
        "    accelerator: h100",
        "    intent: training",
        "    os: ubuntu",
        "    service: eks",
        "kind: RecipeResult",
        "metadata:",
        "    appliedOverlays:",
        "        - base",
        "        - eks",
        "        - h100-eks-training",
        "    version: v0.42.0",
        "componentRefs:",
    ]
    number, length = 0, sum(len(part) + 1 for part in parts)
    while length < size:
        component = _component(number, driver, note="größer" if outside_form and number == 0 else "larger")
        parts.append(component)
        length += len(component) + 1
        number += 1
    return ("\n".join(parts) + "\n").encode()


def _component(number: int, driver: str, *, note: str) -> str:
    name = f"component-{number:02d}"
    return f"""\
    - name: {name}
      namespace: gpu-system
      chart: {name}
      type: Helm
      source: oci://registry.example.org/charts/{name}
      version: v25.10.{number}
      dependencyRefs:
        - cert-manager
        - kube-prometheus-stack
      overrides:
        daemonsets:
            tolerations:
                - effect: NoSchedule
                  key: nvidia.com/gpu
                  operator: Exists
        driver:
            enabled: true
            env:
                - name: NVIDIA_VISIBLE_DEVICES
                  value: all
                - name: NVIDIA_DRIVER_CAPABILITIES
                  value: compute,utility
            version: "{driver}"
        description: 'one of the parts, {note} than it looks: see its chart'
        script: |-
            set -eu
            for gpu in $(seq 0 7); do
              nvidia-smi -i "$gpu" --query-gpu=name --format=csv,noheader
            done
        resources:
            limits:
                cpu: "2"
                memory: 4Gi
        args: []
        nodeSelector: {{}}"""


@dataclass(frozen=True, slots=True)
class SignedBundle:
    """One bundle with its signature, as an artifact and as a directory."""

    artifact: BundleArtifact
    bundle: ProducedBundle
    signature: bytes
    signer: SandboxIdentity
    directory: Path

    @property
    def digest(self) -> Digest:
        """The manifest digest."""
        return self.artifact.digest

    def job(self) -> JudgeJob:
        """The job of judging it strictly, as an ingest does."""
        return JudgeJob(
            directory=str(self.directory),
            input=InputKind.OCI,
            received_at=_NOW,
            digest=self.digest,
            signatures=(RawSignature(self.signature),),
        )


@dataclass(frozen=True, slots=True)
class Workbench:
    """A private Sigstore, its root on disk, and room for bundles."""

    sigstore: PrivateSigstore
    root: Path

    @property
    def trusted_root(self) -> Path:
        """The file that a verifier loads."""
        return self.root / "trusted_root.json"

    def judge_factory(self) -> BuildJudge:
        """How a judge over this root is made, here or in a worker."""
        return build_judge(load_settings({"trusted_root": str(self.trusted_root), "sandbox": True}, uses=JUDGING))

    def sign(
        self, number: int, *, log: LogVersion = LogVersion.V2, recipe: bytes | None = None, logs: int = 0
    ) -> SignedBundle:
        """Bundle `number`: the same number gives the same content with another signature."""
        bundle = produce(number, recipe or sample_recipe(), logs=logs)
        return self.sign_as(SIGNERS[number % len(SIGNERS)], bundle, log=log)

    def sign_as(self, who: SandboxIdentity, bundle: ProducedBundle, *, log: LogVersion = LogVersion.V2) -> SignedBundle:
        """Any bundle, also one that its producer would not have made."""
        artifact = describe_bundle(bundle.files, predicate_type=bundle.predicate_type, version=AICR_VERSION)
        statement = artifact_statement(bundle.predicate_type, bundle.predicate, "bench/evidence", artifact.digest.hex)
        signature = self.sigstore.mint(statement, who, log=log)
        directory = self.root / f"bundle-{artifact.digest.hex[:32]}"
        _write(directory, bundle)
        return SignedBundle(artifact, bundle, signature, who, directory)


def swollen(number: int, changes: Mapping[str, bytes]) -> ProducedBundle:
    """A bundle with other bytes in some files, manifest and predicate made to fit, so that they reach the judge."""
    honest = produce(number, sample_recipe())
    listed = {path: data for path, data in honest.files.items() if path not in {MANIFEST_FILE, STATEMENT_FILE}}
    listed |= changes
    manifest = manifest_json(listed)
    digest = f"sha256:{hashlib.sha256(manifest).hexdigest()}"
    predicate = {**honest.predicate, "manifest": {"digest": digest, "fileCount": len(listed)}}
    statement = local_statement(honest.predicate_type, predicate)
    files = {**listed, MANIFEST_FILE: manifest, STATEMENT_FILE: statement}
    return replace(honest, files=files, predicate=predicate)


@contextmanager
def workbench(curve: Curve = Curve.P384) -> Iterator[Workbench]:
    """A private Sigstore whose authority has a key on `curve`, with everything in a directory that goes away."""
    with TemporaryDirectory(prefix="aicr-bench-") as scratch:
        made = Workbench(PrivateSigstore(curve=curve), Path(scratch).resolve())
        made.trusted_root.write_bytes(made.sigstore.trusted_root_json())
        yield made


def produce(number: int, recipe: bytes, *, logs: int = 0) -> ProducedBundle:
    """An unsigned bundle; each number measured its own durations. `logs` are bytes of output beside the reports."""
    attested = (_NOW - timedelta(hours=1 + number % 400)).replace(microsecond=0)
    started = attested - timedelta(minutes=40)
    return build_bundle(
        ProducerInput(
            recipe=recipe,
            attested_at=attested,
            reports={phase: _report(number, names, started) for phase, names in CHECKS.items()},
            fingerprint=Fingerprint(
                service=Captured("eks", "k8s.node.provider"),
                accelerator=Captured("h100", "nodeTopology.label.nvidia.com/gpu.product"),
                os=Captured("ubuntu", "os.release", version="24.04"),
                k8s_version=Captured("1.33.5", "k8s.server.version"),
                node_count=Counted(5, "nodeTopology.summary.node-count"),
                gpu_node_count=Counted(4, "nodeTopology.label.nvidia.com/gpu.product"),
            ),
            snapshot=Snapshot(
                measurements={"GPU.hardware": {"gpu-present": "true", "gpu-count": "32", "model": "H100"}},
                timestamp=f"{started:%Y-%m-%dT%H:%M:%SZ}",
                version=AICR_VERSION,
                metadata={"cluster": f"cluster-{number}"},
            ),
            aicr_version=AICR_VERSION,
            aicr_commit=hashlib.sha256(AICR_VERSION.encode()).hexdigest()[:40],
            validator_catalog_version="v0.42.0",
            validator_images=(("ghcr.io/nvidia/aicr-validators:v0.42.0", ""),),
            extra_files={"logs/deployment.log": _log(number, logs)} if logs else {},
        )
    )


def _log(number: int, size: int) -> bytes:
    """Lines that compress about as well as real logs do."""
    line = hashlib.sha256(str(number).encode()).hexdigest()
    return b"".join(f"{at:08d} {line[at % 48 :]} gpu {at % 8} ok\n".encode() for at in range(size // 55))


def _report(number: int, names: Sequence[str], started: datetime) -> Report:
    checks = tuple(
        Check(name, "passed", 2_000 + int.from_bytes(hashlib.sha256(f"{number}/{name}".encode()).digest()[:2]))
        for name in names
    )
    start_ms = int(started.timestamp() * 1000)
    return Report(
        checks,
        start_ms=start_ms,
        stop_ms=start_ms + sum(check.duration_ms for check in checks),
        timestamp=f"{started:%Y-%m-%dT%H:%M:%SZ}",
        tool_version=AICR_VERSION,
    )


def _write(directory: Path, bundle: ProducedBundle) -> None:
    for path, data in bundle.files.items():
        target = directory / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(data)
