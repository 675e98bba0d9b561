"""What the reader does on every registry that keeps its word."""

import hashlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.adapters.oci import OciRegistry, describe_signature
from app.adapters.oci.writer import Writer
from app.core.errors import Category, FetchError
from app.core.refs import Digest
from app.ports import Access, PullOptions
from tests.support.registries import FILES, KINDS, RunningRegistry, sample_bundle

SIGNATURES = (b'{"sample": "first"}', b'{"sample": "second"}')


@pytest.fixture(
    scope="module",
    params=[
        pytest.param(name, marks=[pytest.mark.registry] if name.startswith("debian") else [], id=name) for name in KINDS
    ],
)
def registry(request: pytest.FixtureRequest) -> Iterator[RunningRegistry]:
    with KINDS[request.param]() as running:
        writer = running.writer()
        bundle = sample_bundle()
        writer.push_artifact(bundle, running.ref("owner/evidence/signed:v1"))
        for content in SIGNATURES:
            writer.attach_signature(running.ref("owner/evidence/signed:v1"), bundle.descriptor, content)
        writer.push_artifact(bundle, running.ref("owner/unsigned:v1"))
        yield running


@pytest.fixture
def reader(registry: RunningRegistry, tmp_path: Path) -> OciRegistry:
    return registry.reader(tmp_path / "pulls")


def test_a_pinned_artifact_comes_with_its_signatures_in_the_registrys_order(
    registry: RunningRegistry, reader: OciRegistry
) -> None:
    bundle = sample_bundle()
    ref = registry.ref(f"owner/evidence/signed@{bundle.digest}")

    artifact = reader.resolve(ref, registry.options)

    first, second = (describe_signature(bundle.descriptor, content) for content in SIGNATURES)
    assert artifact.ref == ref
    assert artifact.digest == bundle.digest
    assert artifact.manifest == bundle.manifest
    assert artifact.config == b"{}"
    assert (artifact.layer_digest, artifact.layer_size) == (bundle.layer_digest, len(bundle.layer))
    assert [(s.bundle, s.referrer, s.referrer_manifest) for s in artifact.signatures] == [
        (SIGNATURES[0], first.digest, first.manifest),
        (SIGNATURES[1], second.digest, second.manifest),
    ]


def test_a_tag_is_resolved_and_pinned(registry: RunningRegistry, reader: OciRegistry) -> None:
    artifact = reader.resolve(registry.ref("owner/evidence/signed:v1"), registry.options)

    assert str(artifact.ref) == f"{registry.host}/owner/evidence/signed@{sample_bundle().digest}"


def test_an_artifact_without_referrers_is_unsigned(registry: RunningRegistry, reader: OciRegistry) -> None:
    artifact = reader.resolve(registry.ref("owner/unsigned:v1"), registry.options)

    assert artifact.signatures == ()


def test_a_pull_unpacks_the_layer_and_leaves_nothing_behind(
    registry: RunningRegistry, reader: OciRegistry, tmp_path: Path
) -> None:
    artifact = reader.resolve(registry.ref("owner/evidence/signed:v1"), registry.options)

    with reader.pull(artifact, registry.options) as pulled:
        root = Path(pulled.directory)
        files = {str(path.relative_to(root)): path.read_bytes() for path in root.rglob("*") if path.is_file()}
        layer = Path(pulled.layer).read_bytes()
        private = root.parent

        assert files == FILES
        assert "sha256:" + hashlib.sha256(layer).hexdigest() == str(artifact.layer_digest)
        assert private.parent == tmp_path / "pulls"
        assert private.stat().st_mode & 0o777 == 0o700
        assert {path.stat().st_mode & 0o077 for path in private.rglob("*")} <= {0, 0o055, 0o050, 0o005}

    assert list((tmp_path / "pulls").iterdir()) == []


def test_the_directory_goes_also_when_its_user_fails(
    registry: RunningRegistry, reader: OciRegistry, tmp_path: Path
) -> None:
    artifact = reader.resolve(registry.ref("owner/unsigned:v1"), registry.options)

    with pytest.raises(ZeroDivisionError), reader.pull(artifact, registry.options):
        raise ZeroDivisionError

    assert list((tmp_path / "pulls").iterdir()) == []


@pytest.mark.parametrize(
    "name",
    [
        pytest.param("owner/unsigned:absent", id="tag"),
        pytest.param("owner/unsigned@sha256:" + "0" * 64, id="digest"),
        pytest.param("owner/nowhere:v1", id="repository"),
    ],
)
def test_what_was_never_pushed_is_not_found(registry: RunningRegistry, reader: OciRegistry, name: str) -> None:
    with pytest.raises(FetchError) as caught:
        reader.resolve(registry.ref(name), registry.options)

    assert (caught.value.code, caught.value.http_status) == ("REGISTRY_NOT_FOUND", 404)
    assert caught.value.category is Category.NOT_FOUND
    assert not caught.value.retryable


def test_a_private_repository_is_closed_to_an_anonymous_pull(registry: RunningRegistry, reader: OciRegistry) -> None:
    anonymous = PullOptions(20.0, access=Access.ANONYMOUS)
    ref = registry.ref("owner/unsigned:v1")
    if not registry.private:
        assert reader.resolve(ref, anonymous).digest == sample_bundle().digest
        return

    reader.resolve(ref, registry.options)  # a credentialed token in the cache changes nothing
    with pytest.raises(FetchError) as caught:
        reader.resolve(ref, anonymous)

    assert (caught.value.code, caught.value.http_status) == ("REGISTRY_FORBIDDEN", 401)


def test_a_manifest_of_another_kind_is_no_evidence(registry: RunningRegistry, reader: OciRegistry) -> None:
    signature = describe_signature(sample_bundle().descriptor, SIGNATURES[0])

    with pytest.raises(FetchError) as caught:
        reader.resolve(registry.ref(f"owner/evidence/signed@{signature.digest}"), registry.options)

    assert caught.value.code == "MANIFEST_INVALID"
    assert "application/vnd.nvidia.aicr.artifact" in caught.value.message


def test_a_tag_that_moves_changes_no_pinned_pull(registry: RunningRegistry, reader: OciRegistry) -> None:
    writer: Writer = registry.writer()
    first = sample_bundle()
    writer.push_artifact(first, registry.ref("owner/moving:v1"))
    artifact = reader.resolve(registry.ref("owner/moving:v1"), registry.options)
    second = writer.push_bundle(
        {"recipe.yaml": b"other\n"}, registry.ref("owner/moving:v1"), predicate_type="", version=""
    )

    with reader.pull(artifact, registry.options) as pulled:
        assert Path(pulled.directory, "recipe.yaml").read_bytes() == FILES["recipe.yaml"]
    assert reader.resolve(registry.ref("owner/moving:v1"), registry.options).digest == second != first.digest


def test_the_layer_is_checked_against_the_annotated_tar_digest(registry: RunningRegistry, tmp_path: Path) -> None:
    bundle = sample_bundle()
    lying = bundle.manifest.replace(bundle.tar_digest.hex.encode(), b"0" * 64)
    altered = type(bundle)(
        lying,
        bundle.config,
        bundle.layer,
        Digest(hashlib.sha256(lying).hexdigest()),
        bundle.layer_digest,
        bundle.tar_digest,
    )
    registry.writer().push_artifact(altered, registry.ref("owner/lying:v1"))
    reader = registry.reader(tmp_path / "pulls")
    artifact = reader.resolve(registry.ref("owner/lying:v1"), registry.options)

    with pytest.raises(FetchError) as caught, reader.pull(artifact, registry.options):
        pass

    assert caught.value.code == "DIGEST_MISMATCH"
