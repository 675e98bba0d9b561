"""Today's recipes: what the catalogue says a recipe's digest, checks and floors are (service 3, 5)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from app.core.coordinate import Criteria
from app.core.errors import InputError

MAX_NAME_CHARS = 512
"""As long as a recipe name may be."""


@dataclass(frozen=True, slots=True)
class CatalogueVersion:
    """One append-only version of one recipe.

    Digests are bare hex: `legacy` for v1 and v2 evidence, `content_only` for v3. `declared` lists the
    (phase, check) pairs that the recipe declares, `None` when unknown. `floors` is `None` only while a push is silent
    about them; a version that is kept has them, if none then empty. `text` is the resolved recipe when
    it was pushed as text, and `criteria` and `profile_selection` what it resolves to (None when only digests came):
    they own the recipe's name (trust 6). `recorded_at` is when this service learnt of it; `at` what the pusher said.
    """

    recipe: str
    legacy: str
    content_only: str
    recorded_at: datetime
    commit: str = ""
    ref: str = ""
    at: datetime | None = None
    declared: tuple[tuple[str, str], ...] | None = None
    floors: Mapping[str, str] | None = field(default_factory=dict)
    text: str = ""
    retired: bool = False
    seq: int = 0
    criteria: Criteria | None = None
    profile_selection: str = ""


def check_push(versions: Sequence[CatalogueVersion], *, replace_all: bool) -> None:
    """Raise `InputError` for a push that can not be meant."""
    if replace_all and not versions:
        raise InputError(
            "expected at least one recipe when the catalogue is replaced",
            hint="an empty push would retire every recipe",
        )
    for version in versions:
        if not 1 <= len(version.recipe) <= MAX_NAME_CHARS:
            raise InputError(f"expected a recipe name of 1 to {MAX_NAME_CHARS} characters")


def completed(version: CatalogueVersion, before: CatalogueVersion | None) -> CatalogueVersion | None:
    """What to append after `before`: None when `version` says nothing new.

    Digests are the recipe, so what was known about the same digests stays known when the new version is silent about
    it: checks and floors that are None (an empty value says that there are none), a text and a commit that are empty.
    """
    if before is None or (version.legacy, version.content_only) != (before.legacy, before.content_only):
        return replace(version, floors=version.floors or {})
    came_from = version if version.commit or not before.commit else before  # commit, ref and time belong together
    full = replace(
        version,
        commit=came_from.commit,
        ref=came_from.ref,
        at=came_from.at,
        declared=before.declared if version.declared is None else version.declared,
        floors=before.floors if version.floors is None else version.floors,
        text=version.text or before.text,
        criteria=version.criteria or before.criteria,
        profile_selection=version.profile_selection or before.profile_selection,
    )
    return None if _said(full) == _said(before) else full


def _said(version: CatalogueVersion) -> tuple[object, ...]:
    """What one version can tell beside its digests; when and from which ref it was pushed tells nothing."""
    floors = tuple(sorted((version.floors or {}).items()))
    known = (bool(version.text), version.criteria, version.profile_selection)
    return (version.declared, floors, version.commit, version.retired, *known)
