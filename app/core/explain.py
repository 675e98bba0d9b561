"""What would make a recipe CONFIRMED, in sentences and as data (`missing`).

Whoever follows an entry to the letter gets there: newer passing runs, of data of their own, by the sources that it
names, and beside them as many further signers (or parties) as it says. It asks only for what helps: a row that every
source skipped says why instead.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from app.core.verdict import (
    Bucket,
    ConfirmBy,
    ConfirmRule,
    Grid,
    Missing,
    RecipeVerdict,
    Row,
    SignerResult,
    SourceStanding,
    Staleness,
    State,
)

NO_EVIDENCE = "no-evidence"
NOTHING_DECLARED = "nothing-declared"
UNTESTED = "untested"
MORE_SIGNERS = "more-signers"
FAILING = "failing"
CONTESTED = "contested"
SKIPPED = "skipped"

_SHORT = 8
_NUMBERS = {1: "one", 2: "two", 3: "three", 4: "four", 5: "five"}
_NAMED = 3  # sources that one sentence names

_HOLD_BACK = frozenset({"counted", "same-party", "copy-of"})
"""Weights of a failure that counts, or will once the one counts no more that stands for it."""
_HELPED_BY_A_RUN: Mapping[str, str] = {
    "copy-of": "its run shares its data with another source's",
    "retracted": "the record is retracted",
}
"""Weights of a pass whose source would count with a new run of its own, and why it does not now."""
_WHY_NOT: Mapping[str, str] = {**_HELPED_BY_A_RUN, "same-signer": "another ref speaks for its workflow"}


def missing_for(verdict: RecipeVerdict, grid: Grid | None = None) -> tuple[Missing, ...]:
    """One entry a row that keeps `grid` from CONFIRMED, in row order; empty when nothing does.

    `grid` is one of the verdict's: by default the current one where the catalogue says what is current, else the
    combined one.
    """
    about = _about(verdict, grid or verdict.current or verdict.combined)
    rows = [row for row in about.grid.rows if row.counted]
    if not rows:
        return (_nothing_counts(about),)
    return tuple(_of_row(row, about) for row in rows if row.consensus is not State.CONFIRMED)


def k_of_n(row: Row, rule: ConfirmRule) -> str:
    """How far a row is: `1 of 2`; passes beyond what is asked are shown too, as `3 of 2`."""
    return f"{row.passes} of {rule.threshold}"


def fewest_passes(grid: Grid) -> int:
    """The fewest counted passes that any row of the roll-ups has: the k of a recipe's `k of n`."""
    return min((row.passes for row in grid.rows if row.counted), default=0)


@dataclass(frozen=True, slots=True)
class _About:
    """The grid in question, and who its sources are; `combined` are the rows of the combined grid where it is not."""

    verdict: RecipeVerdict
    grid: Grid
    sources: Mapping[str, SourceStanding]
    combined: Mapping[tuple[str, str], Row]

    @property
    def rule(self) -> ConfirmRule:
        """What the grid is weighed by."""
        return self.verdict.rule

    @property
    def is_combined(self) -> bool:
        """Whether the grid has every signer's newest run."""
        return self.grid is self.verdict.combined

    @property
    def is_current(self) -> bool:
        """Whether the grid is about today's recipe."""
        return self.grid is self.verdict.current

    @property
    def subject(self) -> str:
        """What nobody may have run."""
        if self.is_current:
            return "today's recipe"
        if self.is_combined:
            return "this recipe"
        commit = f" ({self.grid.aicr_commit[:_SHORT]})" if self.grid.aicr_commit else ""
        return f"this recipe with AICR {self.grid.aicr_version}{commit}"

    @property
    def listed(self) -> list[SourceStanding]:
        """Every listed source of the recipe."""
        return [source for source in self.sources.values() if source.allowlisted]

    def listed_source(self, result: SignerResult) -> SourceStanding | None:
        """Who gave a result, if a list has him."""
        source = self.sources.get(result.source_id)
        return source if source and source.allowlisted else None

    def could_be_listed(self, result: SignerResult) -> bool:
        """Whether nothing but the allowlist keeps a result from counting."""
        source = self.sources.get(result.source_id)
        if source is None or source.allowlisted:
            return False
        return all(reason.reason is not Staleness.RETRACTED for reason in source.staleness)

    def voice(self, result: SignerResult) -> str:
        """As whom a result is counted."""
        source = self.sources.get(result.source_id)
        return source.voice if source else result.source_id

    def in_combined(self, row: Row) -> Sequence[SignerResult]:
        """What the combined grid has of a row, when that is not the grid in question."""
        found = self.combined.get((row.phase, row.name))
        return found.signers if found else ()


def _about(verdict: RecipeVerdict, grid: Grid) -> _About:
    combined = {} if grid is verdict.combined else {(row.phase, row.name): row for row in verdict.combined.rows}
    return _About(verdict, grid, {one.source_id: one for one in verdict.sources if not one.weightless}, combined)


@dataclass(frozen=True, slots=True)
class _Due:
    """What makes a row CONFIRMED: passes by the sources of `failing`, then `more` voices beside `taken`."""

    failing: tuple[SignerResult, ...]
    taken: frozenset[str]
    more: int

    @property
    def runs(self) -> int:
        """All the passing runs that are asked for."""
        return len(self.failing) + self.more


def _due(row: Row, about: _About) -> _Due:
    failing = tuple(one for one in row.signers if one.result is Bucket.FAIL and one.weight in _HOLD_BACK)
    passing = (one for one in row.signers if one.result is Bucket.PASS and one.counts)
    taken = frozenset(about.voice(one) for one in (*failing, *passing))
    return _Due(failing, taken, max(0, about.rule.threshold - len(taken)))


def _of_row(row: Row, about: _About) -> Missing:
    due = _due(row, about)
    hint, candidate = _candidate(row, about, due.taken) if due.more else ("", None)
    at = due.failing[0] if due.failing else candidate
    code, message = _said(row, due, hint, about)
    if code == SKIPPED:
        return Missing(code, message, phase=row.phase, name=row.name)
    return Missing(
        code=code,
        message=message,
        phase=row.phase,
        name=row.name,
        needed=due.runs,
        have=row.passes,
        source=at.source if at else "",
        digest=str(at.digest) if at else "",
    )


def _said(row: Row, due: _Due, hint: str, about: _About) -> tuple[str, str]:
    """(code, sentence) of one row."""
    where = f"`{row.phase}/{row.name}`"
    more = f"{_word(due.more)} more {_noun(about.rule, due.more)}"
    newer = f"a newer passing run by {_sources(due.failing, about)}" + (f", and {more}{hint}" if due.more else "")
    match row.consensus:
        case State.SINGLE:
            return MORE_SIGNERS, f"{more} for {where} ({k_of_n(row, about.rule)}){hint}"
        case State.FAILING:
            return FAILING, f"{where} fails for everyone who counts: {newer}"
        case State.CONTESTED:
            return CONTESTED, f"{where} is contested, {row.passes} passed and {row.fails} failed: {newer}"
        case _ if row.skip_reasons and _nobody_ran(row, about):
            return SKIPPED, f"every source skipped {where}: {', '.join(row.skip_reasons)}; nobody is asked for it"
        case _:
            return UNTESTED, f"{_no_result(row, where, about)}: {_are_needed(about.rule)}{hint}"


def _nobody_ran(row: Row, about: _About) -> bool:
    """Whether no newest run has a result; one of another version or digest shows that the check can be run."""
    return all(one.result is Bucket.NOT_RUN for one in (*row.signers, *about.in_combined(row)))


def _no_result(row: Row, where: str, about: _About) -> str:
    if any(about.listed_source(one) and one.weight in _WHY_NOT for one in row.signers):
        return f"no result of a listed {_noun(about.rule, 1)} counts for {where}"
    return f"no listed {_noun(about.rule, 1)} has a result for {where}"


def _nothing_counts(about: _About) -> Missing:
    """Of a grid in which no row counts: who is closest to changing that, and what is needed."""
    catalogue = about.verdict.catalogue
    if about.is_current and catalogue is not None and catalogue.declared == ():
        return Missing(NOTHING_DECLARED, "the catalogue declares no check of today's recipe, so none can be confirmed")
    here = [one for row in about.grid.rows for one in row.signers if about.listed_source(one)]
    if here or (about.is_combined and about.listed):
        message = f"no run of a listed {_noun(about.rule, 1)} counts for {about.subject}: {_are_needed(about.rule)}"
        at = _newest(one for one in here if one.weight in _WHY_NOT)
        if at is None:
            return Missing(NO_EVIDENCE, message, needed=about.rule.threshold)
        message += f"; the run of {_name(at, about)} is not counted: {_WHY_NOT[at.weight]}"
        return Missing(NO_EVIDENCE, message, needed=about.rule.threshold, source=at.source, digest=str(at.digest))
    message = f"no listed {_noun(about.rule, 1)} has run {about.subject}: {_are_needed(about.rule)}"
    speaking = [source for source in about.listed if source.speaks]
    closest = max(speaking, key=lambda source: (source.attested_at, source.source_id), default=None)
    if closest is None:
        return Missing(NO_EVIDENCE, message, needed=about.rule.threshold)
    message += f"; {_describe(closest, about.grid)}"
    return Missing(NO_EVIDENCE, message, needed=about.rule.threshold, source=closest.source)


def _candidate(row: Row, about: _About, taken: frozenset[str]) -> tuple[str, SignerResult | None]:
    """Who is closest to being one more, as the end of a sentence; nobody whose signer or party is `taken` already.

    First listed sources whose pass is not about what this grid is about, then those whose pass has no weight of its
    own; a stranger comes last, since only the allowlist can help him. The newest of a kind is the closest.
    """
    free = [one for one in row.signers if one.result is Bucket.PASS and about.voice(one) not in taken]
    elsewhere = _newest(
        one
        for one in about.in_combined(row)
        if one.result is Bucket.PASS and one.counts and about.listed_source(one) and about.voice(one) not in taken
    )
    if elsewhere and (source := about.listed_source(elsewhere)):
        return f"; {_describe(source, about.grid)}", elsewhere
    if uncounted := _newest(one for one in free if one.weight in _HELPED_BY_A_RUN):
        why = _HELPED_BY_A_RUN[uncounted.weight]
        return f"; {_name(uncounted, about)} passed, not counted: {why}", uncounted
    if stranger := _newest(one for one in free if about.could_be_listed(one)):
        return f"; {_name(stranger, about)} passed and is not on the allowlist", stranger
    return "", None


def _newest(results: Iterable[SignerResult]) -> SignerResult | None:
    return max(results, key=lambda one: (one.attested_at, one.source_id), default=None)


def _describe(source: SourceStanding, grid: Grid) -> str:
    """`community source b0e0b01e… is 41 days old and attests an older digest`."""
    parts = [f"is {source.age_days} days old" if source.age_days != 1 else "is 1 day old"]
    if grid.aicr_version and grid.aicr_version != source.aicr_version:
        parts.append(f"ran AICR {source.aicr_version}")
    reasons = {reason.reason for reason in source.staleness}
    if Staleness.DRIFTED in reasons:
        never = Staleness.NEVER_PUBLISHED in reasons
        parts.append("attests a digest that was never published" if never else "attests an older digest")
    if any(remark.code == "mismatched-hardware" for remark in source.remarks):
        parts.append("ran on hardware that does not match")
    if Staleness.RETRACTED in reasons:
        parts.append("is retracted")
    return f"{_called(source)} {_and(parts)}"


def _called(source: SourceStanding) -> str:
    return f"{source.source_class} source {source.source[:_SHORT]}…"


def _name(result: SignerResult, about: _About) -> str:
    source = about.listed_source(result)
    return _called(source) if source else f"source {result.source[:_SHORT]}…"


def _sources(results: Sequence[SignerResult], about: _About) -> str:
    named = [_name(result, about) for result in results[:_NAMED]]
    if len(results) > _NAMED:
        named.append(f"{len(results) - _NAMED} more")
    return _and(named)


def _and(parts: Sequence[str]) -> str:
    return " and ".join([", ".join(parts[:-1]), parts[-1]]) if len(parts) > 1 else "".join(parts)


def _noun(rule: ConfirmRule, count: int) -> str:
    one, many = ("party", "parties") if rule.by is ConfirmBy.PARTY else ("signer", "signers")
    return one if count == 1 else many


def _are_needed(rule: ConfirmRule) -> str:
    """A threshold is at least two."""
    return f"{_word(rule.threshold)} are needed"


def _word(count: int) -> str:
    return _NUMBERS.get(count, str(count))
