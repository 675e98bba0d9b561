"""Why a record is not current: every reason with its line for people and what clears it (service 5).

Reasons never weigh by themselves; `current_state` of `core.corroborate` uses `matches` alone.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from app.core.bundle import Run
from app.core.catalogue import CatalogueVersion
from app.core.recipe_difference import recipe_difference
from app.core.statement import RECIPE_EVIDENCE_V3
from app.core.verdict import Staleness, StaleReason

_DAY = timedelta(days=1)
_SHORT = 12  # characters of a digest that are shown, as upstream's report does


class Match(StrEnum):
    """How a run's recipe digest stands to today's catalogue."""

    CURRENT = "current"
    DRIFTED = "drifted"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Standing:
    """What is known about a record beside its signed bytes and the catalogue."""

    listed: bool = True
    was_listed: bool = False
    superseded_by: Run | None = None
    gone: bool = False
    retracted: str | None = None  # the reason, None when it is not retracted


def today(catalogue: Sequence[CatalogueVersion]) -> CatalogueVersion | None:
    """The version in force: the newest, unless it retires the recipe."""
    return catalogue[-1] if catalogue and not catalogue[-1].retired else None


def catalogue_digest(version: CatalogueVersion, predicate_type: str) -> str:
    """A version's digest by the algorithm of a predicate type: content-only for v3, legacy for all others."""
    return version.content_only if predicate_type == RECIPE_EVIDENCE_V3 else version.legacy


def match(run: Run, version: CatalogueVersion | None) -> Match:
    """Compare a run with one catalogue version."""
    due = catalogue_digest(version, run.predicate_type) if version else ""
    if not due:
        return Match.UNKNOWN
    return Match.CURRENT if due == run.recipe_digest else Match.DRIFTED


def recipe_text_key(run: Run, catalogue: Sequence[CatalogueVersion]) -> str:
    """Equal for runs that attested one recipe text, also across digest algorithms when the catalogue knows it."""
    for version in reversed(catalogue):
        if match(run, version) is Match.CURRENT and version.content_only:
            return version.content_only
    return run.recipe_digest


def age_days(run: Run, now: datetime) -> int:
    """Whole days since the attestation, never negative."""
    return max(0, (now - run.attested_at) // _DAY)


def next_birthday(run: Run, now: datetime) -> datetime:
    """When `age_days` next changes."""
    return run.attested_at + (age_days(run, now) + 1) * _DAY


def aged_from(attested_at: datetime, aged_after_days: int) -> datetime | None:
    """When a run becomes AGED: it has more whole days than the setting allows; None for a day that no calendar has."""
    try:
        return attested_at + timedelta(days=aged_after_days + 1)
    except OverflowError:
        return None


def drift_cell(signed: str, current: str) -> str:
    """Upstream's cell: the first 12 characters of both digests, the signed one first."""
    return f"stale ({signed[:_SHORT]}… vs current {current[:_SHORT]}…)"


def staleness_of(
    run: Run, *, catalogue: Sequence[CatalogueVersion], now: datetime, aged_after_days: int, standing: Standing
) -> tuple[StaleReason, ...]:
    """All reasons that hold, in the order of `Staleness`; empty means current."""
    version = today(catalogue)
    found: list[StaleReason] = []
    state = match(run, version)
    if version is not None and state is Match.DRIFTED:
        due = catalogue_digest(version, run.predicate_type)
        found.append(
            StaleReason(
                Staleness.DRIFTED,
                drift_cell(run.recipe_digest, due),
                "a new run of today's recipe by this source",
                _difference(run, version, standing),
            )
        )
    if _never_published(run, catalogue):
        found.append(
            StaleReason(
                Staleness.NEVER_PUBLISHED,
                f"the catalogue never had the digest {run.recipe_digest[:_SHORT]}…",
                "a new run of a published recipe, or publishing this one",
            )
        )
    if state is Match.UNKNOWN:
        found.append(_unknown_current(catalogue, version))
    if run.predicate_type != RECIPE_EVIDENCE_V3:
        found.append(
            StaleReason(
                Staleness.LEGACY_PREDICATE,
                f"attested as {run.predicate_type.rpartition('/')[2] or 'an old type'}, whose digest covers the"
                " producer's own version",
                "a new run with a producer that attests v3",
            )
        )
    found.extend(_of_standing(run, standing))
    days = age_days(run, now)
    if days > aged_after_days:
        found.append(
            StaleReason(
                Staleness.AGED,
                f"attested {days} days ago, more than {aged_after_days}",
                "a new run by this source",
            )
        )
    order = list(Staleness)
    return tuple(sorted(found, key=lambda one: order.index(one.reason)))


def _difference(run: Run, version: CatalogueVersion, standing: Standing) -> tuple[str, ...]:
    """What changed, where both texts are known; a stranger's text is not worth the work."""
    if not (run.recipe_text and version.text and (standing.listed or standing.was_listed)):
        return ()
    return recipe_difference(run.recipe_text, version.text)


def _never_published(run: Run, catalogue: Sequence[CatalogueVersion]) -> bool:
    """Whether versions with a digest of the run's algorithm exist and none of them has the run's."""
    known = [digest for version in catalogue if (digest := catalogue_digest(version, run.predicate_type))]
    return bool(known) and run.recipe_digest not in known


def _unknown_current(catalogue: Sequence[CatalogueVersion], version: CatalogueVersion | None) -> StaleReason:
    if version is not None:
        message = "the catalogue has no digest of today's recipe by this predicate type's algorithm"
    elif catalogue:
        message = "the recipe is retired from the catalogue"
    else:
        message = "no catalogue says what today's recipe is"
    return StaleReason(Staleness.UNKNOWN_CURRENT, message, "pushing today's recipe to the catalogue")


def _of_standing(run: Run, standing: Standing) -> list[StaleReason]:
    found: list[StaleReason] = []
    if newer := standing.superseded_by:
        found.append(
            StaleReason(
                Staleness.SUPERSEDED,
                f"the same source attested {newer.digest.hex[:_SHORT]}… later, on {newer.attested_at:%Y-%m-%d}",
                "nothing: the newer record speaks",
            )
        )
    if standing.was_listed and not standing.listed:
        found.append(
            StaleReason(
                Staleness.SIGNER_REMOVED,
                "the signer was on the allowlist and is no longer",
                "listing the signer again",
            )
        )
    if standing.gone:
        found.append(
            StaleReason(
                Staleness.BUNDLE_GONE,
                f"{run.digest.hex[:_SHORT]}… is at none of the places where it was seen; the archive keeps it",
                "publishing the bundle again at any trusted registry",
            )
        )
    if standing.retracted is not None:
        found.append(
            StaleReason(
                Staleness.RETRACTED,
                f"retracted: {standing.retracted}" if standing.retracted else "retracted",
                "withdrawing the retraction, or a new run by this source",
            )
        )
    return found
