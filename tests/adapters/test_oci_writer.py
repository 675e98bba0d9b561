"""What the writer leaves on every registry; everything is read back with the strict reader."""

import json
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.adapters.oci import RegistryLogin, describe_signature
from app.adapters.oci.writer import extended_index
from app.core.errors import FetchError
from app.sandbox.registry import AuthMode, Behaviour, Hostility, RegistryAuth, SandboxRegistry
from tests.support.registries import FILES, KINDS, PREDICATE_V3, RunningRegistry, sample_bundle


@pytest.fixture(
    scope="module",
    params=[
        pytest.param(name, marks=[pytest.mark.registry] if name.startswith("debian") else [], id=name) for name in KINDS
    ],
)
def registry(request: pytest.FixtureRequest) -> Iterator[RunningRegistry]:
    with KINDS[request.param]() as running:
        yield running


def test_a_pushed_bundle_has_the_digest_that_was_described(registry: RunningRegistry, tmp_path: Path) -> None:
    ref = registry.ref("push/bundle:v1")

    digest = registry.writer().push_bundle(FILES, ref, predicate_type=PREDICATE_V3, version="v1.2.3")

    artifact = registry.reader(tmp_path).resolve(ref, registry.options)
    assert digest == sample_bundle().digest
    assert (artifact.digest, artifact.manifest) == (digest, sample_bundle().manifest)


def test_pushing_twice_is_pushing_once(registry: RunningRegistry, tmp_path: Path) -> None:
    ref, bundle = registry.ref("push/twice:v1"), sample_bundle()
    for _ in range(2):
        registry.writer().push_artifact(bundle, ref)
        registry.writer().attach_signature(ref, bundle.descriptor, b'{"sample": 1}')

    artifact = registry.reader(tmp_path).resolve(ref, registry.options)

    assert [signature.bundle for signature in artifact.signatures] == [b'{"sample": 1}']


def test_signatures_add_up_in_order(registry: RunningRegistry, tmp_path: Path) -> None:
    ref, bundle = registry.ref("push/signatures:v1"), sample_bundle()
    registry.writer().push_artifact(bundle, ref)
    contents = [f'{{"sample": {n}}}'.encode() for n in range(3)]

    referrers = [registry.writer().attach_signature(ref, bundle.descriptor, content) for content in contents]

    artifact = registry.reader(tmp_path).resolve(ref, registry.options)
    assert [signature.bundle for signature in artifact.signatures] == contents
    assert [signature.referrer for signature in artifact.signatures] == referrers


def test_a_referrer_is_tagged_with_its_own_digest(registry: RunningRegistry, tmp_path: Path) -> None:
    """O13: the tag that a referrer is pushed under is its digest in bare hex."""
    ref, bundle = registry.ref("push/tagged:v1"), sample_bundle()
    registry.writer().push_artifact(bundle, ref)
    referrer = registry.writer().attach_signature(ref, bundle.descriptor, b'{"sample": 1}')

    with pytest.raises(FetchError) as caught:
        registry.reader(tmp_path).resolve(registry.ref(f"push/tagged:{referrer.hex}"), registry.options)

    assert caught.value.code == "MANIFEST_INVALID"  # it is there, and it is a signature, not a bundle


def test_a_mirror_has_the_same_bytes_and_signatures(registry: RunningRegistry, tmp_path: Path) -> None:
    source, target, bundle = registry.ref("push/source:v1"), registry.ref("mirror/target:v1"), sample_bundle()
    registry.writer().push_artifact(bundle, source)
    for content in (b'{"sample": 1}', b'{"sample": 2}'):
        registry.writer().attach_signature(source, bundle.descriptor, content)
    reader = registry.reader(tmp_path)
    original = reader.resolve(source, registry.options)

    with reader.pull(original, registry.options) as pulled:
        digest = registry.writer().mirror(pulled, target)

    copy = reader.resolve(target, registry.options)
    assert digest == original.digest
    assert (copy.manifest, copy.signatures) == (original.manifest, original.signatures)


def test_a_wrong_login_is_refused(registry: RunningRegistry) -> None:
    if not registry.private:
        assert registry.logins.keys() <= {registry.host}
        return
    writer = registry.writer(credentials={registry.host: RegistryLogin("octocat", "wrong")})

    with pytest.raises(FetchError) as caught:
        writer.push_artifact(sample_bundle(), registry.ref("push/denied:v1"))

    assert (caught.value.code, caught.value.http_status) == ("REGISTRY_FORBIDDEN", 401)


# --- only on the sandbox -------------------------------------------------------------------------------


def _running(registry: SandboxRegistry) -> RunningRegistry:
    return RunningRegistry(registry.host, logins={registry.host: RegistryLogin("octocat", "sandbox-password")})


def test_a_registry_without_referrers_gets_a_fallback_tag(tmp_path: Path) -> None:
    with SandboxRegistry(referrers_api=False) as registry:
        running, bundle = _running(registry), sample_bundle()
        running.writer().push_artifact(bundle, running.ref("a/b:v1"))
        running.writer().attach_signature(running.ref("a/b:v1"), bundle.descriptor, b"{}")

        assert f"sha256-{bundle.digest.hex}" in registry.store.tags("a/b")


def test_a_registry_with_referrers_gets_no_fallback_tag() -> None:
    with SandboxRegistry() as registry:
        running, bundle = _running(registry), sample_bundle()
        running.writer().push_artifact(bundle, running.ref("a/b:v1"))
        running.writer().attach_signature(running.ref("a/b:v1"), bundle.descriptor, b"{}")

        assert f"sha256-{bundle.digest.hex}" not in registry.store.tags("a/b")


def test_parallel_signatures_all_reach_the_fallback_index(tmp_path: Path) -> None:
    with SandboxRegistry(referrers_api=False) as registry:
        running, bundle = _running(registry), sample_bundle()
        running.writer().push_artifact(bundle, running.ref("a/b:v1"))
        contents = [f'{{"sample": {n}}}'.encode() for n in range(3)]
        threads = [
            threading.Thread(
                target=running.writer().attach_signature,
                args=(running.ref("a/b:v1"), bundle.descriptor, content),
            )
            for content in contents
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for content in contents:  # whatever a race dropped is put back by the next attempt
            running.writer().attach_signature(running.ref("a/b:v1"), bundle.descriptor, content)

        artifact = running.reader(tmp_path).resolve(running.ref("a/b:v1"), running.options)
        assert {signature.bundle for signature in artifact.signatures} == set(contents)


def test_an_extended_index_keeps_what_it_said() -> None:
    entry = describe_signature(sample_bundle().descriptor, b"{}").descriptor
    held = b'{"schemaVersion":2,"mediaType":"application/vnd.oci.image.index.v1+json","manifests":null,"x":{"y":1}}'

    extended = extended_index(held, entry)

    assert extended == (
        b'{"schemaVersion":2,"mediaType":"application/vnd.oci.image.index.v1+json","manifests":['
        b'{"mediaType":"application/vnd.oci.image.manifest.v1+json","digest":"'
        + str(entry.digest).encode()
        + b'","size":'
        + str(entry.size).encode()
        + b',"artifactType":"application/vnd.dev.sigstore.bundle.v0.3+json"}],"x":{"y":1}}'
    )


def test_a_login_never_follows_a_foreign_realm() -> None:
    auth = RegistryAuth(AuthMode.BEARER, {"octocat": "sandbox-password"})
    with SandboxRegistry() as elsewhere, SandboxRegistry(auth=auth) as registry:
        registry.gatekeeper.challenge = lambda *_: f'Bearer realm="{elsewhere.url}/token"'  # type: ignore[method-assign]

        with pytest.raises(FetchError) as caught:
            _running(registry).writer().push_artifact(sample_bundle(), _running(registry).ref("a/b:v1"))

        assert caught.value.code == "REALM_REFUSED"
        assert elsewhere.log == []


def test_a_push_retries_a_busy_registry_and_then_gives_up() -> None:
    pauses: list[float] = []
    with SandboxRegistry() as registry:
        running = _running(registry)
        registry.misbehave(Behaviour(Hostility.RATE_LIMITED, retry_after_seconds=3, failures=2))
        running.writer(sleep=pauses.append).push_artifact(sample_bundle(), running.ref("a/b:v1"))
        assert pauses == [3.0, 3.0]

        registry.misbehave(Behaviour(Hostility.SERVER_ERROR, retry_after_seconds=600))
        with pytest.raises(FetchError) as caught:
            running.writer(sleep=pauses.append).push_artifact(sample_bundle(), running.ref("a/c:v1"))

    assert caught.value.code == "REGISTRY_RATE_LIMITED"
    assert pauses == [3.0, 3.0]


def test_logins_of_the_docker_client_are_used_when_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    auth = RegistryAuth(AuthMode.BASIC, {"octocat": "sandbox-password"})
    with SandboxRegistry(auth=auth) as registry:
        config = {"auths": {registry.host: {"auth": "b2N0b2NhdDpzYW5kYm94LXBhc3N3b3Jk"}}}
        (tmp_path / "config.json").write_text(json.dumps(config))
        monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path))
        monkeypatch.setenv("HOME", str(tmp_path))
        (tmp_path / ".docker").mkdir()
        (tmp_path / ".docker" / "config.json").write_text(json.dumps(config))
        running = RunningRegistry(registry.host)

        with pytest.raises(FetchError) as caught:
            running.writer().push_artifact(sample_bundle(), running.ref("a/b:v1"))
        digest = running.writer(docker_logins=True).push_artifact(sample_bundle(), running.ref("a/b:v1"))

    assert (caught.value.code, caught.value.http_status) == ("REGISTRY_FORBIDDEN", 401)
    assert digest == sample_bundle().digest


def test_nobody_listening_is_unreachable() -> None:
    with SandboxRegistry() as registry:
        running = _running(registry)

    with pytest.raises(FetchError) as caught:
        running.writer(sleep=lambda _: None).push_artifact(sample_bundle(), running.ref("a/b:v1"))

    assert (caught.value.code, caught.value.retryable) == ("REGISTRY_UNREACHABLE", True)
