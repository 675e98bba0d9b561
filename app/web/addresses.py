"""Path and query of a request, looked at once for every route: texts that can be meant, parameters that are known.

A misspelt `?dryrun=true` would store what nobody wanted stored, and of a repeated parameter nobody knows which one
counts, so the API refuses both. Probes, pages and files ignore what they do not know: balancers and other sites add
names of their own (`/health?probe=lb`, `/ui/recipes?utm_source=mail`), which change nothing there.
"""

import re
from collections.abc import Iterator

from fastapi import Request
from fastapi.routing import APIRoute
from pydantic import BaseModel
from starlette.types import ASGIApp, Receive, Scope, Send

from app.core.errors import InputError, NotFoundError

_UNMEANT = re.compile("[\0\ud800-\udfff]")


def is_text(value: str) -> bool:
    """Whether every character is one that a name can have: neither U+0000 nor half of a surrogate pair.

    Databases hold neither, so nothing is known under such a text.
    """
    return _UNMEANT.search(value) is None


class EmptyAsAbsent:
    """Take empty parameters (`dryRun=`) out of the query before a route reads it, since a form sends every field.

    A name alone (`?dryRun`) stays: it may have been meant as true, and is refused below.
    """

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one connection."""
        if scope["type"] == "http":
            pairs: list[bytes] = scope["query_string"].split(b"&")
            said = [pair for pair in pairs if pair.partition(b"=")[1:] != (b"=", b"")]
            scope = {**scope, "query_string": b"&".join(said)}
        await self.app(scope, receive, send)


async def known_address(request: Request) -> None:
    """Raise `InputError` for a query that the route does not know, `NotFoundError` for a path that names nothing."""
    if not is_text(request.url.path) or not all(is_text(str(value)) for value in request.path_params.values()):
        raise NotFoundError("expected a path without U+0000")
    route = request.scope["route"]
    if not isinstance(route, APIRoute):
        return
    expected = list(_parameters(route))
    strict = route.include_in_schema and (bool(expected) or "GET" not in (route.methods or ()))
    seen: set[str] = set()
    for name, value in request.query_params.multi_items():
        if name not in expected and not strict:
            continue
        if name not in expected:
            raise InputError(
                f"unknown query parameter {name[:80]!r}: expected {_one_of(expected)}", details=_told(expected)
            )
        if name in seen and strict:
            raise InputError(f"expected the query parameter {name} once, got it again", details=_told(expected))
        if not value:
            raise InputError(f"{name}: expected {name}=<value>, got the name alone")
        if not is_text(value):
            raise InputError(f"{name}: expected text without U+0000")
        seen.add(name)


def _parameters(route: APIRoute) -> Iterator[str]:
    """The names of a route's query parameters; those of a model are the names of its fields."""
    for field in route.dependant.query_params:
        model = field.field_info.annotation
        if isinstance(model, type) and issubclass(model, BaseModel):
            yield from (info.alias or name for name, info in model.model_fields.items())
        else:
            yield field.alias


def _one_of(expected: list[str]) -> str:
    return f"one of {', '.join(expected)}" if expected else "none"


def _told(expected: list[str]) -> dict[str, object]:
    return {"expected": expected}
