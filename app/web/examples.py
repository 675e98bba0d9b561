"""One example a route: what is sent and what is answered. A test reads each through its schema.

Identities and digests are invented.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from app.core.refs import Digest
from app.services.report import NOT_PROVEN, VERIFIED
from app.web.bodies import YAML_TYPES
from app.web.links import bundle_links, recipe_links, record_links, source_links

DIGEST = "sha256:1f0c0ffee0000000000000000000000000000000000000000000000000000001"
SOURCE = "b0e01b470866f200af3b5cb4bcc303aa"
SOURCE_ID = "b0e01b470866f200af3b5cb4bcc303aabace14cac7038c3617fb975151932ad2"
RECIPE = "h100-eks-ubuntu-training-kubeflow"
LIST_SHA = "sha256:5d582e1f17490000000000000000000000000000000000000000000000000000"
ISSUER = "https://github.com/login/oauth"
MASKED = "d…e@example.org"
BUNDLE = f"ghcr.io/nvidia/aicr-evidence@{DIGEST}"
V3 = "https://aicr.run/recipe-evidence/v3"

POINTER = f"""attestations:
  - attestedAt: 2026-05-08T10:23:11Z
    bundle:
      digest: {DIGEST}
      oci: ghcr.io/nvidia/aicr-evidence
      predicateType: {V3}
    signer:
      identity: 1234567+octocat@users.noreply.github.com
      issuer: {ISSUER}
      rekorLogIndex: 116117000
recipe: {RECIPE}
schemaVersion: 1.0.0
"""

RECIPE_YAML = """apiVersion: aicr.run/v1
kind: RecipeResult
criteria:
  service: eks
  accelerator: h100
  os: ubuntu
  intent: training
  platform: kubeflow
componentRefs:
  - name: gpu-operator
    version: v25.3.0
"""

_CRITERIA = {"service": "eks", "accelerator": "h100", "os": "ubuntu", "intent": "training", "platform": "kubeflow"}
_COORDINATE = "eks/h100-ubuntu/training-kubeflow"
_PHASES = {"deployment": "CONFIRMED", "conformance": "SINGLE", "performance": "UNTESTED"}
_RECORD_LINKS = dict(record_links(Digest.parse(DIGEST), SOURCE, RECIPE))
_REPORT = {
    "input": "oci",
    "signer": {"identity": MASKED, "issuer": ISSUER, "rekorLogIndex": 116117000},
    "recipeName": RECIPE,
    "bundleDigest": DIGEST,
    "steps": [
        {"step": 1, "name": "materialize-bundle", "status": "passed"},
        {"step": 2, "name": "signature-verify", "status": "passed"},
        {"step": 3, "name": "predicate-parse", "status": "passed"},
        {"step": 4, "name": "manifest-hash-check", "status": "passed"},
        {"step": 5, "name": "render-summary", "status": "informational"},
    ],
    "exit": 0,
}
_SIGNER = {
    "source": SOURCE,
    "sourceId": SOURCE_ID,
    "identity": MASKED,
    "issuer": ISSUER,
    "label": "",
    "class": "community",
    "allowlisted": True,
    "party": MASKED,
}
_RECORD = {
    "digest": DIGEST,
    "source": SOURCE,
    "recipe": RECIPE,
    "profile": "",
    "profileSelection": "",
    "coordinate": _COORDINATE,
    "criteria": _CRITERIA,
    "class": "community",
    "allowlisted": True,
    "outcome": "passed",
    "exit": 0,
    "predicateType": V3,
    "recipeDigest": "sha256:12e0bffa1c880000000000000000000000000000000000000000000000000000",
    "aicrVersion": "v1.0.0",
    "aicrCommit": "0123456789abcdef0123456789abcdef01234567",
    "k8sVersion": "1.35.5",
    "k8sConstraint": ">= 1.33",
    "signer": _SIGNER,
    "root": {
        "name": "public-good",
        "sha256": "sha256:6494e21ea73fa7ee769f85f57d5a3e6a08725eae1e38c755fc3517c9e6bc0b66",
    },
    "log": {"origin": "rekor.sigstore.dev", "id": "c0d23d6ad406973f", "index": 116117000, "kind": "dsse"},
    "runUrl": "",
    "attestedAt": "2026-05-08T10:23:11Z",
    "loggedAt": "2026-05-08T10:23:40Z",
    "receivedAt": "2026-05-08T10:25:02Z",
    "phases": [{"phase": "deployment", "passed": 12, "failed": 0, "skipped": 1, "ctrfDigest": "sha256:" + "a" * 64}],
    "hardwareMatched": True,
    "remarks": [],
    "staleness": {
        "now": [],
        "atIngest": {"before": "SINGLE", "after": "CONFIRMED", "staleness": [], "commit": "0123456"},
    },
    "links": _RECORD_LINKS,
}
_DETAIL = {
    **_RECORD,
    "results": [
        {
            "phase": "deployment",
            "name": "operator-health",
            "status": "passed",
            "durationMs": 1200,
            "skipReason": "",
            "runtimeSource": "delivered-artifact",
        }
    ],
    "dimensions": [{"dimension": "accelerator", "match": "matched", "requires": "h100", "provides": "h100"}],
    "overriddenPaths": [],
    "validatorImages": [],
}
_ROW = {
    "phase": "deployment",
    "name": "operator-health",
    "consensus": "SINGLE",
    "passes": 1,
    "fails": 0,
    "reported": 0,
    "counted": True,
    "declared": True,
    "skipReasons": [],
    "signers": [
        {
            "source": SOURCE,
            "sourceId": SOURCE_ID,
            "result": "pass",
            "status": "passed",
            "counts": True,
            "weight": "counted",
            "digest": DIGEST,
            "aicrVersion": "v1.0.0",
            "aicrCommit": "",
            "k8sVersion": "1.35.5",
            "attestedAt": "2026-05-08T10:23:11Z",
            "skipReason": "",
            "runUrl": "",
            "dimmed": False,
        }
    ],
}
_LINE = {
    "recipe": RECIPE,
    "profile": "",
    "profileSelection": "",
    "criteria": _CRITERIA,
    "coordinate": _COORDINATE,
    "state": "SINGLE",
    "currentState": "SINGLE",
    "phaseStates": _PHASES,
    "confirming": 1,
    "failing": 0,
    "reported": 0,
    "passes": 1,
    "currentPasses": 1,
    "threshold": 2,
    "parties": 1,
    "sources": 1,
    "classes": ["community"],
    "digests": 1,
    "missing": 1,
    "newest": "2026-05-08T10:23:11Z",
    "staleness": [],
    "published": True,
    "retired": False,
    "links": dict(recipe_links(RECIPE)),
}
_MISSING = {
    "code": "more-signers",
    "message": "one more signer for deployment/operator-health",
    "phase": "deployment",
    "name": "operator-health",
    "needed": 2,
    "have": 1,
    "source": "",
    "digest": "",
}
_VERDICT = {
    **{key: _LINE[key] for key in ("recipe", "profile", "profileSelection", "criteria", "coordinate")},
    "state": "SINGLE",
    "currentState": "SINGLE",
    "phaseStates": _PHASES,
    "confirming": 1,
    "failing": 0,
    "reported": 0,
    "parties": 1,
    "digests": 1,
    "newest": "2026-05-08T10:23:11Z",
    "staleness": [],
    "view": {
        "aicrVersion": "",
        "aicrCommit": "",
        "k8s": "",
        "asOf": None,
        "confirmBy": "signer",
        "confirmThreshold": 2,
    },
    "rows": [_ROW],
    "current": None,
    "versions": [{"aicrVersion": "v1.0.0", "aicrCommit": "", "state": "SINGLE", "phaseStates": _PHASES}],
    "sources": [],
    "setAside": [],
    "missing": [_MISSING],
    "remarks": [],
    "catalogue": None,
    "verified": list(VERIFIED),
    "notProven": list(NOT_PROVEN),
    "links": dict(recipe_links(RECIPE)),
}
_ATTEMPT = {
    "id": 41,
    "reference": BUNDLE,
    "digest": DIGEST,
    "outcome": "refused",
    "step": "signature-verify",
    "code": "S5_BASE64_NOT_CANONICAL",
    "cause": {"class": "signature", "detail": "expected canonical base64 in the payload"},
    "firstAt": "2026-05-08T10:25:02Z",
    "lastAt": "2026-05-08T10:31:44Z",
    "count": 2,
    "source": "",
    "recipe": "",
    "links": {"self": "/attempts/41"},
}
_ENTRY = {"class": "community", "label": "", "issuer": ISSUER, "source": SOURCE, "identityPattern": ""}
_SOURCE = {
    **_SIGNER,
    "why": f"the community entry 'source {SOURCE}' lists this signer by its slug",
    "records": 3,
    "recipes": [RECIPE],
    "firstSeen": "2026-05-08T10:25:02Z",
    "lastSeen": "2026-06-20T03:15:10Z",
    "links": dict(source_links(SOURCE)),
}
_SUBMISSION = {
    "digest": DIGEST,
    "recipe": RECIPE,
    "source": SOURCE,
    "class": "community",
    "allowlisted": True,
    "exit": 0,
    "state": {"before": "SINGLE", "after": "CONFIRMED"},
    "remarks": [],
    "links": _RECORD_LINKS,
}
_MATCH = {
    "recipe": RECIPE,
    "criteria": _CRITERIA,
    "profileSelection": "",
    "state": "SINGLE",
    "currentState": "SINGLE",
    "passes": 1,
    "threshold": 2,
    "backing": "catalogue",
    "staleness": [],
    "differs": [],
    "unsaid": ["platform"],
    "general": [],
    "command": "aicr recipe --service eks --accelerator h100 --os ubuntu --intent training --platform kubeflow",
    "config": "kind: AICRConfig\napiVersion: aicr.run/v1alpha2\n",
    "links": dict(recipe_links(RECIPE)),
}
_ANSWER = {
    "state": "SINGLE",
    "sentence": f"{RECIPE} is SINGLE, 1 of 2; 1 recipe fits, say platform to be exact",
    "asked": {"criteria": {**_CRITERIA, "platform": ""}, "profileSelection": "", "notes": []},
    "matches": [_MATCH],
    "nearest": [],
    "more": 0,
    "retired": [],
    "unbacked": 0,
}
_FINGERPRINT = """fingerprint:
  service:
    value: eks
  accelerator:
    value: h100
  os:
    value: ubuntu
"""
_CATALOGUE = {
    "recipe": RECIPE,
    "changed": True,
    "legacy": "sha256:5d582e1f17490000000000000000000000000000000000000000000000000000",
    "contentOnly": "sha256:12e0bffa1c880000000000000000000000000000000000000000000000000000",
    "links": dict(recipe_links(RECIPE)),
}
_NOW = "2026-06-20T03:15:10Z"


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
        _SUBMISSION,
        also={200: "known already, or a dry run: the same body"},
        bodies=_SUBMIT_BODIES,
        errors=(*_POST_ERRORS, "CONFLICT", "EVIDENCE_REFUSED"),
        token=Token.OPTIONAL,
    ),
    "verify": RouteDoc(
        _REPORT, bodies=_SUBMIT_BODIES, raw=("text/markdown",), errors=_POST_ERRORS, token=Token.OPTIONAL
    ),
    "list_evidence": RouteDoc({"items": [_RECORD], "next": None}, tagged=True),
    "get_evidence": RouteDoc(
        {
            "digest": DIGEST,
            "records": [_DETAIL],
            "locations": [{"reference": BUNDLE, "firstSeen": _NOW, "lastSeen": _NOW, "public": True}],
            "verified": list(VERIFIED),
            "notProven": list(NOT_PROVEN),
            "links": dict(bundle_links(Digest.parse(DIGEST))),
        },
        errors=("NOT_FOUND",),
        tagged=True,
    ),
    "get_archive": RouteDoc(raw=("application/x-tar",), errors=("NOT_FOUND",)),
    "get_file": RouteDoc(raw=("application/octet-stream",), errors=("NOT_FOUND",)),
    "get_report": RouteDoc(_REPORT, raw=("text/markdown",), errors=("NOT_FOUND",), tagged=True),
    "get_predicate": RouteDoc(raw=("application/vnd.in-toto+json",), errors=("NOT_FOUND",)),
    "get_bundle": RouteDoc(raw=("application/vnd.dev.sigstore.bundle.v0.3+json",), errors=("NOT_FOUND",)),
    "list_attempts": RouteDoc({"items": [_ATTEMPT], "next": None}, tagged=True),
    "get_attempt": RouteDoc(_ATTEMPT, errors=("NOT_FOUND",), tagged=True),
    "list_recipes": RouteDoc({"items": [_LINE], "next": None}, tagged=True),
    "get_recipe": RouteDoc(_VERDICT, errors=("NOT_FOUND",), tagged=True),
    "put_recipe": RouteDoc(
        _CATALOGUE,
        bodies={
            **_yaml(RECIPE_YAML),
            "application/json": {
                "digests": {"legacy": _CATALOGUE["legacy"], "contentOnly": _CATALOGUE["contentOnly"]},
                "commit": "0123456789abcdef0123456789abcdef01234567",
                "ref": "refs/heads/main",
                "time": _NOW,
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
    "get_answer": RouteDoc(_ANSWER, tagged=True),
    "post_answer": RouteDoc(
        _ANSWER,
        bodies={
            **_yaml(_FINGERPRINT),
            "application/json": {"criteria": {"service": "eks", "accelerator": "h100", "intent": "training"}},
        },
        errors=_BODY_ERRORS,
    ),
    "get_allowlist": RouteDoc(
        {"sha256": LIST_SHA, "since": _NOW, "status": "ok", "problem": None, "entries": [_ENTRY]}, tagged=True
    ),
    "list_allowlist_versions": RouteDoc(
        {"items": [{"sha256": LIST_SHA, "since": _NOW, "added": [_ENTRY], "removed": []}], "next": None},
        tagged=True,
    ),
    "list_sources": RouteDoc({"items": [_SOURCE], "next": None}, tagged=True),
    "get_source": RouteDoc(_SOURCE, errors=("NOT_FOUND",), tagged=True),
    "health": RouteDoc({"status": "healthy", "timestamp": _NOW}),
    "ready": RouteDoc(
        {
            "status": "ready",
            "parts": {"database": "ok", "archive": "ok", "judge": "ok"},
            "timestamp": _NOW,
            "reason": None,
        }
    ),
}
"""By operation id, which is the name of the route's function."""

EVERY_ROUTE_ERRORS = ("INVALID_REQUEST", "RATE_LIMIT_EXCEEDED", "INTERNAL", "SERVICE_UNAVAILABLE")
PROBE_ERRORS = ("INTERNAL",)
"""Of the routes that a rate limit does not hold, that need no store to answer and ignore every parameter."""

PROBES = frozenset({"health", "ready"})
