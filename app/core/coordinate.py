"""Criteria, coordinates and profile segments (corroboration 3, evidence-format 1.7).

Decoding a recipe text and its selected profile is in `core.recipe`.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from app.core.errors import RecipeInvalid

ANY = "any"
"""The wildcard; an empty value means the same."""

SERVICES = ("aks", "bcm", "eks", "generic", "gke", "k0s", "kind", "lke", "metal3", "ocp", "oke", "rke2")
ACCELERATORS = ("a100", "b200", "gb200", "gb300", "h100", "h200", "l40", "l40s", "rtx-pro-6000", "vr200")
OPERATING_SYSTEMS = ("amazonlinux", "cos", "ol", "rhel", "sles", "talos", "ubuntu")
INTENTS = ("inference", "training")
PLATFORMS = ("dynamo", "kubeflow", "nim", "runai", "slurm")

KNOWN_VALUES: Mapping[str, tuple[str, ...]] = {
    "service": SERVICES,
    "accelerator": ACCELERATORS,
    "os": OPERATING_SYSTEMS,
    "intent": INTENTS,
    "platform": PLATFORMS,
}
"""Known values by dimension (corroboration 3.1); the taxonomy is open, so others are valid too."""

_ALIASES: Mapping[tuple[str, str], str] = {
    ("service", "self-managed"): ANY,
    ("service", "self"): ANY,
    ("service", "vanilla"): ANY,
    ("os", "al2"): "amazonlinux",
    ("os", "al2023"): "amazonlinux",
}
_SELECTION = re.compile(r"([A-Za-z0-9._-]+)=([A-Za-z0-9._-]+)")
_SLUG_ORDER = ("accelerator", "service", "os", "intent", "platform")


@dataclass(frozen=True, slots=True)
class Criteria:
    """A recipe's resolved criteria; empty means `any`. `nodes` is advisory and in no coordinate."""

    service: str = ""
    accelerator: str = ""
    os: str = ""
    intent: str = ""
    platform: str = ""
    nodes: int = 0

    def value(self, dimension: str) -> str:
        """The dimension's value, with `any` read as empty."""
        value = {
            "service": self.service,
            "accelerator": self.accelerator,
            "os": self.os,
            "intent": self.intent,
            "platform": self.platform,
        }[dimension]
        return "" if value == ANY else value

    def specific(self) -> tuple[str, ...]:
        """The five values in `KNOWN_VALUES` order with `any` read as empty: equal for criteria that say the same."""
        return tuple(self.value(dimension) for dimension in KNOWN_VALUES)


@dataclass(frozen=True, slots=True)
class Coordinate:
    """`group/dashboard/tab`; opaque to consumers, since values can contain `-`."""

    group: str
    dashboard: str
    tab: str

    @property
    def path(self) -> str:
        """The frozen string form."""
        return f"{self.group}/{self.dashboard}/{self.tab}"


def coordinate_of(criteria: Criteria | None, profile_segment: str = "") -> Coordinate:
    """Where a recipe stands (corroboration 3.2); raises `RecipeInvalid` naming the dimension that is missing.

    With a profile segment it is the evidence route, whose tab carries the segment; without, the plain coordinate.
    """
    if criteria is None:
        raise RecipeInvalid("expected criteria to place the recipe by, found none")
    for dimension in ("service", "accelerator", "intent"):
        if not criteria.value(dimension):
            raise RecipeInvalid(f"{dimension}: expected a specific value to place the recipe by, found any")
    for dimension in KNOWN_VALUES:
        if "/" in criteria.value(dimension):
            raise RecipeInvalid(f"{dimension}: expected a value without '/', got {criteria.value(dimension)[:80]!r}")
    tab = "-".join(part for part in (criteria.intent, criteria.value("platform"), profile_segment) if part)
    return Coordinate(criteria.service, f"{criteria.accelerator}-{criteria.value('os') or ANY}", tab)


def criteria_of(coordinate: Coordinate, profile_segment: str = "") -> Criteria:
    """The criteria behind a coordinate (corroboration 3.5); raises `RecipeInvalid` when it does not round-trip.

    `os` is `any` for an os-agnostic recipe, `platform` is empty for a bare intent.
    """
    tab = coordinate.tab
    if profile_segment:
        stripped = tab.removesuffix(f"-{profile_segment}")
        if stripped == tab:
            raise RecipeInvalid(f"tab: expected it to end with -{profile_segment[:80]}, got {tab[:80]!r}")
        tab = stripped
    accelerator, os = _split_dashboard(coordinate.dashboard)
    intent, platform = _split_tab(tab)
    criteria = Criteria(coordinate.group, accelerator, os, intent, platform)
    if coordinate_of(criteria, profile_segment) != coordinate:
        raise RecipeInvalid(f"expected a coordinate that its criteria lead back to, got {coordinate.path[:120]!r}")
    return criteria


def _split_dashboard(dashboard: str) -> tuple[str, str]:
    """At the longest known operating system, else at the last hyphen."""
    for os in sorted(OPERATING_SYSTEMS, key=len, reverse=True):
        accelerator = dashboard.removesuffix(f"-{os}")
        if accelerator and accelerator != dashboard:
            return accelerator, os
    accelerator, _, os = dashboard.rpartition("-")
    if not accelerator or not os:
        raise RecipeInvalid(f"dashboard: expected accelerator-os, got {dashboard[:80]!r}")
    return accelerator, os


def _split_tab(tab: str) -> tuple[str, str]:
    """A known intent, with the rest as platform; else at the first hyphen; else the whole is the intent."""
    if not tab:
        raise RecipeInvalid("tab: expected an intent, found nothing")
    for intent in INTENTS:
        if tab == intent or tab.startswith(f"{intent}-"):
            return intent, tab[len(intent) + 1 :]
    position = tab.find("-")
    return (tab[:position], tab[position + 1 :]) if position > 0 else (tab, "")


def profile_segment(selection: str) -> str:
    """The path segment of a selection `name=value`; raises `RecipeInvalid` for anything else.

    Lossy in case and in where the `-` stands, so it is never read backwards: keep the selection beside it.
    """
    match = _SELECTION.fullmatch(selection)
    if match is None:
        raise RecipeInvalid(f"expected a profile selection name=value over [A-Za-z0-9._-], got {selection[:80]!r}")
    return f"{match[1].lower()}-{match[2].lower()}"


def recipe_slug(criteria: Criteria, profile_segment: str = "") -> str:
    """The evidence slug, accelerator first (corroboration 3.3); `recipe` when nothing is specific."""
    name = "-".join(value for value in (criteria.value(dimension) for dimension in _SLUG_ORDER) if value) or "recipe"
    return f"{name}-{profile_segment}" if profile_segment else name


def normalized(dimension: str, value: str) -> str:
    """A value as a person wrote it: trimmed, lower case, aliases resolved; `any` becomes empty."""
    text = value.strip().lower()
    text = _ALIASES.get((dimension, text), text)
    return "" if text == ANY else text


def criteria_from_input(values: Mapping[str, str]) -> Criteria:
    """Criteria from what a person asked for; unknown dimensions are refused, unknown values are not."""
    for dimension in values:
        if dimension not in KNOWN_VALUES:
            raise RecipeInvalid(f"expected one of {', '.join(KNOWN_VALUES)}, got {dimension[:60]!r}")
    service, accelerator, os, intent, platform = (
        normalized(dimension, values.get(dimension, "")) for dimension in KNOWN_VALUES
    )
    return Criteria(service, accelerator, os, intent, platform)
