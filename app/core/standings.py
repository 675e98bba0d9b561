"""One source on one recipe, described; and the remarks about the recipe itself (service 5, trust 6).

Nothing here weighs: a participant comes with its weight from `core.corroborate`.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from app.core.allowlist import Allowlist, Classification, on_any
from app.core.bundle import Run
from app.core.catalogue import CatalogueVersion
from app.core.consensus import bucket
from app.core.grid import Participant, outcomes
from app.core.identity import SourceClass
from app.core.latest import distinct
from app.core.party import party_of
from app.core.remarks import (
    branch_failure,
    copy_of,
    failure_of_removed_signer,
    one_party,
    run_remarks,
    same_party,
    stale_digest,
)
from app.core.staleness import Standing, age_days, staleness_of, today
from app.core.verdict import Bucket, ConfirmBy, ConfirmRule, RecipeInputs, Remark, SourceStanding, State

_CLASS_ORDER = (SourceClass.FIRST_PARTY, SourceClass.COMMUNITY, SourceClass.PARTNER)


@dataclass(frozen=True, slots=True)
class Surroundings:
    """All that one computation takes into account; `earlier` are lists that were in force before."""

    inputs: RecipeInputs
    allowlist: Allowlist
    earlier: tuple[Allowlist, ...]
    rule: ConfirmRule
    now: datetime

    @property
    def version(self) -> CatalogueVersion | None:
        """Today's catalogue version."""
        return today(self.inputs.catalogue)

    def classify(self, run: Run) -> Classification:
        """The run's signer under today's list."""
        return self.allowlist.classify(run.signer.issuer, run.signer.identity)

    def lists(self, run: Run) -> bool:
        """Whether today's list has the signer."""
        return self.classify(run).allowlisted

    def knows(self, run: Run) -> bool:
        """Whether today's list has the signer, or an earlier one had."""
        return self.classify(run).allowlisted or self.was_listed(run)

    def was_listed(self, run: Run) -> bool:
        """Whether an earlier list had the signer and today's has not."""
        if self.classify(run).allowlisted:
            return False
        return on_any(self.earlier, run.signer.issuer, run.signer.identity)


def standings_of(combined: Sequence[Participant], around: Surroundings) -> tuple[SourceStanding, ...]:
    """Every source that takes part, listed ones first, by class and slug."""
    counts: dict[str, int] = {}
    for run in distinct(around.inputs.runs):
        counts[run.source_id] = counts.get(run.source_id, 0) + 1
    counts.update(around.inputs.run_counts)
    neighbours = _same_party_slugs(combined)
    found = [_standing(one, counts, neighbours, around) for one in combined]
    return tuple(sorted(found, key=_standing_order))


def _standing(
    participant: Participant,
    counts: Mapping[str, int],
    neighbours: Mapping[str, tuple[str, ...]],
    around: Surroundings,
) -> SourceStanding:
    member, run = participant.member, participant.member.run
    classification = around.classify(run)
    key = (run.digest, run.source_id)
    return SourceStanding(
        source=run.source,
        source_id=run.source_id,
        issuer=run.signer.issuer,
        identity=run.signer.identity,
        label=classification.label,
        source_class=classification.source_class.value,
        allowlisted=member.listed,
        signer_key=member.signer_key,
        party=party_of(run.signer),
        digest=run.digest,
        attested_at=run.attested_at,
        logged_at=run.logged_at,
        aicr_version=run.aicr_version,
        k8s_version=run.k8s_version,
        recipe_digest=run.recipe_digest,
        predicate_type=run.predicate_type,
        age_days=age_days(run, around.now),
        runs=counts[run.source_id],
        staleness=staleness_of(
            run,
            catalogue=around.inputs.catalogue,
            now=around.now,
            aged_after_days=around.rule.aged_after_days,
            standing=Standing(
                listed=classification.allowlisted,
                was_listed=around.was_listed(run),
                gone=run.digest in around.inputs.gone,
                retracted=around.inputs.retracted.get(key),
            ),
        ),
        remarks=_source_remarks(participant, neighbours.get(run.source_id, ()), around),
        speaks=participant.speaks,
        weightless=run.weightless,
        voice=member.party if around.rule.by is ConfirmBy.PARTY else member.signer_key,
    )


def _source_remarks(participant: Participant, neighbours: Sequence[str], around: Surroundings) -> tuple[Remark, ...]:
    member = participant.member
    floors = around.version.floors if around.version else None
    found = [*run_remarks(member.run, floors, seen_public=member.run.digest in around.inputs.public)]
    if neighbours and member.listed and participant.speaks:
        found.append(same_party(neighbours))
    if member.original:
        found.append(copy_of(member.original))
    if not participant.speaks and (failed := failed_checks(member.run)):
        found.append(branch_failure(member.run, failed))
    return tuple(sorted(found, key=lambda remark: remark.code))


def recipe_remarks(
    combined: Sequence[Participant],
    around: Surroundings,
    state: State,
    current: State | None,
    digests: int,
    *,
    beside: Iterable[Run] = (),
) -> tuple[Remark, ...]:
    """What a reader of the state alone has to know.

    `beside` are runs that do not take part although a removed signer's failure may be in them: those that are set
    aside, and those that spoke in another grid than the combined one.
    """
    found: list[Remark] = []
    if current is not None and current is not state:
        found.append(stale_digest(state.value, current.value, digests))
    found.extend(one_party(slugs) for slugs in sorted(_party_groups(combined).values()) if len(slugs) > 1)
    found.extend(
        copy_of(one.member.original, one.member.run.source) for one in combined if one.speaks and one.member.original
    )
    every = {(run.digest, run.source_id): run for run in (*(one.member.run for one in combined), *beside)}
    found.extend(
        failure_of_removed_signer(run, failed)
        for run in every.values()
        if not run.weightless and around.was_listed(run) and (failed := failed_checks(run))
    )
    return tuple(found)


def failed_checks(run: Run) -> tuple[str, ...]:
    """`phase/name` of every check that failed, sorted."""
    return tuple(
        sorted(
            f"{phase}/{name}"
            for (phase, name), outcome in outcomes(run).items()
            if bucket(outcome.status) is Bucket.FAIL
        )
    )


def _party_groups(combined: Iterable[Participant]) -> Mapping[str, tuple[str, ...]]:
    """Party -> slugs of its listed signers, one slug a signer (the speaking ref)."""
    found: dict[str, list[str]] = {}
    for one in combined:
        if one.member.listed and one.speaks:
            found.setdefault(one.member.party, []).append(one.member.run.source)
    return {party: tuple(sorted(slugs)) for party, slugs in found.items()}


def _same_party_slugs(combined: Sequence[Participant]) -> Mapping[str, tuple[str, ...]]:
    """Source id -> slugs of the other signers of its party."""
    groups = _party_groups(combined)
    return {
        one.member.run.source_id: tuple(slug for slug in groups[one.member.party] if slug != one.member.run.source)
        for one in combined
        if one.member.listed and one.speaks
    }


def _standing_order(standing: SourceStanding) -> tuple[bool, int, str, bool]:
    """Listed first, by class, then by slug; a source's weightless column after its own."""
    rank = _CLASS_ORDER.index(SourceClass(standing.source_class)) if standing.allowlisted else 0
    return (not standing.allowlisted, rank, standing.source_id, bool(standing.weightless))
