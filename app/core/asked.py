"""What somebody asks about: criteria as given, or as a fingerprint or a snapshot shows them (evidence-format 1.3, 10).

The document is read and forgotten: nothing of it is stored or logged (service 3). Intent and platform can not be
seen on a cluster, so they stay unsaid unless they are named beside it.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

from app.core.coordinate import KNOWN_VALUES, Criteria, criteria_from_input, normalized, profile_segment
from app.core.errors import DocumentInvalid
from app.core.yamltext import TextValue

_MAX_VALUE_CHARS = 120
_PRODUCT_SEPARATORS = re.compile(r"[\s-]+")

_PRODUCTS: tuple[tuple[tuple[str, ...], str], ...] = (
    (("GB300",), "gb300"),
    (("GB200",), "gb200"),
    (("VR200",), "vr200"),
    (("B200",), "b200"),
    (("H100",), "h100"),
    (("H200",), "h200"),
    (("A100",), "a100"),
    (("RTX", "PRO", "6000"), "rtx-pro-6000"),
    (("L40S",), "l40s"),
    (("L40",), "l40"),
)
"""Words in a GPU's product name -> accelerator."""

_DISTRIBUTIONS: Mapping[str, str] = {
    "ubuntu": "ubuntu",
    "rhel": "rhel",
    "cos": "cos",
    "amzn": "amazonlinux",
    "amazonlinux": "amazonlinux",
    "talos": "talos",
    "ol": "ol",
    "sles": "sles",
}
"""`ID` of os-release -> operating system."""


@dataclass(frozen=True, slots=True)
class Asked:
    """Criteria with empty for what was not said; `notes` say why a dimension could not be read."""

    criteria: Criteria
    profile_selection: str = ""
    notes: tuple[str, ...] = ()


def asked_by_criteria(values: Mapping[str, str]) -> Asked:
    """From named values; `profile` is a selection `name=value`. Raises `RecipeInvalid` for an unknown dimension."""
    selection = values.get("profile", "")
    if selection:
        profile_segment(selection)
    return Asked(criteria_from_input({key: value for key, value in values.items() if key != "profile"}), selection)


def asked_by_document(document: TextValue, named: Mapping[str, str] | None = None) -> Asked:
    """From a fingerprint or a snapshot, as loaded text; `named` values win. Raises `DocumentInvalid` for neither.

    A snapshot's own advisory fingerprint is used where it has one, its measurements fill the rest.
    """
    if not isinstance(document, dict):
        raise DocumentInvalid("expected a fingerprint or a snapshot, got no mapping")
    inner = document.get("fingerprint")
    fingerprint = inner if isinstance(inner, dict) else document
    measurements = document.get("measurements")
    if not isinstance(inner, dict) and not isinstance(measurements, list) and not _is_fingerprint(document):
        raise DocumentInvalid(
            "expected a fingerprint (service, accelerator, os) or a snapshot with measurements, found neither"
        )
    seen = {dimension: _captured(fingerprint.get(dimension)) for dimension in ("service", "accelerator", "os")}
    for dimension, value in _measured(measurements).items():
        seen[dimension] = seen[dimension] or value
    said = asked_by_criteria(named or {})
    values = {dimension: said.criteria.value(dimension) or seen.get(dimension, "") for dimension in KNOWN_VALUES}
    notes = tuple(
        f"{dimension} could not be read from the document"
        for dimension in ("service", "accelerator", "os")
        if not values[dimension]
    )
    return replace(said, criteria=criteria_from_input(values), notes=notes)


def accelerator_of(product: str) -> str:
    """The accelerator in a product name (`NVIDIA-H100-80GB-HBM3`), empty when it is not a known one."""
    words = [word for word in _PRODUCT_SEPARATORS.split(product.upper()[:_MAX_VALUE_CHARS]) if word]
    for sequence, accelerator in _PRODUCTS:
        for start in range(len(words) - len(sequence) + 1):
            if tuple(words[start : start + len(sequence)]) == sequence:
                return accelerator
    return ""


def _is_fingerprint(document: Mapping[str, TextValue]) -> bool:
    return any(isinstance(document.get(dimension), dict | str) for dimension in ("service", "accelerator", "os"))


def _captured(value: TextValue) -> str:
    """A dimension of a fingerprint: `{value: ...}`, or the bare text."""
    if isinstance(value, dict):
        value = value.get("value")
    return value[:_MAX_VALUE_CHARS] if isinstance(value, str) else ""


def _measured(measurements: TextValue) -> dict[str, str]:
    """Service, accelerator and os from a snapshot's measurements; empty where they say nothing, or several things."""
    readings = _readings(measurements)
    service = readings.get(("k8s", "node", "provider"), "")
    products = {
        accelerator_of(value.partition("|")[0])
        for (kind, _, key), value in readings.items()
        if kind == "nodetopology" and key.startswith("nvidia.com/gpu.product")
    }
    model = readings.get(("gpu", "hardware", "model"), "")
    own = model.lower() if model.lower() in KNOWN_VALUES["accelerator"] else accelerator_of(model)
    return {
        "service": normalized("service", service),
        "accelerator": (products.pop() if len(products) == 1 else "") if products else own,
        "os": _DISTRIBUTIONS.get(readings.get(("os", "release", "id"), "").lower(), ""),
    }


def _readings(measurements: TextValue) -> dict[tuple[str, str, str], str]:
    """(type, subtype, key) -> text, types and subtypes in lower case."""
    found: dict[tuple[str, str, str], str] = {}
    for measurement in measurements if isinstance(measurements, list) else ():
        if not isinstance(measurement, dict):
            continue
        kind, subtypes = measurement.get("type"), measurement.get("subtypes")
        for subtype in subtypes if isinstance(subtypes, list) else ():
            if not isinstance(subtype, dict) or not isinstance(kind, str):
                continue
            name, data = subtype.get("subtype") or subtype.get("name"), subtype.get("data")
            for key, value in data.items() if isinstance(data, dict) else ():
                if isinstance(value, str):
                    found[(kind.lower(), str(name).lower(), key.lower())] = value[:_MAX_VALUE_CHARS]
    return found
