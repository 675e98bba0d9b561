"""Whoever does what `missing` asks for, to the letter, sees every row CONFIRMED that is not skipped."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from hypothesis import given, settings
from hypothesis import strategies as st

from app.core.bundle import Run
from app.core.explain import SKIPPED, missing_for
from app.core.identity import GithubClaims, SignerIdentity
from app.core.refs import Digest
from app.core.verdict import ConfirmBy, Grid, Missing, RecipeVerdict
from tests.support.runs import (
    CHECK,
    GHO,
    OLDER,
    PATTERN,
    TODAY,
    make_run,
    person,
    verdict_of,
    version,
    workflow,
)

DRA = ("conformance", "dra-support")
HOUSE = GithubClaims(source_owner="https://github.com/octocat", source_owner_id="1234567")
LISTED = (
    person("ann"),
    person("bob"),
    person("cy"),
    SignerIdentity(GHO, "1234567+octocat@users.noreply.github.com"),
    workflow("refs/heads/main", "https://github.com/octocat/x/.github/workflows/w.yaml", HOUSE),
)
REFS = (workflow(), workflow("refs/heads/try"), workflow("refs/heads/release/1"))
STRANGERS = (person("eve"), person("mallory"))


@dataclass(frozen=True)
class Scene:
    """Everything that a verdict is made of, so that more can be added."""

    runs: tuple[Run, ...]
    listed: tuple[SignerIdentity, ...]
    retracted: frozenset[tuple[Digest, str]]
    declared: tuple[tuple[str, str], ...] | None
    catalogued: bool
    by: ConfirmBy
    threshold: int

    def verdict(self) -> RecipeVerdict:
        return verdict_of(
            self.runs,
            *self.listed,
            patterns=[PATTERN],
            catalogue=[version(OLDER), version(declared=self.declared)] if self.catalogued else [],
            by=self.by,
            threshold=self.threshold,
            retracted=dict.fromkeys(self.retracted, "wrong cluster"),
        )

    def with_runs(self, *runs: Run, listing: Sequence[SignerIdentity] = ()) -> "Scene":
        return replace(self, runs=(*self.runs, *runs), listed=(*self.listed, *listing))


@st.composite
def scenes(draw: st.DrawFn) -> Scene:
    who = draw(st.lists(st.sampled_from([*LISTED, *REFS]), max_size=3, unique=True))
    who += draw(st.lists(st.sampled_from(STRANGERS), max_size=1))
    runs: list[Run] = []
    for signer in who:
        for _ in range(draw(st.integers(1, 2))):
            checks = draw(st.lists(st.sampled_from([CHECK, DRA]), min_size=1, unique=True))
            runs.append(
                make_run(
                    signer,
                    {check: draw(st.sampled_from(["passed", "passed", "failed", "skipped"])) for check in checks},
                    days=1 + len(runs) + draw(st.integers(0, 3)) / 10,
                    index=len(runs),
                    version=draw(st.sampled_from(["v1.0.0", "v2.0.0"])),
                    recipe_digest=draw(st.sampled_from([TODAY, TODAY, OLDER])),
                    prints=draw(st.sampled_from([(), [("snapshot", "s")]])) if signer not in STRANGERS else (),
                )
            )
    return Scene(
        runs=tuple(draw(st.permutations(runs))),
        listed=LISTED,
        retracted=frozenset(
            (run.digest, run.source_id) for run in runs if run.signer not in STRANGERS and draw(st.integers(0, 5)) == 0
        ),
        declared=draw(st.sampled_from([None, (CHECK,), (CHECK, DRA)])),
        catalogued=draw(st.booleans()),
        by=draw(st.sampled_from(ConfirmBy)),
        threshold=draw(st.integers(2, 4)),
    )


def grid_of(verdict: RecipeVerdict, aicr_version: str | None) -> Grid | None:
    if aicr_version is None:
        return verdict.current or verdict.combined
    return next((grid for grid in verdict.versions if grid.aicr_version == aicr_version), None)


def new_run(
    signer: SignerIdentity,
    passed: Iterable[tuple[str, str]],
    aicr_version: str | None,
    skipped: Iterable[tuple[str, str]] = (),
) -> Run:
    return make_run(
        signer,
        {**dict.fromkeys(skipped, "skipped"), **dict.fromkeys(passed, "passed")},
        days=0.5,
        index=1000 + int(signer.slug[:6], 16),
        version=aicr_version or "v1.0.0",
        prints=[("snapshot", f"own of {signer.slug}")],
    )


def named(item: Missing) -> list[str]:
    """The slugs, cut short, of those who are asked to run anew."""
    _, asked, rest = item.message.partition("a newer passing run by ")
    return re.findall(r"source ([0-9a-f]{8})…", rest.partition(", and")[0].partition(";")[0]) if asked else []


@settings(deadline=None, max_examples=150)
@given(scenes(), st.sampled_from([None, None, "v1.0.0", "v2.0.0"]))
def test_what_is_asked_for_is_enough(scene: Scene, aicr_version: str | None) -> None:
    verdict = scene.verdict()
    grid = grid_of(verdict, aicr_version)
    if grid is None:
        return
    missing = missing_for(verdict, grid)
    asked = [item for item in missing if item.code != SKIPPED]
    skipped = {(item.phase, item.name) for item in missing if item.code == SKIPPED}
    checks = [key for row in grid.rows if row.counted and (key := (row.phase, row.name)) not in skipped] or [CHECK]
    everybody = {signer.slug[:8]: signer for signer in (*LISTED, *REFS)}
    again = {slug for item in asked for slug in named(item)}
    fresh = [person(f"new{n}") for n in range(max((item.needed - len(named(item)) for item in asked), default=0))]
    who = (*(everybody[slug] for slug in again), *fresh)
    runs = [new_run(signer, checks, aicr_version, skipped) for signer in who]
    after = scene.with_runs(*runs, listing=fresh).verdict()
    found = grid_of(after, aicr_version)
    assert found is not None
    assert [item for item in missing_for(after, found) if item.code != SKIPPED] == []


@settings(deadline=None, max_examples=150)
@given(scenes(), st.sampled_from([None, None, "v1.0.0", "v2.0.0"]))
def test_whoever_is_named_as_the_closest_is_one_more(scene: Scene, aicr_version: str | None) -> None:
    verdict = scene.verdict()
    grid = grid_of(verdict, aicr_version)
    if grid is None:
        return
    everybody = {signer.slug: signer for signer in (*LISTED, *REFS, *STRANGERS)}
    for item in missing_for(verdict, grid):
        if item.code not in {"more-signers", "untested"} or not item.source:
            continue
        closest = everybody[item.source]
        stranger = closest in STRANGERS
        run = new_run(closest, [(item.phase, item.name)], aicr_version)
        after = scene.with_runs(*([] if stranger else [run]), listing=[closest] if stranger else []).verdict()
        found = grid_of(after, aicr_version)
        assert found is not None
        row = next(row for row in found.rows if (row.phase, row.name) == (item.phase, item.name))
        assert (row.passes, row.fails) == (item.have + 1, 0)
