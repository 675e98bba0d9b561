"""Consensus of one row and roll-ups: the arithmetic of corroboration 2.3, 2.8 and 2.9, and nothing else.

Who is a distinct signer, who is listed and which run speaks is decided before, in `core.corroborate`.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from app.core.verdict import GRID_PHASES, Bucket, State

CONFIRM_THRESHOLD = 2
"""The field's rule: two distinct listed signers."""

_BUCKETS = {
    "passed": Bucket.PASS,
    "failed": Bucket.FAIL,
    "other": Bucket.FAIL,
    "skipped": Bucket.NOT_RUN,
    "pending": Bucket.NOT_RUN,
}
_WORST_FIRST = (State.CONTESTED, State.FAILING, State.UNTESTED, State.SINGLE, State.CONFIRMED)


@dataclass(frozen=True, slots=True)
class Vote:
    """What one signer says in one row."""

    signer: str
    listed: bool
    result: Bucket


@dataclass(frozen=True, slots=True)
class Tally:
    """A row's state with the counts that made it; `reported` counts unlisted signers with a result."""

    state: State
    passes: int
    fails: int
    reported: int


def bucket(status: str) -> Bucket:
    """A CTRF status as consensus reads it; anything unknown is a failure (fail closed)."""
    return _BUCKETS.get(status, Bucket.FAIL)


def state_of(passes: int, fails: int, threshold: int = CONFIRM_THRESHOLD) -> State:
    """The state of a row by its counted passes and failures."""
    if not passes and not fails:
        return State.UNTESTED
    if passes and fails:
        return State.CONTESTED
    if fails:
        return State.FAILING
    return State.CONFIRMED if passes >= max(threshold, CONFIRM_THRESHOLD) else State.SINGLE


def consensus(votes: Iterable[Vote], threshold: int = CONFIRM_THRESHOLD) -> Tally:
    """Count each signer once, by its first vote (corroboration 2.8)."""
    first: dict[str, Vote] = {}
    for vote in votes:
        first.setdefault(vote.signer, vote)
    passes = fails = reported = 0
    for vote in first.values():
        if vote.result is Bucket.NOT_RUN:
            continue
        if not vote.listed:
            reported += 1
        elif vote.result is Bucket.PASS:
            passes += 1
        else:
            fails += 1
    return Tally(state_of(passes, fails, threshold), passes, fails, reported)


def rollup(states: Iterable[State | str]) -> State:
    """The worst state; UNTESTED beside a pass is PARTIAL; texts that are no state win against nothing."""
    found = set(states)
    for state in _WORST_FIRST:
        if state in found:
            partial = state is State.UNTESTED and found & {State.CONFIRMED, State.SINGLE}
            return State.PARTIAL if partial else state
    return State.UNTESTED


def phase_rank(phase: str) -> tuple[int, str]:
    """Sort key of a phase: deployment, conformance, performance, then any other by name."""
    return (GRID_PHASES.index(phase) if phase in GRID_PHASES else len(GRID_PHASES), phase)


def row_order(row: tuple[str, str]) -> tuple[tuple[int, str], str]:
    """Sort key of a (phase, name): by phase, then by name in byte order."""
    phase, name = row
    return (phase_rank(phase), name)
