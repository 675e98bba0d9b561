"""What a route reaches through its request: the services, the settings, and who may do what.

Routes stay five lines: they parse, ask one of these, and return a schema.
"""

import hmac
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from anyio import CapacityLimiter
from anyio.to_thread import run_sync
from pydantic import SecretStr
from starlette.requests import Request
from starlette.responses import Response

from app.config import Settings
from app.core.errors import ForbiddenError
from app.core.refs import Digest
from app.core.verdict import ConfirmRule
from app.ports import Access, BundleArchive, Clock, EvidenceStore, Judge
from app.services.catalogue import CatalogueService, ProjectsByList
from app.services.ingest_types import IngestRequest, IngestResult
from app.services.records import RecordReading
from app.services.report import AllowlistHolder, RecipeReading


class Ingest(Protocol):
    """Takes a bundle in, on its own executor."""

    async def submit_async(self, request: IngestRequest) -> IngestResult:
        """`Stored`, `Judged` or `Refused`; raises what no verdict was reached about."""


class Archive(BundleArchive, Protocol):
    """An archive that also writes a digest as a tar."""

    def export_tar(self, digest: Digest, /) -> Iterator[bytes]:
        """An OCI layout of the digest with its signatures; raises `NotFoundError` before the first byte."""


class ListInForce(AllowlistHolder, ProjectsByList, Protocol):
    """The list in force, for readers and for who writes."""


class Container(Protocol):
    """What the web needs of the composition root."""

    @property
    def settings(self) -> Settings:
        """The settings in force."""

    @property
    def store(self) -> EvidenceStore:
        """The rows."""

    @property
    def archive(self) -> Archive:
        """The bundles."""

    @property
    def judge(self) -> Judge:
        """Judges an archived bundle again for its report."""

    @property
    def ingest(self) -> Ingest:
        """Takes bundles in."""

    @property
    def clock(self) -> Clock:
        """Now."""

    @property
    def allowlist(self) -> ListInForce:
        """The list in force."""

    @property
    def rule(self) -> ConfirmRule:
        """The settings that weigh."""

    def ready(self) -> dict[str, str]:
        """The state of each part by name; `ok` when it answers."""


UNPACKING_AT_ONCE = 4
"""What unpacks a bundle, judges it again or reads a snapshot; more of it waits without a thread or a directory."""


@dataclass(frozen=True, slots=True)
class Context:
    """The services behind the routes."""

    container: Container
    recipes: RecipeReading
    records: RecordReading
    catalogue: CatalogueService
    unpacking: CapacityLimiter

    async def apart(self, work: Callable[[], Response]) -> Response:
        """Do `work`, which unpacks a bundle or reads a large document, beside the threads that serve cheap reads."""
        return await run_sync(work, limiter=self.unpacking)


def context(request: Request) -> Context:
    """The context of the application that serves this request."""
    found: Context = request.app.state.context
    return found


def require_token(request: Request, tokens: Sequence[SecretStr], setting: str) -> None:
    """Admit a caller with one of `tokens`; raises `ForbiddenError`."""
    if not tokens:
        raise ForbiddenError(
            f"this route is closed: {setting} is not set",
            code="FORBIDDEN",
            hint=f"set {setting} and restart the service",
        )
    offered = _bearer(request)
    if not offered:
        raise ForbiddenError("expected a bearer token", hint="send `Authorization: Bearer <token>`")
    if not _matches(offered, tokens):
        raise ForbiddenError("the bearer token is wrong")


def access_of(request: Request) -> Access:
    """Whether a bundle is pulled with this service's logins: for who shows a token, never for an anonymous caller.

    Any token will do, the catalogue's (a CI job) or the administrators'; a wrong one is refused, not passed over. An
    `Authorization` that can not be meant for this service is: a proxy forwards its own `Basic`, and where no token is
    set nobody was given one.
    """
    settings = context(request).container.settings
    tokens = (*settings.catalogue_token, *settings.admin_token)
    offered = _bearer(request)
    if offered is None or not tokens:
        return Access.ANONYMOUS
    if not _matches(offered, tokens):
        raise ForbiddenError("the bearer token is wrong", hint="leave Authorization out to submit anonymously")
    return Access.CREDENTIALED


def _bearer(request: Request) -> str | None:
    """The bearer token of a request, None when it shows none; an empty one is one, and matches nothing."""
    scheme, _, given = request.headers.get("authorization", "").partition(" ")
    return given.strip() if scheme.lower() == "bearer" else None


def _matches(offered: str, tokens: Sequence[SecretStr]) -> bool:
    """Whether it is one of `tokens`, in the same time for each wrong one."""
    data = offered.encode("utf-8", "surrogatepass")
    matches = [hmac.compare_digest(data, token.get_secret_value().encode()) for token in tokens]
    return any(matches)
