"""Sample recipes: resolved texts as a recipe engine would write them, for invented clusters."""

from dataclasses import dataclass, field

from app.core.coordinate import Criteria

CHECKS = {
    "deployment": ("operator-health", "expected-resources", "driver-version"),
    "conformance": ("dra-support", "gang-scheduling"),
    "performance": ("nccl-all-reduce-bw",),
}
"""The checks that every sample recipe declares, by phase."""

PROFILE = ("gpuStack", "operator-managed")


@dataclass(frozen=True, slots=True)
class SampleRecipe:
    """One sample recipe; `driver` and `operator` are what a later version of it changes."""

    criteria: Criteria
    driver: str = "580.105.08"
    operator: str = "v25.10.1"
    kubernetes: str = ">= 1.32.4"
    profiled: bool = False
    facts: dict[str, str] = field(default_factory=dict)

    @property
    def text(self) -> bytes:
        """The resolved recipe (kind RecipeResult)."""
        c = self.criteria
        platform = f"  platform: {c.platform}\n" if c.platform else ""
        return (
            f"apiVersion: aicr.run/{'v1beta2' if self.profiled else 'v1'}\n"
            "kind: RecipeResult\n"
            "metadata:\n"
            "  version: v0.42.0\n"
            f"{_SELECTED if self.profiled else ''}"
            "criteria:\n"
            f"  service: {c.service}\n"
            f"  accelerator: {c.accelerator}\n"
            f"  os: {c.os}\n"
            f"  intent: {c.intent}\n"
            f"{platform}"
            "componentRefs:\n"
            "  - name: gpu-operator\n"
            "    type: Helm\n"
            "    chart: gpu-operator\n"
            f"    version: {self.operator}\n"
            "    overrides:\n"
            "      driver:\n"
            f'        version: "{self.driver}"\n'
            "  - name: nvidia-dra-driver-gpu\n"
            "    type: Helm\n"
            "    chart: nvidia-dra-driver-gpu\n"
            "    version: v25.8.0\n"
            "constraints:\n"
            "  - name: K8s.server.version\n"
            f"    value: '{self.kubernetes}'\n"
            "deploymentOrder:\n"
            "  - gpu-operator\n"
            "  - nvidia-dra-driver-gpu\n"
        ).encode()


_SELECTED = (
    "  selectedProfile:\n"
    f"    name: {PROFILE[0]}\n"
    f"    value: {PROFILE[1]}\n"
    "    ownedPaths:\n"
    "      gpu-operator:\n"
    "        - devicePlugin.enabled\n"
)


def _recipe(accelerator: str, service: str, os: str, intent: str, platform: str = "") -> Criteria:
    return Criteria(service=service, accelerator=accelerator, os=os, intent=intent, platform=platform)


RECIPES = {
    "agreed": SampleRecipe(_recipe("h100", "eks", "ubuntu", "training")),
    "alone": SampleRecipe(_recipe("h100", "gke", "cos", "training")),
    "disputed": SampleRecipe(_recipe("gb200", "eks", "ubuntu", "training")),
    "failing": SampleRecipe(_recipe("a100", "eks", "ubuntu", "inference", "dynamo")),
    "unlisted": SampleRecipe(_recipe("b200", "oke", "ubuntu", "training")),
    "profiled": SampleRecipe(_recipe("h100", "aks", "ubuntu", "training"), profiled=True),
    "drifted": SampleRecipe(_recipe("l40s", "eks", "ubuntu", "inference")),
    "branch": SampleRecipe(_recipe("h200", "eks", "ubuntu", "training")),
    "one-party": SampleRecipe(_recipe("rtx-pro-6000", "eks", "ubuntu", "inference", "nim")),
    "copied": SampleRecipe(_recipe("h100", "lke", "ubuntu", "training")),
    "waiting": SampleRecipe(_recipe("a100", "gke", "cos", "training")),
}
"""Today's recipes by what the demo shows with them."""

EARLIER = {"drifted": SampleRecipe(RECIPES["drifted"].criteria, driver="570.172.08", kubernetes=">= 1.31")}
"""An earlier version that evidence was made for, before the recipe moved on."""
