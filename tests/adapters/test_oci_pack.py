"""The deterministic artifact: O11-O14, byte for byte."""

import gzip
import io
import json
import tarfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.adapters.oci import ReaderLimits, default_tag, describe_bundle, describe_signature
from app.adapters.oci.manifest import parse_main, parse_signature
from app.adapters.oci.pack import describe_referrer, gzip_member, pack_tar, sha256
from app.adapters.oci.unpack import unpack_layer
from app.core.errors import InputError
from app.core.refs import Digest

V3 = "https://aicr.run/recipe-evidence/v3"
SENTENCE = "Signed validation evidence for an AICR recipe"
FILES = {"nested/deep/c.sh": b"echo\n", "a.txt": b"a\n"}


def test_entries_are_sorted_with_parents_before_files() -> None:
    """O12."""
    with tarfile.open(fileobj=io.BytesIO(pack_tar(FILES))) as archive:
        entries = archive.getmembers()

    assert [entry.name + ("/" if entry.isdir() else "") for entry in entries] == [
        "a.txt",
        "nested/",
        "nested/deep/",
        "nested/deep/c.sh",
    ]
    assert [entry.mode for entry in entries] == [0o644, 0o755, 0o755, 0o644]
    assert {(entry.mtime, entry.uid, entry.gid, entry.uname, entry.gname) for entry in entries} == {(0, 0, 0, "", "")}


def test_the_raw_header_names_a_directory_with_a_slash() -> None:
    tar = pack_tar(FILES)

    assert tar[1024 : 1024 + 8] == b"nested/\0"
    assert len(tar) % 512 == 0
    assert tar[-1024:] == bytes(1024)


def test_gzip_says_level_nine_no_time_and_no_system() -> None:
    data = gzip_member(b"hello" * 100)

    assert data[:10] == b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x02\xff"
    assert gzip.decompress(data) == b"hello" * 100


def test_the_layer_is_annotated_for_unpacking() -> None:
    """O11."""
    bundle = describe_bundle(FILES, predicate_type=V3, version="v1.2.3")

    assert json.loads(bundle.manifest) == {
        "schemaVersion": 2,
        "mediaType": "application/vnd.oci.image.manifest.v1+json",
        "artifactType": "application/vnd.nvidia.aicr.artifact",
        "config": {
            "mediaType": "application/vnd.oci.empty.v1+json",
            "digest": "sha256:44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a",
            "size": 2,
        },
        "layers": [
            {
                "mediaType": "application/vnd.oci.image.layer.v1.tar+gzip",
                "digest": str(sha256(bundle.layer)),
                "size": len(bundle.layer),
                "annotations": {
                    "io.deis.oras.content.digest": str(sha256(pack_tar(FILES))),
                    "io.deis.oras.content.unpack": "true",
                    "org.opencontainers.image.title": ".",
                },
            }
        ],
        "annotations": {
            "org.opencontainers.image.created": "1970-01-01T00:00:00Z",
            "org.opencontainers.image.description": f"{SENTENCE} (recipe-evidence/v3).",
            "org.opencontainers.image.source": "https://github.com/NVIDIA/aicr",
            "org.opencontainers.image.title": "AICR Recipe Evidence",
            "org.opencontainers.image.vendor": "NVIDIA",
            "org.opencontainers.image.version": "v1.2.3",
        },
    }
    assert bundle.config == b"{}"
    assert bundle.digest == sha256(bundle.manifest)


@pytest.mark.parametrize(
    ("predicate_type", "ending"),
    [
        pytest.param("https://aicr.run/recipe-evidence/v1", "recipe (recipe-evidence/v1).", id="v1"),
        pytest.param("https://aicr.run/recipe-evidence/v3", "recipe (recipe-evidence/v3).", id="v3"),
        pytest.param("https://example.org/other", "recipe.", id="unknown"),
    ],
)
def test_the_description_names_the_predicate_version_when_it_is_known(predicate_type: str, ending: str) -> None:
    manifest = json.loads(describe_bundle(FILES, predicate_type=predicate_type, version="v1").manifest)

    assert manifest["annotations"]["org.opencontainers.image.description"].endswith(ending)


def test_the_order_in_which_files_are_given_changes_nothing() -> None:
    backwards = dict(reversed(FILES.items()))

    assert describe_bundle(FILES, predicate_type=V3, version="v1") == describe_bundle(
        backwards, predicate_type=V3, version="v1"
    )


def test_the_digest_of_a_known_bundle_does_not_move() -> None:
    """A change here is a change of the published format; compressed bytes depend on zlib, the tar does not."""
    assert str(sha256(pack_tar(FILES))) == "sha256:f7832f57c3a5f2d07a7df8a1bb5b65c166f9ea297671f42c0fc109b4913401c0"


def test_a_referrer_carries_subject_type_and_its_own_tag() -> None:
    """O13."""
    bundle = describe_bundle(FILES, predicate_type=V3, version="v1")
    signature = describe_signature(bundle.descriptor, b'{"sample": 1}')

    assert json.loads(signature.manifest) == {
        "schemaVersion": 2,
        "mediaType": "application/vnd.oci.image.manifest.v1+json",
        "artifactType": "application/vnd.dev.sigstore.bundle.v0.3+json",
        "config": {
            "mediaType": "application/vnd.oci.empty.v1+json",
            "digest": "sha256:44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a",
            "size": 2,
        },
        "layers": [
            {
                "mediaType": "application/vnd.dev.sigstore.bundle.v0.3+json",
                "digest": str(sha256(b'{"sample": 1}')),
                "size": 13,
                "annotations": {"org.opencontainers.image.title": "payload"},
            }
        ],
        "subject": {
            "mediaType": "application/vnd.oci.image.manifest.v1+json",
            "digest": str(bundle.digest),
            "size": len(bundle.manifest),
        },
        "annotations": {
            "org.opencontainers.image.created": "1970-01-01T00:00:00Z",
            "org.opencontainers.image.vendor": "NVIDIA",
        },
    }
    assert signature.tag == sha256(signature.manifest).hex


@pytest.mark.parametrize(
    ("missing", "message"),
    [
        pytest.param({"artifact_type": ""}, "ArtifactType is required", id="O14-type"),
        pytest.param({"content": b""}, "LayerContent must be non-empty", id="O14-content"),
        pytest.param({"subject": None}, "Subject.Digest is required", id="O14-subject"),
    ],
)
def test_a_referrer_without_a_part_is_refused(missing: dict[str, object], message: str) -> None:
    subject = describe_bundle(FILES, predicate_type=V3, version="v1").descriptor
    whole: dict[str, object] = {"artifact_type": "application/x", "content": b"x", "subject": subject}

    with pytest.raises(InputError, match=message):
        describe_referrer(**{**whole, **missing})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "path",
    [
        pytest.param("../x", id="parent"),
        pytest.param("/x", id="absolute"),
        pytest.param("a//b", id="empty-part"),
        pytest.param("./a", id="dot"),
        pytest.param("a\\b", id="backslash"),
        pytest.param("a\nb", id="newline"),
        pytest.param("", id="empty"),
        pytest.param("a" * 600, id="long"),
    ],
)
def test_a_path_that_a_reader_refuses_is_not_packed(path: str) -> None:
    with pytest.raises(InputError):
        pack_tar({path: b"x"})


def test_a_file_that_is_also_a_directory_is_not_packed() -> None:
    with pytest.raises(InputError):
        pack_tar({"a/b": b"x", "a": b"y"})


@pytest.mark.parametrize(
    ("recipe", "tag"),
    [
        pytest.param("h100-eks-ubuntu-training", "h100-eks-ubuntu-training-aaaaaaaaaaaa", id="plain"),
        pytest.param("H100 EKS/ü", "h100-eks-aaaaaaaaaaaa", id="other-characters"),
        pytest.param("-.x.-", "x-aaaaaaaaaaaa", id="trimmed"),
        pytest.param("", "recipe-aaaaaaaaaaaa", id="empty"),
        pytest.param("é", "recipe-aaaaaaaaaaaa", id="nothing-left"),
        pytest.param("x" * 79 + "-y", "x" * 79 + "-aaaaaaaaaaaa", id="cut-and-trimmed-again"),
    ],
)
def test_a_push_without_tag_is_named_after_recipe_and_manifest(recipe: str, tag: str) -> None:
    assert default_tag(recipe, Digest("a" * 64)) == tag


_PART = st.from_regex(r"[a-z0-9_.-]{1,12}", fullmatch=True).filter(lambda part: part not in {".", ".."})
_TREES = st.dictionaries(
    st.lists(_PART, min_size=1, max_size=4).map("/".join), st.binary(max_size=2000), min_size=1, max_size=8
)


@settings(deadline=None)
@given(_TREES)
def test_what_is_packed_unpacks_to_the_same_files(
    tmp_path_factory: pytest.TempPathFactory, files: dict[str, bytes]
) -> None:
    parents = {path.rsplit("/", depth)[0] for path in files for depth in range(1, path.count("/") + 1)}
    files = {path: data for path, data in files.items() if path not in parents}
    bundle = describe_bundle(files, predicate_type=V3, version="v1")
    main = parse_main(bundle.manifest, ReaderLimits())
    scratch = tmp_path_factory.mktemp("packed")
    layer = scratch / "layer"
    layer.write_bytes(bundle.layer)

    unpack_layer(
        str(layer),
        str(scratch / "out"),
        digest=main.layer.digest,
        size=main.layer.size,
        tar_digest=main.tar_digest,
        limits=ReaderLimits(),
    )

    found = {
        str(path.relative_to(scratch / "out")): path.read_bytes()
        for path in Path(scratch / "out").rglob("*")
        if path.is_file()
    }
    assert found == files


def test_long_and_foreign_names_survive_the_round_trip(tmp_path: Path) -> None:
    files = {"d" * 120 + "/" + "f" * 200: b"long", "über/ß.txt": b"foreign", "zeros": bytes(4096)}
    bundle = describe_bundle(files, predicate_type=V3, version="v1")
    (tmp_path / "layer").write_bytes(bundle.layer)

    unpack_layer(
        str(tmp_path / "layer"),
        str(tmp_path / "out"),
        digest=bundle.layer_digest,
        size=len(bundle.layer),
        tar_digest=bundle.tar_digest,
        limits=ReaderLimits(),
    )

    assert {path: (tmp_path / "out" / path).read_bytes() for path in files} == files


def test_a_signature_of_the_described_digest_reads_back() -> None:
    bundle = describe_bundle(FILES, predicate_type=V3, version="v1")
    signature = describe_signature(bundle.descriptor, b"{}")

    assert parse_signature(signature.manifest, subject=bundle.descriptor, limits=ReaderLimits()).layer.size == 2
