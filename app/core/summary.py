"""One recipe in one line of the catalogue: what is kept ready so that a list needs no recomputation.

The full verdict is `app.core.verdict.RecipeVerdict`. Keys are those of `GET /recipes` items; values are plain JSON, so
a store can keep the line as it is. One thing in a line changes with time alone: AGED comes among its reasons. `agesAt`
says when, so that `line_at` needs no verdict to tell how a line reads at any moment.
"""

from collections.abc import Mapping
from datetime import UTC, datetime

from app.core.bundle import Run
from app.core.explain import fewest_passes
from app.core.latest import precedence
from app.core.staleness import Standing, aged_from, staleness_of
from app.core.strangers import lane_of
from app.core.verdict import GRID_PHASES, RecipeInputs, RecipeVerdict, Staleness, StaleReason, State

LINE_FORM = 2
"""Grows when lines get another shape; a store whose lines have an older one makes them anew at the next start."""


def instant(at: datetime | None) -> str | None:
    """RFC 3339 in UTC with `Z`, without a fraction when it is zero."""
    return None if at is None else at.astimezone(UTC).isoformat().replace("+00:00", "Z")


def summarize(verdict: RecipeVerdict) -> dict[str, object]:
    """The catalogue line of a verdict; holds no identity, so nothing in it needs masking."""
    criteria = verdict.criteria
    grid = verdict.combined
    catalogue = verdict.catalogue
    return {
        "recipe": verdict.recipe,
        "profile": verdict.profile,
        "profileSelection": verdict.profile_selection,
        "criteria": None
        if criteria is None
        else {
            "service": criteria.service,
            "accelerator": criteria.accelerator,
            "os": criteria.os,
            "intent": criteria.intent,
            "platform": criteria.platform,
        },
        "coordinate": None if verdict.coordinate is None else verdict.coordinate.path,
        "state": verdict.state.value,
        "currentState": None if verdict.current_state is None else verdict.current_state.value,
        "phaseStates": {phase: grid.phase_states.get(phase, State.UNTESTED).value for phase in GRID_PHASES},
        "confirming": verdict.confirming,
        "failing": verdict.failing,
        "reported": verdict.reported,
        "passes": fewest_passes(grid),
        "currentPasses": None if verdict.current is None else fewest_passes(verdict.current),
        "threshold": verdict.rule.threshold,
        "parties": verdict.parties,
        "sources": len(verdict.sources),
        "classes": sorted({source.source_class for source in verdict.sources if source.allowlisted}),
        "digests": verdict.digests,
        "missing": len(verdict.missing),
        "newest": instant(verdict.newest),
        "staleness": [reason.value for reason in verdict.staleness],
        "published": catalogue is not None and not catalogue.retired,
        "retired": catalogue is not None and catalogue.retired,
        "agesAt": instant(_ages_at(verdict)),
    }


def line_at(line: Mapping[str, object], now: datetime) -> Mapping[str, object]:
    """The line as it reads at `now`; the same object when time changed nothing."""
    ages_at, codes = _ages_at_of(line), line["staleness"]
    held = codes if isinstance(codes, list | tuple) else ()
    aged = ages_at is not None and now >= ages_at
    if aged == (Staleness.AGED.value in held):
        return line
    left = {code for code in held if code != Staleness.AGED.value} | ({Staleness.AGED.value} if aged else set())
    return {**line, "staleness": [reason.value for reason in Staleness if reason.value in left]}


def next_change(line: Mapping[str, object], now: datetime) -> datetime | None:
    """When the line next changes by itself; None for never."""
    ages_at = _ages_at_of(line)
    return ages_at if ages_at is not None and ages_at > now else None


def _ages_at(verdict: RecipeVerdict) -> datetime | None:
    """When the first source ages that counts or once did: those whose reasons are the recipe's."""
    ages = (
        aged_from(source.attested_at, verdict.rule.aged_after_days)
        for source in verdict.sources
        if source.counts_or_did
    )
    return min((at for at in ages if at is not None), default=None)


def _ages_at_of(line: Mapping[str, object]) -> datetime | None:
    text = line.get("agesAt")
    return datetime.fromisoformat(text) if isinstance(text, str) else None


def state_at_ingest(run: Run, before: str | None, after: RecipeVerdict, inputs: RecipeInputs) -> dict[str, object]:
    """What is kept beside a record for ever: the recipe's state around its ingest, and how current it was then.

    `before` is None when the recipe was unknown; `after` is the verdict on `inputs`, which have the run; `commit` is
    the catalogue's, null without one.
    """
    standing = next((s for s in after.sources if s.digest == run.digest and s.source_id == run.source_id), None)
    reasons = standing.staleness if standing else _reasons_of_unlisted(run, after, inputs)
    return {
        "before": before,
        "after": after.state.value,
        "staleness": sorted(reason.reason.value for reason in reasons),
        "commit": None if after.catalogue is None else after.catalogue.commit,
    }


def _reasons_of_unlisted(run: Run, after: RecipeVerdict, inputs: RecipeInputs) -> tuple[StaleReason, ...]:
    """Of a run that stands for no source (set aside, or older than what its source already had), as of its receipt."""
    newest = max((one for one in inputs.runs if lane_of(one) == lane_of(run)), key=precedence, default=run)
    removed = run.source_id in after.removed
    return staleness_of(
        run,
        catalogue=inputs.catalogue,
        now=run.received_at,
        aged_after_days=after.rule.aged_after_days,
        standing=Standing(
            listed=not removed,
            was_listed=removed,
            superseded_by=newest if precedence(newest) > precedence(run) else None,
            gone=run.digest in inputs.gone,
            retracted=inputs.retracted.get((run.digest, run.source_id)),
        ),
    )
