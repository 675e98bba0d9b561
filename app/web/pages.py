"""Pages: the same service calls as the JSON, drawn by the server; no script, one stylesheet, nothing from elsewhere.

The policy below lets a page load its own stylesheet and nothing else; `app.web.templating` writes what strangers wrote.
"""

from typing import Annotated
from urllib.parse import urlencode

from fastapi import APIRouter, Query, Request
from starlette.responses import RedirectResponse, Response

from app.core.errors import NotFoundError
from app.web import presenting
from app.web.api.parameters import RecipePath
from app.web.caching import Rendered, conditional
from app.web.context import context
from app.web.cursors import decode_text, encode
from app.web.openapi import contract, reference
from app.web.page_values import (
    DocsPage,
    ErrorPage,
    RecipePage,
    RecipesPage,
    columns_of,
    facets,
    phases_of,
    sources_of,
    tally,
)
from app.web.problems import Answer
from app.web.queries import LensQuery, RecipesQuery
from app.web.templating import STATIC, STYLE_VERSION, render

router = APIRouter(include_in_schema=False)

PAGE_CSP = (
    "default-src 'none'; style-src 'self'; img-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
PAGE_SIZE = 200
_HTML = "text/html; charset=utf-8"


@router.get("/")
@router.get("/ui")
def home() -> Response:
    """The recipes are the front page."""
    return RedirectResponse("/ui/recipes", status_code=307, headers={"Cache-Control": "no-cache"})


@router.get("/static/{name}")
def static(name: str, v: Annotated[str, Query(max_length=64)] = "") -> Response:
    """The stylesheet and the icon, nothing else of the file system; `v` is the version that a page asks for."""
    found = STATIC.get(name)
    if found is None:
        raise NotFoundError(f"no file {name[:80]!r}")
    data, media_type = found
    current = name == "style.css" and v == STYLE_VERSION
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
            tally=tally(every),
            facets=facets(every),
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
            columns=(columns := columns_of(out)),
            phases=phases_of(out, columns),
            sources=sources_of(out),
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
