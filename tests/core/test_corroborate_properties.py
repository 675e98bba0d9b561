"""What holds for every set of runs: order, duplicates, agreement, strangers, removal, thinning."""

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from hypothesis import given, settings
from hypothesis import strategies as st

from app.core.allowlist import Allowlist
from app.core.bundle import Run
from app.core.corroborate import corroborate
from app.core.identity import SignerIdentity
from app.core.latest import reduced, sightings_of
from app.core.verdict import ConfirmBy, ConfirmRule, Grid, RecipeInputs, RecipeVerdict, Row, State
from tests.support.runs import (
    CRITERIA,
    LEGACY,
    NOW,
    OLDER,
    PATTERN,
    RECIPE,
    TODAY,
    V2,
    V3,
    allowlist_text,
    hex_of,
    make_run,
    person,
    version,
    workflow,
)

PEOPLE = (person("ann"), person("bob"), person("cy"))
REFS = tuple(workflow(f"refs/{ref}") for ref in ("heads/main", "heads/x", "tags/v1"))
STRANGERS = (person("mallory"), person("trent"))
CHECKS = (("deployment", "a"), ("conformance", "b"), ("performance", "c"))
STATUSES = ("passed", "failed", "skipped", "other")
PRINTS = (("ctrf", "one"), ("snapshot", "two"), ("durations", "three"))
SLURM = replace(CRITERIA, platform="slurm")


@dataclass(frozen=True)
class Spec:
    """A run in few words, so that a falsifying example is readable."""

    signer: int
    statuses: tuple[str | None, ...]
    attested: int
    logged: int
    version: int
    recipe_digest: str
    kind: str
    slurm: bool
    prints: tuple[int, ...]
    matched: bool
    weightless: bool
    serial: int

    def build(self) -> Run:
        results = {check: status for check, status in zip(CHECKS, self.statuses, strict=True) if status}
        run = make_run(
            EVERYBODY[self.signer],
            results or {CHECKS[0]: "passed"},
            days=self.attested,
            logged_days=self.logged,
            version=("v1.0.0", "v0.9.0", "main", "main")[self.version],
            commit=("", "", "aaaaaaa", "bbbbbbb")[self.version],
            digest=hex_of(self),
            recipe_digest=self.recipe_digest,
            predicate_type=self.kind,
            criteria=SLURM if self.slurm else CRITERIA,
            prints=[PRINTS[index] for index in sorted(set(self.prints))],
            hardware_matched=self.matched,
            weightless="called by another repository" if self.weightless else "",
        )
        return replace(run, recipe=RECIPE)


def some_spec(signers: range) -> st.SearchStrategy[Spec]:
    status = st.sampled_from((None, *STATUSES))
    return st.builds(
        Spec,
        signer=st.sampled_from(signers),
        statuses=st.tuples(status, status, status),
        attested=st.integers(0, 6),
        logged=st.integers(0, 6),
        version=st.integers(0, 3),
        recipe_digest=st.sampled_from([TODAY, OLDER, LEGACY]),
        kind=st.sampled_from([V3, V2]),
        slurm=st.sampled_from([False, False, False, True]),
        prints=st.lists(st.integers(0, 2), max_size=2).map(tuple),
        matched=st.booleans(),
        weightless=st.sampled_from([False, False, False, True]),
        serial=st.integers(0, 2**32),
    )


EVERYBODY = PEOPLE + REFS + STRANGERS
runs_of_anybody = st.lists(some_spec(range(len(EVERYBODY))), max_size=8)
runs_of_strangers = st.lists(some_spec(range(len(PEOPLE + REFS), len(EVERYBODY))), min_size=1, max_size=3)
rules = st.builds(ConfirmRule, st.sampled_from(list(ConfirmBy)), st.sampled_from([2, 3]))
CATALOGUES = ((), (version(OLDER), version(declared=CHECKS[:2])), (version(criteria=CRITERIA),))


@lru_cache
def allowlist(*people: SignerIdentity) -> Allowlist:
    return Allowlist.load(allowlist_text(*people, patterns=[PATTERN]).encode())


def inputs_of(specs: Sequence[Spec], catalogue: tuple[object, ...] = (), *more: Run) -> RecipeInputs:
    """The runs, a third of them retracted, and one that was seen under another recipe."""
    runs = [*(spec.build() for spec in specs), *more]
    elsewhere = sightings_of(make_run(PEOPLE[2], days=4, digest="e" * 64, prints=[PRINTS[1]]))
    return RecipeInputs(
        RECIPE,
        tuple(runs),
        catalogue,  # type: ignore[arg-type]
        sightings=elsewhere,
        retracted={(run.digest, run.source_id): "taken back" for run in runs if run.digest.hex[-1] in "37bf"},
    )


def verdict(inputs: RecipeInputs, *people: SignerIdentity, rule: ConfirmRule | None = None) -> RecipeVerdict:
    return corroborate(inputs, allowlist=allowlist(*people), rule=rule or ConfirmRule(), now=NOW)


def every_grid(found: RecipeVerdict) -> list[Grid]:
    return [found.combined, *found.versions, *([found.current] if found.current else [])]


@settings(deadline=None, max_examples=300)
@given(runs_of_anybody, st.randoms(use_true_random=False), rules, st.sampled_from(CATALOGUES))
def test_order_and_duplicates_change_nothing(
    runs: list[Spec], shuffler: random.Random, rule: ConfirmRule, catalogue: tuple[object, ...]
) -> None:
    again = [*runs, *runs[: len(runs) // 2]]
    shuffler.shuffle(again)
    first, second = inputs_of(runs, catalogue), inputs_of(again, catalogue)
    assert verdict(first, *PEOPLE, rule=rule) == verdict(second, *PEOPLE, rule=rule)


@settings(deadline=None, max_examples=300)
@given(runs_of_anybody, rules, st.sampled_from(CATALOGUES))
def test_thinned_inputs_give_the_same_verdict(
    runs: list[Spec], rule: ConfirmRule, catalogue: tuple[object, ...]
) -> None:
    everything = inputs_of(runs, catalogue)
    thinned = reduced(everything)
    assert verdict(thinned, *PEOPLE, rule=rule) == verdict(everything, *PEOPLE, rule=rule)
    assert verdict(thinned, PEOPLE[0], rule=rule) == verdict(everything, PEOPLE[0], rule=rule)
    assert verdict(reduced(thinned), *PEOPLE, rule=rule) == verdict(everything, *PEOPLE, rule=rule)


@settings(deadline=None, max_examples=300)
@given(runs_of_anybody, runs_of_strangers, rules, st.sampled_from(CATALOGUES))
def test_a_stranger_changes_no_state_and_no_roll_up(
    runs: list[Spec], strange: list[Spec], rule: ConfirmRule, catalogue: tuple[object, ...]
) -> None:
    own = [spec for spec in runs if EVERYBODY[spec.signer] not in STRANGERS]
    before = verdict(inputs_of(own, catalogue), *PEOPLE, rule=rule)
    after = verdict(inputs_of([*own, *strange], catalogue), *PEOPLE, rule=rule)
    assert (before.state, before.current_state) == (after.state, after.current_state)
    assert before.combined.phase_states == after.combined.phase_states
    assert (before.confirming, before.failing, before.parties) == (after.confirming, after.failing, after.parties)
    assert before.staleness == after.staleness
    for old, new in _same_rows(before.combined, after.combined):
        assert (old.consensus, old.passes, old.fails, old.counted) == (
            new.consensus,
            new.passes,
            new.fails,
            new.counted,
        )
    assert {item.source for item in after.set_aside} - {one.slug for one in STRANGERS} == {
        item.source for item in before.set_aside
    }


@settings(deadline=None, max_examples=300)
@given(runs_of_anybody, rules, st.sampled_from(CATALOGUES))
def test_removing_a_signer_equals_never_having_listed_it(
    runs: list[Spec], rule: ConfirmRule, catalogue: tuple[object, ...]
) -> None:
    inputs = inputs_of(runs, catalogue)
    never = verdict(inputs, *PEOPLE[:2], rule=rule)
    removed = corroborate(inputs, allowlist=allowlist(*PEOPLE[:2]), rule=rule, now=NOW, earlier=[allowlist(*PEOPLE)])
    assert every_grid(removed) == every_grid(never)
    assert (removed.confirming, removed.failing, removed.reported, removed.parties, removed.digests) == (
        never.confirming,
        never.failing,
        never.reported,
        never.parties,
        never.digests,
    )
    assert (removed.missing, removed.set_aside) == (never.missing, never.set_aside)


_HEIGHT = {State.FAILING: 0, State.CONTESTED: 0, State.UNTESTED: 1, State.SINGLE: 2, State.CONFIRMED: 3}


@settings(deadline=None, max_examples=300)
@given(runs_of_anybody, rules)
def test_one_more_agreeing_signer_never_lowers_a_row(runs: list[Spec], rule: ConfirmRule) -> None:
    """A listed newcomer with data of its own that passes whatever was passed and skips the rest."""
    newcomer = person("newcomer")
    before = verdict(inputs_of(runs), *PEOPLE, rule=rule)
    passing = {(row.phase, row.name): "passed" for row in before.combined.rows if row.passes and not row.fails}
    mine = make_run(
        newcomer, passing or {CHECKS[0]: "skipped"}, criteria=before.criteria or CRITERIA, digest="a" * 63 + "0"
    )
    mine = replace(mine, recipe=RECIPE)
    after = verdict(inputs_of(runs, (), mine), *PEOPLE, newcomer, rule=rule)
    for old, new in _same_rows(before.combined, after.combined, counted=True):
        assert _HEIGHT[new.consensus] >= _HEIGHT[old.consensus]
        assert new.passes == old.passes + ((new.phase, new.name) in passing)


@settings(deadline=None, max_examples=60)
@given(runs_of_anybody)
def test_counts_are_those_of_distinct_signers(runs: list[Spec]) -> None:
    found = verdict(inputs_of(runs), *PEOPLE)
    keys = {one.source_id: one.signer_key for one in found.sources if one.allowlisted}
    for grid in every_grid(found):
        for row in grid.rows:
            counted = [result for result in row.signers if result.counts]
            assert len({keys.get(one.source_id, one.source_id) for one in counted}) == len(counted)
            assert row.passes + row.fails == len(counted)
            assert row.consensus is not State.PARTIAL


def _same_rows(before: Grid, after: Grid, *, counted: bool = False) -> list[tuple[Row, Row]]:
    """Rows of `before` beside those of `after`; with `counted` only those that were in the roll-up."""
    new = {(row.phase, row.name): row for row in after.rows}
    return [(row, new[(row.phase, row.name)]) for row in before.rows if row.counted or not counted]
