"""Coordinates, slugs and profile segments: corroboration 3."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.core.coordinate import (
    KNOWN_VALUES,
    Coordinate,
    Criteria,
    coordinate_of,
    criteria_from_input,
    criteria_of,
    profile_segment,
    recipe_slug,
)
from app.core.errors import RecipeInvalid


def criteria(text: str) -> Criteria:
    return Criteria(*(part.strip().replace("-none-", "") for part in text.split(" ")))  # type: ignore[arg-type]


PLACED = [
    pytest.param("eks h100 ubuntu training kubeflow", "eks/h100-ubuntu/training-kubeflow", id="O01"),
    pytest.param("gke h100 cos training kubeflow", "gke/h100-cos/training-kubeflow", id="O02"),
    pytest.param("eks h100 ubuntu inference dynamo", "eks/h100-ubuntu/inference-dynamo", id="O03"),
    pytest.param("gke h100 cos inference dynamo", "gke/h100-cos/inference-dynamo", id="O04"),
    pytest.param("gke h100 cos training -none-", "gke/h100-cos/training", id="O05"),
    pytest.param("eks h100 ubuntu training any", "eks/h100-ubuntu/training", id="O06"),
    pytest.param("kind h100 any training kubeflow", "kind/h100-any/training-kubeflow", id="O07"),
    pytest.param("kind h100 -none- inference dynamo", "kind/h100-any/inference-dynamo", id="O08"),
    pytest.param("eks rtx-pro-6000 ubuntu inference nim", "eks/rtx-pro-6000-ubuntu/inference-nim", id="O09"),
    pytest.param("rke2 vr200 ubuntu training -none-", "rke2/vr200-ubuntu/training", id="O10"),
]

UNPLACED = [
    pytest.param("any h100 ubuntu training -none-", "service", id="O11-any"),
    pytest.param("-none- h100 ubuntu training -none-", "service", id="O11-empty"),
    pytest.param("eks any ubuntu training -none-", "accelerator", id="O12"),
    pytest.param("eks h100 ubuntu any -none-", "intent", id="O13"),
    pytest.param("acme/ncp h100 ubuntu training -none-", "service", id="O14"),
    pytest.param("eks h100 a/b training -none-", "os", id="O15"),
    pytest.param("eks h100 ubuntu training a/b", "platform", id="O16"),
]


@pytest.mark.parametrize(("values", "path"), PLACED)
def test_criteria_lead_to_a_coordinate(values: str, path: str) -> None:
    assert coordinate_of(criteria(values)).path == path


@pytest.mark.parametrize(("values", "dimension"), UNPLACED)
def test_missing_dimension_is_named(values: str, dimension: str) -> None:
    with pytest.raises(RecipeInvalid, match=f"^{dimension}: "):
        coordinate_of(criteria(values))


def test_no_criteria_lead_nowhere() -> None:
    """O17."""
    with pytest.raises(RecipeInvalid, match="criteria"):
        coordinate_of(None)


INVERTED = [
    pytest.param("eks/h100-ubuntu/training-kubeflow", ("eks", "h100", "ubuntu", "training", "kubeflow"), id="V01"),
    pytest.param("gke/h100-cos/training", ("gke", "h100", "cos", "training", ""), id="V02"),
    pytest.param(
        "eks/rtx-pro-6000-ubuntu/inference-nim", ("eks", "rtx-pro-6000", "ubuntu", "inference", "nim"), id="V03"
    ),
    pytest.param("eks/h100-flatcar/training", ("eks", "h100", "flatcar", "training", ""), id="V04"),
    pytest.param("eks/h100-ubuntu/benchmark-suite", ("eks", "h100", "ubuntu", "benchmark", "suite"), id="V05"),
    pytest.param("kind/h100-any/training-kubeflow", ("kind", "h100", "any", "training", "kubeflow"), id="V06"),
]

NOT_INVERTED = [
    pytest.param(Coordinate("eks", "h100", "training"), id="V07"),
    pytest.param(Coordinate("eks", "h100-ubuntu", ""), id="V08"),
    pytest.param(Coordinate("eks", "h100-ubuntu", "any"), id="V09"),
    pytest.param(Coordinate("eks", "h100-ubuntu", "training-any"), id="V10"),
    pytest.param(Coordinate("any", "h100-ubuntu", "training"), id="V11"),
    pytest.param(Coordinate("eks", "-ubuntu", "training"), id="V12"),
    pytest.param(Coordinate("eks", "nohyphen", "training"), id="no-os"),
    pytest.param(Coordinate("", "h100-ubuntu", "training"), id="no-group"),
    pytest.param(Coordinate("eks", "h100-ubuntu", "training-"), id="open-tab"),
]


@pytest.mark.parametrize(("path", "values"), INVERTED)
def test_coordinate_leads_back_to_criteria(path: str, values: tuple[str, ...]) -> None:
    found = criteria_of(Coordinate(*path.split("/")))
    assert (found.service, found.accelerator, found.os, found.intent, found.platform) == values


@pytest.mark.parametrize("coordinate", NOT_INVERTED)
def test_coordinate_without_criteria_is_refused(coordinate: Coordinate) -> None:
    with pytest.raises(RecipeInvalid):
        criteria_of(coordinate)


def test_profile_is_stripped_before_the_tab_is_read() -> None:
    coordinate = Coordinate("aks", "h100-ubuntu", "training-gpustack-operator-managed")
    assert criteria_of(coordinate, "gpustack-operator-managed").platform == ""
    with pytest.raises(RecipeInvalid, match="tab"):
        criteria_of(coordinate, "gpustack-azure-managed")


SLUGS = [
    pytest.param("eks h100 ubuntu training kubeflow", "h100-eks-ubuntu-training-kubeflow", id="all"),
    pytest.param("gke h100 any training any", "h100-gke-training", id="any-is-left-out"),
    pytest.param("any any any any any", "recipe", id="nothing-specific"),
]


@pytest.mark.parametrize(("values", "slug"), SLUGS)
def test_slug_is_accelerator_first(values: str, slug: str) -> None:
    assert recipe_slug(criteria(values)) == slug


def test_slug_of_a_profiled_recipe_ends_with_the_segment() -> None:
    assert (
        recipe_slug(criteria("aks h100 ubuntu training any"), "gpustack-operator-managed")
        == "h100-aks-ubuntu-training-gpustack-operator-managed"
    )


@pytest.mark.parametrize(
    ("selection", "segment"),
    [
        ("gpuStack=operator-managed", "gpustack-operator-managed"),
        ("gpuStack=Azure-Managed", "gpustack-azure-managed"),
        ("gpu-stack=operator", "gpu-stack-operator"),
        ("gpu=stack-operator", "gpu-stack-operator"),
    ],
)
def test_selection_gives_a_segment(selection: str, segment: str) -> None:
    assert profile_segment(selection) == segment


@pytest.mark.parametrize("selection", ["", "x", "=v", "n=", "a/b=c", "a=b=c", " a=b", "a=b\n", "ä=b"])
def test_invalid_selection_gives_no_segment(selection: str) -> None:
    with pytest.raises(RecipeInvalid, match="name=value"):
        profile_segment(selection)


@pytest.mark.parametrize(
    ("given_values", "found"),
    [
        ({"service": "Self-Managed", "os": "al2023"}, ("", "", "amazonlinux", "", "")),
        ({"service": "vanilla", "os": "AL2"}, ("", "", "amazonlinux", "", "")),
        ({"service": "self", "intent": " Training "}, ("", "", "", "training", "")),
        ({"accelerator": "any", "platform": "newcomer"}, ("", "", "", "", "newcomer")),
    ],
)
def test_user_input_is_normalized(given_values: dict[str, str], found: tuple[str, ...]) -> None:
    assert criteria_from_input(given_values).specific() == found


def test_unknown_dimension_is_refused() -> None:
    with pytest.raises(RecipeInvalid, match="flavour"):
        criteria_from_input({"flavour": "x"})


known = st.builds(
    Criteria,
    *(
        st.sampled_from(KNOWN_VALUES[dimension] if required else (*KNOWN_VALUES[dimension], "", "any"))
        for dimension, required in (
            ("service", True),
            ("accelerator", True),
            ("os", False),
            ("intent", True),
            ("platform", False),
        )
    ),
)


@settings(deadline=None)
@given(known, st.sampled_from(["", "gpustack-operator-managed"]))
def test_known_criteria_round_trip(asked: Criteria, segment: str) -> None:
    assert criteria_of(coordinate_of(asked, segment), segment).specific() == asked.specific()
