"""One grid: who takes part, the rows with their consensus, and the roll-ups (corroboration 2.7, trust 6).

Which runs may take part is decided by the caller, which makes the combined, the strict and the current grid from
one function.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from app.core.bundle import Run, TestOutcome
from app.core.consensus import bucket, rollup, row_order, state_of
from app.core.copies import Original
from app.core.latest import precedence
from app.core.strangers import Lane, lane_of, shown_rows
from app.core.verdict import GRID_PHASES, Bucket, ConfirmBy, ConfirmRule, Grid, Row, SignerResult

UNRECORDED_SKIP = "reason not recorded"
"""What a row says about a skipped check whose report gives no reason."""

RowKey = tuple[str, str]
"""(phase, name)."""


@dataclass(frozen=True, slots=True)
class Member:
    """A run with all that decides its weight.

    `listed` is False for strangers and for weightless records. `beside_main`: the run is a branch's, and its workflow
    has a record of main, master, a release branch or a tag on this recipe. `original` is the run that this one copies,
    the first of its chain.
    """

    run: Run
    listed: bool
    signer_key: str
    party: str
    beside_main: bool
    retracted: bool
    original: Original | None


@dataclass(frozen=True, slots=True)
class Participant:
    """A member whose run is its lane's latest; `speaks` is False when another ref of its signer is taken."""

    member: Member
    speaks: bool


@dataclass(frozen=True, slots=True)
class Scope:
    """What a grid is made for. With `only_declared`, rows that the catalogue does not declare are left out."""

    rule: ConfirmRule
    declared: frozenset[RowKey] = frozenset()
    only_declared: bool = False
    aicr_version: str = ""
    aicr_commit: str = ""


def participants(members: Iterable[Member]) -> tuple[Participant, ...]:
    """The latest run of each lane, and for each listed signer the one of its refs that speaks.

    A branch beside main never speaks, whatever its time and whatever this grid is made for: an edited workflow on a
    branch replaces no result of main, also where main has none of this version or digest (trust 6).
    """
    latest: dict[Lane, Member] = {}
    for member in members:
        lane = lane_of(member.run)
        held = latest.get(lane)
        if held is None or precedence(member.run) > precedence(held.run):
            latest[lane] = member
    speakers: dict[str, Member] = {}
    for member in latest.values():
        if member.listed and not member.beside_main:
            held = speakers.get(member.signer_key)
            if held is None or precedence(member.run) > precedence(held.run):
                speakers[member.signer_key] = member
    return tuple(
        Participant(member, speaks=not member.listed or speakers.get(member.signer_key) is member)
        for _, member in sorted(latest.items())
    )


def build_grid(taking_part: Sequence[Participant], scope: Scope) -> Grid:
    """Rows in order, each with its consensus, and the states of phases and grid over the counted rows."""
    said = [(participant, outcomes(participant.member.run)) for participant in taking_part]
    of_listed = {key for participant, found in said if participant.member.listed for key in found}
    every = {*scope.declared, *(() if scope.only_declared else (key for _, found in said for key in found))}
    keys = shown_rows(sorted(every, key=row_order), of_listed | scope.declared)
    rows = tuple(
        _row(key, [_cell(participant, found[key]) for participant, found in said if key in found], scope)
        for key in keys
    )
    phases = [*GRID_PHASES, *sorted({row.phase for row in rows} - set(GRID_PHASES))]
    return Grid(
        aicr_version=scope.aicr_version,
        state=rollup(row.consensus for row in rows if row.counted),
        phase_states={
            phase: rollup(row.consensus for row in rows if row.counted and row.phase == phase) for phase in phases
        },
        rows=rows,
        aicr_commit=scope.aicr_commit,
        left_out=len(every) - len(keys),
    )


def outcomes(run: Run) -> Mapping[RowKey, TestOutcome]:
    """A run's results by row; of a repeated name the worst one holds, so that a pass hides no failure (E4)."""
    found: dict[RowKey, TestOutcome] = {}
    for outcome in run.results:
        key = (outcome.phase, outcome.name)
        held = found.get(key)
        if held is None or _badness(outcome) > _badness(held):
            found[key] = outcome
    return found


def _badness(outcome: TestOutcome) -> tuple[int, str]:
    order = (Bucket.PASS, Bucket.NOT_RUN, Bucket.FAIL)
    return (order.index(bucket(outcome.status)), outcome.status)


@dataclass(frozen=True, slots=True)
class _Cell:
    """One participant's result in one row, with its weight so far."""

    member: Member
    speaks: bool
    outcome: TestOutcome
    result: Bucket
    weight: str


def _cell(participant: Participant, outcome: TestOutcome) -> _Cell:
    result = bucket(outcome.status)
    return _Cell(participant.member, participant.speaks, outcome, result, _first_weight(participant, result))


def _row(key: RowKey, cells: Sequence[_Cell], scope: Scope) -> Row:
    weighed = _weigh(cells, scope.rule)
    passes = sum(cell.weight == "counted" and cell.result is Bucket.PASS for cell in weighed)
    fails = sum(cell.weight == "counted" and cell.result is Bucket.FAIL for cell in weighed)
    counted = [cell for cell in weighed if _puts_row_in_roll_up(cell)]
    skips = [cell for cell in counted if cell.result is Bucket.NOT_RUN]  # a stranger's reason speaks for nobody
    return Row(
        phase=key[0],
        name=key[1],
        consensus=state_of(passes, fails, scope.rule.threshold),
        passes=passes,
        fails=fails,
        reported=len({cell.member.run.source_id for cell in weighed if cell.weight == "reported"}),
        signers=tuple(_signer_result(cell) for cell in weighed),
        counted=bool(counted) or key in scope.declared,
        declared=key in scope.declared,
        skip_reasons=tuple(sorted({cell.outcome.skip_reason or UNRECORDED_SKIP for cell in skips})),
    )


def _puts_row_in_roll_up(cell: _Cell) -> bool:
    """Whether an allowlisted source that speaks for itself reported the row (service 5).

    A branch beside main and a copy add no row of their own, unless a failure in it counts.
    """
    speaks = cell.member.listed and cell.speaks and cell.member.original is None
    return speaks or cell.weight == "counted"


def _weigh(cells: Sequence[_Cell], rule: ConfirmRule) -> list[_Cell]:
    """Give each result its weight (see `SignerResult.weight`), in source order."""
    weighed = list(cells)
    if any(cell.weight == "copy-of" for cell in cells):
        weighed = _count_copied_failures(weighed)
    return _count_parties_once(weighed) if rule.by is ConfirmBy.PARTY else weighed


def _first_weight(participant: Participant, result: Bucket) -> str:
    """What a result weighs before copies and parties are looked at across the row."""
    member = participant.member
    if result is Bucket.NOT_RUN:
        return "not-run"
    if not member.listed:
        return "reported"
    if not participant.speaks:
        return "same-signer"
    if member.retracted and result is Bucket.PASS:
        return "retracted"  # a retraction takes passes away; only the signer's newer run ends a failure
    return "copy-of" if member.original else "counted"


def _count_copied_failures(cells: Sequence[_Cell]) -> list[_Cell]:
    """A copy's failure counts when nobody of its chain fails the row already.

    Two runs can share a snapshot and differ in a result; not counting the later one must not hide that it failed.
    """
    failing = {cell.member.signer_key for cell in cells if cell.weight == "counted" and cell.result is Bucket.FAIL}
    found = list(cells)
    for index in _as_logged(found):
        cell = found[index]
        original = cell.member.original
        if cell.weight == "copy-of" and cell.result is Bucket.FAIL and original and original.signer_key not in failing:
            failing.add(original.signer_key)
            found[index] = replace(cell, weight="counted")
    return found


def _count_parties_once(cells: Sequence[_Cell]) -> list[_Cell]:
    """Of one party's counted passes, and of its counted failures, only the one that was logged first counts."""
    found = list(cells)
    seen: set[tuple[str, Bucket]] = set()
    for index in _as_logged(found):
        cell = found[index]
        if cell.weight != "counted":
            continue
        side = (cell.member.party, cell.result)
        if side in seen:
            found[index] = replace(cell, weight="same-party")
        seen.add(side)
    return found


def _as_logged(cells: Sequence[_Cell]) -> list[int]:
    """Positions of the cells in the order in which the log saw their runs."""
    return sorted(range(len(cells)), key=lambda i: (cells[i].member.run.place, lane_of(cells[i].member.run)))


def _signer_result(cell: _Cell) -> SignerResult:
    run = cell.member.run
    return SignerResult(
        source=run.source,
        source_id=run.source_id,
        result=cell.result,
        status=cell.outcome.status,
        counts=cell.weight == "counted",
        weight=cell.weight,
        digest=run.digest,
        aicr_version=run.aicr_version,
        aicr_commit=run.aicr_commit,
        k8s_version=run.k8s_version,
        attested_at=run.attested_at,
        skip_reason=cell.outcome.skip_reason,
        run_url=run.signer.claims.run_url,
    )


def counted_by(grid: Grid, result: Bucket, who: Callable[[SignerResult], str]) -> frozenset[str]:
    """Whoever has a counted `result` in a grid, by the name that `who` gives them."""
    return frozenset(
        who(signer) for row in grid.rows for signer in row.signers if signer.counts and signer.result is result
    )
