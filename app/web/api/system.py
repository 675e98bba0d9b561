"""`/health`, `/ready`, `/openapi.json`, `/docs`: about the service itself."""

from datetime import datetime

from fastapi import APIRouter, Request
from starlette.responses import Response

from app.core.errors import ServiceError
from app.services.masking import MASK
from app.web import schemas
from app.web.caching import Rendered, conditional
from app.web.context import context
from app.web.openapi import contract
from app.web.pages import docs_page

router = APIRouter(tags=["system"])


def _now(request: Request) -> datetime:
    now: datetime = request.app.state.clock()
    return now.replace(microsecond=0)


@router.get("/health", response_model=schemas.Health)
def health(request: Request) -> Response:
    """The process answers."""
    out = schemas.Health(status="healthy", timestamp=_now(request))
    return Response(out.to_json(), media_type="application/json", headers={"Cache-Control": "no-store"})


@router.get("/ready", response_model=schemas.Ready, responses={503: {"model": schemas.Ready}})
def ready(request: Request) -> Response:
    """Whether every part answers, each by name; a broken allowlist file is `degraded`, still 200."""
    out, status = _ready(request)
    return Response(
        out.to_json(), status_code=status, media_type="application/json", headers={"Cache-Control": "no-store"}
    )


def _ready(request: Request) -> tuple[schemas.Ready, int]:
    container = context(request).container
    now = _now(request)
    if request.app.state.draining:
        return schemas.Ready(status="draining", parts={}, timestamp=now, reason="shutting down"), 503
    try:
        parts = container.ready()
    except ServiceError as err:
        return schemas.Ready(status="unavailable", parts={}, timestamp=now, reason=err.code), 503
    problem = None if container.allowlist.problem is None else MASK.text(container.allowlist.problem)
    if problem is not None:
        parts = {**parts, "allowlist": "degraded"}
    broken = sorted(name for name, state in parts.items() if state not in {"ok", "degraded"})
    if broken:
        return schemas.Ready(status="unavailable", parts=parts, timestamp=now, reason=", ".join(broken)), 503
    degraded = "degraded" in parts.values()
    return schemas.Ready(status="degraded" if degraded else "ready", parts=parts, timestamp=now, reason=problem), 200


@router.get("/openapi.json", include_in_schema=False)
def openapi(request: Request) -> Response:
    """The contract."""
    return conditional(request, ("openapi",), lambda: Rendered(contract(request.app)))


@router.get("/docs", include_in_schema=False)
def docs(request: Request) -> Response:
    """The contract for people: no script, nothing from elsewhere."""
    return docs_page(request)
