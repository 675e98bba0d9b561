"""`/recipes`: the catalogue, one recipe's grid, and today's resolved recipes in (service 3)."""

from dataclasses import replace
from datetime import datetime
from typing import Annotated, TypeVar

from fastapi import APIRouter, Query, Request
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from app.core.errors import InputError
from app.services.catalogue import Entry
from app.web import bodies, links, presenting, schemas
from app.web.api.parameters import RecipePath
from app.web.caching import Rendered, conditional
from app.web.context import context, require_token
from app.web.cursors import decode_text, encode
from app.web.instants import Instant
from app.web.queries import LensQuery, RecipesQuery

Said = TypeVar("Said", str, datetime | None)

router = APIRouter(tags=["recipes"])

BULK_FACTOR = 8
"""A bulk catalogue may be this many times as large as any other body (`MAX_BODY_BYTES`)."""

_TOKEN = "AICR_EVIDENCE_CATALOGUE_TOKEN"


@router.get("/recipes", response_model=schemas.Page[schemas.RecipeLine])
def list_recipes(request: Request, query: Annotated[RecipesQuery, Query()]) -> Response:
    """Every known recipe, also those without evidence."""
    reading = context(request).recipes

    def render() -> Rendered:
        found = reading.recipes(query.where(), after=decode_text("recipes", query.cursor), limit=query.limit)
        items = [presenting.recipe_line(line) for line in found.lines]
        page = schemas.Page[schemas.RecipeLine](items=items, next=encode("recipes", found.next))
        return Rendered(page.to_json(), valid_until=found.valid_until)

    return conditional(request, ("recipes", query, *reading.list_key()), render)


@router.get("/recipes/{recipe}", response_model=schemas.RecipeOut)
def get_recipe(request: Request, recipe: RecipePath, query: Annotated[LensQuery, Query()]) -> Response:
    """One recipe: rows with consensus and per-source results, states, what is missing, staleness per source."""
    reading = context(request).recipes

    def render() -> Rendered:
        view = reading.recipe(recipe, query.lens())
        until = None if query.as_of is not None else view.verdict.next_change
        return Rendered(presenting.recipe(view).to_json(), valid_until=until)

    return conditional(request, ("recipe", recipe, query, *reading.recipe_key(recipe)), render)


@router.put("/recipes/{recipe}", response_model=schemas.CataloguePut)
async def put_recipe(
    request: Request,
    recipe: RecipePath,
    commit: Annotated[str, Query(max_length=64, description="which commit the recipe is of")] = "",
    ref: Annotated[str, Query(max_length=256, description="and of which branch or tag")] = "",
    time: Annotated[Instant | None, Query(description="when that was")] = None,
) -> Response:
    """Today's version of one recipe: its resolved YAML, or JSON with the text or both digests. Needs the token.

    `commit`, `ref` and `time` stand in the query, in a JSON body, or in both when they say the same.
    """
    here = context(request)
    require_token(request, here.container.settings.catalogue_token, _TOKEN)
    kind = bodies.media_type(request)
    data = await bodies.read_body(request, here.container.settings.max_body_bytes)
    if kind in bodies.YAML_TYPES:
        entry = Entry(name=recipe, text=data)
    elif kind in bodies.JSON_TYPES:
        entry = bodies.parse_body(bodies.CatalogueBody, data).entry(recipe)
    else:
        raise bodies.unsupported(kind, bodies.YAML_TYPES | bodies.JSON_TYPES)
    entry = replace(
        entry,
        commit=_said_once("commit", commit, entry.commit),
        ref=_said_once("ref", ref, entry.ref),
        at=_said_once("time", time, entry.at),
    )
    pushed = await run_in_threadpool(here.catalogue.put, [entry], replace=False)
    version = pushed.versions[0]
    out = schemas.CataloguePut(
        recipe=version.recipe,
        changed=version.recipe in pushed.changed,
        legacy=version.legacy,
        content_only=version.content_only,
        links=links.recipe_links(version.recipe),
    )
    return Response(out.to_json(), media_type="application/json", headers={"Cache-Control": "no-store"})


def _said_once(name: str, query: Said, body: Said) -> Said:
    """What query or body says; two that differ can not both be meant."""
    if query and body and query != body:
        raise InputError(f"{name}: expected the same in the query and in the body, got two values")
    return body or query


@router.put("/recipes", response_model=schemas.CatalogueBulk)
async def put_recipes(
    request: Request,
    replace: Annotated[bool, Query(description="retire every recipe that is not in the body")] = False,  # noqa: FBT002
) -> Response:
    """Today's versions of many recipes, all or none. Needs the token."""
    here = context(request)
    require_token(request, here.container.settings.catalogue_token, _TOKEN)
    kind = bodies.media_type(request)
    if kind not in bodies.JSON_TYPES:
        raise bodies.unsupported(kind, bodies.JSON_TYPES)
    data = await bodies.read_body(request, here.container.settings.max_body_bytes * BULK_FACTOR)
    entries = bodies.parse_body(bodies.BulkBody, data).entries()
    if not entries and not replace:
        raise InputError("expected at least one recipe")
    pushed = await run_in_threadpool(here.catalogue.put, entries, replace=replace)
    names = {version.recipe for version in pushed.versions}
    out = schemas.CatalogueBulk(
        received=len(names),
        changed=[name for name in pushed.changed if name in names],
        retired=[name for name in pushed.changed if name not in names],
    )
    return Response(out.to_json(), media_type="application/json", headers={"Cache-Control": "no-store"})
