"""Today's recipes in: both digests are computed from the text, and a text that is another recipe is refused.

Versions are append-only; what they change is recomputed in the store's transaction. Reads are in `services.report`.
"""

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from app.core.catalogue import CatalogueVersion
from app.core.errors import InputError, RecipeInvalid
from app.core.recipe import Recipe
from app.core.verdict import GRID_PHASES, RecipeInputs, RecipeVerdict
from app.ports import Clock, EvidenceStore
from app.services.allowlists import WritesByList, by_list_in_force

MAX_NAME_CHARS = 512
MAX_DECLARED = 2000


@dataclass(frozen=True, slots=True)
class Entry:
    """One recipe of a push: its resolved text, or both digests (bare hex), never both.

    `name` may be empty when the text gives it; `declared` lists checks by phase. `declared` and `floors` are None when
    the push says nothing about them, and empty when there are none.
    """

    name: str
    text: bytes | None = None
    legacy: str = ""
    content_only: str = ""
    commit: str = ""
    ref: str = ""
    at: datetime | None = None
    declared: Mapping[str, Sequence[str]] | None = None
    floors: Mapping[str, str] | None = None


@dataclass(frozen=True, slots=True)
class Pushed:
    """What a push did: the versions it named, and the recipes that changed (retired ones too)."""

    versions: tuple[CatalogueVersion, ...]
    changed: tuple[str, ...]


class ProjectsByList(WritesByList, Protocol):
    """The list in force, bound into the function that the store calls."""

    def project(self, inputs: RecipeInputs, /) -> RecipeVerdict:
        """Corroborate one recipe now."""


@dataclass(frozen=True, slots=True)
class CatalogueService:
    """Takes pushes; all of one push or nothing."""

    store: EvidenceStore
    clock: Clock
    lists: ProjectsByList

    def put(self, entries: Sequence[Entry], *, replace: bool) -> Pushed:
        """Append what is new and, on `replace`, retire what is absent; raises `InputError` for the first bad entry."""
        now = self.clock()
        versions = tuple(version_of(entry, now) for entry in entries)
        seen: set[str] = set()
        for version in versions:
            if version.recipe in seen:
                raise InputError(f"expected each recipe once, got {version.recipe!r} twice")
            seen.add(version.recipe)

        def keep(sha256: str) -> tuple[str, ...]:
            # Known now, not when reading the texts began: what was asked about the time between stays the answer.
            known = self.clock()
            return self.store.put_catalogue(
                [dataclasses.replace(version, recorded_at=known) for version in versions],
                replace=replace,
                project=self.lists.project,
                allowlist_sha256=sha256,
            )

        return Pushed(versions, by_list_in_force(self.lists, keep))


def version_of(entry: Entry, now: datetime) -> CatalogueVersion:
    """One entry as a catalogue version; raises `InputError` naming the recipe that is wrong."""
    try:
        return _version_of(entry, now)
    except RecipeInvalid as err:
        where = entry.name[:200] or "recipe"
        raise RecipeInvalid(f"{where}: {err.message}", hint=err.hint, details=err.details) from err


def _version_of(entry: Entry, now: datetime) -> CatalogueVersion:
    if (entry.text is None) == (not entry.legacy or not entry.content_only):
        raise RecipeInvalid("expected the resolved recipe as text, or both digests")
    declared = _declared(entry.declared)
    if entry.text is None:
        _check_name(entry.name)
        return CatalogueVersion(
            recipe=entry.name,
            legacy=entry.legacy,
            content_only=entry.content_only,
            recorded_at=now,
            commit=entry.commit,
            ref=entry.ref,
            at=entry.at,
            declared=declared,
            floors=entry.floors,
        )
    recipe = Recipe.parse(entry.text)
    if not recipe.name:
        raise RecipeInvalid("the text gives no recipe name", hint="a resolved recipe has criteria")
    _check_name(recipe.name)
    if entry.name and recipe.name != entry.name:
        raise RecipeInvalid(
            f"the text is the recipe {recipe.name!r}, expected {entry.name[:200]!r}",
            hint=f"PUT /recipes/{recipe.name}",
            details={"requested": entry.name[:200], "derived": recipe.name},
        )
    return CatalogueVersion(
        recipe=recipe.name,
        legacy=recipe.parsed.legacy_digest(),
        content_only=recipe.parsed.content_digest(),
        recorded_at=now,
        commit=entry.commit,
        ref=entry.ref,
        at=entry.at,
        declared=declared,
        floors=entry.floors,
        text=recipe.text,
        criteria=recipe.criteria,
        profile_selection=recipe.selection,
    )


def _check_name(name: str) -> None:
    """A name is one segment of a path, here and in the compatibility export (corroboration 2.4)."""
    if not 1 <= len(name) <= MAX_NAME_CHARS:
        raise RecipeInvalid(f"expected a recipe name of 1 to {MAX_NAME_CHARS} characters, got {len(name)}")
    if name in {".", ".."} or not name.isprintable() or any(ch in name for ch in "/\\"):
        raise RecipeInvalid(f"expected a recipe name that is one path segment, got {name[:200]!r}")


def _declared(checks: Mapping[str, Sequence[str]] | None) -> tuple[tuple[str, str], ...] | None:
    """Checks in the order of a grid, each once; a phase that no grid has is a mistake, not a wish."""
    if checks is None:
        return None
    unknown = sorted(set(checks) - set(GRID_PHASES))
    if unknown:
        raise RecipeInvalid(
            f"expected the phases {', '.join(GRID_PHASES)}, got {unknown[0][:80]!r}",
            details={"requested": unknown[0][:80], "allowed": list(GRID_PHASES)},
        )
    found = tuple((phase, name) for phase in GRID_PHASES for name in dict.fromkeys(checks.get(phase, ())))
    if len(found) > MAX_DECLARED:
        raise RecipeInvalid(f"expected at most {MAX_DECLARED} declared checks, got {len(found)}")
    if any(not name or len(name) > MAX_NAME_CHARS for _, name in found):
        raise RecipeInvalid(f"expected check names of 1 to {MAX_NAME_CHARS} characters")
    return found
