"""Today's recipes: what the catalogue says a recipe's digest, checks and floors are (service 3, 5)."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from app.core.coordinate import Criteria


@dataclass(frozen=True, slots=True)
class CatalogueVersion:
    """One append-only version of one recipe.

    Digests are bare hex: `legacy` for v1 and v2 evidence, `content_only` for v3. `declared` lists the
    (phase, check) pairs that the recipe declares, `None` when unknown. `text` is the resolved recipe when
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
    floors: Mapping[str, str] = field(default_factory=dict)
    text: str = ""
    retired: bool = False
    seq: int = 0
    criteria: Criteria | None = None
    profile_selection: str = ""
