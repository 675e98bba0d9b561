"""`/allowlist` and `/sources`: who counts and why. The allowlist has no HTTP write."""

from typing import Annotated

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from app.core.allowlist import Allowlist
from app.web import presenting, schemas
from app.web.api.parameters import SourcePath
from app.web.caching import Rendered, conditional
from app.web.context import context
from app.web.cursors import decode_number, decode_text, encode
from app.web.queries import ListQuery

router = APIRouter(tags=["allowlist"])


@router.get("/allowlist", response_model=schemas.AllowlistOut)
def get_allowlist(request: Request) -> Response:
    """The allowlist in force: its sha256, since when, and every entry."""
    in_force, problem = context(request).recipes.allowlist_in_force()

    def render() -> Rendered:
        out = schemas.AllowlistOut(
            sha256=in_force.sha256,
            since=in_force.since,
            status="ok" if problem is None else "degraded",
            problem=problem,
            entries=[presenting.entry(item) for item in in_force.allowlist.entries],
        )
        return Rendered(out.to_json())

    return conditional(request, ("allowlist", in_force.sha256, in_force.since, problem), render)


@router.get("/allowlist/versions", response_model=schemas.Page[schemas.AllowlistVersionOut])
def list_allowlist_versions(request: Request, query: Annotated[ListQuery, Query()]) -> Response:
    """Every allowlist that was in force, newest first, with what it added and removed."""
    reading = context(request).recipes

    def render() -> Rendered:
        versions = reading.allowlist_versions()
        # The position counts from the oldest: versions are only added, so it stays where it was.
        older_left = decode_number("versions", query.cursor)
        start = 0 if older_left is None else max(0, len(versions) - older_left)
        page = versions[start : start + query.limit]
        lists = [item.allowlist for item in versions[start : start + query.limit + 1]]
        lists += [Allowlist.empty()] * (len(page) + 1 - len(lists))
        items = []
        for version, newer, older in zip(page, lists, lists[1:], strict=False):
            added, removed = presenting.difference(older, newer)
            items.append(
                schemas.AllowlistVersionOut(sha256=version.sha256, since=version.since, added=added, removed=removed)
            )
        left = len(versions) - start - len(page)
        following = encode("versions", left) if left > 0 else None
        return Rendered(schemas.Page[schemas.AllowlistVersionOut](items=items, next=following).to_json())

    return conditional(request, ("versions", query, *reading.list_key()), render)


@router.get("/sources", response_model=schemas.Page[schemas.SourceOut])
def list_sources(request: Request, query: Annotated[ListQuery, Query()]) -> Response:
    """Every signer that was seen, in order of its canonical id."""
    reading = context(request).records

    def render() -> Rendered:
        views, following = reading.sources(after=decode_text("sources", query.cursor), limit=query.limit)
        items = [presenting.source(view) for view in views]
        return Rendered(schemas.Page[schemas.SourceOut](items=items, next=encode("sources", following)).to_json())

    return conditional(request, ("sources", query, *reading.key()), render)


@router.get("/sources/{source}", response_model=schemas.SourceOut)
def get_source(request: Request, source: SourcePath) -> Response:
    """One signer: who it is, and why it counts or not."""
    reading = context(request).records

    def render() -> Rendered:
        return Rendered(presenting.source(reading.source(source)).to_json())

    return conditional(request, ("source", source, *reading.key()), render)
