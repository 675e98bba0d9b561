"""Every code that a fetch can end with: cause, cure, category, and whether it means "too large".

One table, so that `docs/errors.md` can be made from it and the HTTP layer can tell 413 from 422.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from app.core.errors import Category, FetchError


@dataclass(frozen=True, slots=True)
class FetchCode:
    """One stable code; `cause` says what was met, `cure` what to do, `oversize` that a size limit spoke."""

    code: str
    cause: str
    cure: str
    category: Category = Category.INVALID_REQUEST
    oversize: bool = False


_RETRY_FORM = "the registry could not be read; nothing was decided, try again"

_CODES = (
    FetchCode(
        "REGISTRY_FORBIDDEN",
        "The registry answered 401 or 403.",
        "make the package public, or supply credentials for this registry",
        Category.UNAUTHORIZED,
    ),
    FetchCode(
        "REGISTRY_NOT_FOUND",
        "The registry answered 404.",
        "check that the artifact was pushed to this registry and repository",
        Category.NOT_FOUND,
    ),
    FetchCode(
        "REGISTRY_RATE_LIMITED",
        "The registry answered 429 and asked for a longer pause than the deadline allows, or kept answering 429.",
        "the registry limits the rate of requests; try again later",
        Category.RATE_LIMITED,
    ),
    FetchCode(
        "REGISTRY_ERROR",
        "The registry answered with a status of 500 or above, also after the retries.",
        "the registry failed on its own side; try again later",
        Category.UNAVAILABLE,
    ),
    FetchCode(
        "REGISTRY_ANSWER",
        "The registry answered with a status that a read does not expect.",
        "check that the host speaks the OCI distribution API",
    ),
    FetchCode(
        "REGISTRY_TIMEOUT",
        "The pull did not finish before its deadline, or a single read took too long.",
        _RETRY_FORM,
        Category.TIMEOUT,
    ),
    FetchCode(
        "REGISTRY_UNREACHABLE",
        "The name did not resolve, the connection or TLS failed, or the answer broke off.",
        _RETRY_FORM,
        Category.UNAVAILABLE,
    ),
    FetchCode(
        "STORAGE_UNAVAILABLE",
        "The private directory could not be written (disk full, permissions).",
        "free space for the service's temporary directory, then try again",
        Category.UNAVAILABLE,
    ),
    FetchCode(
        "ADDRESS_REFUSED",
        "The host resolves to no public address (loopback, private, link-local, metadata, mapped, reserved).",
        "name the host in AICR_EVIDENCE_PRIVATE_REGISTRIES if it is a registry of yours",
    ),
    FetchCode(
        "REDIRECT_REFUSED",
        "The registry redirected too often, to plain http, to a malformed address, or its paging left the registry.",
        "serve the content over https from a public host; plain http hosts go into AICR_EVIDENCE_PLAIN_HTTP_REGISTRIES",
    ),
    FetchCode(
        "REALM_REFUSED",
        "The registry sent us to a token server that is not its own host, or over plain http.",
        "name the token server in AICR_EVIDENCE_TOKEN_REALMS if you trust it",
    ),
    FetchCode(
        "TOKEN_INVALID",
        "The token server's answer is no usable token.",
        "check the registry's token server",
    ),
    FetchCode(
        "DIGEST_MISMATCH",
        "Bytes do not hash to the digest that names them, or the registry announced another digest.",
        "the registry or something on the way altered the content; push the artifact again",
    ),
    FetchCode(
        "SIZE_MISMATCH",
        "A body is longer or shorter than its descriptor says.",
        "the registry or something on the way altered the content; push the artifact again",
    ),
    FetchCode(
        "BODY_TOO_LARGE",
        "A manifest, blob, signature or the unpacked bundle is over its size limit.",
        "make the bundle smaller, or raise the limit in the settings",
        oversize=True,
    ),
    FetchCode(
        "MANIFEST_INVALID",
        "The manifest or index is not strict JSON, or not the shape that evidence has.",
        "publish with a tool that writes the evidence artifact: one tar+gzip layer, empty config, artifact type",
    ),
    FetchCode(
        "LAYER_UNSAFE",
        "The layer holds something other than plain files and directories at safe, distinct paths, or is malformed.",
        "pack regular files and directories only, each path once",
    ),
    FetchCode(
        "BOMB",
        "The layer expands out of proportion to its compressed size.",
        "pack the bundle without padding",
    ),
    FetchCode(
        "REFERRERS_TOO_MANY",
        "The artifact has more signature referrers, or more pages of them, than the limit.",
        "remove superfluous signatures from the repository",
    ),
    FetchCode(
        "REFERRER_INVALID",
        "A listed signature is not a signature of this artifact: other subject, other type, or not one layer.",
        "remove the wrong referrer, or the wrong fallback tag, from the repository",
    ),
    FetchCode(
        "LAYOUT_INVALID",
        "The archive is no OCI layout of exactly one evidence artifact, or a part that it names is missing.",
        "use the tar as the service or an OCI tool wrote it, with all its blobs",
    ),
)

FETCH_CODES: Mapping[str, FetchCode] = {entry.code: entry for entry in _CODES}
"""code -> what it means; the only codes that `OciRegistry` and the layout reader use."""

OVERSIZE_CODES = frozenset(entry.code for entry in _CODES if entry.oversize)
"""Codes that the HTTP layer answers with 413."""


def fetch_error(
    code: str,
    message: str,
    *,
    http_status: int | None = None,
    retry_after_seconds: int | None = None,
) -> FetchError:
    """A `FetchError` of the table, with its category and cure."""
    entry = FETCH_CODES[code]
    return FetchError(
        message,
        code=code,
        category=entry.category,
        hint=entry.cure,
        http_status=http_status,
        retry_after_seconds=retry_after_seconds,
    )


def status_error(status: int, message: str, *, retry_after_seconds: int | None = None) -> FetchError:
    """The error of a registry's answer (evidence-format 8.4, rows 1 to 5)."""
    if status in {401, 403}:
        code = "REGISTRY_FORBIDDEN"
    elif status == 404:
        code = "REGISTRY_NOT_FOUND"
    elif status == 429:
        code = "REGISTRY_RATE_LIMITED"
    elif status >= 500:
        code = "REGISTRY_ERROR"
    else:
        code = "REGISTRY_ANSWER"
    return fetch_error(code, message, http_status=status, retry_after_seconds=retry_after_seconds)
