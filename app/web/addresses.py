"""Path and query of a request, looked at once for every route: texts that can be meant, parameters that are known.

A misspelt `?dryrun=true` would store what nobody wanted stored, and of a repeated parameter nobody knows which one
counts, so both are refused instead of ignored.
"""

import re
from collections.abc import Iterator

from fastapi import Request
from fastapi.routing import APIRoute
from pydantic import BaseModel

from app.core.errors import InputError, NotFoundError

_UNMEANT = re.compile("[\0\ud800-\udfff]")


def is_text(value: str) -> bool:
    """Whether every character is one that a name can have: neither U+0000 nor half of a surrogate pair.

    Databases hold neither, so nothing is known under such a text.
    """
    return _UNMEANT.search(value) is None


async def known_address(request: Request) -> None:
    """Raise `InputError` for a query that the route does not know, `NotFoundError` for a path that names nothing."""
    if not is_text(request.url.path) or not all(is_text(str(value)) for value in request.path_params.values()):
        raise NotFoundError("expected a path without U+0000")
    route = request.scope["route"]
    expected = list(_parameters(route)) if isinstance(route, APIRoute) else []
    seen: set[str] = set()
    for name, value in request.query_params.multi_items():
        if name not in expected:
            raise InputError(
                f"unknown query parameter {name[:80]!r}: expected {_one_of(expected)}", details=_told(expected)
            )
        if name in seen:
            raise InputError(f"expected the query parameter {name} once, got it again", details=_told(expected))
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
