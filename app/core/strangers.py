"""How much of what strangers report is looked at: anybody can sign, so anybody could fill a page or slow a verdict.

Sources that are on the list, or were once, are never left out; nothing of a stranger's weighs anything. What is left
out stays stored and listed as evidence, and a remark says that it is there.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Final, TypeVar

from app.core.bundle import Run
from app.core.latest import precedence
from app.core.latest import reduced as without_superseded
from app.core.verdict import RecipeInputs, Remark

MAX_STRANGERS: Final = 25
"""Unlisted sources of one recipe that its verdict shows, those with the newest runs."""
MAX_REPORTED_ROWS: Final = 200
"""Checks of one grid that only unlisted sources report and that are shown, first in row order."""
LEFT_OUT: Final = "strangers-left-out"

Key = TypeVar("Key")


def without_crowd(runs: Iterable[Run], known: Callable[[Run], bool]) -> tuple[tuple[Run, ...], int]:
    """(`runs` without those of all but the newest strangers, how many sources were left out).

    `known` says whether a run's signer is on the list or was once.
    """
    every = tuple(runs)
    newest: dict[str, Run] = {}
    for run in every:
        if not known(run):
            held = newest.get(run.source_id)
            if held is None or precedence(run) > precedence(held):
                newest[run.source_id] = run
    crowd = sorted(newest.values(), key=lambda run: (*precedence(run), run.source_id), reverse=True)
    left_out = {run.source_id for run in crowd[MAX_STRANGERS:]}
    return tuple(run for run in every if run.source_id not in left_out), len(left_out)


def reduced(inputs: RecipeInputs, known: Callable[[str, str], bool]) -> RecipeInputs:
    """`core.latest.reduced` without the crowd: what a store hands over that keeps it apart.

    `known` says of (issuer, identity) whether any list ever had it. `corroborate` gives the same verdict for both under
    every list that was in force: what a stranger claims or shows first counts for nothing.
    """
    thin = without_superseded(inputs)
    runs, left_out = without_crowd(thin.runs, lambda run: known(run.signer.issuer, run.signer.identity))
    prints = {one for run in runs for one in run.prints}
    there = {run.source_id for run in runs}
    return replace(
        thin,
        runs=runs,
        strangers_left_out=thin.strangers_left_out + left_out,
        sightings=tuple(
            seen for seen in thin.sightings if known(seen.issuer, seen.identity) and (seen.kind, seen.value) in prints
        ),
        claims=tuple(claim for claim in thin.claims if known(claim.issuer, claim.identity)),
        run_counts={source: runs for source, runs in thin.run_counts.items() if source in there},
    )


def shown_rows(keys: Sequence[Key], listed: Mapping[Key, bool]) -> tuple[Key, ...]:
    """`keys` in their order without what strangers alone report beyond the limit; `listed` says what is not of them."""
    found: list[Key] = []
    reported = 0
    for key in keys:
        if not listed[key]:
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
            f"not shown: {sources} more sources that are on no list, {rows} more checks that only such sources report",
            {"sources": str(sources), "checks": str(rows)},
        ),
    )
