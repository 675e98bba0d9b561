"""Upstream's integration scenarios that no other test of the core tells (corroboration 2.15)."""

from typing import Any

import pytest

from app.core.allowlist import Allowlist, classify_without_list
from app.core.coordinate import Criteria
from app.core.corroborate import corroborate
from app.core.documents import Predicate
from app.core.errors import AllowlistInvalid, DocumentInvalid, InputError
from app.core.identity import source_slug
from app.core.verdict import ConfirmBy, ConfirmRule, RecipeInputs, State
from tests.support.runs import CHECK, NOW, PATTERN, RECIPE, make_run, person, verdict_of, workflow

ANN, BOB = person("ann"), person("bob")
DRA = ("conformance", "dra-support")


def predicate(**changes: Any) -> dict[str, object]:
    return {"schemaVersion": "1.0.0", "attestedAt": "2026-06-20T03:14:07Z", "recipe": {"name": RECIPE}, **changes}


def test_a_row_of_the_older_build_stays_in_its_own_grid() -> None:
    """G04."""
    signer = workflow()
    newest = make_run(signer, {CHECK: "passed"}, days=1, version="v1.0.0")
    older = make_run(signer, {CHECK: "failed", DRA: "passed"}, days=9, version="v0.14.0")
    found = verdict_of([older, newest], patterns=[PATTERN])
    grids = {grid.aicr_version: {(row.phase, row.name): row.consensus for row in grid.rows} for grid in found.versions}
    assert DRA not in {(row.phase, row.name) for row in found.combined.rows}
    assert grids["v0.14.0"] == {CHECK: State.FAILING, DRA: State.SINGLE}
    assert grids["v1.0.0"] == {CHECK: State.SINGLE}


@pytest.mark.parametrize(
    ("workflow_name", "listed"),
    [pytest.param("uat-aws", True, id="G05-built-in"), pytest.param("on-tag", False, id="G05-other")],
)
def test_without_a_list_only_upstreams_own_workflows_count(workflow_name: str, *, listed: bool) -> None:
    signer = workflow(path=f"https://github.com/NVIDIA/aicr/.github/workflows/{workflow_name}.yaml")
    assert classify_without_list(signer.issuer, signer.identity).allowlisted is listed


def test_a_time_that_is_none_makes_no_evidence() -> None:
    """G09: upstream drops such a run; here it is refused with the field's name."""
    with pytest.raises(DocumentInvalid, match="attestedAt"):
        Predicate.read(predicate(attestedAt="not-a-timestamp"))


def test_a_run_without_a_signer_has_no_source() -> None:
    """G10."""
    with pytest.raises(InputError):
        source_slug("", "")


def test_two_profile_values_are_two_recipes_and_two_coordinates() -> None:
    """G14."""
    aks = Criteria("aks", "h100", "ubuntu", "training")
    first = make_run(ANN, criteria=aks, selection="gpuStack=operator-managed")
    second = make_run(BOB, criteria=aks, selection="gpuStack=azure-managed")
    assert first.recipe != second.recipe
    assert [run.coordinate.path for run in (first, second)] == [
        "aks/h100-ubuntu/training-gpustack-operator-managed",
        "aks/h100-ubuntu/training-gpustack-azure-managed",
    ]
    for run in (first, second):
        assert verdict_of([run], ANN, BOB, recipe=run.recipe).state is State.SINGLE


def test_a_list_with_an_over_broad_pattern_is_an_error_and_no_empty_list() -> None:
    """G19."""
    text = (
        "schemaVersion: 1.0.0\nfirstParty:\n  - issuer: https://token.actions.githubusercontent.com\n"
        "    identityPattern: '^https://github\\.com/.+/aicr/w\\.yaml@refs/heads/main$'\n"
    )
    with pytest.raises(AllowlistInvalid) as caught:
        Allowlist.load(text.encode())
    assert caught.value.rule == "J14"


def test_an_empty_list_confirms_nothing() -> None:
    """However many pass: without a list entry nobody's result counts."""
    runs = tuple(make_run(person(f"p{number}")) for number in range(5))
    found = corroborate(
        RecipeInputs(RECIPE, runs, ()), allowlist=Allowlist.empty(), rule=ConfirmRule(ConfirmBy.SIGNER, 2), now=NOW
    )
    assert (found.state, found.confirming, found.reported) == (State.UNTESTED, 0, 5)
