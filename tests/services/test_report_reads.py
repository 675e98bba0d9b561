"""Reads of recipes and records: lenses, lines, standings, masks."""

from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from app.core.allowlist import Allowlist
from app.core.asked import asked_by_criteria
from app.core.errors import InputError, NotFoundError
from app.core.verdict import ConfirmBy, ConfirmRule, RecipeInputs, State
from app.ports import RecordFilter, Weighing
from app.services.records import RecordReading
from app.services.report import Lens, RecipeFilter, RecipeReading
from app.services.standings import RecordStandings
from tests.support.runs import CHECK, CRITERIA, OLDER, RECIPE, allowlist_text, make_run, person, version, workflow
from tests.support.webapp import FakeContainer, make_container


@pytest.fixture
def container() -> FakeContainer:
    made = make_container()
    made.allowlist.put(allowlist_text(person("dev-one"), person("dev-two")))
    return made


def recipes(container: FakeContainer) -> RecipeReading:
    return RecipeReading(
        store=container.store, clock=container.clock, allowlist=container.allowlist, rule=container.rule
    )


def records(container: FakeContainer) -> RecordReading:
    return RecordReading(
        store=container.store,
        archive=container.archive,
        judge=container.judge,
        clock=container.clock,
        allowlist=container.allowlist,
        recipes=recipes(container),
    )


def test_a_verdict_shows_no_address_whatever_quotes_one(container: FakeContainer) -> None:
    container.keep(make_run(person("dev-one")))
    container.keep(make_run(person("stranger"), weightless="claimed by someone@example.org"))
    shown = recipes(container).recipe(RECIPE).verdict
    text = repr([(one.identity, one.party, one.remarks, one.signer_key, one.voice) for one in shown.sources])
    assert "dev-one@" not in text
    assert "stranger@" not in text
    assert "someone@" not in text
    assert "s…e@example.org" in text


@pytest.mark.parametrize(
    ("aicr_version", "missing"),
    [
        pytest.param(None, [], id="combined"),
        pytest.param("v1.0.0", [("more-signers", 1)], id="v1.0.0"),
        pytest.param("v2.0.0", [("failing", 2)], id="v2.0.0"),
        pytest.param("v3.0.0", [("no-evidence", 2)], id="a-version-that-nobody-ran"),
    ],
)
def test_what_is_missing_is_of_the_version_that_was_asked_for(
    container: FakeContainer, aicr_version: str | None, missing: list[tuple[str, int]]
) -> None:
    container.keep(make_run(person("dev-one"), version="v1.0.0"))
    container.keep(make_run(person("dev-two"), "failed", days=3, version="v2.0.0"))
    container.keep(make_run(person("dev-two"), version="v4.0.0"))
    view = recipes(container).recipe(RECIPE, Lens(aicr_version=aicr_version))
    assert [(item.code, item.needed) for item in view.verdict.missing] == missing


def test_the_default_lens_is_the_combined_grid_of_now(container: FakeContainer) -> None:
    container.keep(make_run(person("dev-one"), version="v1.0.0"))
    container.keep(make_run(person("dev-two"), version="main", commit="0123456"))
    reading = recipes(container)
    assert reading.recipe(RECIPE).grid.state is State.CONFIRMED
    assert reading.recipe(RECIPE, Lens(aicr_version="main")).grid.aicr_commit == "0123456"
    assert reading.recipe(RECIPE, Lens(aicr_version="main", aicr_commit="other")).grid.rows == ()
    assert reading.recipe(RECIPE, Lens(confirm_by=ConfirmBy.PARTY)).rule.by is ConfirmBy.PARTY


def test_the_future_and_the_unknown_are_no_answers(container: FakeContainer) -> None:
    container.keep(make_run(person("dev-one")))
    reading = recipes(container)
    with pytest.raises(InputError, match="asOf in the past"):
        reading.recipe(RECIPE, Lens(as_of=container.clock.now + timedelta(seconds=1)))
    with pytest.raises(NotFoundError, match="no recipe 'nope' is known"):
        reading.recipe("nope")
    with pytest.raises(NotFoundError):
        reading.recipe_key("nope")


def test_before_the_first_list_nobody_counted(container: FakeContainer) -> None:
    early = container.clock.now - timedelta(days=2)
    container.keep(make_run(person("dev-one"), days=9))
    container.store._state.records = {
        number: (replace(kept, received_at=early), reference, state)
        for number, (kept, reference, state) in container.store._state.records.items()
    }
    view = recipes(container).recipe(RECIPE, Lens(as_of=early + timedelta(hours=1)))
    assert [(source.allowlisted, source.source_class) for source in view.verdict.sources] == [(False, "community")]
    assert recipes(container).recipe(RECIPE).verdict.sources[0].allowlisted


def test_a_removed_signer_is_told_in_read_and_stored_line_alike(container: FakeContainer) -> None:
    container.keep(make_run(person("dev-one")))
    container.allowlist.put(allowlist_text(person("dev-two")))
    line = recipes(container).all_lines()[0]
    verdict = recipes(container).recipe(RECIPE).verdict
    assert line["state"] == verdict.state.value == "UNTESTED"
    assert "SIGNER_REMOVED" in [reason.reason.value for reason in verdict.sources[0].staleness]


@pytest.fixture
def computed(container: FakeContainer, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The recipe of each verdict that was computed: each starts with its inputs."""
    asked: list[str] = []
    inputs = container.store.inputs

    def counting(recipe: str, /, *, as_of: datetime | None = None, strangers: bool = False) -> RecipeInputs | None:
        asked.append(recipe)
        return inputs(recipe, as_of=as_of, strangers=strangers)

    monkeypatch.setattr(container.store, "inputs", counting)
    return asked


def keep_many(container: FakeContainer, count: int) -> None:
    """One record of dev-one on each of `count` recipes."""
    for index in range(count):
        criteria = replace(CRITERIA, platform=f"p{index}")
        container.keep(make_run(person("dev-one"), criteria=criteria, digest=f"{index:064x}"))


def test_no_list_and_no_answer_computes_a_verdict_however_many_lines_aged(
    container: FakeContainer, computed: list[str]
) -> None:
    keep_many(container, 30)
    reading = recipes(container)
    assert reading.all_lines()[0] is container.store.summaries()[0].verdict
    container.clock.now += timedelta(days=40)
    assert [line["staleness"] for line in reading.all_lines()] == [["UNKNOWN_CURRENT", "AGED"]] * 30
    assert len(reading.recipes(RecipeFilter(staleness="AGED"), after=None, limit=50).lines) == 30
    assert reading.answer(asked_by_criteria({"service": "eks"})).answer.matches[0].candidate.staleness == (
        "UNKNOWN_CURRENT",
        "AGED",
    )
    assert computed == []


def test_lines_are_read_once_a_state_and_never_when_they_no_longer_hold(
    container: FakeContainer, monkeypatch: pytest.MonkeyPatch
) -> None:
    loads: list[int] = []
    summaries = container.store.summaries
    monkeypatch.setattr(container.store, "summaries", lambda: (loads.append(1), summaries())[1])
    container.keep(make_run(person("dev-one"), days=30.5))
    reading, start = recipes(container), container.clock.now

    def told(after: float) -> tuple[object, int]:
        container.clock.now = start + timedelta(days=after)
        (line,) = reading.all_lines()
        return line["staleness"], len(loads)

    assert [told(0), told(0.25), told(0.49)] == [(["UNKNOWN_CURRENT"], 1)] * 3
    assert [told(0.5), told(9)] == [(["UNKNOWN_CURRENT", "AGED"], 2)] * 2
    assert told(0.25) == (["UNKNOWN_CURRENT"], 3)
    container.keep(make_run(person("dev-one"), days=0))
    assert told(0.25) == (["UNKNOWN_CURRENT"], 4)
    assert told(9) == (["UNKNOWN_CURRENT"], 4)
    container.allowlist.put(allowlist_text(person("dev-two")))
    assert told(9) == (["UNKNOWN_CURRENT", "SIGNER_REMOVED"], 5)


def test_a_page_of_records_is_of_a_bounded_number_of_recipes(
    container: FakeContainer, computed: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A page costs so many verdicts at most, the same page again none, and the cursor leaves nothing out."""
    monkeypatch.setattr("app.services.records.MAX_RECIPES", 4)
    keep_many(container, 10)
    reading = records(container)
    for staleness, sizes in ((None, [4, 4, 2]), ("BUNDLE_GONE", [0, 0, 0]), ("UNKNOWN_CURRENT", [4, 4, 2])):
        found, costs, after = [], [], None
        for _ in range(3):
            computed.clear()
            page = reading.records(RecordFilter(), staleness=staleness, after=after, limit=50)
            found.append([item.record.run.criteria.platform for item in page.items])
            costs.append(len(computed))
            after = page.next
        assert after is None
        assert [len(items) for items in found] == sizes
        if staleness != "BUNDLE_GONE":
            assert [name for items in found for name in items] == [f"p{index}" for index in range(9, -1, -1)]
        assert costs == ([4, 4, 2] if staleness is None else [0, 0, 0])


def test_a_filtered_page_that_is_full_goes_on_where_it_ended(container: FakeContainer) -> None:
    keep_many(container, 5)
    reading, after, found = records(container), None, []
    for _ in range(3):
        page = reading.records(RecordFilter(), staleness="UNKNOWN_CURRENT", after=after, limit=2)
        found.append([item.record.run.criteria.platform for item in page.items])
        after = page.next
    assert (found, after) == ([["p4", "p3"], ["p2", "p1"], ["p0"]], None)


def test_what_is_used_stays_ready_while_others_come(
    container: FakeContainer, computed: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.services.standings.MAX_STANDINGS", 3)
    keep_many(container, 6)
    standings = RecordStandings(store=container.store, clock=container.clock, recipes=recipes(container))
    often, *others = container.store.records(RecordFilter(), after=None, limit=10)[0]
    for other in others:
        standings.standing(often)
        standings.standing(other)
    assert computed.count(often.run.recipe) == 1


def test_each_list_is_parsed_once_however_often_the_past_is_asked_for(
    container: FakeContainer, monkeypatch: pytest.MonkeyPatch
) -> None:
    parsed: list[bytes] = []
    recall = Allowlist.recall

    def counting(data: bytes) -> Allowlist:
        parsed.append(data)
        return recall(data)

    container.keep(make_run(person("dev-one")))
    for name in ("one", "two", "three"):
        container.clock.now += timedelta(hours=1)
        container.allowlist.put(allowlist_text(person("dev-one"), person(name)))
    reading, now = recipes(container), container.clock.now
    monkeypatch.setattr(Allowlist, "recall", counting)
    for minutes in range(5):
        reading.recipe(RECIPE, Lens(as_of=now - timedelta(minutes=minutes)))
        reading.recipe(RECIPE)
        assert len(reading.allowlist_versions()) == 4
    assert len(parsed) == 4
    container.clock.now += timedelta(hours=1)
    container.allowlist.put(allowlist_text(person("dev-two")))
    parsed.clear()
    assert not reading.recipe(RECIPE).verdict.sources[0].allowlisted
    assert reading.recipe(RECIPE, Lens(as_of=now)).verdict.sources[0].allowlisted
    assert len(parsed) == 1


@pytest.mark.parametrize(
    ("hours", "state", "threshold"),
    [
        pytest.param(3, State.CONFIRMED, 2, id="two-made-it-then"),
        pytest.param(5, State.SINGLE, 3, id="three-since"),
        pytest.param(1, State.CONFIRMED, 2, id="before-any-was-noted"),
    ],
)
def test_a_past_time_is_weighed_by_the_settings_of_then(
    container: FakeContainer, hours: int, state: State, threshold: int
) -> None:
    start = container.clock.now
    container.allowlist.put(allowlist_text(person("dev-one"), person("dev-two")))
    for name in ("dev-one", "dev-two"):
        container.keep(replace(make_run(person(name)), received_at=start - timedelta(days=1)))
    for after, made in ((2, 2), (5, 3)):
        container.store.reproject(
            f"{made} make it",
            project=container.allowlist.project,
            weighing=Weighing(ConfirmRule(threshold=made), start + timedelta(hours=after)),
        )
    container.clock.now = start + timedelta(hours=9)
    reading = RecipeReading(
        store=container.store,
        clock=container.clock,
        allowlist=container.allowlist,
        rule=ConfirmRule(threshold=3),
    )
    view = reading.recipe(RECIPE, Lens(as_of=start + timedelta(hours=hours)))
    assert (view.verdict.state, view.rule.threshold) == (state, threshold)
    by_party = reading.recipe(RECIPE, Lens(as_of=start + timedelta(hours=hours), confirm_by=ConfirmBy.PARTY))
    assert (by_party.rule.by, by_party.rule.threshold) == (ConfirmBy.PARTY, threshold)


@pytest.mark.parametrize(
    ("where", "admitted"),
    [
        pytest.param(RecipeFilter(), 1, id="none"),
        pytest.param(RecipeFilter(service="eks", accelerator="h100", platform="kubeflow"), 1, id="criteria"),
        pytest.param(RecipeFilter(service="EKS", accelerator=" H100"), 1, id="criteria-as-people-write-them"),
        pytest.param(RecipeFilter(service="gke"), 0, id="service"),
        pytest.param(RecipeFilter(platform="any"), 0, id="any-is-a-value"),
        pytest.param(RecipeFilter(q="UBUNTU"), 1, id="q"),
        pytest.param(RecipeFilter(state="SINGLE"), 1, id="state"),
        pytest.param(RecipeFilter(source_class="partner"), 0, id="class"),
        pytest.param(RecipeFilter(profile="gpuStack=x"), 0, id="profile"),
    ],
)
def test_filters_admit_by_every_value_that_is_set(container: FakeContainer, where: RecipeFilter, admitted: int) -> None:
    container.keep(make_run(person("dev-one")))
    assert len(recipes(container).recipes(where, after=None, limit=10).lines) == admitted


def test_a_line_without_criteria_passes_no_criteria_filter() -> None:
    made = make_container()
    made.store.put_catalogue([version(recipe="bare")], replace=False, project=made.allowlist.project)
    reading = recipes(made)
    assert reading.recipes(RecipeFilter(service="eks"), after=None, limit=10).lines == ()
    assert len(reading.recipes(RecipeFilter(), after=None, limit=10).lines) == 1


def test_a_record_stands_as_its_recipe_says_and_an_older_one_by_the_same_rules(container: FakeContainer) -> None:
    container.store.put_catalogue([version()], replace=False, project=container.allowlist.project)
    old = container.keep(make_run(person("dev-one"), days=40, recipe_digest=OLDER))
    new = container.keep(make_run(person("dev-one"), days=3))
    reading = records(container)
    stale = {
        one.record.id: [reason.reason.value for reason in one.staleness]
        for one in reading.records(RecordFilter(), staleness=None, after=None, limit=10).items
    }
    assert stale == {new.id: [], old.id: ["DRIFTED", "NEVER_PUBLISHED", "SUPERSEDED", "AGED"]}


@pytest.mark.parametrize(
    ("hours", "message", "changes_in"),
    [
        pytest.param(0, [], timedelta(hours=12), id="young-until-it-is-aged"),
        pytest.param(
            14, ["attested 31 days ago, more than 30"], timedelta(hours=22), id="aged-until-its-next-birthday"
        ),
        pytest.param(40, ["attested 32 days ago, more than 30"], timedelta(hours=20), id="and-every-day-after"),
    ],
)
def test_an_older_record_says_when_its_age_changes(
    container: FakeContainer, hours: int, message: list[str], changes_in: timedelta
) -> None:
    old = container.keep(make_run(person("dev-one"), days=30.5))
    # The newest one has its birthday an hour later each day.
    container.keep(make_run(person("dev-one"), days=30.5 - 1 / 24))
    container.clock.now += timedelta(hours=hours)
    (view,) = records(container).bundle(old.run.digest).records
    assert [reason.message for reason in view.staleness if reason.reason.value == "AGED"] == message
    assert view.next_change == container.clock.now + changes_in


def test_a_sparse_filter_looks_at_a_bounded_number_of_records(
    container: FakeContainer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It goes on with the cursor instead of reading everything in one request."""
    for day in range(1, 9):
        container.keep(make_run(person("dev-one"), days=day))
    monkeypatch.setattr("app.services.records.MAX_SCANNED", 4)
    reading = records(container)
    first = reading.records(RecordFilter(), staleness="RETRACTED", after=None, limit=2)
    assert (first.items, first.next is not None) == ((), True)
    second = reading.records(RecordFilter(), staleness="RETRACTED", after=first.next, limit=2)
    assert second.items == ()


def test_a_standing_follows_a_change_of_list_and_catalogue_at_once(container: FakeContainer) -> None:
    record = container.keep(make_run(person("dev-one")))
    reading = records(container)

    def reasons() -> list[str]:
        (view,) = reading.bundle(record.run.digest).records
        return [reason.reason.value for reason in view.staleness]

    assert reasons() == ["UNKNOWN_CURRENT"]
    container.store.put_catalogue([version()], replace=False, project=container.allowlist.project)
    assert reasons() == []
    container.allowlist.put(allowlist_text(person("dev-two")))
    assert reasons() == ["SIGNER_REMOVED"]
    container.clock.now += timedelta(days=40)
    assert sorted(reasons()) == ["AGED", "SIGNER_REMOVED"]


def test_a_record_that_is_set_aside_stands_by_the_same_rules(container: FakeContainer) -> None:
    aks = replace(CRITERIA, service="aks", platform="")
    container.keep(make_run(person("dev-two"), criteria=aks, selection="gpu-stack=operator", days=9))
    aside = container.keep(make_run(person("dev-one"), criteria=aks, selection="gpu=stack-operator", days=2))
    reading = records(container)

    def reasons() -> list[str]:
        (view,) = reading.bundle(aside.run.digest).records
        return [reason.reason.value for reason in view.staleness]

    assert reasons() == ["UNKNOWN_CURRENT"]
    container.allowlist.put(allowlist_text(person("dev-two")))
    assert reasons() == ["UNKNOWN_CURRENT", "SIGNER_REMOVED"]


def test_a_record_is_superseded_by_one_of_its_own_weight(container: FakeContainer) -> None:
    old = container.keep(make_run(person("dev-one"), days=9))
    newer = container.keep(make_run(person("dev-one"), days=5))
    container.keep(make_run(person("dev-one"), days=2, weightless="called by another repository"))
    (view,) = records(container).bundle(old.run.digest).records
    assert [reason.message for reason in view.staleness if reason.reason.value == "SUPERSEDED"] == [
        f"the same source attested {newer.run.digest.hex[:12]}… later, on 2026-06-15"
    ]


def test_records_are_found_by_slug_and_canonical_id(container: FakeContainer) -> None:
    kept = container.keep(make_run(workflow(), {CHECK: "failed"}))
    reading = records(container)
    for source in (kept.run.source, kept.run.source_id):
        assert reading.record(kept.run.digest, source).id == kept.id
    with pytest.raises(NotFoundError, match="no record of sha256"):
        reading.record(kept.run.digest, "0" * 32)
    assert reading.shown(kept).outcome == "failed"
