"""The application: middleware, routes, error handlers. Decisions are in the services; statuses in `problems`."""

import time
from collections.abc import Callable, Sequence

from anyio import CapacityLimiter
from fastapi import APIRouter, Depends, FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Match

from app import __version__
from app.config import RateLimit
from app.core.errors import ServiceError
from app.services.catalogue import CatalogueService
from app.services.records import RecordReading
from app.services.report import RecipeReading
from app.web import middleware, pages
from app.web.addresses import EmptyAsAbsent, known_address
from app.web.api import allowlist, answer, attempts, evidence, recipes, system
from app.web.caching import TagCache
from app.web.context import UNPACKING_AT_ONCE, Container, Context
from app.web.draining import LAST_SECONDS, RunningRequests, draining
from app.web.limits import ClientBuckets, TokenBucket
from app.web.problems import Answer, answer_of, problem_response
from app.web.wording import invalid_parameters

ROUTERS: Sequence[APIRouter] = (
    evidence.router,
    attempts.router,
    recipes.router,
    answer.router,
    allowlist.router,
    system.router,
    pages.router,
)
"""Every route, in the order of the contract."""


def create_app(
    container: Container, *, monotonic: Callable[[], float] = time.monotonic, close: Callable[[], None] = lambda: None
) -> FastAPI:
    """The HTTP side of a container, whose life is the caller's; `close` is called at the end of the application's."""
    app = bare_app()
    app.state.clock = container.clock
    app.state.tags = TagCache()
    app.state.draining = False
    app.state.running = set()
    app.state.drain_seconds = max(0.0, container.settings.shutdown_timeout_seconds - LAST_SECONDS)
    app.state.close = close
    app.state.context = _context(container)
    _handle_errors(app)
    _wrap(app, container, monotonic)
    return app


def bare_app() -> FastAPI:
    """The routes alone, without anything behind them: what the contract is made of."""
    app = FastAPI(
        title="aicr-evidence",
        version=__version__,
        docs_url=None,
        redoc_url=None,
        openapi_url=None,
        redirect_slashes=False,
        lifespan=draining,
        generate_unique_id_function=lambda route: route.name,
    )
    for router in ROUTERS:
        app.include_router(router, dependencies=[Depends(known_address)])
    return app


def _context(container: Container) -> Context:
    recipes_ = RecipeReading(
        store=container.store, clock=container.clock, allowlist=container.allowlist, rule=container.rule
    )
    records = RecordReading(
        store=container.store,
        archive=container.archive,
        judge=container.judge,
        clock=container.clock,
        allowlist=container.allowlist,
        recipes=recipes_,
    )
    catalogue = CatalogueService(store=container.store, clock=container.clock, lists=container.allowlist)
    return Context(container, recipes_, records, catalogue, CapacityLimiter(UNPACKING_AT_ONCE))


def _wrap(app: FastAPI, container: Container, monotonic: Callable[[], float]) -> None:
    """Put the layers around the routes; the last one added is the outermost."""
    settings = container.settings
    everybody = RateLimit.parse(settings.rate_limit)
    client = RateLimit.parse(settings.rate_limit_client)
    app.add_middleware(EmptyAsAbsent)
    app.add_middleware(middleware.HeadAsGet)
    app.add_middleware(
        middleware.RateLimit,
        everybody=TokenBucket(everybody.per_second, everybody.burst) if everybody else None,
        clients=ClientBuckets(client.per_second, client.burst) if client else None,
        trusted_proxies=settings.proxies,
        clock=container.clock,
        monotonic=monotonic,
    )
    app.add_middleware(middleware.LastResort)
    app.add_middleware(middleware.AccessLog, monotonic=monotonic)
    app.add_middleware(middleware.RequestId)
    app.add_middleware(RunningRequests, running=app.state.running)


def _handle_errors(app: FastAPI) -> None:
    """Every error leaves in the envelope, those of the framework too."""

    async def service_error(request: Request, err: Exception) -> Response:
        if not isinstance(err, ServiceError):
            raise err
        return _told(request, answer_of(err))

    async def invalid(request: Request, err: Exception) -> Response:
        if not isinstance(err, RequestValidationError):
            raise err
        return _told(request, answer_of(invalid_parameters(list(err.errors()))))

    async def http(request: Request, err: Exception) -> Response:
        if not isinstance(err, HTTPException):
            raise err
        if err.status_code == 405:
            allowed = _methods(request)
            message = f"expected one of {', '.join(allowed)}, got {request.method[:20]}"
            return _told(request, Answer("METHOD_NOT_ALLOWED", message, headers={"Allow": ", ".join(allowed)}))
        if err.status_code == 404:
            return _told(request, Answer("NOT_FOUND", "no such route", {"hint": "GET /openapi.json names every route"}))
        code = "INVALID_REQUEST" if err.status_code < 500 else "INTERNAL"
        return _told(request, Answer(code, "the request could not be read"))

    app.add_exception_handler(ServiceError, service_error)
    app.add_exception_handler(RequestValidationError, invalid)
    app.add_exception_handler(HTTPException, http)


def _told(request: Request, answer: Answer) -> Response:
    """A page for who looks at pages, the envelope for everybody else."""
    if request.url.path in {"/", "/ui", "/docs"} or request.url.path.startswith("/ui/"):
        return pages.error_page(request, answer)
    return problem_response(request, answer)


def _methods(request: Request) -> list[str]:
    """Every method of the path, over all routes that have it."""
    found: set[str] = set()
    for router in ROUTERS:
        for route in router.routes:
            if route.matches(request.scope)[0] is not Match.NONE:
                found |= getattr(route, "methods", None) or set()
    return sorted(found | ({"HEAD"} if "GET" in found else set()))
