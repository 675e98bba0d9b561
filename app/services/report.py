"""The read side of recipes: what one page or endpoint asks for. Reads change nothing.

What comes out is masked already (`app.services.masking`), so that JSON and pages can show all of it. Records, attempts
and sources are read in `app.services.records`; how anything is written down is in `app.web.schemas`.
"""

import threading
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Protocol

from app.core.allowlist import Allowlist
from app.core.bundle import Run
from app.core.catalogue import CatalogueVersion
from app.core.corroborate import corroborate
from app.core.errors import InputError, NotFoundError
from app.core.latest import precedence
from app.core.refs import Digest
from app.core.remarks import run_remarks
from app.core.staleness import Standing, staleness_of
from app.core.summary import summarize
from app.core.verdict import (
    GRID_PHASES,
    ConfirmBy,
    ConfirmRule,
    Grid,
    RecipeInputs,
    RecipeVerdict,
    Remark,
    SourceStanding,
    Staleness,
    StaleReason,
    State,
)
from app.ports import AllowlistVersion, Clock, EvidenceStore, RecipeSummary, Record
from app.services.masking import MASK, Masking

MAX_STANDINGS = 512
"""Recipes whose standings are kept ready; about ten kilobytes each."""

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

    problem: str | None

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
    """A masked verdict, the grid that the lens chose, and the lens."""

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
        for name in ("service", "accelerator", "os", "intent", "platform"):
            wanted = getattr(self, name)
            if wanted is not None and (values.get(name) or "any") != (wanted or "any"):
                return False
        return (
            (self.profile is None or self.profile in (line["profile"], line["profileSelection"]))
            and (self.state is None or self.state == line["state"])
            and (self.staleness is None or _among(self.staleness, line["staleness"]))
            and (self.source_class is None or _among(self.source_class, line["classes"]))
            and (self.q is None or self.q.casefold() in str(line["recipe"]).casefold())
        )


@dataclass(frozen=True, slots=True)
class RecordStanding:
    """How one record stands today; exact, the reader masks it."""

    remarks: tuple[Remark, ...]
    staleness: tuple[StaleReason, ...]
    next_change: datetime | None


@dataclass(frozen=True, slots=True)
class _Standings:
    """What is kept of one recipe's verdict to tell how its records stand; no grids, no results."""

    sources: Mapping[tuple[Digest, str], SourceStanding]
    newest: Mapping[str, Run]
    removed: frozenset[str]
    catalogue: tuple[CatalogueVersion, ...]
    gone: frozenset[Digest]
    retracted: Mapping[tuple[Digest, str], str]
    next_change: datetime | None


@dataclass(frozen=True, slots=True)
class RecipeList:
    """Catalogue lines by name; `valid_until` is when one of them changes by itself."""

    lines: tuple[Mapping[str, object], ...]
    next: str | None
    valid_until: datetime | None


class RecipeReading:
    """Reads recipes; `rule` holds the settings that weigh."""

    def __init__(
        self,
        *,
        store: EvidenceStore,
        clock: Clock,
        allowlist: AllowlistHolder,
        rule: ConfirmRule,
        max_lines: int = 4096,
    ) -> None:
        self._store = store
        self._clock = clock
        self._allowlist = allowlist
        self._rule = rule
        self._earlier: tuple[str, tuple[Allowlist, ...]] | None = None
        self._standings: OrderedDict[str, tuple[int | None, str, _Standings]] = OrderedDict()
        self._lines: OrderedDict[str, tuple[int, str, datetime | None, Mapping[str, object]]] = OrderedDict()
        self._max_lines = max_lines
        self._lock = threading.Lock()

    # --- one recipe --------------------------------------------------------------------------------

    def recipe_key(self, recipe: str) -> tuple[object, ...]:
        """All that an answer about one recipe depends on beside its lens; raises `NotFoundError`."""
        revision = self._store.revision(recipe)
        if revision is None:
            raise _unknown(recipe)
        return (revision, self._allowlist.current().sha256)

    def recipe(self, recipe: str, lens: Lens | None = None) -> RecipeView:
        """The verdict of one recipe through `lens`; raises `NotFoundError` for a recipe that nobody named by then."""
        lens = lens or Lens()
        now = self._clock()
        if lens.as_of is not None and lens.as_of > now:
            raise InputError(f"expected asOf in the past, got {lens.as_of.isoformat()}")
        inputs = self._store.inputs(recipe, as_of=lens.as_of)
        if inputs is None:
            raise _unknown(recipe)
        rule = self._rule if lens.confirm_by is None else replace(self._rule, by=lens.confirm_by)
        allowlist, earlier = self._lists(lens.as_of)
        verdict = corroborate(inputs, allowlist=allowlist, rule=rule, now=lens.as_of or now, earlier=earlier)
        return RecipeView(masked_verdict(verdict, Masking(allowlist)), chosen_grid(verdict, lens), lens, rule)

    def verdict(self, inputs: RecipeInputs) -> RecipeVerdict:
        """The exact verdict under what is in force now; for readers that need no mask."""
        allowlist, earlier = self._lists(None)
        return corroborate(inputs, allowlist=allowlist, rule=self._rule, now=self._clock(), earlier=earlier)

    # --- records under a recipe --------------------------------------------------------------------

    def standing(self, record: Record) -> RecordStanding:
        """How one record stands today: as its recipe's verdict says, or, for an older run, by the same rules."""
        run = record.run
        known = self._standings_of(run.recipe)
        source = known.sources.get((run.digest, run.source_id))
        if source is not None:
            return RecordStanding(source.remarks, source.staleness, known.next_change)
        now = self._clock()
        newer = known.newest.get(run.source_id)
        if newer is not None and precedence(newer) <= precedence(run):
            newer = None
        reasons = staleness_of(
            run,
            catalogue=known.catalogue,
            now=now,
            aged_after_days=self._rule.aged_after_days,
            standing=Standing(
                listed=record.allowlisted,
                was_listed=record.allowlisted or run.source_id in known.removed,
                superseded_by=newer,
                gone=run.digest in known.gone,
                retracted=known.retracted.get((run.digest, run.source_id)),
            ),
        )
        aged = run.attested_at + timedelta(days=self._rule.aged_after_days + 1)
        changes = [at for at in (known.next_change, aged) if at is not None and at > now]
        return RecordStanding(run_remarks(run), reasons, min(changes, default=None))

    def _standings_of(self, recipe: str) -> _Standings:
        revision = self._store.revision(recipe)
        sha256 = self._allowlist.current().sha256
        now = self._clock()
        with self._lock:
            kept = self._standings.get(recipe)
        if kept is not None and kept[:2] == (revision, sha256):
            until = kept[2].next_change
            if until is None or now < until:
                return kept[2]
        found = self._make_standings(self._store.inputs(recipe))
        with self._lock:
            self._standings[recipe] = (revision, sha256, found)
            self._standings.move_to_end(recipe)
            while len(self._standings) > MAX_STANDINGS:
                self._standings.popitem(last=False)
        return found

    def _make_standings(self, inputs: RecipeInputs | None) -> _Standings:
        if inputs is None:
            return _Standings({}, {}, frozenset(), (), frozenset(), {}, None)
        verdict = self.verdict(inputs)
        newest: dict[str, Run] = {}
        for run in inputs.runs:
            known = newest.get(run.source_id)
            if known is None or precedence(run) > precedence(known):
                newest[run.source_id] = run
        return _Standings(
            sources={(source.digest, source.source_id): source for source in verdict.sources},
            newest={source: replace(run, results=(), recipe_text="") for source, run in newest.items()},
            removed=frozenset(
                source.source_id
                for source in verdict.sources
                if any(reason.reason is Staleness.SIGNER_REMOVED for reason in source.staleness)
            ),
            catalogue=inputs.catalogue,
            gone=inputs.gone,
            retracted=inputs.retracted,
            next_change=verdict.next_change,
        )

    def _lists(self, as_of: datetime | None) -> tuple[Allowlist, tuple[Allowlist, ...]]:
        """The list that was in force, and those before it; before the first one nobody was listed."""
        current = self._allowlist.current()
        if as_of is None:
            with self._lock:
                known = self._earlier
            if known is None or known[0] != current.sha256:
                known = (current.sha256, self._load(self._store.allowlists(), but=current.sha256))
                with self._lock:
                    self._earlier = known
            return current.allowlist, known[1]
        past = [version for version in self._store.allowlists() if version.since <= as_of]
        if not past:
            return Allowlist.empty(), ()
        return Allowlist.load(past[-1].text), self._load(past[:-1], but=past[-1].sha256)

    def _load(self, versions: Iterable[AllowlistVersion], *, but: str) -> tuple[Allowlist, ...]:
        """Distinct lists, the one in force left out."""
        texts = {version.sha256: version.text for version in versions if version.sha256 != but}
        return tuple(Allowlist.load(text) for text in texts.values())

    # --- the catalogue -----------------------------------------------------------------------------

    def list_key(self) -> tuple[object, ...]:
        """All that a list depends on beside its filters."""
        return (self._store.state_revision(), self._allowlist.current().sha256)

    def recipes(self, where: RecipeFilter, *, after: str | None, limit: int) -> RecipeList:
        """A page of catalogue lines by name, each as of now."""
        every = self.all_lines()
        left = [line for line in every if where.admits(line) and (after is None or str(line["recipe"]) > after)]
        page = left[:limit]
        # A filter can admit a line later that it leaves out today, so the clock of every line counts.
        changes = [at for line in every if (at := _instant(line["nextChange"])) is not None]
        following = str(page[-1]["recipe"]) if len(left) > limit else None
        return RecipeList(tuple(page), following, min(changes, default=None))

    def all_lines(self) -> tuple[Mapping[str, object], ...]:
        """Every known recipe's line; one whose age ran on is made anew, once."""
        now = self._clock()
        sha256 = self._allowlist.current().sha256
        return tuple(self._line(summary, sha256, now) for summary in self._store.summaries())

    def _line(self, summary: RecipeSummary, sha256: str, now: datetime) -> Mapping[str, object]:
        due = _instant(summary.verdict.get("nextChange"))
        if due is None or now < due:
            return summary.verdict
        with self._lock:
            known = self._lines.get(summary.recipe)
        if known is not None:
            revision, listed, until, line = known
            if (revision, listed) == (summary.revision, sha256) and (until is None or now < until):
                return line
        inputs = self._store.inputs(summary.recipe)
        if inputs is None:
            return summary.verdict
        verdict = self.verdict(inputs)
        line = summarize(verdict)
        with self._lock:
            self._lines[summary.recipe] = (summary.revision, sha256, verdict.next_change, line)
            self._lines.move_to_end(summary.recipe)
            while len(self._lines) > self._max_lines:
                self._lines.popitem(last=False)
        return line

    # --- the allowlist -----------------------------------------------------------------------------

    def allowlist_in_force(self) -> tuple[InForce, str | None]:
        """The list that counts, and why a newer file does not."""
        return self._allowlist.current(), self._allowlist.problem

    def allowlist_versions(self) -> tuple[AllowlistVersion, ...]:
        """Every list that was in force, newest first."""
        return tuple(reversed(self._store.allowlists()))


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
        staleness=masked_reasons(source.staleness),
        remarks=masked_remarks(source.remarks),
    )


def _among(wanted: str, values: object) -> bool:
    return isinstance(values, list | tuple) and wanted in values


def _instant(text: object) -> datetime | None:
    return datetime.fromisoformat(text) if isinstance(text, str) else None


def _unknown(recipe: str) -> NotFoundError:
    return NotFoundError(
        f"no recipe {recipe[:200]!r} is known",
        hint="GET /recipes lists every known recipe",
    )
