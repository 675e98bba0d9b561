"""The verdict of one recipe: who counts, what they say, what it rests on (corroboration 2, trust 6, service 5).

Pure: everything comes in as an argument, the time too. The arithmetic is in `core.consensus`, one grid in
`core.grid`, names in `core.names`, copied runs in `core.copies`, staleness in `core.staleness`.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from app.core.allowlist import Allowlist, Classification
from app.core.bundle import Run
from app.core.catalogue import CatalogueVersion
from app.core.consensus import CONFIRM_THRESHOLD, bucket
from app.core.coordinate import Coordinate, Criteria, coordinate_of, profile_segment
from app.core.copies import Original, RunKey, copies_of
from app.core.errors import RecipeInvalid
from app.core.explain import missing_for
from app.core.grid import Member, Participant, Scope, build_grid, counted_by, outcomes, participants
from app.core.identity import SourceClass
from app.core.latest import distinct, latest_runs, precedence, version_group
from app.core.names import Owner, sort_by_name
from app.core.party import parties_of, party_of
from app.core.remarks import (
    branch_failure,
    copy_of,
    failure_of_removed_signer,
    run_remarks,
    same_party,
    stale_digest,
)
from app.core.staleness import (
    Match,
    Standing,
    age_days,
    match,
    next_birthday,
    recipe_text_key,
    staleness_of,
    today,
)
from app.core.verdict import (
    Bucket,
    ConfirmBy,
    ConfirmRule,
    Grid,
    RecipeInputs,
    RecipeVerdict,
    Remark,
    SignerResult,
    SourceStanding,
    Staleness,
)
from app.core.versions import newest_first

_CLASS_ORDER = (SourceClass.FIRST_PARTY, SourceClass.COMMUNITY, SourceClass.PARTNER)


def corroborate(
    inputs: RecipeInputs,
    *,
    allowlist: Allowlist,
    rule: ConfirmRule,
    now: datetime,
    earlier: Sequence[Allowlist] = (),
) -> RecipeVerdict:
    """Say everything about one recipe at `now`; order and repetition of the inputs change nothing.

    `earlier` are lists that were in force before: they change no state and no count, and let a signer that was
    removed leave a trace. Steps: (1) thin to the newest runs, (2) set aside what means another recipe, (3) weigh
    each run, (4) build the grids, (5) describe sources, (6) say what is missing.
    """
    rule = replace(rule, threshold=max(rule.threshold, CONFIRM_THRESHOLD))
    runs = latest_runs(inputs.runs)  # (1)
    named = sort_by_name(inputs, runs, allowlist)  # (2)
    weighing = _Weighing(inputs, allowlist, tuple(earlier), rule, now)
    members = weighing.members(named.kept)  # (3)
    combined = participants(members)  # (4)
    version = today(inputs.catalogue)
    grids = weighing.grids(members, combined, version)
    sources = weighing.standings(combined, version)  # (5)
    identity = _identity(named.owner, named.kept)
    who = weighing.counted_as(members)
    speaking = [one.member for one in combined if one.member.listed and one.speaks]
    digests = len({recipe_text_key(member.run, inputs.catalogue) for member in speaking})
    verdict = RecipeVerdict(
        recipe=inputs.recipe,
        criteria=identity.criteria,
        coordinate=identity.coordinate,
        profile=identity.profile,
        profile_selection=identity.selection,
        state=grids.combined.state,
        current_state=grids.current.state if grids.current else None,
        digests=digests,
        combined=grids.combined,
        current=grids.current,
        versions=grids.versions,
        sources=sources,
        set_aside=named.set_aside,
        missing=(),
        remarks=weighing.recipe_remarks(combined, grids, digests),
        confirming=len(counted_by(grids.combined, Bucket.PASS, who.voice)),
        failing=len(counted_by(grids.combined, Bucket.FAIL, who.voice)),
        reported=len(_reporting(grids.combined)),
        parties=len(
            counted_by(grids.combined, Bucket.PASS, who.party) | counted_by(grids.combined, Bucket.FAIL, who.party)
        ),
        newest=_newest(combined),
        staleness=_reasons(sources),
        catalogue=inputs.catalogue[-1] if inputs.catalogue else None,
        next_change=min((next_birthday(one.member.run, now) for one in combined), default=None),
        rule=rule,
    )
    return replace(verdict, missing=missing_for(verdict))  # (6)


@dataclass(frozen=True, slots=True)
class _Grids:
    combined: Grid
    current: Grid | None
    versions: tuple[Grid, ...]


@dataclass(frozen=True, slots=True)
class _Names:
    """How a result's source is counted: by signer key and by party."""

    signer_keys: Mapping[str, str]
    parties: Mapping[str, str]
    by: ConfirmBy

    def voice(self, result: SignerResult) -> str:
        """What is counted under the rule in force."""
        return self.party(result) if self.by is ConfirmBy.PARTY else self.signer_keys[result.source_id]

    def party(self, result: SignerResult) -> str:
        return self.parties[result.source_id]


@dataclass(frozen=True, slots=True)
class _Weighing:
    """One computation's surroundings, so that its steps read as steps."""

    inputs: RecipeInputs
    allowlist: Allowlist
    earlier: tuple[Allowlist, ...]
    rule: ConfirmRule
    now: datetime

    def classify(self, run: Run) -> Classification:
        return self.allowlist.classify(run.signer.issuer, run.signer.identity)

    def was_listed(self, run: Run) -> bool:
        """Whether an earlier list had the signer and today's has not."""
        if self.classify(run).allowlisted:
            return False
        return any(old.classify(run.signer.issuer, run.signer.identity).allowlisted for old in self.earlier)

    def members(self, runs: Sequence[Run]) -> tuple[Member, ...]:
        copies = copies_of(self.inputs, runs, self.allowlist)
        listed = {(run.digest, run.source_id): self.classify(run).allowlisted and not run.weightless for run in runs}
        # Apart, so that no stranger's certificate tells two listed accounts apart or makes them one.
        parties = {
            counts: parties_of(
                {
                    run.source_id: run.signer
                    for run in sorted(runs, key=precedence)
                    if listed[run.digest, run.source_id] is counts
                }
            )
            for counts in (True, False)
        }
        return tuple(
            Member(
                run=run,
                listed=listed[run.digest, run.source_id],
                signer_key=self.allowlist.signer_key(run.signer.issuer, run.signer.identity),
                party=parties[listed[run.digest, run.source_id]][run.source_id],
                first_ref=self.allowlist.speaks_first(run.signer.issuer, run.signer.identity),
                retracted=(run.digest, run.source_id) in self.inputs.retracted,
                original=_first_of_chain(run, copies),
            )
            for run in runs
        )

    def counted_as(self, members: Iterable[Member]) -> _Names:
        every = tuple(members)
        return _Names(
            {member.run.source_id: member.signer_key for member in every},
            {member.run.source_id: member.party for member in every if member.listed},
            self.rule.by,
        )

    def grids(
        self, members: Sequence[Member], combined: Sequence[Participant], version: CatalogueVersion | None
    ) -> _Grids:
        """Combined, one strict grid a version, and the current one when the catalogue says what is current."""
        declared = frozenset(version.declared or ()) if version else frozenset()
        groups: dict[tuple[str, str], list[Member]] = {}
        for member in members:
            groups.setdefault(version_group(member.run), []).append(member)
        newest = {group: max(one.run.attested_at for one in found) for group, found in groups.items()}
        return _Grids(
            combined=build_grid(combined, Scope(self.rule, declared)),
            current=self._current(members, version, declared) if version else None,
            versions=tuple(
                build_grid(
                    participants(groups[group]),
                    Scope(self.rule, declared, aicr_version=group[0], aicr_commit=group[1]),
                )
                for group in newest_first(newest)
            ),
        )

    def _current(
        self, members: Iterable[Member], version: CatalogueVersion, declared: frozenset[tuple[str, str]]
    ) -> Grid:
        """Only records for today's digest on matching hardware, only declared checks where they are known."""
        eligible = [
            member for member in members if member.run.hardware_matched and match(member.run, version) is Match.CURRENT
        ]
        only = version.declared is not None
        return build_grid(participants(eligible), Scope(self.rule, declared, only_declared=only))

    def standings(
        self, combined: Sequence[Participant], version: CatalogueVersion | None
    ) -> tuple[SourceStanding, ...]:
        counts: dict[str, int] = {}
        for run in distinct(self.inputs.runs):
            counts[run.source_id] = counts.get(run.source_id, 0) + 1
        counts.update(self.inputs.run_counts)
        neighbours = _same_party_slugs(combined)
        found = [self._standing(one, counts, neighbours, version) for one in combined]
        return tuple(sorted(found, key=_standing_order))

    def _standing(
        self,
        participant: Participant,
        counts: Mapping[str, int],
        neighbours: Mapping[str, tuple[str, ...]],
        version: CatalogueVersion | None,
    ) -> SourceStanding:
        member, run = participant.member, participant.member.run
        classification = self.classify(run)
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
            age_days=age_days(run, self.now),
            runs=counts[run.source_id],
            staleness=staleness_of(
                run,
                catalogue=self.inputs.catalogue,
                now=self.now,
                aged_after_days=self.rule.aged_after_days,
                standing=Standing(
                    listed=classification.allowlisted,
                    was_listed=self.was_listed(run),
                    gone=run.digest in self.inputs.gone,
                    retracted=self.inputs.retracted.get(key),
                ),
            ),
            remarks=self._source_remarks(participant, neighbours.get(run.source_id, ()), version),
            speaks=participant.speaks,
            weightless=run.weightless,
        )

    def _source_remarks(
        self, participant: Participant, neighbours: Sequence[str], version: CatalogueVersion | None
    ) -> tuple[Remark, ...]:
        member = participant.member
        found = [*run_remarks(member.run, version.floors if version else None)]
        if neighbours and member.listed and participant.speaks:
            found.append(same_party(neighbours))
        if member.original:
            found.append(copy_of(member.original))
        if not participant.speaks and (failed := failed_checks(member.run)):
            found.append(branch_failure(member.run, failed))
        return tuple(sorted(found, key=lambda remark: remark.code))

    def recipe_remarks(self, combined: Sequence[Participant], grids: _Grids, digests: int) -> tuple[Remark, ...]:
        """What a reader of the state alone has to know."""
        found: list[Remark] = []
        if grids.current and grids.current.state is not grids.combined.state:
            found.append(stale_digest(grids.combined.state.value, grids.current.state.value, digests))
        found.extend(same_party(slugs) for slugs in sorted(_party_groups(combined).values()) if len(slugs) > 1)
        found.extend(copy_of(one.member.original) for one in combined if one.speaks and one.member.original)
        for one in combined:
            run = one.member.run
            if not run.weightless and self.was_listed(run) and (failed := failed_checks(run)):
                found.append(failure_of_removed_signer(run, failed))
        return tuple(found)


@dataclass(frozen=True, slots=True)
class _Identity:
    criteria: Criteria | None
    coordinate: Coordinate | None
    profile: str
    selection: str


def _identity(owner: Owner | None, kept: Sequence[Run]) -> _Identity:
    """What the recipe is: its owner's word, else (strangers only) the record that the log saw first."""
    if owner is None:
        if not kept:
            return _Identity(None, None, "", "")
        first = min(kept, key=lambda run: (run.logged_at, run.digest.hex, run.source_id))
        return _Identity(first.criteria, first.coordinate, first.profile, first.profile_selection)
    try:
        segment = profile_segment(owner.selection) if owner.selection else ""
        return _Identity(owner.criteria, coordinate_of(owner.criteria, segment), segment, owner.selection)
    except RecipeInvalid:  # the catalogue may hold a recipe that has no place
        return _Identity(owner.criteria, None, "", owner.selection)


def _first_of_chain(run: Run, copies: Mapping[RunKey, Original]) -> Original | None:
    """The original of the original, so that a chain of copies is one run; each link is strictly earlier."""
    found = copies.get((run.digest, run.source_id))
    while found is not None and (before := copies.get((found.digest, found.source_id))) is not None:
        found = before
    return found


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


def _reporting(grid: Grid) -> frozenset[str]:
    return frozenset(signer.source_id for row in grid.rows for signer in row.signers if signer.weight == "reported")


def _newest(combined: Sequence[Participant]) -> datetime | None:
    """The newest attestation of a listed source, else of anybody."""
    listed = [one.member.run.attested_at for one in combined if one.member.listed]
    return max(listed or [one.member.run.attested_at for one in combined], default=None)


def _reasons(sources: Iterable[SourceStanding]) -> tuple[Staleness, ...]:
    """Every reason that holds for a source that counts or once did; what strangers attest makes no recipe stale."""
    found: set[Staleness] = set()
    for standing in sources:
        reasons = {reason.reason for reason in standing.staleness}
        if standing.allowlisted or Staleness.SIGNER_REMOVED in reasons:
            found |= reasons
    return tuple(reason for reason in Staleness if reason in found)


def _standing_order(standing: SourceStanding) -> tuple[bool, int, str, bool]:
    """Listed first, by class, then by slug; a source's weightless column after its own."""
    rank = _CLASS_ORDER.index(SourceClass(standing.source_class)) if standing.allowlisted else 0
    return (not standing.allowlisted, rank, standing.source_id, bool(standing.weightless))
