"""The verdict of one recipe: who counts, what they say, what it rests on (corroboration 2, trust 6, service 5).

Pure: everything comes in as an argument, the time too. The arithmetic is in `core.consensus`, one grid in
`core.grid`, names in `core.names`, copied runs in `core.copies`, the description of sources in `core.standings`.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from app.core.allowlist import Allowlist
from app.core.bundle import Run
from app.core.catalogue import CatalogueVersion
from app.core.consensus import CONFIRM_THRESHOLD
from app.core.coordinate import Coordinate, Criteria, coordinate_of, profile_segment
from app.core.copies import Original, RunKey, copies_of
from app.core.errors import RecipeInvalid
from app.core.explain import missing_for
from app.core.grid import Member, Participant, Scope, build_grid, counted_by, participants
from app.core.latest import latest_runs, precedence, version_group
from app.core.names import Named, Owner, sort_by_name
from app.core.party import parties_of
from app.core.staleness import (
    Match,
    match,
    next_birthday,
    recipe_text_key,
)
from app.core.standings import Surroundings, recipe_remarks, standings_of
from app.core.strangers import left_out_remark, without_crowd
from app.core.verdict import (
    Bucket,
    ConfirmBy,
    ConfirmRule,
    Grid,
    RecipeInputs,
    RecipeVerdict,
    SignerResult,
    SourceStanding,
    Staleness,
)
from app.core.versions import newest_first


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
    removed leave a trace. Steps: (1) thin to the newest runs, of strangers to those that are shown, (2) set aside what
    means another recipe, (3) weigh each run, (4) build the grids, (5) describe sources, (6) say what is missing.
    """
    rule = replace(rule, threshold=max(rule.threshold, CONFIRM_THRESHOLD))
    around = Surroundings(inputs, allowlist, tuple(earlier), rule, now)
    newest = latest_runs(inputs.runs)
    runs, crowd = without_crowd(newest, listed=around.lists, known=around.knows)  # (1)
    gone = tuple(run for run in newest if around.was_listed(run))
    named = sort_by_name(inputs, runs, allowlist)  # (2)
    members = _members(named.kept, around)  # (3)
    combined = participants(members)  # (4)
    grids = _grids(members, combined, around)
    sources = standings_of(combined, around)  # (5)
    identity = _identity(named.owner, named.kept, catalogued=bool(inputs.catalogue))
    who = _counted_as(members, rule.by)
    counted = {(one.digest, one.source_id) for row in grids.combined.rows for one in row.signers if one.counts}
    digests = len(
        {
            recipe_text_key(one.member.run, inputs.catalogue)
            for one in combined
            if one.member.listed and (one.member.run.digest, one.member.run.source_id) in counted
        }
    )
    state, current = grids.combined.state, grids.current.state if grids.current else None
    verdict = RecipeVerdict(
        recipe=inputs.recipe,
        criteria=identity.criteria,
        coordinate=identity.coordinate,
        profile=identity.profile,
        profile_selection=identity.selection,
        state=state,
        current_state=current,
        digests=digests,
        combined=grids.combined,
        current=grids.current,
        versions=grids.versions,
        sources=sources,
        set_aside=named.set_aside,
        missing=(),
        remarks=(
            *recipe_remarks(
                combined,
                around,
                state,
                current,
                digests,
                beside=(*_set_aside(runs, named), *_spoke(gone, around.version)),
            ),
            *left_out_remark(crowd + inputs.strangers_left_out, grids.combined.left_out),
        ),
        confirming=len(counted_by(grids.combined, Bucket.PASS, who.voice)),
        failing=len(counted_by(grids.combined, Bucket.FAIL, who.voice)),
        reported=len(_reporting(grids.combined)),
        parties=len(
            counted_by(grids.combined, Bucket.PASS, who.party) | counted_by(grids.combined, Bucket.FAIL, who.party)
        ),
        newest=_newest(combined),
        staleness=_reasons(sources),
        removed=frozenset(run.source_id for run in gone),
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


def _members(runs: Sequence[Run], around: Surroundings) -> tuple[Member, ...]:
    """Each run with all that decides its weight."""
    copies = copies_of(around.inputs, runs, around.allowlist)
    listed = {(run.digest, run.source_id): around.classify(run).allowlisted and not run.weightless for run in runs}
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
    keys = {
        (run.digest, run.source_id): around.allowlist.signer_key(run.signer.issuer, run.signer.identity) for run in runs
    }
    first_refs = {
        key: around.allowlist.speaks_first(run.signer.issuer, run.signer.identity)
        for run in runs
        if listed[key := (run.digest, run.source_id)]
    }
    main_lines = {keys[key] for key, first in first_refs.items() if first}
    return tuple(
        Member(
            run=run,
            listed=listed[run.digest, run.source_id],
            signer_key=keys[run.digest, run.source_id],
            party=parties[listed[run.digest, run.source_id]][run.source_id],
            beside_main=not first_refs.get((run.digest, run.source_id), True)
            and keys[run.digest, run.source_id] in main_lines,
            retracted=(run.digest, run.source_id) in around.inputs.retracted,
            original=_first_of_chain(run, keys[run.digest, run.source_id], copies),
        )
        for run in runs
    )


def _counted_as(members: Iterable[Member], by: ConfirmBy) -> _Names:
    every = tuple(members)
    return _Names(
        {member.run.source_id: member.signer_key for member in every},
        {member.run.source_id: member.party for member in every if member.listed},
        by,
    )


def _grids(members: Sequence[Member], combined: Sequence[Participant], around: Surroundings) -> _Grids:
    """Combined, one strict grid a version, and the current one when the catalogue says what is current.

    A version that only strangers ran, each of them many if they like, has no grid of its own.
    """
    rule, version = around.rule, around.version
    declared = frozenset(version.declared or ()) if version else frozenset()
    groups: dict[tuple[str, str], list[Member]] = {}
    for member in members:
        groups.setdefault(version_group(member.run), []).append(member)
    groups = {group: found for group, found in groups.items() if any(one.listed for one in found)}
    newest = {group: max(one.run.attested_at for one in found) for group, found in groups.items()}
    return _Grids(
        combined=build_grid(combined, Scope(rule, declared)),
        current=_current(members, version, declared, rule) if version else None,
        versions=tuple(
            build_grid(
                participants(groups[group]),
                Scope(rule, declared, aicr_version=group[0], aicr_commit=group[1]),
            )
            for group in newest_first(newest)
        ),
    )


def _current(
    members: Iterable[Member], version: CatalogueVersion, declared: frozenset[tuple[str, str]], rule: ConfirmRule
) -> Grid:
    """Only records for today's digest on matching hardware, only declared checks where they are known."""
    eligible = [
        member for member in members if member.run.hardware_matched and match(member.run, version) is Match.CURRENT
    ]
    only = version.declared is not None
    return build_grid(participants(eligible), Scope(rule, declared, only_declared=only))


@dataclass(frozen=True, slots=True)
class _Identity:
    criteria: Criteria | None
    coordinate: Coordinate | None
    profile: str
    selection: str


def _identity(owner: Owner | None, kept: Sequence[Run], *, catalogued: bool) -> _Identity:
    """What the recipe is: its owner's word, else the record that the log saw first.

    Of a recipe that the catalogue has, if only by its digests, no stranger says what it is.
    """
    if owner is None:
        if not kept or catalogued:
            return _Identity(None, None, "", "")
        first = min(kept, key=lambda run: (run.place, run.digest.hex, run.source_id))
        return _Identity(first.criteria, first.coordinate, first.profile, first.profile_selection)
    try:
        segment = profile_segment(owner.selection) if owner.selection else ""
        return _Identity(owner.criteria, coordinate_of(owner.criteria, segment), segment, owner.selection)
    except RecipeInvalid:  # the catalogue may hold a recipe that has no place
        return _Identity(owner.criteria, None, "", owner.selection)


def _first_of_chain(run: Run, signer_key: str, copies: Mapping[RunKey, Original]) -> Original | None:
    """The original of the original, so that a chain of copies is one run; each link is strictly earlier.

    A chain that leads back to the signer himself makes his run no copy: whoever is in between copied from him.
    """
    found = copies.get((run.digest, run.source_id))
    while found is not None and (before := copies.get((found.digest, found.source_id))) is not None:
        found = before
    return None if found is not None and found.signer_key == signer_key else found


def _set_aside(runs: Iterable[Run], named: Named) -> tuple[Run, ...]:
    kept = {(run.digest, run.source_id) for run in named.kept}
    return tuple(run for run in runs if (run.digest, run.source_id) not in kept)


def _spoke(removed: Iterable[Run], version: CatalogueVersion | None) -> tuple[Run, ...]:
    """The runs with which removed signers spoke in a strict or in the current grid, beside their newest ones."""
    newest: dict[tuple[str, ...], Run] = {}
    for run in removed:
        if run.weightless:
            continue
        keys: list[tuple[str, ...]] = [(run.source_id, "version", *version_group(run))]
        if run.hardware_matched and match(run, version) is Match.CURRENT:
            keys.append((run.source_id, "current"))
        for key in keys:
            held = newest.get(key)
            if held is None or precedence(run) > precedence(held):
                newest[key] = run
    return tuple(newest[key] for key in sorted(newest))


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
        if standing.counts_or_did:
            found |= {reason.reason for reason in standing.staleness}
    return tuple(reason for reason in Staleness if reason in found)
