"""What would make a recipe CONFIRMED, in sentences and as data (`missing`).

Asks only for what could help: a row that every source skipped says why instead. The grid in question is the current
one where the catalogue says what is current, else the combined one.
"""

from collections.abc import Iterable, Mapping, Sequence

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
UNTESTED = "untested"
MORE_SIGNERS = "more-signers"
FAILING = "failing"
CONTESTED = "contested"
SKIPPED = "skipped"

_SHORT = 8
_NUMBERS = {1: "one", 2: "two", 3: "three", 4: "four", 5: "five"}
_NAMED = 3  # sources that one sentence names


def missing_for(verdict: RecipeVerdict) -> tuple[Missing, ...]:
    """One entry a row that keeps the recipe from CONFIRMED, in row order; empty when nothing does."""
    grid = verdict.current or verdict.combined
    rows = [row for row in grid.rows if row.counted and row.consensus is not State.CONFIRMED]
    if not any(row.counted for row in grid.rows):
        return (_no_evidence(verdict),)
    sources = {source.source_id: source for source in verdict.sources if not source.weightless}
    elsewhere = {(row.phase, row.name): row for row in verdict.combined.rows} if verdict.current else {}
    return tuple(_of_row(row, verdict.rule, sources, elsewhere.get((row.phase, row.name))) for row in rows)


def headline(verdict: RecipeVerdict) -> str:
    """The verdict in one sentence: state, how many rows are confirmed, and how the state for today's recipe differs."""
    grid = verdict.combined
    counted = [row for row in grid.rows if row.counted]
    if not counted:
        return f"{verdict.state.value}: no listed signer has run this recipe"
    confirmed = sum(row.consensus is State.CONFIRMED for row in counted)
    sentence = f"{verdict.state.value}: {confirmed} of {len(counted)} checks are confirmed"
    if verdict.current_state is not None and verdict.current_state is not verdict.state:
        sentence += f"; for today's recipe it is {verdict.current_state.value}"
    return sentence


def k_of_n(row: Row, rule: ConfirmRule) -> str:
    """How far a row is: `1 of 2`; passes beyond what is asked are shown too, as `3 of 2`."""
    return f"{row.passes} of {rule.threshold}"


def fewest_passes(grid: Grid) -> int:
    """The fewest counted passes that any row of the roll-ups has: the k of a recipe's `k of n`."""
    return min((row.passes for row in grid.rows if row.counted), default=0)


def _no_evidence(verdict: RecipeVerdict) -> Missing:
    due = verdict.rule.threshold
    subject = "today's recipe" if verdict.current else "this recipe"
    message = f"no listed {_noun(verdict.rule, 1)} has run {subject}: {_word(due)} {_needed(due)}"
    old = [source for source in verdict.sources if source.allowlisted]
    if verdict.current and old:
        message += f"; {_describe(old[0])}"
    return Missing(NO_EVIDENCE, message, needed=due, have=0, source=old[0].source if verdict.current and old else "")


def _of_row(row: Row, rule: ConfirmRule, sources: Mapping[str, SourceStanding], elsewhere: Row | None) -> Missing:
    match row.consensus:
        case State.SINGLE:
            return _more_signers(row, rule, sources, elsewhere)
        case State.FAILING:
            return _failing(row, rule, sources)
        case State.CONTESTED:
            return _contested(row, rule, sources)
        case _:
            return _untested(row, rule, sources, elsewhere)


def _more_signers(row: Row, rule: ConfirmRule, sources: Mapping[str, SourceStanding], elsewhere: Row | None) -> Missing:
    due = rule.threshold - row.passes
    hint, candidate = _candidate(row, sources, elsewhere)
    more = "one more" if due == 1 else f"{_word(due)} more"
    message = f"{more} {_noun(rule, due)} for `{row.phase}/{row.name}` ({k_of_n(row, rule)}){hint}"
    return _missing(MORE_SIGNERS, message, row, needed=due, have=row.passes, at=candidate)


def _untested(row: Row, rule: ConfirmRule, sources: Mapping[str, SourceStanding], elsewhere: Row | None) -> Missing:
    hint, candidate = _candidate(row, sources, elsewhere)
    if row.skip_reasons and not candidate:
        why = ", ".join(row.skip_reasons)
        message = f"every source skipped `{row.phase}/{row.name}`: {why}; nobody is asked for it"
        return _missing(SKIPPED, message, row, needed=0, have=0)
    due = rule.threshold
    message = f"no listed {_noun(rule, 1)} has a result for `{row.phase}/{row.name}`: {_word(due)} {_needed(due)}{hint}"
    return _missing(UNTESTED, message, row, needed=due, have=0, at=candidate)


def _failing(row: Row, rule: ConfirmRule, sources: Mapping[str, SourceStanding]) -> Missing:
    failing = [result for result in row.signers if result.counts and result.result is Bucket.FAIL]
    who = _sources(failing, sources)
    message = f"`{row.phase}/{row.name}` fails for everyone who ran it: a newer passing run by {who}"
    if row.fails < rule.threshold:
        message += f", and {_word(rule.threshold - row.fails)} more {_noun(rule, rule.threshold - row.fails)}"
    return _missing(FAILING, message, row, needed=max(row.fails, rule.threshold), have=0, at=_first(failing))


def _contested(row: Row, rule: ConfirmRule, sources: Mapping[str, SourceStanding]) -> Missing:
    failing = [result for result in row.signers if result.counts and result.result is Bucket.FAIL]
    message = (
        f"`{row.phase}/{row.name}` is contested, {row.passes} passed and {row.fails} failed: a newer passing run by"
        f" {_sources(failing, sources)}"
    )
    due = max(row.fails, rule.threshold - row.passes)
    return _missing(CONTESTED, message, row, needed=due, have=row.passes, at=_first(failing))


def _candidate(
    row: Row, sources: Mapping[str, SourceStanding], elsewhere: Row | None
) -> tuple[str, SignerResult | None]:
    """Who is closest to helping, as the end of a sentence: a listed source whose pass does not count yet.

    First those whose pass is not about today's recipe, then those whose pass has no weight of its own; a stranger
    comes last, since only the allowlist can help him.
    """
    here = {result.source_id for result in row.signers if result.counts}
    for result in _passes(elsewhere.signers if elsewhere else ()):
        source = sources.get(result.source_id)
        if source and source.allowlisted and result.counts and result.source_id not in here:
            return f"; {_describe(source)}", result
    for result in _passes(row.signers):
        source = sources.get(result.source_id)
        if source and source.allowlisted and not result.counts:
            return f"; {_called(source)} passed, not counted: {_WEIGHTS.get(result.weight, result.weight)}", result
    for result in _passes(row.signers):
        source = sources.get(result.source_id)
        if source and not source.allowlisted:
            return f"; source {source.source[:_SHORT]}… passed and is not on the allowlist", result
    return "", None


_WEIGHTS: Mapping[str, str] = {
    "copy-of": "its run shares its data with another source's",
    "same-signer": "another ref of the same workflow speaks",
    "same-party": "its party is counted already",
    "retracted": "the record is retracted",
}


def _passes(results: Iterable[SignerResult]) -> list[SignerResult]:
    return [result for result in results if result.result is Bucket.PASS]


def _describe(source: SourceStanding) -> str:
    """`community source b0e0b01e… is 41 days old and attests an older digest`."""
    parts = [f"is {source.age_days} days old" if source.age_days != 1 else "is 1 day old"]
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


def _sources(results: Sequence[SignerResult], sources: Mapping[str, SourceStanding]) -> str:
    named = [
        _called(sources[result.source_id]) if result.source_id in sources else f"source {result.source[:_SHORT]}…"
        for result in results[:_NAMED]
    ]
    if len(results) > _NAMED:
        named.append(f"{len(results) - _NAMED} more")
    return _and(named)


def _first(results: Sequence[SignerResult]) -> SignerResult | None:
    return results[0] if results else None


def _missing(code: str, message: str, row: Row, *, needed: int, have: int, at: SignerResult | None = None) -> Missing:
    return Missing(
        code=code,
        message=message,
        phase=row.phase,
        name=row.name,
        needed=needed,
        have=have,
        source=at.source if at else "",
        digest=str(at.digest) if at else "",
    )


def _and(parts: Sequence[str]) -> str:
    return " and ".join([", ".join(parts[:-1]), parts[-1]]) if len(parts) > 1 else "".join(parts)


def _noun(rule: ConfirmRule, count: int) -> str:
    one, many = ("party", "parties") if rule.by is ConfirmBy.PARTY else ("signer", "signers")
    return one if count == 1 else many


def _needed(count: int) -> str:
    return "is needed" if count == 1 else "are needed"


def _word(count: int) -> str:
    return _NUMBERS.get(count, str(count))
