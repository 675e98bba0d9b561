"""A rebuild gives every projection back, row for row: after a long history, and after any random one."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from app.adapters.db.session import Database
from app.adapters.db.store import SqlEvidenceStore
from app.core.bundle import Run
from app.core.catalogue import CatalogueVersion
from app.core.coordinate import Criteria
from app.core.identity import SignerIdentity
from app.core.verdict import ConfirmBy, ConfirmRule
from app.ports import Act, EvidenceStore, Received, Weighing
from tests.support.memory_store import MemoryStore
from tests.support.stored_runs import DEV_ONE, FAIL, OCTOCAT, PASS, RECIPE, WORKFLOW, at, hexed, make_run, received
from tests.support.stores import RULES, SQL_KINDS, Rules, allowlist_text, dump, open_database

OTHER = "gb200-oke-ubuntu-inference"
STRANGER = SignerIdentity("https://issuer.example.org", "stranger@example.org")
BRANCH = replace(WORKFLOW, identity=WORKFLOW.identity.replace("main", "topic"))
SIGNERS = (WORKFLOW, BRANCH, OCTOCAT, DEV_ONE, STRANGER)
LISTS = (RULES.text, allowlist_text(), allowlist_text(STRANGER))
WEIGHINGS = (ConfirmRule(), ConfirmRule(ConfirmBy.PARTY, 3, 2))


@dataclass(frozen=True)
class Keep:
    number: int
    signer: int
    recipe: str
    hours: int
    passed: bool
    version: str
    copies: int | None
    criteria: Criteria
    weightless: str

    def run(self) -> Run:
        changes: dict[str, object] = {}
        if self.copies is not None:
            changes["prints"] = make_run(self.copies).prints
        return make_run(
            self.number,
            SIGNERS[self.signer],
            recipe=self.recipe,
            attested_at=at(self.hours),
            received_at=at(100 + self.number),
            results=PASS if self.passed else FAIL,
            exit=0 if self.passed else 1,
            aicr_version=self.version,
            criteria=self.criteria,
            weightless=self.weightless,
            **changes,
        )


@dataclass(frozen=True)
class See:
    number: int
    mirror: str
    hours: int


@dataclass(frozen=True)
class List:
    which: int
    hours: int


@dataclass(frozen=True)
class Push:
    recipe: str
    content: str
    hours: int
    replace: bool


@dataclass(frozen=True)
class Retract:
    number: int
    retracted: bool
    hours: int


@dataclass(frozen=True)
class Gone:
    number: int
    gone: bool
    hours: int


@dataclass(frozen=True)
class Restart:
    """A start under other `CONFIRM_*` settings."""

    which: int


Step = Keep | See | List | Push | Retract | Gone | Restart

RECIPES = st.sampled_from((RECIPE, OTHER))
NUMBERS = st.integers(1, 8)
HOURS = st.integers(100, 200)
CRITERIA = st.sampled_from((make_run(1).criteria, Criteria("eks", "h100", "ubuntu", "training")))
STEPS = st.one_of(
    st.builds(
        Keep,
        NUMBERS,
        st.integers(0, len(SIGNERS) - 1),
        RECIPES,
        st.integers(0, 6),
        st.booleans(),
        st.sampled_from(("v1.0.0", "v1.1.0", "main")),
        st.none() | NUMBERS,
        CRITERIA,
        st.sampled_from(("", "", "", "reusable workflow")),
    ),
    st.builds(See, NUMBERS, st.sampled_from(("a", "b")), HOURS),
    st.builds(List, st.integers(0, len(LISTS) - 1), HOURS),
    st.builds(Push, RECIPES, st.sampled_from(("recipe", "newer")), HOURS, st.booleans()),
    st.builds(Retract, NUMBERS, st.booleans(), HOURS),
    st.builds(Gone, NUMBERS, st.booleans(), HOURS),
    st.builds(Restart, st.integers(0, len(WEIGHINGS) - 1)),
)


class History:
    """Applies steps to a store and keeps what an archive would: the runs that were acknowledged."""

    def __init__(self, store: EvidenceStore) -> None:
        self.store = store
        self.rules = RULES
        self.before = [RULES]
        self.archive: dict[int, tuple[Run, Received]] = {}

    def apply(self, step: Step) -> None:
        known = self.archive.get(step.number) if isinstance(step, See | Retract | Gone) else None
        project = self.rules.project
        match step:
            case Keep(number=number) if number not in self.archive:
                run = step.run()
                came = received(run, public=number % 2 == 0)
                self.store.keep(run, came, project=project, classify=self.rules.classify)
                self.archive[number] = (run, came)
            case See(mirror=mirror) if known:
                reference = f"{mirror}.example.org/evidence@{known[0].digest}"
                self.store.add_location(known[0].digest, Received(at(step.hours), reference, public=mirror == "a"))
            case List(which=which):
                self.rules = Rules(LISTS[which], rule=self.rules.rule, earlier=[*self.before, self.rules])
                self.before.append(self.rules)
                self.store.activate_allowlist(
                    self.rules.version(at(step.hours)), project=self.rules.project, classify=self.rules.classify
                )
            case Restart(which=which):
                self.rules = Rules(self.rules.text, rule=WEIGHINGS[which], earlier=self.before)
                weighing = Weighing(self.rules.rule, at(140))
                self.store.reproject(f"weighing {which}", project=self.rules.project, weighing=weighing)
            case Push(recipe=recipe, content=content, replace=everything):
                version = CatalogueVersion(
                    recipe, hexed(f"legacy {content}"), hexed(content), at(step.hours), text=f"name: {recipe}\n"
                )
                self.store.put_catalogue([version], replace=everything, project=project)
            case Retract(retracted=retracted) if known:
                act = Act(at(step.hours), "ada", "because")
                self.store.retract(known[0].digest, known[0].source_id, act, retracted=retracted, project=project)
            case Gone(gone=gone) if known:
                self.store.set_gone(known[0].digest, at(step.hours), gone=gone, project=project)

    def rebuild(self) -> int:
        return self.store.rebuild(
            reversed(list(self.archive.values())), project=self.rules.project, classify=self.rules.classify
        )


def answers(store: EvidenceStore) -> dict[str, object]:
    """What readers see, revisions apart."""
    runs = [run for recipe in (RECIPE, OTHER) for run in store.runs_of(recipe)]
    return {
        "summaries": [(line.recipe, line.verdict) for line in store.summaries()],
        "inputs": [store.inputs(recipe) for recipe in (RECIPE, OTHER)],
        "then": [store.inputs(recipe, as_of=at(hours)) for recipe in (RECIPE, OTHER) for hours in (103, 150)],
        "records": [store.records_of(run.digest) for run in runs],
        "sources": store.sources(after=None, limit=50),
        "allowlists": store.allowlists(),
        "weighings": store.weighings(),
    }


LONG: tuple[Step, ...] = (
    List(0, 90),
    *(
        Keep(n, n % 5, (RECIPE, OTHER)[n % 2], n % 4, n % 3 > 0, "v1.0.0", None, make_run(1).criteria, "")
        for n in range(1, 13)
    ),
    Push(RECIPE, "recipe", 120, replace=False),
    Push(OTHER, "newer", 121, replace=True),
    See(3, "a", 122),
    See(3, "b", 123),
    List(1, 124),
    Keep(13, 2, OTHER, 9, passed=True, version="main", copies=2, criteria=make_run(1).criteria, weightless=""),
    Retract(4, retracted=True, hours=125),
    Retract(5, retracted=True, hours=126),
    Retract(5, retracted=False, hours=127),
    Gone(6, gone=True, hours=128),
    List(2, 129),
    Restart(1),
)


@pytest.fixture(params=SQL_KINDS)
def database(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Database]:
    with open_database(request.param, tmp_path) as opened:
        yield opened


def test_every_projection_comes_out_identical(database: Database) -> None:
    store = SqlEvidenceStore(database)
    history = History(store)
    for step in LONG:
        history.apply(step)
    rows, seen, revision = dump(database), answers(store), store.state_revision()
    events = list(store.replay())
    assert all(rows.values())
    assert history.rebuild() == 13
    assert dump(database) == rows
    assert answers(store) == seen
    assert list(store.replay()) == events
    assert store.state_revision() > revision


def test_a_rebuild_repairs_what_was_damaged(database: Database) -> None:
    store = SqlEvidenceStore(database)
    history = History(store)
    for step in LONG:
        history.apply(step)
    rows = dump(database)
    damage = "UPDATE recipe_state SET summary = '{}'", "DELETE FROM latest", "UPDATE results SET status = 'passed'"
    for statement in damage:
        database.write(lambda connection, statement=statement: connection.exec_driver_sql(statement))
    assert dump(database) != rows
    history.rebuild()
    assert dump(database) == rows


@settings(deadline=None, max_examples=40, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(STEPS, max_size=16))
def test_any_history_equals_its_rebuild_and_the_plain_store(steps: list[Step]) -> None:
    with TemporaryDirectory() as directory, open_database("sqlite", Path(directory)) as database:
        store, plain = SqlEvidenceStore(database), MemoryStore()
        history, twin = History(store), History(plain)
        for step in steps:
            history.apply(step)
            twin.apply(step)
        seen, rows = answers(store), dump(database)
        assert seen == answers(plain)
        history.rebuild()
        assert dump(database) == rows
        twin.rebuild()
        assert answers(plain) == seen
