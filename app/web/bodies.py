"""Bodies that come in: read within a limit and a time, told apart by media type, parsed strictly.

What a pointer or a recipe means is decided in the core; here only the envelope of HTTP is opened.
"""

import asyncio
import json
from dataclasses import replace
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError
from starlette.requests import ClientDisconnect, Request

from app.core.errors import Cancelled, InputError
from app.core.jsontext import MAX_TOKENS, parse_json
from app.core.pointer import MAX_POINTER_NODES
from app.ports import Access
from app.services.catalogue import Entry
from app.services.ingest_types import IngestRequest
from app.services.submission import pinned_reference, reference_of_pointer
from app.web.instants import Instant
from app.web.naming import camel
from app.web.wording import invalid_body

READ_SECONDS = 30.0
"""How long a body may take to arrive; a drip of one byte a second ends here."""

YAML_TYPES = frozenset({"application/yaml", "application/x-yaml", "text/yaml"})
JSON_TYPES = frozenset({"application/json"})

_MAX_JSON_DEPTH = 64
_MAX_SUBMISSION_TOKENS = 2 * MAX_POINTER_NODES
"""Read on the event loop, where a megabyte of brackets would hold up everybody's request."""


class BodyTooLarge(InputError):
    """A body is over the limit of its route."""

    code = "PAYLOAD_TOO_LARGE"


class MediaTypeUnsupported(InputError):
    """A body has none of the media types that the route reads."""

    code = "UNSUPPORTED_MEDIA_TYPE"


class Body(BaseModel):
    """A JSON body: camelCase, unknown keys refused, so that a misspelt one is not silently without effect."""

    model_config = ConfigDict(alias_generator=camel, populate_by_name=False, extra="forbid", frozen=True)


BodyT = TypeVar("BodyT", bound=Body)


def _object_or_text(value: object) -> object:
    if value is None or isinstance(value, dict | str):
        return value
    raise ValueError("expected an object, or the text of a YAML file")


class SubmissionBody(Body):
    """What `POST /evidence` and `POST /verify` take: one of the two keys."""

    pointer: Annotated[dict[str, Any] | str | None, BeforeValidator(_object_or_text)] = Field(
        None, description="a pointer, as an object or as the text of its YAML file"
    )
    bundle: str | None = Field(
        None,
        description="a digest-pinned reference, `registry/repository@sha256:...`",
        examples=["ghcr.io/nvidia/aicr-evidence@sha256:" + "1f0c0ffee" + "0" * 55],
    )


class DigestsBody(Body):
    """Ready digests of a recipe, bare or prefixed."""

    legacy: Annotated[str, Field(pattern=r"^(sha256:)?[0-9a-f]{64}$")]
    content_only: Annotated[str, Field(pattern=r"^(sha256:)?[0-9a-f]{64}$")]


class CatalogueBody(Body):
    """Today's version of one recipe: its resolved text or both digests, and what is known beside them.

    What is absent stays as it was known for the same digests; empty `declared` or `floors` say that there are none.
    """

    recipe: str | None = Field(None, description="the resolved recipe, YAML; both digests are computed from it")
    digests: DigestsBody | None = None
    commit: Annotated[str, Field(max_length=64)] = ""
    ref: Annotated[str, Field(max_length=256)] = ""
    time: Instant | None = None
    declared: dict[str, list[str]] | None = Field(None, description="checks that the recipe declares, by phase")
    floors: dict[str, str] | None = Field(None, description="least figures, by name")

    def entry(self, name: str) -> Entry:
        """The same as the service takes it."""
        return Entry(
            name=name,
            text=None if self.recipe is None else self.recipe.encode("utf-8", "surrogatepass"),
            legacy="" if self.digests is None else self.digests.legacy.removeprefix("sha256:"),
            content_only="" if self.digests is None else self.digests.content_only.removeprefix("sha256:"),
            commit=self.commit,
            ref=self.ref,
            at=self.time,
            declared=self.declared,
            floors=self.floors,
        )


class NamedCatalogueBody(CatalogueBody):
    """One recipe of a bulk push; without a name the text gives it."""

    name: str = ""


class BulkBody(Body):
    """A bulk push; what stands here once holds for every recipe that does not say otherwise."""

    recipes: Annotated[list[NamedCatalogueBody], Field(max_length=10_000)]
    commit: Annotated[str, Field(max_length=64)] = ""
    ref: Annotated[str, Field(max_length=256)] = ""
    time: Instant | None = None

    def entries(self) -> list[Entry]:
        """Every recipe with what holds for all of them filled in."""
        return [
            replace(
                item.entry(item.name),
                commit=item.commit or self.commit,
                ref=item.ref or self.ref,
                at=item.time or self.time,
            )
            for item in self.recipes
        ]


async def read_body(request: Request, max_bytes: int) -> bytes:
    """The whole body, at most `max_bytes` of it, within `READ_SECONDS`.

    One that announces more is refused before a byte of it is read.
    """
    too_large = BodyTooLarge(f"expected a body of at most {max_bytes} bytes")
    announced = request.headers.get("content-length", "")
    if announced.isdecimal() and int(announced[:20]) > max_bytes:
        raise too_large
    chunks: list[bytes] = []
    size = 0
    try:
        async with asyncio.timeout(READ_SECONDS):
            async for chunk in request.stream():
                size += len(chunk)
                if size > max_bytes:
                    raise too_large
                chunks.append(chunk)
    except TimeoutError as err:
        raise Cancelled(f"the body did not arrive within {READ_SECONDS:.0f} seconds") from err
    except ClientDisconnect as err:
        raise Cancelled("the caller went away while the body was read") from err
    return b"".join(chunks)


def media_type(request: Request) -> str:
    """The media type of the body, without parameters; refuses content codings, which nobody unpacks here."""
    coding = request.headers.get("content-encoding", "identity").strip().lower()
    if coding not in ("", "identity"):
        raise MediaTypeUnsupported(f"expected a body without content coding, got {coding[:40]!r}")
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()


def unsupported(found: str, allowed: frozenset[str]) -> MediaTypeUnsupported:
    """The 415 of a route."""
    return MediaTypeUnsupported(
        f"expected {' or '.join(sorted(allowed))}, got {found[:80]!r}",
        details={"requested": found[:80], "allowed": sorted(allowed)},
    )


def parse_body(model: type[BodyT], data: bytes, *, max_tokens: int = MAX_TOKENS) -> BodyT:
    """A JSON body as its model; raises `InputError` naming every field that is wrong."""
    document = parse_json(data, max_tokens=max_tokens, max_depth=_MAX_JSON_DEPTH)
    if not isinstance(document, dict):
        raise InputError("expected a JSON object as the body")
    try:
        return model.model_validate(document)
    except ValidationError as err:
        raise invalid_body(err.errors(include_url=False, include_input=False)) from err


async def submission(
    request: Request, max_bytes: int, *, access: Access, dry_run: bool = False, verify_only: bool = False
) -> IngestRequest:
    """The bundle that a `POST` names: JSON with one key, or a pointer file as it is."""
    kind = media_type(request)
    if kind not in YAML_TYPES | JSON_TYPES:
        raise unsupported(kind, YAML_TYPES | JSON_TYPES)
    data = await read_body(request, max_bytes)
    if kind in YAML_TYPES:
        return IngestRequest(reference_of_pointer(data), data, dry_run, verify_only, access)
    body = parse_body(SubmissionBody, data, max_tokens=_MAX_SUBMISSION_TOKENS)
    match body.pointer, body.bundle:
        case None, str() as bundle:
            return IngestRequest(pinned_reference(bundle), None, dry_run, verify_only, access)
        case (dict() | str()) as pointer, None:
            text = pointer.encode("utf-8", "surrogatepass") if isinstance(pointer, str) else _as_yaml(pointer)
            return IngestRequest(reference_of_pointer(text), text, dry_run, verify_only, access)
        case _:
            raise InputError("expected one of the keys pointer and bundle")


def _as_yaml(pointer: dict[str, Any]) -> bytes:
    """A pointer object as YAML text: JSON is YAML as long as its strings are not escaped beyond need."""
    return json.dumps(pointer, ensure_ascii=False).encode("utf-8", "surrogatepass")
