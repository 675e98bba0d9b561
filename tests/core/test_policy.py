"""The policy-descriptor identity: vectors D1-D6, and when a recipe's closure is triggered."""

import pytest

from app.core.policy import FULL_DESCRIPTOR, descriptor_identity, recipe_descriptor, recipe_identity
from app.core.recipe import Recipe

EMPTY = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
OPERATOR = "993bfe01fc07ffa0a65353ace107d46218cb5d476fe40a845c5d5061ca453142"
OPERATOR_AND_DRA = "0a274af1ad1f427084153b470e31dc618a49feac8e79e67b56740145b6ce1b4e"


@pytest.mark.parametrize(
    ("components", "identity"),
    [
        pytest.param(
            tuple(FULL_DESCRIPTOR), "cafd61f00de1871f6a23c8ea9205ed52dce03304fe179bca733a9f976bf3e247", id="D1"
        ),
        pytest.param((), EMPTY, id="D2"),
        pytest.param(("gpu-operator",), OPERATOR, id="D3"),
        pytest.param(("gpu-operator", "nvidia-dra-driver-gpu"), OPERATOR_AND_DRA, id="D4"),
        pytest.param(
            ("nvidia-dra-driver-gpu",), "9f388f7321cdf1b1996e8245634f1cde94239ae863e3f23f38ea9e4e6c44e280", id="D5"
        ),
        pytest.param(
            ("gpu-operator-ocp", "nvidia-dra-driver-gpu-ocp"),
            "ca13f4d55434186500ab4dc2e5ef8ba2667f039d23c591a68e61e7c7da1233b4",
            id="D6",
        ),
    ],
)
def test_the_identity_hashes_sorted_component_paths(components: tuple[str, ...], identity: str) -> None:
    assert descriptor_identity({component: FULL_DESCRIPTOR[component] for component in components}) == identity
    backwards = {component: tuple(reversed(FULL_DESCRIPTOR[component])) * 2 for component in reversed(components)}
    assert descriptor_identity(backwards) == identity


def _recipe(*, advertiser: str = "", owned: str = "{}", components: str = "[{name: gpu-operator}]") -> Recipe:
    return Recipe.parse(
        (
            "apiVersion: aicr.run/v1beta2\nkind: RecipeResult\n"
            "metadata:\n  selectedProfile:\n    name: gpuStack\n    value: x\n"
            f"    ownedPaths: {owned}\n"
            + (f"    advertiser: {advertiser}\n" if advertiser else "")
            + f"componentRefs: {components}\n"
        ).encode()
    )


BOTH = "[{name: gpu-operator}, {name: nvidia-dra-driver-gpu}, {name: cert-manager}]"

TRIGGERS = [
    pytest.param(_recipe(), EMPTY, id="nothing-owned"),
    pytest.param(_recipe(advertiser="external"), OPERATOR, id="external"),
    pytest.param(_recipe(advertiser="external", components=BOTH), OPERATOR_AND_DRA, id="external-two"),
    pytest.param(_recipe(owned="{gpu-operator: [devicePlugin.enabled]}"), OPERATOR, id="owned-selector"),
    pytest.param(
        _recipe(owned="{gpu-operator: [devicePlugin.enabled]}", components=BOTH),
        OPERATOR_AND_DRA,
        id="one-triggers-all",
    ),
    pytest.param(_recipe(owned="{gpu-operator: [enabled]}"), EMPTY, id="synthetic-path"),
    pytest.param(_recipe(owned="{gpu-operator: [devicePlugin]}"), EMPTY, id="prefix"),
    pytest.param(_recipe(owned="{other: [devicePlugin.enabled]}"), EMPTY, id="other-component"),
    pytest.param(
        _recipe(advertiser="external", components="[{name: gpu-operator, overrides: {enabled: false}}]"),
        EMPTY,
        id="component-off",
    ),
    pytest.param(_recipe(advertiser="external", components="[]"), EMPTY, id="no-component"),
]


@pytest.mark.parametrize(("recipe", "identity"), TRIGGERS)
def test_a_recipe_carries_the_entries_that_its_profile_touches(recipe: Recipe, identity: str) -> None:
    assert recipe_identity(recipe) == identity


def test_an_unprofiled_recipe_has_an_empty_descriptor() -> None:
    recipe = Recipe.parse(b"kind: RecipeResult\ncomponentRefs: [{name: gpu-operator}]\n")
    assert recipe_descriptor(recipe) == {}
