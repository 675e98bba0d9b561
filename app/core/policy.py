"""The policy-descriptor identity: which component paths decide how GPUs are allocated (evidence-format 1.9)."""

import hashlib
from collections.abc import Iterable, Mapping
from typing import Final

from app.core.recipe import EXTERNAL, Recipe

FULL_DESCRIPTOR: Final[Mapping[str, tuple[str, ...]]] = {
    "gpu-operator": ("devicePlugin.enabled",),
    "gpu-operator-ocp": ("devicePlugin.enabled",),
    "nvidia-dra-driver-gpu": ("gpuResourcesEnabledOverride", "resources.gpus.enabled"),
    "nvidia-dra-driver-gpu-ocp": ("gpuResourcesEnabledOverride", "resources.gpus.enabled"),
}
"""Selector paths by component; upstream only ever appends to it."""


def descriptor_identity(descriptor: Mapping[str, Iterable[str]]) -> str:
    """Bare hex sha256 over `component:path` lines, components and paths in byte order, each path once."""
    lines = (f"{component}:{path}\n" for component in sorted(descriptor) for path in sorted(set(descriptor[component])))
    return hashlib.sha256("".join(lines).encode()).hexdigest()


def recipe_descriptor(recipe: Recipe) -> Mapping[str, tuple[str, ...]]:
    """The entries that a recipe's profile touches: none, or those of every enabled component in the descriptor.

    The profile touches the policy when an external party advertises the devices, or when it owns a selector path.
    Owned paths are compared whole (evidence-format 12.5 leaves prefixes open).
    """
    profile = recipe.selected_profile
    if profile is None:
        return {}
    owns = any(
        path in FULL_DESCRIPTOR.get(component, ()) for component, paths in profile.owned_paths.items() for path in paths
    )
    if profile.advertiser != EXTERNAL and not owns:
        return {}
    enabled = {component.name for component in recipe.components if component.enabled}
    return {component: paths for component, paths in FULL_DESCRIPTOR.items() if component in enabled}


def recipe_identity(recipe: Recipe) -> str:
    """The identity that evidence for `recipe` must carry in its profile block."""
    return descriptor_identity(recipe_descriptor(recipe))
