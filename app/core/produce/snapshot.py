"""`fingerprint` and `snapshot.yaml`: what was captured of a cluster, and what a minimal bundle keeps of it.

The verifier takes the snapshot as opaque bytes; upstream's exact layout is not published, only which values survive
(evidence-format 1.3, 10).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from app.core.produce.plain_yaml import plain_yaml

MEASUREMENTS: Final[Mapping[str, frozenset[str]]] = {
    "K8s.server": frozenset({"version", "platform", "goVersion"}),
    "K8s.node": frozenset(
        {
            "provider",
            "kubelet-version",
            "kernel-version",
            "operating-system",
            "os-image",
            "container-runtime-name",
            "container-runtime-version",
        }
    ),
    "GPU.hardware": frozenset({"gpu-present", "gpu-count", "driver-loaded", "detection-source", "model"}),
    "OS.release": frozenset({"ID", "ID_LIKE", "NAME", "PRETTY_NAME", "VERSION", "VERSION_ID", "VERSION_CODENAME"}),
    "NodeTopology.summary": frozenset({"node-count", "taint-count", "label-count"}),
}
"""What a minimal bundle keeps, by measurement and key."""


@dataclass(frozen=True, slots=True)
class Captured:
    """One text dimension; an empty value was not captured, a `note` says why. `version` is the system's, for `os`."""

    value: str = ""
    source: str = ""
    note: str = ""
    version: str = ""

    def to_json(self) -> dict[str, object]:
        """Keys `value, version?, source?, note?`."""
        parts: dict[str, object] = {"version": self.version, "source": self.source, "note": self.note}
        return {"value": self.value, **{key: text for key, text in parts.items() if text}}


@dataclass(frozen=True, slots=True)
class Counted:
    """One number; 0 was not captured."""

    value: int = 0
    source: str = ""

    def to_json(self) -> dict[str, object]:
        """Keys `value, source?`."""
        return {"value": self.value} | ({"source": self.source} if self.source else {})


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """The cluster as the producer saw it, before any redaction."""

    service: Captured = Captured()
    accelerator: Captured = Captured()
    gpu_model: Captured = Captured()
    os: Captured = Captured()
    k8s_version: Captured = Captured()
    region: Captured = Captured()
    node_count: Counted = Counted()
    gpu_node_count: Counted = Counted()

    def to_json(self) -> dict[str, object]:
        """Every dimension, captured or not; the Kubernetes version without its leading `v`."""
        k8s = self.k8s_version
        return {
            "service": self.service.to_json(),
            "accelerator": self.accelerator.to_json(),
            "gpuModel": self.gpu_model.to_json(),
            "os": self.os.to_json(),
            "k8sVersion": Captured(k8s.value.removeprefix("v"), k8s.source, k8s.note).to_json(),
            "region": self.region.to_json(),
            "nodeCount": self.node_count.to_json(),
            "gpuNodeCount": self.gpu_node_count.to_json(),
        }


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Measurements by `type.subtype`, each a mapping of texts; the header says when and by which version."""

    measurements: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    timestamp: str = ""
    version: str = ""
    api_version: str = "aicr.run/v1"
    metadata: Mapping[str, str] = field(default_factory=dict)  # header values beside timestamp and version

    def encode(self, fingerprint: Fingerprint, *, full: bool) -> bytes:
        """The bytes of `snapshot.yaml`; without `full` only what a minimal bundle keeps."""
        header = {"timestamp": self.timestamp, "version": self.version}
        if full:
            header = {**self.metadata, **header}
        by_type: dict[str, list[dict[str, object]]] = {}
        for name in sorted(self.measurements):
            kept = self.measurements[name]
            if not full:
                kept = {key: value for key, value in kept.items() if key in MEASUREMENTS.get(name, ())}
            if kept:
                kind, _, subtype = name.partition(".")
                by_type.setdefault(kind, []).append({"subtype": subtype, "data": dict(kept)})
        return plain_yaml(
            {
                "apiVersion": self.api_version,
                "kind": "Snapshot",
                "metadata": {key: value for key, value in header.items() if value},
                "fingerprint": fingerprint.to_json(),
                "measurements": [{"type": kind, "subtypes": subtypes} for kind, subtypes in by_type.items()],
            }
        )
