"""`/attempts`: every try to bring a bundle in, refused ones too."""

from typing import Annotated

from fastapi import APIRouter, Path, Query, Request
from starlette.responses import Response

from app.web import presenting, schemas
from app.web.api.parameters import digest_of
from app.web.caching import tagged
from app.web.context import context
from app.web.cursors import decode_number, encode
from app.web.queries import AttemptsQuery

router = APIRouter(tags=["attempts"])


@router.get("/attempts", response_model=schemas.Page[schemas.AttemptOut])
def list_attempts(request: Request, query: Annotated[AttemptsQuery, Query()]) -> Response:
    """Attempts, newest first: step, code and cause of what was refused."""
    items, following = context(request).records.attempts(
        after=decode_number("attempts", query.cursor),
        limit=query.limit,
        outcome=query.outcome,
        digest=None if query.digest is None else str(digest_of(query.digest)),
    )
    page = schemas.Page[schemas.AttemptOut](
        items=[presenting.attempt(item) for item in items], next=encode("attempts", following)
    )
    return tagged(request, page.to_json())


@router.get("/attempts/{attempt_id}", response_model=schemas.AttemptOut)
def get_attempt(request: Request, attempt_id: Annotated[int, Path(ge=1, lt=1 << 63)]) -> Response:
    """One attempt."""
    return tagged(request, presenting.attempt(context(request).records.attempt(attempt_id)).to_json())
