"""What each template shows: one value a page, made from the same schemas as its JSON twin."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from app.core.verdict import GRID_PHASES, State
from app.services.report import RecipeFilter
from app.web import schemas

_WORKFLOW = re.compile(
    r"https://[^/]+/(?P<repository>[^/]+/[^/@]+)/\.github/workflows/(?P<file>[^/@]+)@(?:refs/(?:heads|tags)/)?(?P<ref>.+)"
)
_TALLY = (State.CONTESTED, State.FAILING, State.CONFIRMED, State.SINGLE, State.PARTIAL, State.UNTESTED)


@dataclass(frozen=True, slots=True)
class RecipesPage:
    """What `recipes.html` shows."""

    title: str
    json_twin: str
    sandbox: bool
    items: Sequence[schemas.RecipeLine]
    shown: int
    total: int
    tally: Sequence[tuple[str, int]]
    facets: Mapping[str, Sequence[str]]
    where: RecipeFilter
    filtered: bool
    next_page: str


@dataclass(frozen=True, slots=True)
class Column:
    """A source as a column of the grid."""

    source: str
    source_id: str
    name: str
    source_class: str
    allowlisted: bool


@dataclass(frozen=True, slots=True)
class GridRow:
    """A row with one cell a column."""

    name: str
    consensus: str
    passes: int
    fails: int
    reported: int
    declared: bool
    counted: bool
    skip_reasons: Sequence[str]
    cells: Sequence[schemas.SignerResultOut | None]


@dataclass(frozen=True, slots=True)
class PhaseRows:
    """One phase of the grid."""

    name: str
    state: str
    rows: Sequence[GridRow]


@dataclass(frozen=True, slots=True)
class SourceRow:
    """A standing under its short name; `first` is False when the source stands here a second time."""

    item: schemas.StandingOut
    name: str
    first: bool


@dataclass(frozen=True, slots=True)
class RecipePage:
    """What `recipe.html` shows."""

    title: str
    json_twin: str
    sandbox: bool
    recipe: schemas.RecipeOut
    versions: Sequence[str]
    columns: Sequence[Column]
    phases: Sequence[PhaseRows]
    sources: Sequence[SourceRow]


@dataclass(frozen=True, slots=True)
class ErrorPage:
    """What `error.html` shows."""

    title: str
    message: str
    hint: str
    code: str
    request_id: str
    sandbox: bool
    json_twin: str = ""


@dataclass(frozen=True, slots=True)
class DocsPage:
    """What `docs.html` shows."""

    title: str
    description: str
    openapi: str
    routes: Sequence[object]
    codes: Sequence[object]
    sandbox: bool
    json_twin: str = "/openapi.json"


def tally(lines: Sequence[Mapping[str, object]]) -> list[tuple[str, int]]:
    """How many recipes are in each state, the ones to look at first."""
    counted = Counter(str(line["state"]) for line in lines)
    return [(state.value, counted[state.value]) for state in _TALLY if counted[state.value]]


def facets(lines: Sequence[Mapping[str, object]]) -> dict[str, list[str]]:
    """The values that are there to choose from."""
    found: dict[str, set[str]] = {name: set() for name in ("service", "accelerator", "os", "intent", "platform")}
    source_class: set[str] = set()
    staleness: set[str] = set()
    for line in lines:
        criteria = line["criteria"]
        if isinstance(criteria, Mapping):
            for name, values in found.items():
                values.add(str(criteria.get(name) or "any"))
        source_class |= _texts(line["classes"])
        staleness |= _texts(line["staleness"])
    return {
        **{name: sorted(values) for name, values in found.items()},
        "state": [state.value for state in _TALLY],
        "source_class": sorted(source_class),
        "staleness": sorted(staleness),
    }


def _texts(value: object) -> set[str]:
    return {str(item) for item in value} if isinstance(value, list | tuple) else set()


def short_name(label: str, identity: str) -> str:
    """What a column is headed with: the label, a workflow as `owner/repo file@branch`, else the identity."""
    workflow = _WORKFLOW.fullmatch(identity)
    if label or workflow is None:
        return label or identity
    return f"{workflow['repository']} {workflow['file']}@{workflow['ref']}"


def columns_of(out: schemas.RecipeOut) -> list[Column]:
    """The sources that have a result in the grid, in the verdict's order, each once."""
    present = {item.source_id for row in out.rows for item in row.signers}
    found: dict[str, Column] = {}
    for item in out.sources:
        if item.source_id in present and item.source_id not in found:
            name = short_name(item.label, item.identity)
            found[item.source_id] = Column(item.source, item.source_id, name, item.source_class, item.allowlisted)
    for row in out.rows:
        for result in row.signers:
            if result.source_id not in found:
                found[result.source_id] = Column(
                    result.source, result.source_id, result.source[:12], "", allowlisted=result.counts
                )
    return list(found.values())


def phases_of(out: schemas.RecipeOut, columns: Sequence[Column]) -> list[PhaseRows]:
    """The grid by phase, the usual phases first; one without a row is left out."""
    names = list(dict.fromkeys([*GRID_PHASES, *(row.phase for row in out.rows)]))
    phases = []
    for name in names:
        rows = [_grid_row(row, columns) for row in out.rows if row.phase == name]
        if rows:
            phases.append(PhaseRows(name, out.phase_states.get(name, State.UNTESTED.value), rows))
    return phases


def _grid_row(row: schemas.RowOut, columns: Sequence[Column]) -> GridRow:
    by_source = {item.source_id: item for item in reversed(row.signers)}
    return GridRow(
        name=row.name,
        consensus=row.consensus,
        passes=row.passes,
        fails=row.fails,
        reported=row.reported,
        declared=row.declared,
        counted=row.counted,
        skip_reasons=row.skip_reasons,
        cells=[by_source.get(column.source_id) for column in columns],
    )


def sources_of(out: schemas.RecipeOut) -> list[SourceRow]:
    """Every standing; the link target of a source is the first row that names it."""
    seen: set[str] = set()
    rows = []
    for item in out.sources:
        rows.append(SourceRow(item, short_name(item.label, item.identity), item.source not in seen))
        seen.add(item.source)
    return rows
