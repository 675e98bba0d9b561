"""Who owns a recipe's name, and which runs are set aside because they mean something else by it (trust 6).

A name is lossy (`gpu-stack=operator` and `gpu=stack-operator` give one), so two recipes can meet under it. The
catalogue owns the name, then the allowlisted record that the log saw first; strangers own nothing. A retracted record
owns as before: were the name freed, a retraction could set its failures aside. A catalogue entry settles it instead.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from app.core.allowlist import Allowlist
from app.core.bundle import Run
from app.core.coordinate import KNOWN_VALUES, Criteria, coordinate_of, profile_segment
from app.core.errors import RecipeInvalid
from app.core.latest import claim_of
from app.core.verdict import NameClaim, RecipeInputs, SetAside


@dataclass(frozen=True, slots=True)
class Owner:
    """What the name stands for and who says so: `the catalogue` or `allowlisted evidence`."""

    criteria: Criteria
    selection: str
    by: str


@dataclass(frozen=True, slots=True)
class Named:
    """Runs that mean what the name means, those set aside, and the owner if anybody owns the name."""

    kept: tuple[Run, ...]
    set_aside: tuple[SetAside, ...]
    owner: Owner | None


def sort_by_name(inputs: RecipeInputs, runs: Sequence[Run], allowlist: Allowlist) -> Named:
    """Split `runs` into those that are this recipe's and those that are not, each of the latter with its reason.

    One bad run never hides the others: it alone is set aside.
    """
    owner = _owner(inputs, allowlist)
    kept: list[Run] = []
    aside: list[SetAside] = []
    for run in runs:
        fault = _fault(run, inputs.recipe) or _conflict(run, owner)
        if fault:
            aside.append(SetAside(run.digest, run.source, *fault))
        else:
            kept.append(run)
    return Named(tuple(kept), tuple(aside), owner)


def _owner(inputs: RecipeInputs, allowlist: Allowlist) -> Owner | None:
    for version in reversed(inputs.catalogue):
        if version.criteria is not None:
            return Owner(version.criteria, version.profile_selection, "the catalogue")
    listed = [
        claim
        for claim in _claims(inputs)
        if not claim.weightless
        and _placed(claim.criteria, claim.profile_selection)
        and allowlist.classify(claim.issuer, claim.identity).allowlisted
    ]
    if not listed:
        return None
    first = min(listed, key=lambda claim: (claim.place, claim.digest.hex, claim.issuer, claim.identity))
    return Owner(first.criteria, first.profile_selection, "allowlisted evidence")


def _claims(inputs: RecipeInputs) -> Iterable[NameClaim]:
    yield from inputs.claims
    for run in inputs.runs:
        if run.recipe == inputs.recipe:
            yield claim_of(run)


def _placed(criteria: Criteria, selection: str) -> str:
    """The coordinate that criteria and selection lead to, empty when they lead nowhere."""
    try:
        return coordinate_of(criteria, profile_segment(selection) if selection else "").path
    except RecipeInvalid:
        return ""


def _fault(run: Run, recipe: str) -> tuple[str, str] | None:
    """Code and reason of a run whose own parts do not fit together."""
    if run.recipe != recipe:
        return ("OTHER_RECIPE", f"the run is about {run.recipe}")
    try:
        segment = profile_segment(run.profile_selection) if run.profile_selection else ""
    except RecipeInvalid as err:
        return ("PROFILE_INVALID", err.message)
    if segment != run.profile:
        return (
            "PROFILE_MISMATCH",
            f"the selection {run.profile_selection!r} does not give the profile {run.profile!r}",
        )
    if _placed(run.criteria, run.profile_selection) != run.coordinate.path:
        return ("COORDINATE_MISMATCH", f"the run's criteria do not lead to {run.coordinate.path}")
    return None


def _conflict(run: Run, owner: Owner | None) -> tuple[str, str] | None:
    """Code and reason of a run that means another recipe than the name's owner."""
    if owner is None:
        return None
    differing = [
        f"{dimension} {run.criteria.value(dimension) or 'any'} instead of {owner.criteria.value(dimension) or 'any'}"
        for dimension in KNOWN_VALUES
        if run.criteria.value(dimension) != owner.criteria.value(dimension)
    ]
    if differing:
        return ("CRITERIA_CONFLICT", f"{owner.by} owns this name with other criteria: {', '.join(differing)}")
    if run.profile_selection != owner.selection:
        found, due = run.profile_selection or "no profile", owner.selection or "no profile"
        return ("PROFILE_CONFLICT", f"{owner.by} owns this name with {due}, the run has {found}")
    return None
