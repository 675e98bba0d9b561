"""What an allowlist change is, and what it does to a recipe.

A service computes each recipe's verdict under both lists, from the same inputs; here the two are compared.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from app.core.allowlist import Allowlist, AllowlistEntry
from app.core.consensus import rollup, state_of
from app.core.verdict import Grid, RecipeVerdict, State


@dataclass(frozen=True, slots=True)
class EntryChange:
    """One entry that stays but reads differently; `what` names the parts: class, label, pattern."""

    before: AllowlistEntry
    after: AllowlistEntry
    what: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class AllowlistDiff:
    """Entries by `AllowlistEntry.key`, in file order."""

    added: tuple[AllowlistEntry, ...]
    removed: tuple[AllowlistEntry, ...]
    changed: tuple[EntryChange, ...]

    @property
    def empty(self) -> bool:
        """Whether both lists say the same; their bytes can differ."""
        return not (self.added or self.removed or self.changed)


@dataclass(frozen=True, slots=True)
class RowChange:
    """One row whose state changes; None where the row is not in that grid's roll-up."""

    phase: str
    name: str
    before: State | None
    after: State | None


@dataclass(frozen=True, slots=True)
class SourceChange:
    """One source that starts or ceases to count."""

    source: str
    counted_before: bool
    counted_after: bool


@dataclass(frozen=True, slots=True)
class VerdictDiff:
    """What a change does to one recipe."""

    recipe: str
    before: State
    after: State
    current_before: State | None
    current_after: State | None
    rows: tuple[RowChange, ...]
    sources: tuple[SourceChange, ...]
    set_aside: tuple[str, ...]  # digests that are set aside only afterwards
    reinstated: tuple[str, ...]  # digests that were set aside only before

    @property
    def empty(self) -> bool:
        """Whether the change does nothing here."""
        same = self.before is self.after and self.current_before is self.current_after
        return same and not (self.rows or self.sources or self.set_aside or self.reinstated)


@dataclass(frozen=True, slots=True)
class Reach:
    """What one more listed signer could do to one recipe: its state now, and after a run of his own.

    He would have run every check that counts, or one of his own where none does; `if_passed` is after a run without a
    failure, `if_failed` after one that fails everything.
    """

    recipe: str
    state: State
    if_passed: State
    if_failed: State

    @property
    def confirms(self) -> bool:
        """Whether his passes alone are missing."""
        return self.if_passed is State.CONFIRMED and self.state is not State.CONFIRMED

    @property
    def contests(self) -> bool:
        """Whether his failures would take back what others have said."""
        return self.if_failed is State.CONTESTED and self.state is not State.CONTESTED


def reach_of(verdict: RecipeVerdict) -> Reach:
    """What a signer that nobody has heard of could do to a recipe, if he were listed."""
    threshold = verdict.rule.threshold
    # A row that no listed signer has reported counts from his run on.
    counts = [(row.passes, row.fails) for row in verdict.combined.rows if row.counted] or [(0, 0)]
    return Reach(
        recipe=verdict.recipe,
        state=verdict.state,
        if_passed=rollup(state_of(passes + 1, fails, threshold) for passes, fails in counts),
        if_failed=rollup(state_of(passes, fails + 1, threshold) for passes, fails in counts),
    )


def diff_allowlists(old: Allowlist, new: Allowlist) -> AllowlistDiff:
    """Added, removed and changed entries; order in the file is no difference."""
    before = {entry.key: entry for entry in old.entries}
    after = {entry.key: entry for entry in new.entries}
    return AllowlistDiff(
        added=tuple(entry for entry in new.entries if entry.key not in before),
        removed=tuple(entry for entry in old.entries if entry.key not in after),
        changed=tuple(
            EntryChange(before[entry.key], entry, what)
            for entry in new.entries
            if entry.key in before and (what := _changed_parts(before[entry.key], entry))
        ),
    )


def _changed_parts(old: AllowlistEntry, new: AllowlistEntry) -> tuple[str, ...]:
    parts = {
        "class": (old.source_class, new.source_class),
        "label": (old.label, new.label),
        "pattern": (old.pattern.text if old.pattern else "", new.pattern.text if new.pattern else ""),
    }
    return tuple(name for name, (was, now) in parts.items() if was != now)


def diff_verdicts(before: RecipeVerdict, after: RecipeVerdict) -> VerdictDiff:
    """Compare the verdicts of one recipe under two lists."""
    aside_before = {str(item.digest) for item in before.set_aside}
    aside_after = {str(item.digest) for item in after.set_aside}
    return VerdictDiff(
        recipe=after.recipe,
        before=before.state,
        after=after.state,
        current_before=before.current_state,
        current_after=after.current_state,
        rows=_row_changes(before.combined, after.combined),
        sources=_source_changes(before, after),
        set_aside=tuple(sorted(aside_after - aside_before)),
        reinstated=tuple(sorted(aside_before - aside_after)),
    )


def _row_changes(before: Grid, after: Grid) -> tuple[RowChange, ...]:
    old, new = _counted_rows(before), _counted_rows(after)
    order = list(dict.fromkeys((row.phase, row.name) for grid in (after, before) for row in grid.rows))
    return tuple(RowChange(*key, old.get(key), new.get(key)) for key in order if old.get(key) is not new.get(key))


def _counted_rows(grid: Grid) -> Mapping[tuple[str, str], State]:
    return {(row.phase, row.name): row.consensus for row in grid.rows if row.counted}


def _source_changes(before: RecipeVerdict, after: RecipeVerdict) -> tuple[SourceChange, ...]:
    old = {source.source: source.allowlisted for source in before.sources if not source.weightless}
    new = {source.source: source.allowlisted for source in after.sources if not source.weightless}
    return tuple(
        SourceChange(source, old.get(source, False), new.get(source, False))
        for source in sorted({*old, *new})
        if old.get(source, False) is not new.get(source, False)
    )
