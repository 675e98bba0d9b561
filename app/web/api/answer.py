"""`/answer`: is it confirmed on hardware like mine? What is posted is read, answered and forgotten."""

from collections.abc import Mapping
from typing import Annotated

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from app.core.asked import Asked, asked_by_criteria, asked_by_document
from app.core.errors import DocumentInvalid
from app.core.yamltext import TextValue, load_text
from app.web import bodies, presenting, schemas
from app.web.caching import Rendered, conditional
from app.web.context import Context, context
from app.web.queries import AnswerQuery

router = APIRouter(tags=["answer"])

SNAPSHOT_FACTOR = 8
"""A snapshot may be this many times as large as any other body (`MAX_BODY_BYTES`)."""


@router.get("/answer", response_model=schemas.AnswerOut)
def get_answer(request: Request, query: Annotated[AnswerQuery, Query()]) -> Response:
    """By criteria: the verdict, k of n, the nearest recipes with exactly what differs, the command to use them."""
    reading = context(request).recipes
    asked = asked_by_criteria(query.named())

    def render() -> Rendered:
        answered = reading.answer(asked)
        return Rendered(presenting.answer(asked, answered.answer).to_json(), valid_until=answered.valid_until)

    return conditional(request, ("answer", query, *reading.list_key()), render)


@router.post("/answer", response_model=schemas.AnswerOut)
async def post_answer(request: Request, query: Annotated[AnswerQuery, Query()]) -> Response:
    """By a fingerprint or a snapshot, as YAML or JSON, or by `{"criteria": {...}}`; named parameters win over it."""
    here = context(request)
    kind = bodies.media_type(request)
    if kind not in bodies.YAML_TYPES | bodies.JSON_TYPES:
        raise bodies.unsupported(kind, bodies.YAML_TYPES | bodies.JSON_TYPES)
    limit = here.container.settings.max_body_bytes * SNAPSHOT_FACTOR
    data = await bodies.read_body(request, limit)
    return await here.apart(lambda: _answered(here, data, query, limit))


def _answered(here: Context, data: bytes, query: AnswerQuery, limit: int) -> Response:
    asked = _asked(data, query, limit)
    out = presenting.answer(asked, here.recipes.answer(asked).answer)
    return Response(out.to_json(), media_type="application/json", headers={"Cache-Control": "no-store"})


def _asked(data: bytes, query: AnswerQuery, limit: int) -> Asked:
    document = load_text(data, max_bytes=limit)
    criteria = document.get("criteria") if isinstance(document, dict) else None
    if isinstance(document, dict) and set(document) == {"criteria"}:
        if not isinstance(criteria, dict):
            raise DocumentInvalid("criteria: expected a mapping of dimensions to values")
        named = {**_said(criteria), **query.named()}
        asked = asked_by_criteria(named)
    else:
        named = query.named()
        asked = asked_by_document(document, named)
    # `any` is an answer too: who says it asks for every recipe, as `GET` does; who says nothing forgot something.
    if any(named.values()) or any(asked.criteria.specific()):
        return asked
    raise DocumentInvalid(
        "expected a document that says at least one dimension of the cluster, found none",
        hint="name what is known beside it: ?service=eks&accelerator=h100",
    )


def _said(criteria: Mapping[str, TextValue]) -> dict[str, str]:
    """Dimensions with a value; whatever is no text would be left out of the question without a word."""
    wrong = [name for name, value in criteria.items() if not isinstance(value, str | None)]
    if wrong:
        raise DocumentInvalid(f"criteria.{wrong[0][:60]}: expected text")
    return {name: value if isinstance(value, str) else "" for name, value in criteria.items()}
