"""Recipes: names and segments (N1-N14), decoding, and what a hostile text can not do."""

from collections.abc import Callable

import pytest

from app.core.coordinate import Criteria
from app.core.errors import RecipeInvalid
from app.core.recipe import Component, Recipe, SelectedProfile, parse_selection, recipe_name, segment_of

AKS = Criteria(service="aks", accelerator="h100", os="ubuntu", intent="training")
EVERY_ANY = Criteria(service="any", accelerator="any", os="any", intent="any", platform="any")


@pytest.mark.parametrize(
    ("criteria", "profile", "name"),
    [
        pytest.param(None, None, "", id="N1"),
        pytest.param(Criteria(), None, "recipe", id="N2"),
        pytest.param(EVERY_ANY, None, "recipe", id="N3"),
        pytest.param(
            Criteria(service="eks", accelerator="h100", os="ubuntu", intent="training"),
            None,
            "h100-eks-ubuntu-training",
            id="N4",
        ),
        pytest.param(AKS, None, "h100-aks-ubuntu-training", id="N5"),
        pytest.param(
            AKS,
            SelectedProfile("gpuStack", "operator-managed"),
            "h100-aks-ubuntu-training-gpustack-operator-managed",
            id="N6",
        ),
        pytest.param(
            AKS,
            SelectedProfile("gpuStack", "azure-managed"),
            "h100-aks-ubuntu-training-gpustack-azure-managed",
            id="N7",
        ),
        pytest.param(AKS, SelectedProfile("gpu stack", "operator-managed"), "", id="N8"),
        pytest.param(
            Criteria(service="gke", accelerator="h100", os="cos", intent="training"),
            SelectedProfile("gpuStack", "gke-default"),
            "h100-gke-cos-training-gpustack-gke-default",
            id="N9",
        ),
        pytest.param(Criteria(platform="kubeflow", nodes=8), None, "kubeflow", id="nodes-are-not-in-the-name"),
        pytest.param(None, SelectedProfile("a", "b"), "", id="profile-without-criteria"),
    ],
)
def test_the_name_follows_from_criteria_and_profile(
    criteria: Criteria | None, profile: SelectedProfile | None, name: str
) -> None:
    assert recipe_name(criteria, profile) == name


@pytest.mark.parametrize(
    ("profile", "segment"),
    [
        pytest.param(SelectedProfile("gpuStack", "Azure-Managed"), "gpustack-azure-managed", id="N10"),
        pytest.param(SelectedProfile("gpustack", "operator-managed"), "gpustack-operator-managed", id="N11"),
        pytest.param(None, "", id="N13"),
    ],
)
def test_the_segment_is_lower_case(profile: SelectedProfile | None, segment: str) -> None:
    assert segment_of(profile) == segment


@pytest.mark.parametrize(
    ("name", "value"),
    [
        pytest.param("gpu stack", "x", id="N12-space"),
        pytest.param("gpu=stack", "x", id="N12-equals"),
        pytest.param("", "x", id="N12-no-name"),
        pytest.param("gpuStack", "", id="N12-no-value"),
        pytest.param("gpuStack", "x\n", id="final-newline"),
    ],
)
def test_an_invalid_selection_has_no_segment(name: str, value: str) -> None:
    with pytest.raises(RecipeInvalid):
        segment_of(SelectedProfile(name, value))


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("not-a-selection", id="N14"),
        pytest.param("a=b=c", id="two"),
        pytest.param(" a=b", id="leading-space"),
        pytest.param("a=b\n", id="newline"),
        pytest.param("\u00a0a=b", id="unicode-space"),
    ],
)
def test_a_malformed_selection_is_told_the_form(text: str) -> None:
    with pytest.raises(RecipeInvalid, match="name=value"):
        parse_selection(text)


@pytest.mark.parametrize("text", ["a b=c", "=c", "a=", "a=b c", "\u00e4=b", "a=\u0661"])
def test_a_selection_is_of_few_characters(text: str) -> None:
    with pytest.raises(RecipeInvalid, match="A-Za-z0-9"):
        parse_selection(text)


def test_a_selection_is_read_with_its_case() -> None:
    assert parse_selection("gpuStack=Azure-Managed_1.0") == ("gpuStack", "Azure-Managed_1.0")
    assert parse_selection("") is None


PLAIN = """\
apiVersion: aicr.run/v1
componentRefs:
    - name: gpu-operator
      overrides:
        driver:
            enabled: false
    - name: network-operator
      overrides:
        enabled: false
    - name: cert-manager
      overrides:
        enabled: "false"
constraints:
    - name: K8s.server.version
      value: '>= 1.32.4'
    - name: OS.release.ID
      value: ubuntu
criteria:
    accelerator: h100
    intent: training
    nodes: 8
    os: ubuntu
    service: eks
kind: RecipeResult
metadata:
    version: v0.42.0
somethingNew:
    - a
"""

PROFILED = """\
apiVersion: aicr.run/v1beta2
componentRefs:
    - name: gpu-operator
criteria:
    accelerator: h100
    intent: training
    os: cos
    service: gke
kind: RecipeResult
metadata:
    selectedProfile:
        advertiser: external
        name: gpuStack
        ownedPaths:
            gpu-operator:
                - devicePlugin.enabled
                - enabled
        value: gke-default
"""


def test_a_plain_recipe_is_decoded() -> None:
    recipe = Recipe.parse(PLAIN.encode())
    assert recipe.name == "h100-eks-ubuntu-training"
    assert recipe.criteria == Criteria("eks", "h100", "ubuntu", "training", "", 8)
    assert recipe.selected_profile is None
    assert (recipe.selection, recipe.profile_segment) == ("", "")
    assert recipe.components == (
        Component("gpu-operator"),
        Component("network-operator", enabled=False),
        Component("cert-manager"),
    )
    assert recipe.constraint("K8s.server.version") == ">= 1.32.4"
    assert recipe.constraint("nothing") == ""
    assert recipe.text == PLAIN
    assert (recipe.api_version, recipe.kind) == ("aicr.run/v1", "RecipeResult")


def test_a_profiled_recipe_is_decoded() -> None:
    recipe = Recipe.parse(PROFILED.encode())
    assert recipe.name == "h100-gke-cos-training-gpustack-gke-default"
    assert recipe.selected_profile == SelectedProfile(
        "gpuStack", "gke-default", "external", {"gpu-operator": ("devicePlugin.enabled", "enabled")}
    )
    assert recipe.selection == "gpuStack=gke-default"
    assert recipe.profile_segment == "gpustack-gke-default"


@pytest.mark.parametrize(
    ("text", "criteria"),
    [
        pytest.param("kind: RecipeResult\n", None, id="absent"),
        pytest.param("criteria:\n", None, id="null"),
        pytest.param("criteria: {}\n", Criteria(), id="empty"),
        pytest.param(
            "criteria: {os: 22.04, service: true}\n", Criteria(os="22.04", service="true"), id="typed-as-text"
        ),
        pytest.param("criteria: {os: '22', service: ~}\n", Criteria(os="22"), id="null-value"),
        pytest.param("criteria: {os: ''}\n", Criteria(), id="empty-value"),
        pytest.param("criteria: {os: !!str yes, nodes: -1}\n", Criteria(os="yes", nodes=-1), id="str-tag"),
        pytest.param("criteria: {region: x}\n", Criteria(), id="unknown-field"),
        pytest.param("x: &c {os: cos}\ncriteria: *c\n", Criteria(os="cos"), id="alias"),
        pytest.param("x: &c cos\ncriteria: {os: *c}\n", Criteria(os="cos"), id="scalar-alias"),
        pytest.param("criteria: {os: cos}\n---\ncriteria: {os: ol}\n", Criteria(os="cos"), id="second-document"),
    ],
)
def test_criteria_are_read_as_go_reads_them(text: str, criteria: Criteria | None) -> None:
    assert Recipe.parse(text.encode()).criteria == criteria


@pytest.mark.parametrize(
    ("value", "enabled"),
    [
        pytest.param("false", False, id="false"),
        pytest.param("False", False, id="False"),
        pytest.param("FALSE", False, id="FALSE"),
        pytest.param("!!bool false", False, id="bool-tag"),
        pytest.param("!!bool 'false'", False, id="quoted-bool-tag"),
        pytest.param("'false'", True, id="text"),
        pytest.param("!!str false", True, id="str-tag"),
        pytest.param("no", True, id="no-is-text"),
        pytest.param("off", True, id="off-is-text"),
        pytest.param("0", True, id="number"),
        pytest.param("", True, id="null"),
        pytest.param("true", True, id="true"),
        pytest.param("[false]", True, id="list"),
    ],
)
def test_only_the_boolean_false_disables_a_component(value: str, enabled: bool) -> None:  # noqa: FBT001
    text = f"componentRefs:\n- name: a\n  overrides:\n    enabled: {value}\n"
    assert Recipe.parse(text.encode()).components == (Component("a", enabled),)


def test_a_component_without_overrides_is_enabled() -> None:
    assert Recipe.parse(b"componentRefs: [{name: a}, {name: b, overrides: }]").components == (
        Component("a"),
        Component("b"),
    )


REFUSED = [
    pytest.param("- a\n", "a mapping at the top level", id="list"),
    pytest.param("# nothing\n", "a mapping at the top level", id="nothing"),
    pytest.param("kind: Recipe\n", "kind: expected RecipeResult, got 'Recipe'", id="kind"),
    pytest.param("kind: RecipeMetadata\n", "got an overlay", id="overlay"),
    pytest.param("apiVersion: aicr.run/v2\n", "apiVersion: expected aicr.run/v1 or aicr.run/v1beta2", id="version"),
    pytest.param("apiVersion: aicr.run/v1alpha2\n", "apiVersion: expected", id="alpha-version"),
    pytest.param("a: 1\nb: 2\na: 3\n", "key 'a' is repeated at line 3", id="repeated-key"),
    pytest.param("x:\n- y: {a: 1, 'a': 2}\n", "key 'a' is repeated at line 2", id="repeated-deep-key"),
    pytest.param("[a]: 1\n", "expected text for a key at line 1", id="collection-key"),
    pytest.param("x: &a y\n*a : 1\n", "expected text for a key at line 2", id="alias-key"),
    pytest.param("x: &a {criteria: {}}\n<<: *a\n", "merge key at line 2", id="merge"),
    pytest.param("criteria: [a]\n", "criteria: expected a mapping, got a list at line 1", id="criteria-list"),
    pytest.param("criteria: {os: [a]}\n", "criteria.os: expected text, got a list", id="os-list"),
    pytest.param("criteria: {os: !!binary aGk=}\n", "criteria.os: expected text", id="os-binary"),
    pytest.param("criteria: {nodes: many}\n", "criteria.nodes: expected an integer", id="nodes-text"),
    pytest.param("criteria: {nodes: 1234567890123}\n", "criteria.nodes: expected an integer", id="nodes-huge"),
    pytest.param("criteria: {nodes: 017}\n", "criteria.nodes: expected an integer", id="nodes-octal"),
    pytest.param("componentRefs: {}\n", "componentRefs: expected a list, got a mapping", id="components-mapping"),
    pytest.param("componentRefs: [a]\n", "componentRefs[0]: expected a mapping, got a scalar", id="component-text"),
    pytest.param(
        "componentRefs: [{overrides: [a]}]\n", "componentRefs[0].overrides: expected a mapping", id="overrides"
    ),
    pytest.param("constraints: [{name: {}}]\n", "constraints[0].name: expected text", id="constraint"),
    pytest.param("metadata: {selectedProfile: {}}\n", "selectedProfile.name: expected one or more", id="empty-profile"),
    pytest.param("metadata: [a]\n", "metadata: expected a mapping", id="metadata-list"),
]


@pytest.mark.parametrize(("text", "message"), REFUSED)
def test_what_go_would_not_decode_is_refused(text: str, message: str) -> None:
    with pytest.raises(RecipeInvalid) as caught:
        Recipe.parse(text.encode())
    assert message in caught.value.message


PROFILE_CHANGES = [
    pytest.param("aicr.run/v1beta2", "aicr.run/v1", "selectedProfile: expected none", id="default-track"),
    pytest.param("kind: RecipeResult\n", "", "kind: expected RecipeResult with", id="no-kind"),
    pytest.param("advertiser: external", "advertiser: External", "advertiser: expected external", id="advertiser-case"),
    pytest.param("name: gpuStack", "name: gpu stack", "selectedProfile.name: expected one or more", id="name-grammar"),
    pytest.param("value: gke-default", "value: ''", "selectedProfile.value: expected one or more", id="no-value"),
    pytest.param("- enabled", "- devicePlugin.enabled", "expected each path once", id="repeated-path"),
    pytest.param("value: gke-default", "value: a\n        extra: 1", "unknown field 'extra'", id="unknown-field"),
    pytest.param("os: cos", "os: cos\n    region: x", "criteria: unknown field 'region'", id="unknown-criterion"),
    pytest.param(
        "            gpu-operator:\n                - devicePlugin.enabled\n                - enabled\n",
        "",
        "ownedPaths is required",
        id="no-paths",
    ),
    pytest.param(
        "value: gke-default\n", "value: gke-default\n---\na: 1\n", "expected one YAML document", id="documents"
    ),
]


@pytest.mark.parametrize(("old", "new", "message"), PROFILE_CHANGES)
def test_the_profile_track_is_strict(old: str, new: str, message: str) -> None:
    assert old in PROFILED
    with pytest.raises(RecipeInvalid) as caught:
        Recipe.parse(PROFILED.replace(old, new, 1).encode())
    assert message in caught.value.message


def test_the_profile_track_needs_a_profile_or_slurm_accounting() -> None:
    bare = "apiVersion: aicr.run/v1beta2\nkind: RecipeResult\n"
    with pytest.raises(RecipeInvalid, match=r"selectedProfile or configuration\.slurm\.accounting"):
        Recipe.parse(bare.encode())
    accounting = bare + "configuration:\n  slurm:\n    accounting:\n      mode: disabled\n"
    assert Recipe.parse(accounting.encode()).selected_profile is None


def _laughs() -> str:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 12)]
    return "\n".join([*lines, "criteria: {os: cos}", ""])


def _wide_aliases() -> str:
    paths = ", ".join(f"p{n}" for n in range(20_000))
    return (
        PROFILED.split("        ownedPaths:", maxsplit=1)[0]
        + f"        ownedPaths:\n            c: &c [{paths}]\n"
        + "".join(f"            c{n}: *c\n" for n in range(20_000))
        + "        value: x\n"
    )


def test_aliases_of_aliases_cost_nothing_where_nothing_reads_them() -> None:
    assert Recipe.parse(_laughs().encode()).criteria == Criteria(os="cos")


@pytest.mark.parametrize(
    ("make", "message"),
    [
        pytest.param(_wide_aliases, "aliases repeat more than", id="wide"),
        pytest.param(lambda: "criteria: &c {os: *c}\n", "criteria.os: expected text, got a mapping", id="circle"),
        pytest.param(lambda: "componentRefs: &c [*c]\n", "componentRefs[0]: expected a mapping", id="circular-list"),
        pytest.param(lambda: "a: *x\n", "anchor", id="unknown-anchor"),
    ],
)
def test_aliases_are_followed_within_a_budget(make: Callable[[], str], message: str) -> None:
    with pytest.raises(RecipeInvalid) as caught:
        Recipe.parse(make().encode())
    assert message in caught.value.message
