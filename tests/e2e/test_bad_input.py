"""What bad input gets: a clear error with step, code and cause, nothing lost, and every attempt on record."""

import base64
import json
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import httpx
import pytest

from app.adapters.oci.pack import BundleArtifact, canonical_json, describe_bundle, describe_signature, sha256
from app.core.produce import artifact_statement
from app.core.refs import OciRef
from app.sandbox.demo.samples import AICR_VERSION, forge
from app.sandbox.identities import OCTOCAT, UAT_AWS, caller_of
from app.sandbox.registry import AuthMode, Behaviour, Hostility, RegistryAuth, SandboxRegistry
from app.sandbox.sigstore import PrivateSigstore
from tests.support.endtoend import (
    NOW,
    RECIPE,
    Service,
    Signing,
    StatusRegistry,
    bundle_of,
    service,
    watch_connections,
)
from tests.support.runs import allowlist_text

DIGEST = f"sha256:{'ab' * 32}"
V3 = "https://aicr.run/recipe-evidence/v3"


@dataclass(frozen=True)
class Stage:
    """A service that trusts three registries: an honest or hostile one, one with basic auth, one of statuses."""

    service: Service
    sigstore: Signing
    registry: SandboxRegistry
    closed: SandboxRegistry
    statuses: StatusRegistry

    def plant(self, artifact: BundleArtifact, *bundles: bytes) -> OciRef:
        """Hold an artifact with those Sigstore bundles as its signatures."""
        return self.registry.seed(
            "aicr/evidence", artifact, [describe_signature(artifact.descriptor, bundle) for bundle in bundles]
        )

    def sign(self, artifact: BundleArtifact, predicate: Mapping[str, object], **changes: Any) -> bytes:
        """A signature over an artifact, as it should be but for the changes."""
        statement = artifact_statement(V3, predicate, "registry.example.org/evidence:one", artifact.digest.hex)
        document = json.loads(statement) | changes
        return self.sigstore.sign(json.dumps(document).encode(), OCTOCAT)


@pytest.fixture(scope="module")
def stage(sigstore: Signing, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    auth = RegistryAuth(AuthMode.BASIC, {"octocat": "sandbox-password"}, anonymous_pull=False)
    directory = tmp_path_factory.mktemp("service")
    with SandboxRegistry() as registry, SandboxRegistry(auth=auth) as closed, StatusRegistry() as statuses:
        hosts = [registry.host, closed.host, statuses.host]
        limits = {"pull_timeout_seconds": 3, "max_signature_bytes": 256 << 10, "max_inflight_bytes": 1 << 30}
        with service(directory, sigstore.trusted_root, hosts, [OCTOCAT], **limits) as up:
            yield Stage(up, sigstore, registry, closed, statuses)


def pack(files: Mapping[str, bytes]) -> BundleArtifact:
    return describe_bundle(files, predicate_type=V3, version=AICR_VERSION)


def with_manifest(artifact: BundleArtifact, edit: Callable[[dict[str, Any]], object]) -> BundleArtifact:
    """The same content under another manifest, and so another digest."""
    document = json.loads(artifact.manifest)
    edit(document)
    manifest = canonical_json(document)
    return replace(artifact, manifest=manifest, digest=sha256(manifest))


# --- before anything is fetched ------------------------------------------------------------------------


def test_an_untrusted_registry_is_refused_before_any_network_access(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    with SandboxRegistry() as elsewhere:
        ref = elsewhere.seed("aicr/evidence", pack(bundle_of().files))
        service_port = stage.service.http.base_url.port
        seen = watch_connections(monkeypatch)
        answer = stage.service.submit(ref)
        assert [each for each in seen if each[1] != service_port] == []  # type: ignore[index]
        assert elsewhere.log == []
    body = answer.json()
    assert (answer.status_code, body["code"], body["retryable"]) == (403, "REGISTRY_NOT_TRUSTED", False)
    assert "AICR_EVIDENCE_TRUSTED_REGISTRIES" in body["details"]["hint"]
    assert elsewhere.host in body["details"]["hint"]
    (attempt,) = stage.service.attempts(ref.digest)
    assert (attempt["outcome"], attempt["code"], attempt["reference"]) == ("refused", "REGISTRY_NOT_TRUSTED", str(ref))


def test_a_name_on_an_untrusted_registry_is_not_even_looked_up(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = watch_connections(monkeypatch)
    answer = stage.service.submit(f"registry.example.org/aicr/evidence@{DIGEST}")
    assert (answer.status_code, answer.json()["code"]) == (403, "REGISTRY_NOT_TRUSTED")
    assert not any("registry.example.org" in str(each) for each in seen)


@pytest.mark.parametrize(
    ("reference", "said"),
    [
        pytest.param("{host}/aicr/evidence:v1", "expected a reference with a digest, got the tag 'v1'", id="tag"),
        pytest.param("{host}/aicr/evidence", "", id="neither"),
        pytest.param("{host}/aicr/evidence@sha256:abc", "", id="short-digest"),
        pytest.param("{host}/aicr/../evidence@" + DIGEST, "", id="dot-dot"),
        pytest.param("", "", id="empty"),
        pytest.param("not a reference", "", id="spaces"),
    ],
)
def test_what_is_no_pinned_reference_is_a_bad_request(stage: Stage, reference: str, said: str) -> None:
    answer = stage.service.submit(reference.format(host=stage.registry.host))
    assert (answer.status_code, answer.json()["code"]) == (400, "INVALID_REQUEST")
    assert said in answer.json()["message"]


@pytest.mark.parametrize(
    ("content", "kind", "status", "code"),
    [
        pytest.param(b"{", "application/json", 400, "INVALID_REQUEST", id="half-json"),
        pytest.param(b"[]", "application/json", 400, "INVALID_REQUEST", id="list"),
        pytest.param(b'{"bundle": 1}', "application/json", 400, "INVALID_REQUEST", id="number"),
        pytest.param(b"{}", "application/json", 400, "INVALID_REQUEST", id="nothing-named"),
        pytest.param(b"a: &a [*a]", "application/yaml", 400, "INVALID_REQUEST", id="yaml-alias"),
        pytest.param(b"recipe: x", "application/yaml", 400, "INVALID_REQUEST", id="no-pointer"),
        pytest.param(b"\xff\xfe", "application/yaml", 400, "INVALID_REQUEST", id="not-utf-8"),
        pytest.param(b"x=1", "application/x-www-form-urlencoded", 415, "UNSUPPORTED_MEDIA_TYPE", id="form"),
        pytest.param(b"[" * 100_000, "application/json", 400, "INVALID_REQUEST", id="deep"),
        pytest.param(b'"' + b"a" * (1 << 20) + b'"', "application/json", 413, "PAYLOAD_TOO_LARGE", id="large-json"),
        pytest.param(b"a" * ((1 << 20) + 1), "application/yaml", 413, "PAYLOAD_TOO_LARGE", id="large-yaml"),
    ],
)
def test_a_body_that_names_no_bundle_is_told_so(
    stage: Stage, content: bytes, kind: str, status: int, code: str
) -> None:
    answer = stage.service.http.post("/evidence", content=content, headers={"Content-Type": kind})
    assert (answer.status_code, answer.json()["code"]) == (status, code)


# --- judged and refused --------------------------------------------------------------------------------


def _unsigned(stage: Stage) -> OciRef:
    return stage.plant(pack(bundle_of("unsigned").files))


def _forged(stage: Stage) -> OciRef:
    """The owner's own signature, moved to a copy in which a result was changed."""
    bundle = bundle_of("forged")
    return stage.plant(pack(forge(bundle)), stage.sign(pack(bundle.files), bundle.predicate))


def _altered_file(stage: Stage) -> OciRef:
    """Signed after a file was changed without its manifest entry."""
    bundle = bundle_of("altered")
    files = dict(bundle.files)
    files["ctrf/performance.json"] = files["ctrf/performance.json"].replace(b'"passed"', b'"Passed"', 1)
    artifact = pack(files)
    return stage.plant(artifact, stage.sign(artifact, bundle.predicate))


def _altered_payload(stage: Stage) -> OciRef:
    bundle = bundle_of("payload")
    artifact = pack(bundle.files)
    document = json.loads(stage.sign(artifact, bundle.predicate))
    payload = base64.b64decode(document["dsseEnvelope"]["payload"])
    altered = payload.replace(b'"failed": 0', b'"failed": 1', 1)
    assert altered != payload
    document["dsseEnvelope"]["payload"] = base64.b64encode(altered).decode()
    return stage.plant(artifact, json.dumps(document).encode())


def _foreign_sigstore(stage: Stage) -> OciRef:
    """Signed well, by a Sigstore that nobody here trusts."""
    bundle = bundle_of("foreign")
    artifact = pack(bundle.files)
    statement = artifact_statement(V3, bundle.predicate, "registry.example.org/evidence:one", artifact.digest.hex)
    return stage.plant(artifact, PrivateSigstore().mint(statement, OCTOCAT, at=NOW))


def _foreign_predicate(stage: Stage) -> OciRef:
    bundle = bundle_of("provenance")
    artifact = pack(bundle.files)
    kind = "https://slsa.dev/provenance/v1"
    return stage.plant(artifact, stage.sign(artifact, bundle.predicate, predicateType=kind))


def _no_sigstore_bundle(stage: Stage) -> OciRef:
    return stage.plant(pack(bundle_of("garbage").files), b"not json")


def _another_recipe(stage: Stage) -> OciRef:
    """The signed predicate speaks of another recipe than the one that lies in the bundle."""
    bundle, other = bundle_of("recipe"), bundle_of("recipe", recipe="alone")
    artifact = pack(bundle.files)
    predicate = {**bundle.predicate, "recipe": other.predicate["recipe"]}
    return stage.plant(artifact, stage.sign(artifact, predicate))


def _repeated_file(stage: Stage) -> OciRef:
    return stage.registry.plant(Hostility.DUPLICATE_ENTRY, "aicr/duplicate")


def _altered_blob(stage: Stage) -> OciRef:
    """The registry serves other bytes than the signed manifest names."""
    return stage.registry.plant(Hostility.WRONG_BLOB, "aicr/blob")


def _escaping_layer(stage: Stage) -> OciRef:
    return stage.registry.plant(Hostility.TRAVERSAL, "aicr/traversal")


def _unknown_digest(stage: Stage) -> OciRef:
    return OciRef.parse(f"{stage.registry.host}/aicr/evidence@sha256:{'cd' * 32}")


def _closed(stage: Stage) -> OciRef:
    return stage.closed.seed("aicr/evidence", pack(bundle_of("closed").files))


def _status(status: int) -> Callable[[Stage], OciRef]:
    def make(stage: Stage) -> OciRef:
        return OciRef.parse(f"{stage.statuses.host}/aicr/status-{status}@sha256:{status:064d}")

    return make


@dataclass(frozen=True)
class Told:
    """What a 422 says."""

    step: str
    code: str
    cause: str
    detail: str
    http_status: int | None = None
    hint: str = ""


SIGNATURE, PREDICATE, MANIFEST, MATERIALIZE = (
    "signature-verify",
    "predicate-parse",
    "manifest-hash-check",
    "materialize-bundle",
)

REFUSALS = {
    "unsigned": (_unsigned, Told(SIGNATURE, "SIGNATURE_MISSING", "signature", "evidence must be signed")),
    "forged": (_forged, Told(SIGNATURE, "S16_SUBJECT_MISMATCH", "signature", "does not match pulled artifact digest")),
    "altered-file": (_altered_file, Told(MANIFEST, "MANIFEST_INVENTORY", "integrity", "differ from manifest.json")),
    "altered-payload": (_altered_payload, Told(SIGNATURE, "SIGNATURE_VERIFICATION_FAILED", "signature", "")),
    "foreign-sigstore": (_foreign_sigstore, Told(SIGNATURE, "S10_LOG_UNKNOWN", "signature", "")),
    "foreign-predicate": (_foreign_predicate, Told(SIGNATURE, "PREDICATE_INCOHERENT", "signature", "provenance")),
    "no-sigstore-bundle": (_no_sigstore_bundle, Told(SIGNATURE, "S2_JSON_NOT_STRICT", "signature", "")),
    "another-recipe": (_another_recipe, Told(MANIFEST, "RECIPE_IDENTITY_MISMATCH", "integrity", "name derived")),
    "repeated-file": (_repeated_file, Told(MATERIALIZE, "LAYER_UNSAFE", "unknown", "")),
    "altered-blob": (_altered_blob, Told(MATERIALIZE, "DIGEST_MISMATCH", "unknown", "expected bytes of sha256:")),
    "escaping-layer": (_escaping_layer, Told(MATERIALIZE, "LAYER_UNSAFE", "unknown", "")),
    "registry-401": (
        _closed,
        Told(MATERIALIZE, "REGISTRY_FORBIDDEN", "registry-forbidden", "answered 401", 401, "make the package public"),
    ),
    "registry-403": (
        _status(403),
        Told(MATERIALIZE, "REGISTRY_FORBIDDEN", "registry-forbidden", "answered 403", 403, "make the package public"),
    ),
    "registry-404": (
        _unknown_digest,
        Told(MATERIALIZE, "REGISTRY_NOT_FOUND", "not-found", "answered 404", 404, "was the bundle pushed"),
    ),
    "registry-418": (_status(418), Told(MATERIALIZE, "REGISTRY_ANSWER", "registry", "answered 418", 418)),
}


@pytest.mark.parametrize("name", REFUSALS)
def test_a_refusal_names_step_code_and_cause_and_is_on_record(stage: Stage, name: str) -> None:
    make, told = REFUSALS[name]
    ref = make(stage)
    answer = stage.service.submit(ref)
    body = answer.json()
    assert (answer.status_code, body["code"], body["retryable"]) == (422, "EVIDENCE_REFUSED", False)
    details = body["details"]
    cause = details["cause"]
    assert (details["step"], details["code"], cause["class"]) == (told.step, told.code, told.cause)
    assert told.detail in cause["detail"]
    assert cause.get("httpStatus") == told.http_status
    assert told.hint in cause.get("hint", "")
    # Without a signature the bundle itself is in order: `verify` calls it pending, and it is no evidence yet.
    report = details["report"]
    expected = (0, True, None) if name == "unsigned" else (2, None, cause)
    assert (report["exit"], report.get("pending"), report.get("failureCause")) == expected
    (attempt,) = stage.service.attempts(ref.digest)
    assert (attempt["outcome"], attempt["step"], attempt["code"]) == ("refused", told.step, told.code)
    assert (attempt["cause"], attempt["count"]) == (cause, 1)
    assert details["attempt"] == f"/attempts/{attempt['id']}"
    assert stage.service.http.get(f"/evidence/{ref.digest}").status_code == 404
    again = stage.service.submit(ref)
    assert again.status_code == 422
    assert stage.service.attempts(ref.digest)[0]["count"] == 2
    verified = stage.service.http.post("/verify", json={"bundle": str(ref)})
    assert (verified.status_code, verified.json()["exit"]) == (200, 0 if name == "unsigned" else 2)


# --- no verdict ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("status", "code", "wait"),
    [
        pytest.param(429, "REGISTRY_RATE_LIMITED", "7", id="429"),
        pytest.param(500, "REGISTRY_ERROR", "5", id="500"),
        pytest.param(502, "REGISTRY_ERROR", "5", id="502"),
        pytest.param(503, "REGISTRY_ERROR", "5", id="503"),
    ],
)
def test_a_registry_in_trouble_is_no_verdict(stage: Stage, status: int, code: str, wait: str) -> None:
    ref = _status(status)(stage)
    answer = stage.service.submit(ref)
    body = answer.json()
    assert (answer.status_code, body["code"], body["retryable"]) == (503, "SERVICE_UNAVAILABLE", True)
    assert answer.headers["retry-after"] == wait
    assert (body["details"]["cause"]["class"], body["details"]["cause"]["httpStatus"]) == ("transient", status)
    (attempt,) = stage.service.attempts(ref.digest)
    assert (attempt["outcome"], attempt["code"]) == ("no-verdict", code)


def test_a_registry_that_never_answers_is_no_verdict(stage: Stage) -> None:
    ref = f"{stage.statuses.host}/aicr/silent@{DIGEST}"
    answer = stage.service.submit(ref)
    assert (answer.status_code, answer.json()["code"]) == (503, "SERVICE_UNAVAILABLE")
    assert int(answer.headers["retry-after"]) > 0
    assert answer.json()["details"]["cause"]["class"] == "transient"
    assert [item["code"] for item in stage.service.attempts(DIGEST) if item["reference"] == ref] == ["REGISTRY_TIMEOUT"]


def test_a_registry_that_is_not_there_is_no_verdict(stage: Stage) -> None:
    with SandboxRegistry() as gone:
        ref = gone.seed("aicr/evidence", pack(bundle_of("gone").files))
    hosts = [gone.host]
    stopped = stage.sigstore.directory / "stopped"
    with service(stopped, stage.sigstore.trusted_root, hosts, [OCTOCAT], pull_timeout_seconds=2) as up:
        answer = up.submit(ref)
        assert (answer.status_code, answer.json()["code"]) == (503, "SERVICE_UNAVAILABLE")
        assert int(answer.headers["retry-after"]) > 0
        assert [item["code"] for item in up.attempts(ref.digest)] == ["REGISTRY_UNREACHABLE"]


def test_a_registry_that_recovers_gets_its_verdict(stage: Stage) -> None:
    bundle = bundle_of("recovering", recipe="branch")
    artifact = pack(bundle.files)
    ref = stage.registry.seed(
        "aicr/recovering", artifact, [describe_signature(artifact.descriptor, stage.sign(artifact, bundle.predicate))]
    )
    stage.registry.misbehave(Behaviour(Hostility.SERVER_ERROR, retry_after_seconds=None), "aicr/recovering")
    assert stage.service.submit(ref).status_code == 503
    stage.registry.misbehave(None, "aicr/recovering")
    assert stage.service.submit(ref).status_code == 201
    assert [item["outcome"] for item in stage.service.attempts(ref.digest)] == ["accepted", "no-verdict"]


# --- too large -----------------------------------------------------------------------------------------


def _large_layer(stage: Stage) -> OciRef:
    artifact = with_manifest(pack(bundle_of("large").files), lambda doc: doc["layers"][0].update(size=(64 << 20) + 1))
    return stage.plant(artifact)


def _large_signature(stage: Stage) -> OciRef:
    return stage.plant(pack(bundle_of("large-signature").files), b" " * ((256 << 10) + 1))


@pytest.mark.parametrize("make", [_large_layer, _large_signature], ids=["layer", "signature"])
def test_what_is_over_a_limit_is_413_and_on_record(stage: Stage, make: Callable[[Stage], OciRef]) -> None:
    ref = make(stage)
    answer = stage.service.submit(ref)
    assert (answer.status_code, answer.json()["code"]) == (413, "PAYLOAD_TOO_LARGE")
    assert answer.json()["details"]["reason"] == "BODY_TOO_LARGE"
    (attempt,) = stage.service.attempts(ref.digest)
    assert (attempt["outcome"], attempt["code"]) == ("refused", "BODY_TOO_LARGE")


def test_an_expanding_layer_ends_early(stage: Stage) -> None:
    ref = stage.registry.plant(Hostility.GZIP_BOMB, "aicr/bomb")
    answer = stage.service.submit(ref)
    assert (answer.status_code, answer.json()["details"]["code"]) == (422, "BOMB")


# --- trust ---------------------------------------------------------------------------------------------


def test_a_broken_allowlist_keeps_the_last_good_one_in_force(stage: Stage) -> None:
    up = stage.service
    bundle = bundle_of("listed")
    artifact = pack(bundle.files)
    ref = stage.plant(artifact, stage.sign(artifact, bundle.predicate))
    assert up.submit(ref).json()["allowlisted"] is True
    good = up.http.get("/allowlist").json()
    assert good["status"] == "ok"
    try:
        up.allowlist.write_text("schemaVersion: 1.0.0\ncommunity: [{issuer: 1}]\nunknown: key\n")
        ready = _until(up, lambda body: body["status"] == "degraded")
        assert ready["parts"]["allowlist"] == "degraded"
        assert "unknown key" in ready["reason"]
        listed = up.http.get("/allowlist").json()
        assert (listed["status"], listed["sha256"], listed["since"]) == ("degraded", good["sha256"], good["since"])
        assert up.recipe()["state"] == "SINGLE"
        assert up.submit(ref).json()["allowlisted"] is True
    finally:
        up.allowlist.write_text(allowlist_text(OCTOCAT.signer))
    assert _until(up, lambda body: body["status"] == "ready")["parts"]["allowlist"] == "ok"


def _until(up: Service, holds: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
    """What `/ready` says once that holds; the file is looked at a few times a second."""
    for _ in range(400):
        answer = up.http.get("/ready")
        assert answer.status_code == 200
        body: dict[str, Any] = answer.json()
        if holds(body):
            return body
        threading.Event().wait(0.05)
    raise AssertionError(f"/ready still says {body}")


def test_a_signature_by_a_borrowed_workflow_is_kept_without_weight(stage: Stage) -> None:
    bundle = bundle_of("borrowed", recipe="one-party")
    artifact = pack(bundle.files)
    statement = artifact_statement(V3, bundle.predicate, "registry.example.org/evidence:one", artifact.digest.hex)
    borrowed = stage.sigstore.sign(statement, caller_of(UAT_AWS, "stranger/borrow"))
    answer = stage.service.submit(stage.plant(artifact, borrowed))
    assert (answer.status_code, answer.json()["state"]["after"]) == (201, "UNTESTED")


def test_one_signature_under_two_artifacts_is_a_replay(stage: Stage) -> None:
    """The log entry is unique: a second bundle can not reuse it, whatever its manifest says."""
    bundle = bundle_of("replayed", recipe="copied")
    artifact = pack(bundle.files)
    signature = stage.sign(artifact, bundle.predicate)
    assert stage.service.submit(stage.plant(artifact, signature)).status_code == 201
    other = with_manifest(artifact, lambda doc: doc.setdefault("annotations", {}).update(note="other"))
    answer = stage.service.submit(stage.plant(other, signature))
    assert (answer.status_code, answer.json()["details"]["code"]) == (422, "S16_SUBJECT_MISMATCH")


def test_nothing_that_was_refused_changed_a_verdict(stage: Stage) -> None:
    """Runs last in this module: only honest bundles of it are known."""
    recipes = {line["recipe"] for line in stage.service.http.get("/recipes").json()["items"]}
    assert recipes <= {
        RECIPE,
        "h200-eks-ubuntu-training",
        "rtx-pro-6000-eks-ubuntu-inference-nim",
        "h100-lke-ubuntu-training",
    }
    outcomes = {item["outcome"] for item in _every_attempt(stage.service.http)}
    assert outcomes == {"accepted", "refused", "no-verdict"}


def _every_attempt(http: httpx.Client) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = http.get("/attempts", params={"limit": 500}).json()["items"]
    return items
