"""The sandbox registry speaks the distribution API that real clients use."""

import hashlib
import http.client
import json
import threading

import pytest

from app.adapters.oci import describe_signature
from app.sandbox.registry import AuthMode, Hostility, RegistryAuth, SandboxRegistry
from app.sandbox.registry.modes import SERVING
from tests.support.registries import sample_bundle

MANIFEST = "application/vnd.oci.image.manifest.v1+json"
INDEX = "application/vnd.oci.image.index.v1+json"
BLOB = b"some content"
BLOB_DIGEST = "sha256:" + hashlib.sha256(BLOB).hexdigest()


def ask(
    registry: SandboxRegistry,
    method: str,
    path: str,
    body: bytes | None = None,
    headers: dict[str, str] | None = None,
) -> tuple[int, dict[str, str], bytes]:
    """One request on a connection of its own: status, headers with lower-case names, body."""
    connection = http.client.HTTPConnection(registry.host, timeout=10)
    try:
        connection.request(method, path, body, headers or {})
        response = connection.getresponse()
        return response.status, {k.lower(): v for k, v in response.getheaders()}, response.read()
    finally:
        connection.close()


def codes(body: bytes) -> list[str]:
    return [error["code"] for error in json.loads(body)["errors"]]


@pytest.fixture(scope="module")
def registry():  # noqa: ANN201
    with SandboxRegistry() as running:
        yield running


def test_the_base_answers(registry: SandboxRegistry) -> None:
    assert ask(registry, "GET", "/v2/")[0] == 200


def test_a_blob_goes_up_in_one_piece(registry: SandboxRegistry) -> None:
    status, headers, _ = ask(registry, "POST", "/v2/a/one/blobs/uploads/")
    assert status == 202

    status, headers, _ = ask(registry, "PUT", f"{headers['location']}?digest={BLOB_DIGEST}", BLOB)
    assert (status, headers["docker-content-digest"]) == (201, BLOB_DIGEST)
    assert ask(registry, "GET", f"/v2/a/one/blobs/{BLOB_DIGEST}")[2] == BLOB
    status, headers, body = ask(registry, "HEAD", f"/v2/a/one/blobs/{BLOB_DIGEST}")
    assert (status, headers["content-length"], body) == (200, "12", b"")


def test_a_blob_goes_up_in_chunks(registry: SandboxRegistry) -> None:
    location = ask(registry, "POST", "/v2/a/chunked/blobs/uploads/")[1]["location"]

    for part, seen in ((BLOB[:5], "0-4"), (BLOB[5:], "0-11")):
        status, headers, _ = ask(registry, "PATCH", location, part)
        assert (status, headers["range"]) == (202, seen)
        location = headers["location"]
    assert ask(registry, "GET", location)[1]["range"] == "0-11"
    assert ask(registry, "PUT", f"{location}?digest={BLOB_DIGEST}")[0] == 201
    assert ask(registry, "GET", f"/v2/a/chunked/blobs/{BLOB_DIGEST}")[2] == BLOB


def test_a_blob_goes_up_with_the_post_and_with_chunked_coding(registry: SandboxRegistry) -> None:
    assert ask(registry, "POST", f"/v2/a/post/blobs/uploads/?digest={BLOB_DIGEST}", BLOB)[0] == 201

    connection = http.client.HTTPConnection(registry.host, timeout=10)
    connection.request(
        "POST", f"/v2/a/coded/blobs/uploads/?digest={BLOB_DIGEST}", iter([BLOB[:5], BLOB[5:]]), encode_chunked=True
    )
    assert connection.getresponse().status == 201
    connection.close()


def test_a_blob_is_mounted_from_another_repository(registry: SandboxRegistry) -> None:
    ask(registry, "POST", f"/v2/a/source/blobs/uploads/?digest={BLOB_DIGEST}", BLOB)

    mounted = ask(registry, "POST", f"/v2/a/target/blobs/uploads/?mount={BLOB_DIGEST}&from=a/source")
    unknown = ask(registry, "POST", f"/v2/a/target/blobs/uploads/?mount=sha256:{'0' * 64}&from=a/source")

    assert (mounted[0], unknown[0]) == (201, 202)
    assert ask(registry, "GET", f"/v2/a/target/blobs/{BLOB_DIGEST}")[2] == BLOB


def test_a_wrong_digest_is_not_stored(registry: SandboxRegistry) -> None:
    wrong = "sha256:" + "0" * 64

    status, _, body = ask(registry, "POST", f"/v2/a/wrong/blobs/uploads/?digest={wrong}", BLOB)

    assert (status, codes(body)) == (400, ["DIGEST_INVALID"])
    assert ask(registry, "GET", f"/v2/a/wrong/blobs/{wrong}")[0] == 404


def test_an_upload_can_be_cancelled(registry: SandboxRegistry) -> None:
    location = ask(registry, "POST", "/v2/a/cancel/blobs/uploads/")[1]["location"]

    assert ask(registry, "DELETE", location)[0] == 204
    status, _, body = ask(registry, "PATCH", location, b"x")
    assert (status, codes(body)) == (404, ["BLOB_UPLOAD_UNKNOWN"])


def push(registry: SandboxRegistry, name: str) -> tuple[str, bytes]:
    """A bundle's blobs by HTTP and its manifest under `v1`; (digest, manifest)."""
    bundle = sample_bundle()
    for blob in (bundle.config, bundle.layer):
        digest = "sha256:" + hashlib.sha256(blob).hexdigest()
        ask(registry, "POST", f"/v2/{name}/blobs/uploads/?digest={digest}", blob)
    status, headers, _ = ask(registry, "PUT", f"/v2/{name}/manifests/v1", bundle.manifest, {"Content-Type": MANIFEST})
    assert (status, headers["docker-content-digest"]) == (201, str(bundle.digest))
    return str(bundle.digest), bundle.manifest


def test_a_manifest_is_found_by_tag_and_digest(registry: SandboxRegistry) -> None:
    digest, manifest = push(registry, "a/manifest")

    for reference in ("v1", digest):
        status, headers, body = ask(registry, "GET", f"/v2/a/manifest/manifests/{reference}")
        assert (status, headers["content-type"], headers["docker-content-digest"]) == (200, MANIFEST, digest)
        assert body == manifest
    assert json.loads(ask(registry, "GET", "/v2/a/manifest/tags/list")[2]) == {"name": "a/manifest", "tags": ["v1"]}


@pytest.mark.parametrize(
    ("reference", "body", "code"),
    [
        pytest.param("v1", b"no json", "MANIFEST_INVALID", id="no-json"),
        pytest.param("sha256:" + "0" * 64, b'{"a": 1}', "DIGEST_INVALID", id="other-digest"),
        pytest.param("v1", sample_bundle().manifest, "MANIFEST_BLOB_UNKNOWN", id="no-blobs"),
    ],
)
def test_a_manifest_that_does_not_hold_is_refused(
    registry: SandboxRegistry, reference: str, body: bytes, code: str
) -> None:
    status, _, answer = ask(registry, "PUT", f"/v2/a/bad/manifests/{reference}", body, {"Content-Type": MANIFEST})

    assert (status, codes(answer)) == (400, [code])


def test_what_is_unknown_says_so(registry: SandboxRegistry) -> None:
    push(registry, "a/known")

    assert codes(ask(registry, "GET", "/v2/a/known/manifests/absent")[2]) == ["MANIFEST_UNKNOWN"]
    assert codes(ask(registry, "GET", "/v2/a/unknown/manifests/v1")[2]) == ["NAME_UNKNOWN"]
    assert codes(ask(registry, "GET", "/v2/a/unknown/tags/list")[2]) == ["NAME_UNKNOWN"]
    assert ask(registry, "GET", "/v2/a/known/nothing")[0] == 404


def test_tags_manifests_and_blobs_are_deleted(registry: SandboxRegistry) -> None:
    digest, _ = push(registry, "a/delete")
    layer = str(sample_bundle().layer_digest)

    assert ask(registry, "DELETE", "/v2/a/delete/manifests/v1")[0] == 202
    assert ask(registry, "GET", "/v2/a/delete/manifests/v1")[0] == 404
    assert ask(registry, "GET", f"/v2/a/delete/manifests/{digest}")[0] == 200
    assert ask(registry, "DELETE", f"/v2/a/delete/manifests/{digest}")[0] == 202
    assert ask(registry, "GET", f"/v2/a/delete/manifests/{digest}")[0] == 404
    assert ask(registry, "DELETE", f"/v2/a/delete/blobs/{layer}")[0] == 202
    assert ask(registry, "DELETE", f"/v2/a/delete/blobs/{layer}")[0] == 404


def test_referrers_are_listed_and_filtered(registry: SandboxRegistry) -> None:
    bundle = sample_bundle()
    signature = describe_signature(bundle.descriptor, b"{}")
    registry.seed("a/referrers", bundle, (signature,))
    path = f"/v2/a/referrers/referrers/{bundle.digest}"

    status, headers, body = ask(registry, "GET", path)
    assert (status, headers["content-type"]) == (200, INDEX)
    assert [entry["digest"] for entry in json.loads(body)["manifests"]] == [str(signature.digest)]

    _, headers, body = ask(registry, "GET", f"{path}?artifactType=application%2Fother")
    assert (headers["oci-filters-applied"], json.loads(body)["manifests"]) == ("artifactType", [])


def test_a_registry_without_referrers_answers_404_and_reports_no_subject() -> None:
    with SandboxRegistry(referrers_api=False) as old:
        bundle = sample_bundle()
        signature = describe_signature(bundle.descriptor, b"{}")
        old.seed("a/b", bundle)
        ask(old, "POST", f"/v2/a/b/blobs/uploads/?digest={signature.content_digest}", b"{}")

        put = ask(old, "PUT", "/v2/a/b/manifests/x", signature.manifest, {"Content-Type": MANIFEST})

        assert put[0] == 201
        assert "oci-subject" not in put[1]
        assert ask(old, "GET", f"/v2/a/b/referrers/{bundle.digest}")[0] == 404


def test_basic_auth_guards_pushes_and_if_wanted_pulls() -> None:
    right = {"Authorization": "Basic b2N0b2NhdDpwdw=="}
    for open_pull, status in ((True, 200), (False, 401)):
        auth = RegistryAuth(AuthMode.BASIC, {"octocat": "pw"}, anonymous_pull=open_pull)
        with SandboxRegistry(auth=auth) as registry:
            registry.seed("a/b", sample_bundle(), tag="v1")

            assert ask(registry, "GET", "/v2/a/b/manifests/v1")[0] == status
            assert ask(registry, "GET", "/v2/a/b/manifests/v1", headers=right)[0] == 200
            assert ask(registry, "POST", "/v2/a/b/blobs/uploads/")[0] == 401
            assert ask(registry, "POST", "/v2/a/b/blobs/uploads/", headers=right)[0] == 202
            wrong = {"Authorization": "Basic b2N0b2NhdDpubw=="}
            assert ask(registry, "POST", "/v2/a/b/blobs/uploads/", headers=wrong)[0] == 401


def test_bearer_tokens_hold_for_their_scope_only() -> None:
    auth = RegistryAuth(AuthMode.BEARER, {"octocat": "pw"})
    with SandboxRegistry(auth=auth) as registry:
        registry.seed("a/b", sample_bundle(), tag="v1")
        _, headers, _ = ask(registry, "GET", "/v2/a/b/manifests/v1")
        assert headers["www-authenticate"] == (
            f'Bearer realm="{registry.url}/token",service="sandbox",scope="repository:a/b:pull"'
        )

        def token(scope: str, **login: str) -> dict[str, str]:
            body = ask(registry, "GET", f"/token?service=sandbox&scope={scope}", headers=login)[2]
            return {"Authorization": f"Bearer {json.loads(body)['token']}"}

        pull = token("repository:a/b:pull,push")
        push_token = token("repository:a/b:pull,push", Authorization="Basic b2N0b2NhdDpwdw==")
        assert ask(registry, "GET", "/v2/a/b/manifests/v1", headers=pull)[0] == 200
        assert ask(registry, "POST", "/v2/a/b/blobs/uploads/", headers=pull)[0] == 401
        assert ask(registry, "POST", "/v2/a/b/blobs/uploads/", headers=push_token)[0] == 202
        assert ask(registry, "GET", "/v2/a/c/manifests/v1", headers=push_token)[0] == 401
        wrong = {"Authorization": "Basic b2N0b2NhdDpubw=="}
        assert ask(registry, "GET", "/token?scope=repository:a/b:push", headers=wrong)[0] == 401


def test_requests_are_logged_with_their_authorization(registry: SandboxRegistry) -> None:
    ask(registry, "GET", "/v2/", headers={"Authorization": "Bearer seen"})

    assert (registry.log[-1].method, registry.log[-1].path, registry.log[-1].authorization) == (
        "GET",
        "/v2/",
        "Bearer seen",
    )


def test_a_mode_is_chosen_for_one_repository_or_for_all(registry: SandboxRegistry) -> None:
    registry.seed("modes/one", sample_bundle(), tag="v1")
    registry.seed("modes/two", sample_bundle(), tag="v1")

    registry.misbehave(Hostility.RATE_LIMITED, "modes/one")
    assert [ask(registry, "GET", f"/v2/modes/{n}/manifests/v1")[0] for n in ("one", "two")] == [429, 200]
    registry.misbehave(Hostility.SERVER_ERROR)
    assert [ask(registry, "GET", f"/v2/modes/{n}/manifests/v1")[0] for n in ("one", "two")] == [429, 503]
    registry.misbehave(None, "modes/one")
    registry.misbehave(None)
    assert [ask(registry, "GET", f"/v2/modes/{n}/manifests/v1")[0] for n in ("one", "two")] == [200, 200]


def test_every_mode_can_be_planted(registry: SandboxRegistry) -> None:
    for mode in Hostility:
        ref = registry.plant(mode, f"planted/{mode.value}")
        assert ref.repository == f"planted/{mode.value}"
        assert (registry.behaviour(ref.repository) is not None) is (mode in SERVING)


def test_stopping_ends_a_drip_and_closes_the_port() -> None:
    registry = SandboxRegistry().start()
    ref = registry.plant(Hostility.DRIP)
    connection = http.client.HTTPConnection(registry.host, timeout=10)
    connection.request("GET", f"/v2/{ref.repository}/manifests/{ref.digest}")
    response = connection.getresponse()

    stopper = threading.Thread(target=registry.stop)
    stopper.start()
    stopper.join(10)

    assert not stopper.is_alive()
    with pytest.raises((http.client.IncompleteRead, ConnectionError)):
        response.read()
    connection.close()
    with pytest.raises(ConnectionRefusedError):
        ask(registry, "GET", "/v2/")
