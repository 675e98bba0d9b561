"""Examples of what is sent and answered; `app.web.operations` gives them to routes. A test reads each by its schema.

Identities and digests are invented.
"""

from app.core.refs import Digest
from app.services.report import NOT_PROVEN, VERIFIED
from app.web.links import recipe_links, record_links, source_links

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
REPORT = {
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
RECORD = {
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
DETAIL = {
    **RECORD,
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
LINE = {
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
VERDICT = {
    **{key: LINE[key] for key in ("recipe", "profile", "profileSelection", "criteria", "coordinate")},
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
ATTEMPT = {
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
ENTRY = {"class": "community", "label": "", "issuer": ISSUER, "source": SOURCE, "identityPattern": ""}
LISTED_SOURCE = {
    **_SIGNER,
    "why": f"the community entry 'source {SOURCE}' lists this signer by its slug",
    "records": 3,
    "recipes": [RECIPE],
    "firstSeen": "2026-05-08T10:25:02Z",
    "lastSeen": "2026-06-20T03:15:10Z",
    "links": dict(source_links(SOURCE)),
}
SUBMISSION = {
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
ANSWER = {
    "state": "SINGLE",
    "sentence": f"{RECIPE} is SINGLE, 1 of 2; 1 recipe fits, say platform to be exact",
    "asked": {"criteria": {**_CRITERIA, "platform": ""}, "profileSelection": "", "notes": []},
    "matches": [_MATCH],
    "nearest": [],
    "more": 0,
    "retired": [],
    "unbacked": 0,
}
FINGERPRINT = """fingerprint:
  service:
    value: eks
  accelerator:
    value: h100
  os:
    value: ubuntu
"""
CATALOGUE = {
    "recipe": RECIPE,
    "changed": True,
    "legacy": "sha256:5d582e1f17490000000000000000000000000000000000000000000000000000",
    "contentOnly": "sha256:12e0bffa1c880000000000000000000000000000000000000000000000000000",
    "links": dict(recipe_links(RECIPE)),
}
NOW = "2026-06-20T03:15:10Z"
