"""The read side of recipes: what one page or endpoint asks for. Reads change nothing.

What comes out is masked already (`app.services.masking`), so that JSON and pages can show all of it. Records, attempts
and sources are read in `app.services.records`; how anything is written down is in `app.web.schemas`.
"""

import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Protocol

from app.core.allowlist import Allowlist
from app.core.answer import Answer, answer, candidate_of
from app.core.asked import Asked
from app.core.coordinate import KNOWN_VALUES, normalized
from app.core.corroborate import corroborate
from app.core.errors import InputError, NotFoundError
from app.core.explain import missing_for
from app.core.summary import line_at, next_change
from app.core.verdict import (
    GRID_PHASES,
    ConfirmBy,
    ConfirmRule,
    Grid,
    RecipeInputs,
    RecipeVerdict,
    Remark,
    SourceStanding,
    StaleReason,
    State,
)
from app.ports import Clock, EvidenceStore
from app.services.masking import MASK, Masking

VERIFIED = (
    "signature, certificate chain, transparency-log entry and times of every record",
    "every file of the bundle against the signed manifest, and every phase report against the signed digest",
    "name and digest of the recipe, computed from the bundle's own recipe text",
    "who signed, from the certificate, and whether the allowlist in force lists that signer",
)
"""What was checked here before anything was counted; ends every report and page (service 5)."""

NOT_PROVEN = (
    "that the hardware was what the bundle says it was",
    "that the measured figures and results are true: a signer vouches for them, nobody watched",
    "that two runs were independent of one another beyond what the copied-run rule can see",
)
"""What no check here can show."""


class InForce(Protocol):
    """The list that counts now."""

    @property
    def allowlist(self) -> Allowlist:
        """Its entries."""

    @property
    def sha256(self) -> str:
        """The bare hex sha256 of its text."""

    @property
    def since(self) -> datetime:
        """When it came into force."""


class AllowlistHolder(Protocol):
    """Where the list in force is kept; `problem` says why a newer file is not in force."""

    @property
    def problem(self) -> str | None:
        """None when the file is in force."""

    def current(self) -> InForce:
        """The list that counts now."""


@dataclass(frozen=True, slots=True)
class Lens:
    """Through what a recipe is looked at; the default is the combined grid of today under the rule in force."""

    aicr_version: str | None = None
    aicr_commit: str | None = None
    k8s: str | None = None
    as_of: datetime | None = None
    confirm_by: ConfirmBy | None = None


@dataclass(frozen=True, slots=True)
class RecipeView:
    """A masked verdict, the grid that the lens chose, and the lens; of a strict grid `missing` is its own."""

    verdict: RecipeVerdict
    grid: Grid
    lens: Lens
    rule: ConfirmRule


@dataclass(frozen=True, slots=True)
class RecipeFilter:
    """Filters of `GET /recipes`; None does not filter, `q` is a part of the name."""

    service: str | None = None
    accelerator: str | None = None
    os: str | None = None
    intent: str | None = None
    platform: str | None = None
    profile: str | None = None
    state: str | None = None
    staleness: str | None = None
    source_class: str | None = None
    q: str | None = None

    def admits(self, line: Mapping[str, object]) -> bool:
        """Whether a catalogue line passes every filter that is set."""
        criteria = line["criteria"]
        values: Mapping[str, object] = criteria if isinstance(criteria, Mapping) else {}
        for name in KNOWN_VALUES:
            wanted = getattr(self, name)
            if wanted is not None and normalized(name, str(values.get(name) or "")) != normalized(name, wanted):
                return False
        return (
            (self.profile is None or self.profile.lower() in _lowered(line["profile"], line["profileSelection"]))
            and (self.state is None or self.state == line["state"])
            and (self.staleness is None or _among(self.staleness, line["staleness"]))
            and (self.source_class is None or _among(self.source_class, line["classes"]))
            and (self.q is None or self.q.casefold() in str(line["recipe"]).casefold())
        )


@dataclass(frozen=True, slots=True)
class RecipeList:
    """Catalogue lines by name; `valid_until` is when one of them changes by itself."""

    lines: tuple[Mapping[str, object], ...]
    next: str | None
    valid_until: datetime | None


@dataclass(frozen=True, slots=True)
class PastList:
    """A list that was in force from `since` on."""

    allowlist: Allowlist
    sha256: str
    since: datetime


@dataclass(frozen=True, slots=True)
class _Lists:
    """Every list that was in force, oldest first, parsed; and which of them stand behind the one in force."""

    key: tuple[str, datetime]  # of the list in force when these were read: one can come into force twice
    past: tuple[PastList, ...]
    earlier: tuple[Allowlist, ...]


@dataclass(frozen=True, slots=True)
class _Lines:
    """Every line as it reads from `since` until one of them changes by itself or the store's state does."""

    revision: int
    since: datetime
    until: datetime | None
    lines: tuple[Mapping[str, object], ...]

    def hold(self, revision: int, now: datetime) -> bool:
        """Whether this is still what a reader has to be told."""
        return self.revision == revision and self.since <= now and (self.until is None or now < self.until)


@dataclass(frozen=True, slots=True)
class Answered:
    """An answer, and when one of the lines behind it changes by itself."""

    answer: Answer
    valid_until: datetime | None


class RecipeReading:
    """Reads recipes; `rule` holds the settings that weigh."""

    def __init__(self, *, store: EvidenceStore, clock: Clock, allowlist: AllowlistHolder, rule: ConfirmRule) -> None:
        self._store = store
        self._clock = clock
        self._allowlist = allowlist
        self._rule = rule
        self._known_lists: _Lists | None = None
        self._known_lines: _Lines | None = None
        self._lock = threading.Lock()

    # --- one recipe --------------------------------------------------------------------------------

    def recipe_key(self, recipe: str) -> tuple[object, ...]:
        """All that an answer about one recipe depends on beside its lens; raises `NotFoundError`."""
        revision = self._store.revision(recipe)
        if revision is None:
            raise _unknown(recipe)
        return (revision, self._allowlist.current().sha256)

    @property
    def list_in_force(self) -> str:
        """The sha256 of the allowlist that counts now."""
        return self._allowlist.current().sha256

    def recipe(self, recipe: str, lens: Lens | None = None) -> RecipeView:
        """The verdict of one recipe through `lens`; raises `NotFoundError` for a recipe that nobody named by then."""
        lens = lens or Lens()
        now = self._clock()
        if lens.as_of is not None and lens.as_of > now:
            raise InputError(f"expected asOf in the past, got {lens.as_of.isoformat()}")
        inputs = self._store.inputs(recipe, as_of=lens.as_of)
        if inputs is None:
            raise _unknown(recipe)
        rule = self._rule if lens.as_of is None else self._rule_at(lens.as_of)
        if lens.confirm_by is not None:
            rule = replace(rule, by=lens.confirm_by)
        allowlist, earlier = self._lists(lens.as_of)
        verdict = corroborate(inputs, allowlist=allowlist, rule=rule, now=lens.as_of or now, earlier=earlier)
        grid = chosen_grid(verdict, lens)
        if lens.aicr_version is not None:
            verdict = replace(verdict, missing=missing_for(verdict, grid))
        return RecipeView(masked_verdict(verdict, Masking(allowlist)), grid, lens, rule)

    def verdict(self, inputs: RecipeInputs) -> RecipeVerdict:
        """The exact verdict under what is in force now; for readers that need no mask."""
        allowlist, earlier = self._lists(None)
        return corroborate(inputs, allowlist=allowlist, rule=self._rule, now=self._clock(), earlier=earlier)

    @property
    def rule(self) -> ConfirmRule:
        """The settings that weigh."""
        return self._rule

    def _rule_at(self, as_of: datetime) -> ConfirmRule:
        """The settings that weighed then; of a time before any were noted, those that were noted first."""
        noted = self._store.weighings()
        then = [weighing.rule for weighing in noted if weighing.since <= as_of]
        return then[-1] if then else noted[0].rule if noted else self._rule

    def _lists(self, as_of: datetime | None) -> tuple[Allowlist, tuple[Allowlist, ...]]:
        """The list that was in force, and those before it; before the first one nobody was listed."""
        current = self._allowlist.current()
        lists = self._every_list(current)
        if as_of is None:
            return current.allowlist, lists.earlier
        past = [each for each in lists.past if each.since <= as_of]
        return (past[-1].allowlist, _before(past, past[-1].sha256)) if past else (Allowlist.empty(), ())

    def _every_list(self, current: InForce) -> _Lists:
        """Each text is parsed once, however often it is asked for: a past list costs a read no more than today's."""
        key = (current.sha256, current.since)
        with self._lock:
            known = self._known_lists
        if known is not None and known.key == key:
            return known
        parsed = {each.sha256: each.allowlist for each in known.past} if known else {}
        past = []
        for version in self._store.allowlists():
            if version.sha256 not in parsed:
                parsed[version.sha256] = Allowlist.recall(version.text)
            past.append(PastList(parsed[version.sha256], version.sha256, version.since))
        found = _Lists(key, tuple(past), _before(past, current.sha256))
        with self._lock:
            self._known_lists = found
        return found

    # --- the catalogue -----------------------------------------------------------------------------

    def list_key(self) -> tuple[object, ...]:
        """All that a list depends on beside its filters."""
        current = self._allowlist.current()
        return (self._store.state_revision(), current.sha256, current.since)

    def recipes(self, where: RecipeFilter, *, after: str | None, limit: int) -> RecipeList:
        """A page of catalogue lines by name, each as of now."""
        every = self._lines()
        left = [line for line in every.lines if where.admits(line) and (after is None or str(line["recipe"]) > after)]
        page = left[:limit]
        # A filter can admit a line later that it leaves out today, so the clock of every line counts.
        following = str(page[-1]["recipe"]) if len(left) > limit else None
        return RecipeList(tuple(page), following, every.until)

    def all_lines(self) -> tuple[Mapping[str, object], ...]:
        """Every known recipe's line as of now; what is kept of a verdict says how it reads, so none is computed."""
        return self._lines().lines

    def _lines(self) -> _Lines:
        """Read and decoded once a state of the store, for all readers."""
        now, revision = self._clock(), self._store.state_revision()
        with self._lock:
            known = self._known_lines
        if known is not None and known.hold(revision, now):
            return known
        lines = tuple(line_at(summary.verdict, now) for summary in self._store.summaries())
        until = min((at for line in lines if (at := next_change(line, now)) is not None), default=None)
        found = _Lines(revision, now, until, lines)
        with self._lock:
            self._known_lines = found
        return found

    def answer(self, asked: Asked) -> Answered:
        """Compare what was asked with every recipe; what was asked is kept nowhere."""
        every = self._lines()
        candidates = [candidate for line in every.lines if (candidate := candidate_of(line)) is not None]
        return Answered(answer(asked, candidates), every.until)

    # --- the allowlist -----------------------------------------------------------------------------

    def allowlist_in_force(self) -> tuple[InForce, str | None]:
        """The list that counts, and why a newer file does not."""
        problem = self._allowlist.problem
        return self._allowlist.current(), None if problem is None else MASK.text(problem)

    def allowlist_versions(self) -> tuple[PastList, ...]:
        """Every list that was in force, newest first."""
        return self._every_list(self._allowlist.current()).past[::-1]


def chosen_grid(verdict: RecipeVerdict, lens: Lens) -> Grid:
    """The combined grid, or the strict one of the lens; a version without runs is empty, never the combined grid."""
    if lens.aicr_version is None:
        return verdict.combined
    for grid in verdict.versions:
        if grid.aicr_version == lens.aicr_version and lens.aicr_commit in (None, grid.aicr_commit):
            return grid
    empty = dict.fromkeys(GRID_PHASES, State.UNTESTED)
    return Grid(lens.aicr_version, State.UNTESTED, empty, (), lens.aicr_commit or "")


def masked_verdict(verdict: RecipeVerdict, masking: Masking) -> RecipeVerdict:
    """The same verdict with every identity as it may be shown, and every quoted address masked."""
    return replace(
        verdict,
        sources=tuple(_masked_standing(source, masking) for source in verdict.sources),
        set_aside=tuple(replace(item, reason=MASK.text(item.reason)) for item in verdict.set_aside),
        missing=tuple(replace(item, message=MASK.text(item.message)) for item in verdict.missing),
        remarks=masked_remarks(verdict.remarks),
    )


def masked_remarks(remarks: Iterable[Remark]) -> tuple[Remark, ...]:
    """Remarks whose sentences and data quote no address."""
    return tuple(
        replace(
            remark,
            message=MASK.text(remark.message),
            data={key: MASK.text(value) for key, value in remark.data.items()},
        )
        for remark in remarks
    )


def masked_reasons(reasons: Iterable[StaleReason]) -> tuple[StaleReason, ...]:
    """Reasons whose sentences quote no address; recipe texts can hold one too."""
    return tuple(
        replace(
            reason,
            message=MASK.text(reason.message),
            clears=MASK.text(reason.clears),
            difference=tuple(MASK.text(line) for line in reason.difference),
        )
        for reason in reasons
    )


def _masked_standing(source: SourceStanding, masking: Masking) -> SourceStanding:
    shown = masking.signer(source.issuer, source.identity)
    return replace(
        source,
        identity=shown.identity,
        label=shown.label,
        party=masking.party(source.party, shown),
        signer_key=MASK.text(source.signer_key),
        voice=MASK.text(source.voice),
        staleness=masked_reasons(source.staleness),
        remarks=masked_remarks(source.remarks),
    )


def _lowered(*texts: object) -> tuple[str, ...]:
    return tuple(str(text).lower() for text in texts)


def _among(wanted: str, values: object) -> bool:
    return isinstance(values, list | tuple) and wanted in values


def _before(past: Iterable[PastList], current: str) -> tuple[Allowlist, ...]:
    """Distinct lists, the one in force left out."""
    return tuple({each.sha256: each.allowlist for each in past if each.sha256 != current}.values())


def _unknown(recipe: str) -> NotFoundError:
    return NotFoundError(
        f"no recipe {recipe[:200]!r} is known",
        hint="GET /recipes lists every known recipe",
    )
