"""`/evidence` and `/verify`: bundles in, records and signed bytes out (service 3)."""

from typing import Annotated, Literal

from fastapi import APIRouter, Query, Request
from starlette.concurrency import run_in_threadpool
from starlette.responses import JSONResponse, Response

from app.core.markdown import render_markdown
from app.core.refs import Digest
from app.core.report import Report
from app.services.ingest_types import Judged, Refused, Stored
from app.services.masking import Masking
from app.services.records import shown_report
from app.web import bodies, presenting, schemas
from app.web.api.parameters import DigestPath, SourcePath, digest_of
from app.web.caching import IMMUTABLE, Rendered, conditional
from app.web.context import access_of, context
from app.web.cursors import decode_number, encode
from app.web.files import archive_response, file_response
from app.web.problems import problem_response, refused_answer
from app.web.queries import EvidenceQuery

router = APIRouter(tags=["evidence"])

Format = Annotated[Literal["json", "markdown"], Query(description="how the report is written")]
DryRun = Annotated[bool, Query(alias="dryRun", description="judge, say what would change, store nothing")]


@router.post("/evidence", response_model=schemas.Submission, status_code=201)
async def submit(request: Request, dry_run: DryRun = False) -> Response:  # noqa: FBT002
    """Take a bundle in: fetched from its registry, judged, stored, corroborated.

    Anonymous: the signature is the authority. 201 also when recorded phases failed, since failures are evidence; 200
    with the same body for the same digest and source. Who shows a token may name a bundle that only this service's
    logins can read.
    """
    here, access = context(request), access_of(request)
    asked = await bodies.submission(request, here.container.settings.max_body_bytes, access=access, dry_run=dry_run)
    result = await here.container.ingest.submit_async(asked)
    if isinstance(result, Refused):
        return await run_in_threadpool(_refusal, request, result)
    status = 201 if isinstance(result, Stored) and result.created else 200
    body = presenting.stored(result) if isinstance(result, Stored) else presenting.judged(result)
    headers = {"Cache-Control": "no-store"}
    if isinstance(result, Stored):
        headers["Location"] = body.links["self"]
    return Response(body.to_json(), status_code=status, media_type="application/json", headers=headers)


@router.post("/verify", response_model=dict[str, object])
async def verify(request: Request, format: Format = "json") -> Response:  # noqa: A002 - the parameter's public name
    """Judge a bundle and answer with the report, whatever the verdict; nothing is stored."""
    here, access = context(request), access_of(request)
    asked = await bodies.submission(request, here.container.settings.max_body_bytes, access=access, verify_only=True)
    result = await here.container.ingest.submit_async(asked)
    report = result.report if isinstance(result, Judged | Refused) else None
    if report is None:
        raise TypeError("a verification stored something")
    return await run_in_threadpool(_verified, request, report, format)


def _refusal(request: Request, result: Refused) -> Response:
    """The 422 of a verdict; its report repeats a predicate of megabytes, so it is not made on the event loop."""
    masking = Masking(context(request).container.allowlist.current().allowlist)
    return problem_response(request, refused_answer(result, presenting.refusal_details(result, masking)))


def _verified(request: Request, report: Report, form: str) -> Response:
    """The report, in a thread for the same reason."""
    shown = shown_report(report, Masking(context(request).container.allowlist.current().allowlist))
    headers = {"Cache-Control": "no-store"}
    if form == "markdown":
        return Response(render_markdown(shown), media_type="text/markdown; charset=utf-8", headers=headers)
    return JSONResponse(shown.to_json(), headers=headers)


@router.get("/evidence", response_model=schemas.Page[schemas.RecordOut])
def list_evidence(request: Request, query: Annotated[EvidenceQuery, Query()]) -> Response:
    """Records, newest first."""
    reading = context(request).records

    def render() -> Rendered:
        after = decode_number("evidence", query.cursor)
        page = reading.records(query.where(), staleness=query.reason, after=after, limit=query.limit)
        items = [presenting.record(view) for view in page.items]
        out = schemas.Page[schemas.RecordOut](items=items, next=encode("evidence", page.next))
        return Rendered(out.to_json(), valid_until=page.valid_until)

    return conditional(request, ("evidence", query, *reading.key()), render)


@router.get("/evidence/{digest}", response_model=schemas.BundleOut)
def get_evidence(request: Request, digest: DigestPath) -> Response:
    """A bundle and its records, one per source."""
    reading = context(request).records
    wanted = digest_of(digest)

    def render() -> Rendered:
        view = reading.bundle(wanted)
        return Rendered(presenting.bundle(view).to_json(), valid_until=view.valid_until)

    return conditional(request, ("bundle", wanted, *reading.key()), render)


@router.get("/evidence/{digest}/archive", response_class=Response)
async def get_archive(request: Request, digest: DigestPath) -> Response:
    """The whole artifact with its signatures as an OCI-layout tar that `verify` accepts offline."""
    here, wanted = context(request), digest_of(digest)
    return await here.apart(lambda: archive_response(request, here, wanted))


@router.get("/evidence/{digest}/files/{path:path}", response_class=Response)
async def get_file(request: Request, digest: DigestPath, path: str) -> Response:
    """One file of the bundle, as an attachment: it was written by a stranger and may hold secrets."""
    here, wanted = context(request), digest_of(digest)
    return await here.apart(lambda: file_response(request, here, wanted, path))


@router.get("/evidence/{digest}/{source}/report", response_model=dict[str, object])
async def get_report(
    request: Request,
    digest: DigestPath,
    source: SourcePath,
    format: Format = "json",  # noqa: A002 - the parameter's public name
) -> Response:
    """The verification report, judged anew from the archived bytes."""
    here, wanted = context(request), digest_of(digest)
    return await here.apart(lambda: _report(request, wanted, source, format))


def _report(request: Request, digest: Digest, source: str, form: str) -> Response:
    here = context(request)
    record = here.records.record(digest, source)
    in_force = here.container.allowlist.current()
    masking = Masking(in_force.allowlist)

    def render() -> Rendered:
        report = shown_report(here.records.report(record), masking)
        if form == "markdown":
            return Rendered(render_markdown(report).encode(), "text/markdown; charset=utf-8")
        return Rendered(bytes(JSONResponse(report.to_json()).body))

    return conditional(request, ("report", record.run.digest, record.run.source_id, form, in_force.sha256), render)


@router.get("/evidence/{digest}/{source}/predicate", response_class=Response)
def get_predicate(request: Request, digest: DigestPath, source: SourcePath) -> Response:
    """The exact signed payload: an in-toto statement, byte for byte as the signature covers it."""
    reading = context(request).records
    data = reading.payload(reading.record(digest_of(digest), source))
    return Response(data, media_type="application/vnd.in-toto+json", headers={"Cache-Control": IMMUTABLE})


@router.get("/evidence/{digest}/{source}/bundle", response_class=Response)
def get_bundle(request: Request, digest: DigestPath, source: SourcePath) -> Response:
    """The exact Sigstore bundle, byte for byte as it came."""
    reading = context(request).records
    data = reading.signature(reading.record(digest_of(digest), source)).bundle
    media = "application/vnd.dev.sigstore.bundle.v0.3+json"
    return Response(data, media_type=media, headers={"Cache-Control": IMMUTABLE})
