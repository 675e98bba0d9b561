"""Pushes of the catalogue: digests, names, all or nothing."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from app.core.canonical import recipe_digests
from app.core.catalogue import completed
from app.core.coordinate import Criteria
from app.core.errors import InputError, RecipeInvalid
from app.core.verdict import RecipeInputs, RecipeVerdict
from app.services.catalogue import CatalogueService, Entry, version_of
from tests.support.bundles import NAME, PROFILED_NAME, PROFILED_RECIPE, RECIPE
from tests.support.memory_store import MemoryStore
from tests.support.runs import NOW, verdict_of
from tests.support.stores import RULES, Rules, allowlist_text

READY = Entry(name="ready", legacy="aa" * 32, content_only="bb" * 32)


def _named(platform: str) -> bytes:
    """A resolved recipe whose name ends with this platform."""
    return RECIPE.replace(b"criteria:\n", f'criteria:\n    platform: "{platform}"\n'.encode(), 1)


class Lists:
    """The list of the store, known once it was looked at."""

    def __init__(self, store: MemoryStore) -> None:
        self.store = store
        store.activate_allowlist(RULES.version(NOW), project=RULES.project, classify=RULES.classify)
        self.known = RULES.version(NOW).sha256

    def sha256(self) -> str:
        return self.known

    def follow(self) -> None:
        self.known = self.store.allowlist_in_force() or ""

    def project(self, inputs: RecipeInputs) -> RecipeVerdict:
        return verdict_of((), recipe=inputs.recipe, catalogue=inputs.catalogue)


def service(store: MemoryStore) -> CatalogueService:
    return CatalogueService(store, lambda: NOW, Lists(store))


def test_a_text_gives_both_digests_name_and_criteria() -> None:
    at = datetime(2026, 6, 19, tzinfo=UTC)
    entry = Entry(
        NAME, RECIPE, commit="0123abc", ref="refs/heads/main", at=at, declared={"deployment": ["b", "a", "b"]}
    )
    version = version_of(entry, NOW)
    assert (version.legacy, version.content_only) == recipe_digests(RECIPE)
    assert (version.recipe, version.text, version.recorded_at, version.at) == (NAME, RECIPE.decode(), NOW, at)
    assert version.criteria == Criteria("eks", "h100", "ubuntu", "training")
    assert version.declared == (("deployment", "b"), ("deployment", "a"))


def test_a_profiled_recipe_keeps_its_selection() -> None:
    version = version_of(Entry("", PROFILED_RECIPE), NOW)
    assert (version.recipe, version.profile_selection) == (PROFILED_NAME, "gpuStack=operator-managed")


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        pytest.param(Entry("other", RECIPE), f"other: the text is the recipe '{NAME}', expected 'other'", id="name"),
        pytest.param(Entry(NAME), "as text, or both digests", id="nothing"),
        pytest.param(replace(READY, text=RECIPE), "as text, or both digests", id="text-and-digests"),
        pytest.param(replace(READY, legacy=""), "as text, or both digests", id="one-digest"),
        pytest.param(
            replace(READY, name=""), "a recipe name of 1 to 512 characters, got 0", id="digests-without-a-name"
        ),
        pytest.param(replace(READY, name="../evil"), "one path segment", id="path"),
        pytest.param(replace(READY, name=".."), "one path segment", id="dots"),
        pytest.param(replace(READY, name="a\u202eb"), "one path segment", id="bidi"),
        pytest.param(Entry("", _named("a/b")), "one path segment", id="path-from-the-text"),
        pytest.param(Entry("", _named("a\\0b")), "one path segment", id="nul-from-the-text"),
        pytest.param(Entry("", _named("x" * 513)), "1 to 512 characters", id="long-from-the-text"),
        pytest.param(Entry("x", b"kind: RecipeResult\n"), "gives no recipe name", id="no-criteria"),
        pytest.param(Entry("x", b"kind: RecipeMetadata\n"), "overlay", id="overlay"),
        pytest.param(Entry("x", b"\xff"), "x: ", id="not-text"),
        pytest.param(replace(READY, declared={"readiness": ["a"]}), "got 'readiness'", id="unknown-phase"),
        pytest.param(replace(READY, declared={"deployment": [""]}), "check names of 1", id="empty-check"),
        pytest.param(
            replace(READY, declared={"deployment": [f"c{n}" for n in range(2001)]}), "at most 2000", id="too-many"
        ),
    ],
)
def test_a_bad_entry_is_named(entry: Entry, message: str) -> None:
    with pytest.raises(RecipeInvalid, match=message):
        version_of(entry, NOW)


def test_a_recipe_is_recorded_when_it_is_kept_not_when_its_text_is_read() -> None:
    store = MemoryStore()
    times = iter([NOW, NOW + timedelta(seconds=9)])
    CatalogueService(store, lambda: next(times), Lists(store)).put([READY], replace=False)
    assert store.inputs("ready", as_of=NOW + timedelta(seconds=8)) is None
    inputs = store.inputs("ready", as_of=NOW + timedelta(seconds=9))
    assert inputs is not None
    assert [version.recorded_at for version in inputs.catalogue] == [NOW + timedelta(seconds=9)]


def test_a_push_with_one_bad_entry_stores_none() -> None:
    store = MemoryStore()
    with pytest.raises(RecipeInvalid):
        service(store).put([READY, Entry("other", RECIPE)], replace=False)
    with pytest.raises(InputError, match="each recipe once"):
        service(store).put([READY, READY], replace=False)
    assert store.summaries() == ()


def test_a_push_says_what_changed_and_replace_retires_the_rest() -> None:
    store = MemoryStore()
    pushing = service(store)
    assert pushing.put([READY, Entry("", RECIPE)], replace=False).changed == (NAME, "ready")
    assert pushing.put([READY], replace=False).changed == ()
    assert pushing.put([READY], replace=True).changed == (NAME,)
    inputs = store.inputs(NAME)
    assert inputs is not None
    assert inputs.catalogue[-1].retired


KNOWN = version_of(
    replace(READY, commit="c0ffee", ref="refs/heads/main", declared={"deployment": ["a"]}, floors={"a": ">= 100"}), NOW
)


@pytest.mark.parametrize(
    "silent",
    [
        pytest.param(READY, id="only-digests"),
        pytest.param(replace(READY, ref="refs/heads/other", at=NOW), id="ref-and-time"),
        pytest.param(replace(READY, commit="c0ffee"), id="the-same-commit"),
    ],
)
def test_a_push_that_says_nothing_new_of_the_same_digests_appends_nothing(silent: Entry) -> None:
    assert completed(version_of(silent, NOW), KNOWN) is None


def test_a_push_without_a_commit_keeps_where_the_digests_came_from() -> None:
    full = completed(version_of(replace(READY, ref="refs/heads/other", floors={"a": ">= 200"}), NOW), KNOWN)
    assert full is not None
    assert (full.commit, full.ref, full.at) == ("c0ffee", "refs/heads/main", None)
    assert full.floors == {"a": ">= 200"}


def test_what_was_known_stays_when_it_is_absent_and_goes_when_it_is_empty() -> None:
    kept = completed(version_of(replace(READY, commit="beef"), NOW), KNOWN)
    cleared = completed(version_of(replace(READY, declared={}, floors={}), NOW), KNOWN)
    assert kept is not None
    assert cleared is not None
    assert (kept.commit, kept.declared, kept.floors) == ("beef", (("deployment", "a"),), {"a": ">= 100"})
    assert (cleared.commit, cleared.declared, cleared.floors) == ("c0ffee", (), {})


def test_a_recipe_with_other_digests_takes_nothing_over() -> None:
    other = completed(version_of(replace(READY, content_only="cc" * 32), NOW), KNOWN)
    assert other is not None
    assert (other.commit, other.declared, other.floors) == ("", None, {})


def test_floors_that_are_cleared_stay_cleared_in_the_store() -> None:
    store = MemoryStore()
    pushing = service(store)
    pushing.put([replace(READY, floors={"a": ">= 100"})], replace=False)
    assert pushing.put([READY], replace=False).changed == ()
    assert pushing.put([replace(READY, floors={})], replace=False).changed == ("ready",)
    assert pushing.put([READY], replace=False).changed == ()
    inputs = store.inputs("ready")
    assert inputs is not None
    assert [version.floors for version in inputs.catalogue] == [{"a": ">= 100"}, {}]


def test_a_push_is_weighed_by_the_list_that_another_process_put_into_force() -> None:
    store = MemoryStore()
    pushing = service(store)
    narrow = Rules(allowlist_text(), earlier=[RULES])
    store.activate_allowlist(narrow.version(NOW), project=narrow.project, classify=narrow.classify)
    assert pushing.put([READY], replace=False).changed == ("ready",)
    assert pushing.lists.sha256() == narrow.version(NOW).sha256
