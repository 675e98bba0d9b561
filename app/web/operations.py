"""What the contract says of each route beside its signature: examples, bodies, errors, tokens."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from app.core.refs import Digest
from app.services.report import NOT_PROVEN, VERIFIED
from app.web.bodies import YAML_TYPES
from app.web.examples import (
    ANSWER,
    ATTEMPT,
    BUNDLE,
    CATALOGUE,
    DETAIL,
    DIGEST,
    ENTRY,
    FINGERPRINT,
    LINE,
    LIST_SHA,
    LISTED_SOURCE,
    NOW,
    POINTER,
    RECIPE,
    RECIPE_YAML,
    RECORD,
    REPORT,
    SUBMISSION,
    VERDICT,
)
from app.web.links import bundle_links


class Token(StrEnum):
    """What a bearer token is to a route."""

    UNUSED = "unused"
    OPTIONAL = "optional"
    REQUIRED = "required"


@dataclass(frozen=True, slots=True)
class RouteDoc:
    """What the contract says of one operation beside its signature.

    `bodies` maps media types to what is sent, `answer` is the example of the successful status, `raw` names the media
    types of answers that are bytes, `errors` the codes it can answer with beside those of every route, `tagged` whether
    it has an `ETag` and answers 304, `token` whether it reads the bearer token.
    """

    answer: object | None = None
    also: Mapping[int, str] = field(default_factory=dict)
    bodies: Mapping[str, object] = field(default_factory=dict)
    raw: tuple[str, ...] = ()
    errors: tuple[str, ...] = ()
    tagged: bool = False
    token: Token = Token.UNUSED


_BODY_ERRORS = ("CANCELED", "PAYLOAD_TOO_LARGE", "UNSUPPORTED_MEDIA_TYPE")
_PUSH_ERRORS = (*_BODY_ERRORS, "UNAUTHORIZED", "FORBIDDEN")
_POST_ERRORS = (*_BODY_ERRORS, "UNAUTHORIZED", "REGISTRY_NOT_TRUSTED", "JUDGE_CRASHED")


def _yaml(example: str) -> Mapping[str, object]:
    """A YAML body under each name that its media type has, the registered one (RFC 9512) first."""
    registered = "application/yaml"
    return dict.fromkeys([registered, *sorted(YAML_TYPES - {registered})], example)


_SUBMIT_BODIES: Mapping[str, object] = {"application/json": {"bundle": BUNDLE}, **_yaml(POINTER)}

ROUTES: Mapping[str, RouteDoc] = {
    "submit": RouteDoc(
        SUBMISSION,
        also={200: "known already, or a dry run: the same body"},
        bodies=_SUBMIT_BODIES,
        errors=(*_POST_ERRORS, "CONFLICT", "EVIDENCE_REFUSED"),
        token=Token.OPTIONAL,
    ),
    "verify": RouteDoc(
        REPORT, bodies=_SUBMIT_BODIES, raw=("text/markdown",), errors=_POST_ERRORS, token=Token.OPTIONAL
    ),
    "list_evidence": RouteDoc({"items": [RECORD], "next": None}, tagged=True),
    "get_evidence": RouteDoc(
        {
            "digest": DIGEST,
            "records": [DETAIL],
            "locations": [{"reference": BUNDLE, "firstSeen": NOW, "lastSeen": NOW, "public": True}],
            "verified": list(VERIFIED),
            "notProven": list(NOT_PROVEN),
            "links": dict(bundle_links(Digest.parse(DIGEST))),
        },
        errors=("NOT_FOUND",),
        tagged=True,
    ),
    "get_archive": RouteDoc(raw=("application/x-tar",), errors=("NOT_FOUND",)),
    "get_file": RouteDoc(raw=("application/octet-stream",), errors=("NOT_FOUND",)),
    "get_report": RouteDoc(REPORT, raw=("text/markdown",), errors=("NOT_FOUND",), tagged=True),
    "get_predicate": RouteDoc(raw=("application/vnd.in-toto+json",), errors=("NOT_FOUND",)),
    "get_bundle": RouteDoc(raw=("application/vnd.dev.sigstore.bundle.v0.3+json",), errors=("NOT_FOUND",)),
    "list_attempts": RouteDoc({"items": [ATTEMPT], "next": None}, tagged=True),
    "get_attempt": RouteDoc(ATTEMPT, errors=("NOT_FOUND",), tagged=True),
    "list_recipes": RouteDoc({"items": [LINE], "next": None}, tagged=True),
    "get_recipe": RouteDoc(VERDICT, errors=("NOT_FOUND",), tagged=True),
    "put_recipe": RouteDoc(
        CATALOGUE,
        bodies={
            **_yaml(RECIPE_YAML),
            "application/json": {
                "digests": {"legacy": CATALOGUE["legacy"], "contentOnly": CATALOGUE["contentOnly"]},
                "commit": "0123456789abcdef0123456789abcdef01234567",
                "ref": "refs/heads/main",
                "time": NOW,
                "declared": {"deployment": ["operator-health"]},
                "floors": {},
            },
        },
        errors=(*_PUSH_ERRORS, "NOT_FOUND"),
        token=Token.REQUIRED,
    ),
    "put_recipes": RouteDoc(
        {"received": 1, "changed": [RECIPE], "retired": []},
        bodies={
            "application/json": {
                "commit": "0123456789abcdef0123456789abcdef01234567",
                "recipes": [{"name": RECIPE, "recipe": RECIPE_YAML}],
            }
        },
        errors=_PUSH_ERRORS,
        token=Token.REQUIRED,
    ),
    "get_answer": RouteDoc(ANSWER, tagged=True),
    "post_answer": RouteDoc(
        ANSWER,
        bodies={
            **_yaml(FINGERPRINT),
            "application/json": {"criteria": {"service": "eks", "accelerator": "h100", "intent": "training"}},
        },
        errors=_BODY_ERRORS,
    ),
    "get_allowlist": RouteDoc(
        {"sha256": LIST_SHA, "since": NOW, "status": "ok", "problem": None, "entries": [ENTRY]}, tagged=True
    ),
    "list_allowlist_versions": RouteDoc(
        {"items": [{"sha256": LIST_SHA, "since": NOW, "added": [ENTRY], "removed": []}], "next": None},
        tagged=True,
    ),
    "list_sources": RouteDoc({"items": [LISTED_SOURCE], "next": None}, tagged=True),
    "get_source": RouteDoc(LISTED_SOURCE, errors=("NOT_FOUND",), tagged=True),
    "health": RouteDoc({"status": "healthy", "timestamp": NOW}),
    "ready": RouteDoc(
        {
            "status": "ready",
            "parts": {"database": "ok", "archive": "ok", "judge": "ok"},
            "timestamp": NOW,
            "reason": None,
        }
    ),
}
"""By operation id, which is the name of the route's function."""

EVERY_ROUTE_ERRORS = ("INVALID_REQUEST", "RATE_LIMIT_EXCEEDED", "INTERNAL", "SERVICE_UNAVAILABLE")
PROBE_ERRORS = ("INTERNAL",)
"""Of the routes that a rate limit does not hold, that need no store to answer and ignore every parameter."""

PROBES = frozenset({"health", "ready"})
