"""Every reason of staleness, its trigger and what clears it: service 5."""

from datetime import timedelta

import pytest

from app.core.catalogue import CatalogueVersion
from app.core.staleness import (
    Match,
    Standing,
    age_days,
    drift_cell,
    match,
    next_birthday,
    recipe_text_key,
    staleness_of,
    today,
)
from app.core.verdict import StaleReason
from tests.support.runs import LEGACY, NOW, OLDER, TODAY, V1, V2, V3, make_run, person, version

ANN = person("ann")
SIGNED = "5d582e1f1749" + "0" * 52
CURRENT = "12e0bffa1c88" + "f" * 52


def reasons(
    run: object, *catalogue: CatalogueVersion, standing: Standing | None = None, aged_after_days: int = 30
) -> list[StaleReason]:
    return list(
        staleness_of(
            run,  # type: ignore[arg-type]
            catalogue=catalogue,
            now=NOW,
            aged_after_days=aged_after_days,
            standing=standing or Standing(),
        )
    )


def codes(*args: object, **more: object) -> list[str]:
    return [one.reason.value for one in reasons(*args, **more)]  # type: ignore[arg-type]


def test_a_fresh_run_of_todays_recipe_is_current() -> None:
    assert reasons(make_run(ANN), version()) == []


def test_drift_shows_both_digests_the_signed_one_first() -> None:
    run = make_run(ANN, recipe_digest=SIGNED)
    (found,) = reasons(run, version(SIGNED), version(CURRENT))
    assert found.reason.value == "DRIFTED"
    assert found.message == "stale (5d582e1f1749… vs current 12e0bffa1c88…)"
    assert found.clears == "a new run of today's recipe by this source"
    assert drift_cell(SIGNED, CURRENT) == found.message


def test_a_digest_of_an_earlier_version_was_published() -> None:
    run = make_run(ANN, recipe_digest=OLDER)
    assert codes(run, version(OLDER), version()) == ["DRIFTED"]
    assert codes(run, version()) == ["DRIFTED", "NEVER_PUBLISHED"]


def test_going_back_to_an_old_recipe_clears_drift() -> None:
    assert codes(make_run(ANN, recipe_digest=OLDER), version(OLDER), version(), version(OLDER)) == []


def test_without_a_catalogue_nothing_is_known() -> None:
    (found,) = reasons(make_run(ANN))
    assert (found.reason.value, found.message) == ("UNKNOWN_CURRENT", "no catalogue says what today's recipe is")


def test_a_retired_recipe_has_no_current_digest() -> None:
    (found,) = reasons(make_run(ANN), version(), version(retired=True))
    assert (found.reason.value, found.message) == ("UNKNOWN_CURRENT", "the recipe is retired from the catalogue")


def test_a_version_without_the_algorithms_digest_says_so() -> None:
    run = make_run(ANN, predicate_type=V2, recipe_digest=LEGACY)
    found = reasons(run, version(legacy=""))
    assert [one.reason.value for one in found] == ["UNKNOWN_CURRENT", "LEGACY_PREDICATE"]
    assert found[0].message == "the catalogue has no digest of today's recipe by this predicate type's algorithm"


@pytest.mark.parametrize("kind", [V1, V2])
def test_old_predicate_types_are_legacy_even_when_their_digest_is_current(kind: str) -> None:
    (found,) = reasons(make_run(ANN, predicate_type=kind, recipe_digest=LEGACY), version())
    assert found.reason.value == "LEGACY_PREDICATE"
    assert found.message == (f"attested as {kind[-2:]}, whose digest covers the producer's own version")


@pytest.mark.parametrize(("days", "aged"), [(29.9, False), (30.9, False), (31, True), (400, True)])
def test_age_counts_whole_days_above_the_setting(days: float, *, aged: bool) -> None:
    assert codes(make_run(ANN, days=days), version()) == (["AGED"] if aged else [])


def test_age_message_names_both_numbers() -> None:
    (found,) = reasons(make_run(ANN, days=41), version(), aged_after_days=14)
    assert found.message == "attested 41 days ago, more than 14"


@pytest.mark.parametrize(
    ("standing", "code", "message"),
    [
        (
            Standing(superseded_by=make_run(ANN, days=0.5, digest="ab" * 32)),
            "SUPERSEDED",
            "the same source attested abababababab… later, on 2026-06-20",
        ),
        (
            Standing(listed=False, was_listed=True),
            "SIGNER_REMOVED",
            "the signer was on the allowlist and is no longer",
        ),
        (
            Standing(gone=True),
            "BUNDLE_GONE",
            "cdcdcdcdcdcd… is at none of the places where it was seen; the archive keeps it",
        ),
        (Standing(retracted="wrong cluster"), "RETRACTED", "retracted: wrong cluster"),
        (Standing(retracted=""), "RETRACTED", "retracted"),
    ],
)
def test_reasons_beside_the_signed_bytes(standing: Standing, code: str, message: str) -> None:
    (found,) = reasons(make_run(ANN, digest="cd" * 32), version(), standing=standing)
    assert (found.reason.value, found.message) == (code, message)
    assert found.clears


def test_a_relisted_or_never_listed_signer_is_not_removed() -> None:
    assert codes(make_run(ANN), version(), standing=Standing(listed=True, was_listed=True)) == []
    assert codes(make_run(ANN), version(), standing=Standing(listed=False)) == []


def test_all_reasons_can_hold_at_once_in_one_order() -> None:
    run = make_run(ANN, days=99, predicate_type=V1, recipe_digest=OLDER)
    standing = Standing(listed=False, was_listed=True, superseded_by=make_run(ANN), gone=True, retracted="x")
    assert codes(run, version(), standing=standing) == [
        "DRIFTED",
        "NEVER_PUBLISHED",
        "LEGACY_PREDICATE",
        "SUPERSEDED",
        "AGED",
        "SIGNER_REMOVED",
        "BUNDLE_GONE",
        "RETRACTED",
    ]


RECIPE_TEXT = "kind: RecipeResult\ncomponentRefs:\n  - name: gpu-operator\n    version: v25.3.0\n"


def test_drift_says_what_changed_where_both_texts_are_known() -> None:
    run = make_run(ANN, recipe_digest=OLDER, recipe_text=RECIPE_TEXT)
    catalogue = (version(OLDER), version(text=RECIPE_TEXT.replace("25.3", "25.10")))
    assert reasons(run, *catalogue)[0].difference == ("component gpu-operator: version v25.3.0 -> v25.10.0",)
    stranger = Standing(listed=False)
    assert reasons(run, *catalogue, standing=stranger)[0].difference == ()
    assert reasons(make_run(ANN, recipe_digest=OLDER), *catalogue)[0].difference == ()


@pytest.mark.parametrize(
    ("kind", "digest", "expected"),
    [
        (V3, TODAY, Match.CURRENT),
        (V3, LEGACY, Match.DRIFTED),
        (V2, LEGACY, Match.CURRENT),
        (V1, TODAY, Match.DRIFTED),
        ("https://example.org/unheard-of", LEGACY, Match.CURRENT),
    ],
)
def test_the_predicate_type_chooses_the_algorithm(kind: str, digest: str, expected: Match) -> None:
    assert match(make_run(ANN, predicate_type=kind, recipe_digest=digest), version()) is expected
    assert match(make_run(ANN, predicate_type=kind, recipe_digest=digest), None) is Match.UNKNOWN


def test_one_recipe_text_has_one_key_across_algorithms() -> None:
    old = make_run(ANN, predicate_type=V2, recipe_digest=LEGACY)
    assert recipe_text_key(old, [version()]) == recipe_text_key(make_run(ANN), [version()]) == TODAY
    assert recipe_text_key(old, []) == LEGACY


def test_todays_version_is_the_last_one_unless_it_retires() -> None:
    assert today([]) is None
    assert today([version(OLDER), version()]) == version()
    assert today([version(), version(retired=True)]) is None


def test_age_and_its_next_change() -> None:
    run = make_run(ANN, days=2.25)
    assert age_days(run, NOW) == 2
    assert next_birthday(run, NOW) == NOW + timedelta(days=0.75)
    exact = make_run(ANN, days=2)
    assert age_days(exact, NOW) == 2
    assert next_birthday(exact, NOW) == NOW + timedelta(days=1)
