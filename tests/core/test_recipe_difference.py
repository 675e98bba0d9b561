"""Differences of two resolved recipes, by component and constraint."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.core.recipe_difference import MAX_LINES, recipe_difference

BASE = """\
kind: RecipeResult
apiVersion: aicr.run/v1
metadata:
  version: v0.42.0
  appliedOverlays: [base, eks]
criteria: {service: eks, accelerator: h100}
constraints:
  - name: K8s.server.version
    value: '>= 1.32'
  - name: OS.release.ID
    value: ubuntu
componentRefs:
  - name: cert-manager
    version: v1.20.2
  - name: gpu-operator
    version: v25.3.0
    dependencyRefs: [cert-manager]
    overrides:
      driver: {enabled: true, version: "580.1"}
  - name: nvsentinel
    version: v1.9.0
    overrides: {enabled: false}
deploymentOrder: [cert-manager, gpu-operator]
"""


@pytest.mark.parametrize(
    ("old", "new", "lines"),
    [
        pytest.param("v25.3.0", "v25.10.0", ["component gpu-operator: version v25.3.0 -> v25.10.0"], id="version"),
        pytest.param(
            '"580.1"', '"580.2"', ["component gpu-operator: overrides.driver.version 580.1 -> 580.2"], id="override"
        ),
        pytest.param(
            "v1.9.0", "v1.9.1", ["component nvsentinel (off): version v1.9.0 -> v1.9.1"], id="component-that-is-off"
        ),
        pytest.param(
            "{enabled: false}",
            "{enabled: true}",
            ["component nvsentinel: overrides.enabled false -> true"],
            id="turned-on",
        ),
        pytest.param("'>= 1.32'", "'>= 1.34'", ["constraint K8s.server.version: >= 1.32 -> >= 1.34"], id="constraint"),
        pytest.param(
            "  - name: OS.release.ID\n    value: ubuntu\n",
            "",
            ["constraint OS.release.ID removed (was ubuntu)"],
            id="constraint-removed",
        ),
        pytest.param(
            "  - name: cert-manager\n    version: v1.20.2\n",
            "  - name: kueue\n    version: v1\n",
            ["component cert-manager removed", "component kueue added"],
            id="component-replaced",
        ),
        pytest.param(
            "v0.42.0", "v0.43.0", ["metadata.version v0.42.0 -> v0.43.0 (the producer's own version)"], id="producer"
        ),
        pytest.param(
            "[cert-manager, gpu-operator]",
            "[gpu-operator]",
            ["deploymentOrder [cert-manager, gpu-operator] -> [gpu-operator]"],
            id="list",
        ),
        pytest.param("kind: RecipeResult\n", "", ["kind removed (was RecipeResult)"], id="key-removed"),
    ],
)
def test_a_change_is_one_line(old: str, new: str, lines: list[str]) -> None:
    assert old in BASE
    assert list(recipe_difference(BASE, BASE.replace(old, new))) == lines


def test_order_of_components_and_constraints_is_no_difference() -> None:
    first = "componentRefs:\n  - {name: a, version: v1}\n  - {name: b, version: v2}\n"
    second = "componentRefs:\n  - {name: b, version: v2}\n  - {version: v1, name: a}\n"
    assert recipe_difference(first, second) == ()


def test_both_directions_read_as_was_and_is() -> None:
    changed = BASE.replace("v25.3.0", "v25.10.0")
    assert recipe_difference(changed, BASE) == ("component gpu-operator: version v25.10.0 -> v25.3.0",)


def test_long_differences_are_cut_and_counted() -> None:
    many = "".join(f"key{index}: value\n" for index in range(MAX_LINES + 7))
    found = recipe_difference("kind: x\n", f"kind: x\n{many}")
    assert len(found) == MAX_LINES + 1
    assert found[-1] == "and 7 more"


@pytest.mark.parametrize(
    "hostile",
    [
        pytest.param("[", id="no-yaml"),
        pytest.param("- a\n- b\n", id="no-mapping"),
        pytest.param("a: &x 1\nb: *x\n", id="alias"),
        pytest.param("a: " + "x" * (1 << 18), id="too-large"),
        pytest.param("k" * 500 + ":\n  a: 1\n  b: {c: 2}\n", id="endless-path"),
        pytest.param("".join(f"k{index}: v\n" for index in range(11_000)), id="too-many-values"),
        pytest.param("a: \ud800", id="no-utf-8"),
    ],
)
def test_what_is_no_recipe_is_not_compared(hostile: str) -> None:
    assert recipe_difference(BASE, hostile) == ()
    assert recipe_difference(hostile, BASE) == ()


@settings(deadline=None, max_examples=50)
@given(st.text(max_size=80))
def test_any_text_is_compared_or_passed_over(text: str) -> None:
    assert recipe_difference(text, text) == ()
    recipe_difference(BASE, text)
