"""How much of what strangers report is looked at: anybody can sign, so anybody could fill a page or slow a verdict.

Runs of listed sources are all looked at. Of what has no weight (strangers' runs, and those of a listed workflow that
anybody may call) the newest run of a source is; a source that was on the list once is never left out. What is left out
stays stored and listed as evidence, and a remark says that it is there.
"""

from collections.abc import Callable, Iterable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from typing import Final, TypeVar

from app.core.bundle import Run
from app.core.latest import precedence
from app.core.latest import reduced as without_superseded
from app.core.verdict import NameClaim, PrintSighting, RecipeInputs, Remark

MAX_STRANGERS: Final = 25
"""Sources of one recipe without weight that its verdict shows, those with the newest runs."""
MAX_REPORTED_ROWS: Final = 200
"""Checks of one grid that only unlisted sources report and that are shown, first in row order."""
LEFT_OUT: Final = "strangers-left-out"

Lane = tuple[str, bool]
"""(source id, weightless)."""

Key = TypeVar("Key")


def without_crowd(
    runs: Iterable[Run], *, listed: Callable[[Run], bool], known: Callable[[Run], bool]
) -> tuple[tuple[Run, ...], int]:
    """(`runs` without what has no weight and is not shown, how many strangers are left out whole).

    `listed` says whether today's list has the signer, `known` whether any list ever had him. All runs of listed signers
    stay; of the others the newest, and of those that nobody ever knew only the newest few. The runs that somebody else
    may have made in a signer's name (weightless ones) are a stranger of their own.
    """
    every = tuple(runs)
    newest: dict[Lane, Run] = {}
    for run in every:
        if run.weightless or not listed(run):
            held = newest.get(lane_of(run))
            if held is None or precedence(run) > precedence(held):
                newest[lane_of(run)] = run
    nobodies = [(*precedence(run), *lane, lane) for lane, run in newest.items() if run.weightless or not known(run)]
    left_out = {lane for *_, lane in sorted(nobodies, reverse=True)[MAX_STRANGERS:]}
    kept = tuple(run for run in every if lane_of(run) not in left_out and newest.get(lane_of(run), run) == run)
    return kept, len(left_out)


def lane_of(run: Run) -> Lane:
    """A source's runs of full weight and its weightless ones are two columns."""
    return (run.source_id, bool(run.weightless))


def reduced(inputs: RecipeInputs, known: Callable[[str, str], bool]) -> RecipeInputs:
    """`core.latest.reduced` without the crowd: what a store hands over that keeps it apart.

    `known` says of (issuer, identity) whether any list ever had it. `corroborate` gives the same verdict for both under
    every list that was in force: what a stranger claims or shows first counts for nothing.
    """
    thin = without_superseded(inputs)

    def knows(run: Run) -> bool:
        return known(run.signer.issuer, run.signer.identity)

    runs, left_out = without_crowd(thin.runs, listed=knows, known=knows)
    prints = {one for run in runs for one in run.prints}
    there = {run.source_id for run in runs}
    return replace(
        thin,
        runs=runs,
        strangers_left_out=thin.strangers_left_out + left_out,
        sightings=tuple(seen for seen in thin.sightings if _weighs(seen, known) and (seen.kind, seen.value) in prints),
        claims=tuple(claim for claim in thin.claims if _weighs(claim, known)),
        run_counts={source: runs for source, runs in thin.run_counts.items() if source in there},
    )


def _weighs(said: PrintSighting | NameClaim, known: Callable[[str, str], bool]) -> bool:
    return not said.weightless and known(said.issuer, said.identity)


def shown_rows(keys: Sequence[Key], listed: AbstractSet[Key]) -> tuple[Key, ...]:
    """`keys` in their order without what strangers alone report beyond the limit; `listed` are not theirs alone."""
    found: list[Key] = []
    reported = 0
    for key in keys:
        if key not in listed:
            reported += 1
            if reported > MAX_REPORTED_ROWS:
                continue
        found.append(key)
    return tuple(found)


def left_out_remark(sources: int, rows: int) -> tuple[Remark, ...]:
    """What a reader should know who counts strangers; empty when everything is shown."""
    if not sources and not rows:
        return ()
    return (
        Remark(
            LEFT_OUT,
            f"not shown: {sources} more sources without weight, {rows} more checks that only such sources report",
            {"sources": str(sources), "checks": str(rows)},
        ),
    )
