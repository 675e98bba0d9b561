"""Pages: the same service calls as the JSON, drawn by the server; no script, one stylesheet, nothing from elsewhere.

Everything in a predicate was written by a stranger. Jinja escapes all of it, `finalize` makes control and bidi
characters visible, and the policy below lets a page load its own stylesheet and nothing else.
"""

import hashlib
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated
from urllib.parse import urlencode

from fastapi import APIRouter, Query, Request
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape
from starlette.responses import RedirectResponse, Response

from app.core.errors import NotFoundError
from app.core.party import visible
from app.core.verdict import GRID_PHASES, State
from app.services.report import NOT_PROVEN, VERIFIED, RecipeFilter
from app.web import presenting, schemas
from app.web.api.parameters import RecipePath
from app.web.caching import Rendered, conditional
from app.web.context import context
from app.web.cursors import decode_text, encode
from app.web.openapi import contract, reference
from app.web.problems import Answer
from app.web.queries import LensQuery, RecipesQuery

router = APIRouter(include_in_schema=False)

PAGE_CSP = (
    "default-src 'none'; style-src 'self'; img-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
PAGE_SIZE = 200
_HTML = "text/html; charset=utf-8"
_HERE = Path(__file__).parent
_STATIC = {
    "style.css": ((_HERE / "static" / "style.css").read_bytes(), "text/css; charset=utf-8"),
    "icon.svg": ((_HERE / "static" / "icon.svg").read_bytes(), "image/svg+xml"),
}
_STYLE_VERSION = hashlib.sha256(_STATIC["style.css"][0]).hexdigest()[:12]
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


def _finalize(value: object) -> object:
    """Every text that a template prints, with what would hide or reorder it spelled out."""
    return visible(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def _environment() -> Environment:
    made = Environment(
        loader=FileSystemLoader(_HERE / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_finalize,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters["iso"] = _iso
    made.filters["minute"] = _minute
    made.filters["block"] = _block
    made.filters["prose"] = _prose
    made.globals["style_version"] = _STYLE_VERSION
    made.globals["verified"] = VERIFIED
    made.globals["not_proven"] = NOT_PROVEN
    return made


def _instant(value: datetime | str) -> datetime:
    at = datetime.fromisoformat(value) if isinstance(value, str) else value
    return at.astimezone(UTC)


def _iso(value: datetime | str) -> str:
    return _instant(value).isoformat().replace("+00:00", "Z")


def _minute(value: datetime | str) -> str:
    return _instant(value).strftime("%Y-%m-%d %H:%M UTC")


def _prose(text: str) -> Markup:
    """A sentence whose parts in backticks are names: those become code, everything is escaped."""
    parts = [visible(part) for part in text.split("`")]
    if len(parts) % 2 == 0:
        return escape(visible(text))
    marked = [Markup("<code>{}</code>").format(part) if index % 2 else escape(part) for index, part in enumerate(parts)]
    return Markup("").join(marked)


def _block(text: str) -> Markup:
    """Text of several lines: escaped, with its line feeds kept."""
    return Markup("\n").join(visible(line) for line in text.split("\n"))


_TEMPLATES = _environment()


def render(template: str, page: object) -> bytes:
    """One page; `page` is the dataclass of the template."""
    return _TEMPLATES.get_template(template).render(page=page).encode("utf-8", "replace")


@router.get("/")
@router.get("/ui")
def home() -> Response:
    """The recipes are the front page."""
    return RedirectResponse("/ui/recipes", status_code=307, headers={"Cache-Control": "no-cache"})


@router.get("/static/{name}")
def static(name: str, v: Annotated[str, Query(max_length=64)] = "") -> Response:
    """The stylesheet and the icon, nothing else of the file system; `v` is the version that a page asks for."""
    found = _STATIC.get(name)
    if found is None:
        raise NotFoundError(f"no file {name[:80]!r}")
    data, media_type = found
    current = name == "style.css" and v == _STYLE_VERSION
    cache = "public, max-age=31536000, immutable" if current else "public, max-age=600"
    return Response(data, media_type=media_type, headers={"Cache-Control": cache})


@router.get("/ui/recipes")
def recipes_page(request: Request, query: Annotated[RecipesQuery, Query()]) -> Response:
    """The verdict table."""
    here = context(request)
    where, filters = query.where(), query.parameters()
    limit = query.limit if "limit" in query.model_fields_set else PAGE_SIZE
    chosen = {**filters, **({"limit": str(limit)} if limit != PAGE_SIZE else {})}

    def draw() -> Rendered:
        found = here.recipes.recipes(where, after=decode_text("recipes", query.cursor), limit=limit)
        every = here.recipes.all_lines()
        following = encode("recipes", found.next)
        twin = {**filters, "limit": str(limit), **({"cursor": query.cursor} if query.cursor else {})}
        page = RecipesPage(
            title="Recipes",
            json_twin="/recipes?" + urlencode(twin),
            sandbox=here.container.settings.sandbox,
            items=[presenting.recipe_line(line) for line in found.lines],
            shown=len(found.lines),
            total=len(every),
            tally=_tally(every),
            facets=_facets(every),
            where=where,
            filtered=bool(filters),
            next_page="" if following is None else "/ui/recipes?" + urlencode({**chosen, "cursor": following}),
        )
        return Rendered(render("recipes.html", page), _HTML, found.valid_until)

    return _page(conditional(request, ("ui", "recipes", query, *here.recipes.list_key()), draw))


@router.get("/ui/recipes/{recipe}")
def recipe_page(request: Request, recipe: RecipePath, query: Annotated[LensQuery, Query()]) -> Response:
    """One recipe: its grid, its sources, what is missing, what is verified and what is not proven."""
    here = context(request)

    def draw() -> Rendered:
        view = here.recipes.recipe(recipe, query.lens())
        out = presenting.recipe(view)
        lens = urlencode(query.parameters())
        page = RecipePage(
            title=out.recipe,
            json_twin=out.links["self"] + (f"?{lens}" if lens else ""),
            sandbox=here.container.settings.sandbox,
            recipe=out,
            versions=list(dict.fromkeys(item.aicr_version for item in out.versions)),
            columns=(columns := _columns(out)),
            phases=_phases(out, columns),
            sources=_sources(out),
        )
        until = None if query.as_of is not None else view.verdict.next_change
        return Rendered(render("recipe.html", page), _HTML, until)

    return _page(conditional(request, ("ui", recipe, query, *here.recipes.recipe_key(recipe)), draw))


def error_page(request: Request, answer: Answer) -> Response:
    """An error for a person: the same code and request id as in the envelope."""
    hint = answer.details.get("hint")
    page = ErrorPage(
        title={404: "Not found", 400: "Bad request"}.get(answer.status, "Something went wrong"),
        message=answer.message,
        hint=hint if isinstance(hint, str) else "",
        code=answer.code,
        request_id=getattr(request.state, "request_id", ""),
        sandbox=context(request).container.settings.sandbox,
    )
    headers = {**answer.headers, "Cache-Control": "no-store", "Content-Security-Policy": PAGE_CSP}
    return Response(render("error.html", page), status_code=answer.status, media_type=_HTML, headers=headers)


def docs_page(request: Request) -> Response:
    """The contract for people."""

    def draw() -> Rendered:
        document = reference(contract(request.app))
        page = DocsPage(
            title="HTTP API",
            description=document.description,
            openapi=document.openapi,
            routes=document.routes,
            codes=document.codes,
            sandbox=context(request).container.settings.sandbox,
        )
        return Rendered(render("docs.html", page), _HTML)

    return _page(conditional(request, ("docs",), draw))


def _page(response: Response) -> Response:
    response.headers["Content-Security-Policy"] = PAGE_CSP
    return response


def _tally(lines: Sequence[Mapping[str, object]]) -> list[tuple[str, int]]:
    """How many recipes are in each state, the ones to look at first."""
    counted = Counter(str(line["state"]) for line in lines)
    return [(state.value, counted[state.value]) for state in _TALLY if counted[state.value]]


def _facets(lines: Sequence[Mapping[str, object]]) -> dict[str, list[str]]:
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


def _columns(out: schemas.RecipeOut) -> list[Column]:
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


def _phases(out: schemas.RecipeOut, columns: Sequence[Column]) -> list[PhaseRows]:
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


def _sources(out: schemas.RecipeOut) -> list[SourceRow]:
    seen: set[str] = set()
    rows = []
    for item in out.sources:
        rows.append(SourceRow(item, short_name(item.label, item.identity), item.source not in seen))
        seen.add(item.source)
    return rows
