"""What is kept beside a record about the moment when it came in: service 5."""

import pytest

from app.core.bundle import Run
from app.core.catalogue import CatalogueVersion
from app.core.corroborate import corroborate
from app.core.summary import state_at_ingest
from app.core.verdict import ConfirmRule, RecipeInputs
from tests.support.runs import CRITERIA, LEGACY, NOW, OLDER, RECIPE, V2, hex_of, listing, make_run, person, version

ANN = person("ann")
NEVER = hex_of("never published")


def reasons(run: Run, *others: Run, catalogue: tuple[CatalogueVersion, ...], removed: bool = False) -> object:
    inputs = RecipeInputs(RECIPE, (run, *others), catalogue)
    lists = [listing() if removed else listing(ANN), *([listing(ANN)] if removed else [])]
    verdict = corroborate(inputs, allowlist=lists[0], rule=ConfirmRule(), now=NOW, earlier=lists[1:])
    return state_at_ingest(run, None, verdict, inputs)["staleness"]


NEWER = make_run(ANN, days=1)


@pytest.mark.parametrize(
    ("run", "found"),
    [
        pytest.param(make_run(ANN, days=99, recipe_digest=OLDER), ["AGED", "DRIFTED"], id="drifted"),
        pytest.param(
            make_run(ANN, days=99, recipe_digest=NEVER), ["AGED", "DRIFTED", "NEVER_PUBLISHED"], id="never-published"
        ),
        pytest.param(make_run(ANN, days=9), [], id="current"),
        pytest.param(
            make_run(ANN, days=9, predicate_type=V2, recipe_digest=LEGACY), ["LEGACY_PREDICATE"], id="old-predicate"
        ),
    ],
)
def test_a_record_has_the_same_reasons_whether_or_not_a_newer_one_is_there(run: Run, found: list[str]) -> None:
    catalogue = (version(OLDER), version())
    assert reasons(run, catalogue=catalogue) == found
    assert reasons(run, NEWER, catalogue=catalogue) == sorted([*found, "SUPERSEDED"])


def test_a_record_of_a_recipe_without_a_catalogue_or_of_a_retired_one_is_unknown() -> None:
    run = make_run(ANN, days=9)
    for catalogue in ((), (version(), version(retired=True))):
        assert reasons(run, NEWER, catalogue=catalogue) == ["SUPERSEDED", "UNKNOWN_CURRENT"]


def test_an_older_record_of_a_signer_who_was_taken_off_the_list_says_so() -> None:
    run = make_run(ANN, days=9)
    assert reasons(run, NEWER, catalogue=(version(),), removed=True) == ["SIGNER_REMOVED", "SUPERSEDED"]


def test_a_record_that_is_set_aside_is_not_superseded_by_an_older_one() -> None:
    aside = make_run(ANN, days=0.5, selection="gpu=stack-operator", recipe=RECIPE)
    assert reasons(aside, NEWER, catalogue=(version(),)) == []


def test_a_record_that_is_set_aside_says_that_its_signer_was_taken_off_the_list() -> None:
    aside = make_run(ANN, days=0.5, selection="gpu=stack-operator", recipe=RECIPE)
    catalogue = (version(criteria=CRITERIA),)
    assert reasons(aside, catalogue=catalogue, removed=True) == ["SIGNER_REMOVED"]


def test_what_others_did_in_a_signers_name_supersedes_nothing_of_his() -> None:
    called = make_run(ANN, days=0.5, weightless="called by another repository")
    run = make_run(ANN, days=9)
    assert reasons(run, called, catalogue=(version(),)) == []
    assert reasons(run, NEWER, called, catalogue=(version(),)) == ["SUPERSEDED"]
