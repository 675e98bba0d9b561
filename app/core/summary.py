"""One recipe in one line of the catalogue: what is kept ready so that a list needs no recomputation.

The full verdict is `app.core.verdict.RecipeVerdict`. Keys are those of `GET /recipes` items; values are plain JSON, so
a store can keep the line as it is. Ages change by themselves: `nextChange` says when the line must be made anew.
"""

from datetime import UTC, datetime

from app.core.verdict import GRID_PHASES, RecipeVerdict, State


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
        "parties": verdict.parties,
        "sources": len(verdict.sources),
        "classes": sorted({source.source_class for source in verdict.sources if source.allowlisted}),
        "digests": verdict.digests,
        "missing": len(verdict.missing),
        "newest": instant(verdict.newest),
        "staleness": [reason.value for reason in verdict.staleness],
        "published": catalogue is not None and not catalogue.retired,
        "nextChange": instant(verdict.next_change),
    }
