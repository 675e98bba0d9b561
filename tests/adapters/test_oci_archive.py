"""The archive: what is put comes back, whole or not at all, and as a tar that reads offline."""

import io
import json
import os
import shutil
import signal
import subprocess
import sys
import tarfile
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from app.adapters.oci import OciArchive, ReaderLimits, describe_bundle, describe_signature, read_layout_tar
from app.adapters.oci.codes import fetch_error
from app.adapters.oci.layout import archive_ref
from app.adapters.oci.pack import BundleArtifact, sha256
from app.core.bundle import RawSignature
from app.core.errors import ConflictError, FetchError, NotFoundError, StoreError
from app.core.refs import Digest
from app.ports import Artifact
from tests.support.registries import FILES, PREDICATE_V3, sample_bundle

FIRST, SECOND = b'{"sample": "first"}', b'{"sample": "second"}'


def artifact_of(bundle: BundleArtifact) -> Artifact:
    return Artifact(
        ref=archive_ref(bundle.digest),
        digest=bundle.digest,
        manifest=bundle.manifest,
        config=bundle.config,
        layer_digest=bundle.layer_digest,
        layer_size=len(bundle.layer),
        signatures=(),
    )


def signature_of(bundle: BundleArtifact, content: bytes) -> RawSignature:
    described = describe_signature(bundle.descriptor, content)
    return RawSignature(content, described.digest, described.manifest)


class Bench:
    """An archive in a directory of its own, with a layer file to put."""

    def __init__(self, root: Path, **options: object) -> None:
        self.root = root / "archive"
        self.tmp = root / "tmp"
        self.layer = root / "layer.tar.gz"
        self.bundle = sample_bundle()
        self.layer.write_bytes(self.bundle.layer)
        self.archive = OciArchive(str(self.root), tmp=str(self.tmp), **options)  # type: ignore[arg-type]

    def put(self, content: bytes = FIRST, bundle: BundleArtifact | None = None) -> None:
        chosen = bundle or self.bundle
        self.layer.write_bytes(chosen.layer)
        self.archive.put(artifact_of(chosen), signature_of(chosen, content), str(self.layer))

    @property
    def layout(self) -> Path:
        return self.root / self.bundle.digest.hex[:2] / self.bundle.digest.hex


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def test_what_was_put_is_held_and_opens_unpacked(bench: Bench) -> None:
    bench.put()

    assert bench.archive.holds(bench.bundle.digest, sha256(FIRST).hex)
    with bench.archive.open(bench.bundle.digest) as pulled:
        root = Path(pulled.directory)
        files = {str(path.relative_to(root)): path.read_bytes() for path in root.rglob("*") if path.is_file()}
        assert files == FILES
        assert Path(pulled.layer).read_bytes() == bench.bundle.layer
        assert pulled.artifact == Artifact(
            ref=archive_ref(bench.bundle.digest),
            digest=bench.bundle.digest,
            manifest=bench.bundle.manifest,
            config=b"{}",
            layer_digest=bench.bundle.layer_digest,
            layer_size=len(bench.bundle.layer),
            signatures=(signature_of(bench.bundle, FIRST),),
        )
    assert list(bench.tmp.iterdir()) == []


def test_the_layout_on_disk_is_an_oci_layout(bench: Bench) -> None:
    bench.put()
    described = describe_signature(bench.bundle.descriptor, FIRST)

    assert (bench.layout / "oci-layout").read_bytes() == b'{"imageLayoutVersion":"1.0.0"}'
    index = json.loads((bench.layout / "index.json").read_bytes())
    assert [(entry["digest"], entry["artifactType"]) for entry in index["manifests"]] == [
        (str(bench.bundle.digest), "application/vnd.nvidia.aicr.artifact"),
        (str(described.digest), "application/vnd.dev.sigstore.bundle.v0.3+json"),
    ]
    blobs = {path.name: sha256(path.read_bytes()).hex for path in (bench.layout / "blobs" / "sha256").iterdir()}
    assert blobs == {name: name for name in blobs}
    assert set(blobs) == {
        bench.bundle.digest.hex,
        bench.bundle.layer_digest.hex,
        "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a",
        described.digest.hex,
        sha256(FIRST).hex,
    }
    assert {path.stat().st_mode & 0o777 for path in bench.layout.rglob("*") if path.is_file()} == {0o600}


def test_a_second_signature_is_added_and_twice_is_once(bench: Bench) -> None:
    for content in (FIRST, SECOND, FIRST, SECOND):
        bench.put(content)

    with bench.archive.open(bench.bundle.digest) as pulled:
        assert [signature.bundle for signature in pulled.artifact.signatures] == [FIRST, SECOND]
    assert bench.archive.signature(bench.bundle.digest, sha256(SECOND).hex) == signature_of(bench.bundle, SECOND)


def test_a_signature_that_came_without_referrer_gets_the_standard_one(bench: Bench) -> None:
    bench.archive.put(artifact_of(bench.bundle), RawSignature(FIRST), str(bench.layer))

    assert bench.archive.signature(bench.bundle.digest, sha256(FIRST).hex) == signature_of(bench.bundle, FIRST)


def test_what_is_not_there_is_not_found(bench: Bench) -> None:
    absent = Digest("0" * 64)
    assert not bench.archive.holds(absent, sha256(FIRST).hex)
    with pytest.raises(NotFoundError), bench.archive.open(absent):
        raise AssertionError("opened nothing")
    with pytest.raises(NotFoundError):
        bench.archive.signature(absent, sha256(FIRST).hex)
    with pytest.raises(NotFoundError):
        bench.archive.export_tar(absent)

    bench.put()
    assert not bench.archive.holds(bench.bundle.digest, sha256(SECOND).hex)
    with pytest.raises(NotFoundError):
        bench.archive.signature(bench.bundle.digest, sha256(SECOND).hex)


def test_a_layer_that_is_not_the_artifacts_is_not_kept(bench: Bench) -> None:
    bench.layer.write_bytes(b"something else")

    with pytest.raises(StoreError):
        bench.archive.put(artifact_of(bench.bundle), signature_of(bench.bundle, FIRST), str(bench.layer))

    assert not bench.archive.holds(bench.bundle.digest, sha256(FIRST).hex)
    assert [path for path in bench.root.rglob("*") if path.is_file()] == []


def _kept(bench: Bench, digest: Digest) -> Path:
    return bench.layout / "blobs" / "sha256" / digest.hex


def _referrer(bench: Bench, content: bytes) -> Digest:
    return describe_signature(bench.bundle.descriptor, content).digest


def _forget_first(bench: Bench) -> None:
    index = bench.layout / "index.json"
    index.write_bytes(index.read_bytes().replace(sha256(FIRST).hex.encode(), b"0" * 64))


DAMAGES = [
    pytest.param(lambda b: b.layout.joinpath("index.json").write_bytes(b"{"), id="index"),
    pytest.param(lambda b: b.layout.joinpath("index.json").unlink(), id="no-index"),
    pytest.param(lambda b: b.layout.joinpath("oci-layout").unlink(), id="mark"),
    pytest.param(lambda b: _kept(b, b.bundle.digest).write_bytes(b"{}"), id="manifest"),
    pytest.param(lambda b: _kept(b, b.bundle.layer_digest).write_bytes(b"x"), id="layer"),
    pytest.param(lambda b: _kept(b, b.bundle.layer_digest).unlink(), id="no-layer"),
    pytest.param(lambda b: _kept(b, sha256(FIRST)).unlink(), id="signature"),
    pytest.param(lambda b: _kept(b, _referrer(b, FIRST)).write_bytes(b""), id="referrer"),
    pytest.param(lambda b: shutil.rmtree(b.layout / "blobs"), id="blobs"),
]


@pytest.mark.parametrize("damage", DAMAGES)
def test_damage_on_disk_is_named_and_never_a_verdict(bench: Bench, damage: Callable[[Bench], object]) -> None:
    bench.put()
    damage(bench)

    with pytest.raises(StoreError) as caught, bench.archive.open(bench.bundle.digest):
        raise AssertionError("a damaged bundle was handed out")

    assert caught.value.code == "ARCHIVE_DAMAGED"
    assert bench.archive.sweep(lambda _digest, _signature: True) == 0


# --- removal -------------------------------------------------------------------------------------------


def _lose_the_config(bench: Bench) -> None:
    _kept(bench, sha256(b"{}")).unlink()


@pytest.mark.parametrize(
    "damage",
    [
        *DAMAGES,
        pytest.param(_forget_first, id="note-in-the-index"),
        pytest.param(_lose_the_config, id="config"),
    ],
)
def test_what_was_damaged_is_not_held_and_putting_it_again_mends_it(
    bench: Bench, damage: Callable[[Bench], object]
) -> None:
    bench.put()
    damage(bench)
    assert not bench.archive.holds(bench.bundle.digest, sha256(FIRST).hex)

    bench.put()

    assert bench.archive.holds(bench.bundle.digest, sha256(FIRST).hex)
    with bench.archive.open(bench.bundle.digest) as pulled:
        assert [signature.bundle for signature in pulled.artifact.signatures] == [FIRST]
    names = {"oci-layout", "index.json", "blobs"}
    assert {path.name for path in bench.layout.iterdir()} == names, "a temporary name was left"
    blobs = {path.name: sha256(path.read_bytes()).hex for path in (bench.layout / "blobs" / "sha256").iterdir()}
    assert blobs == {name: name for name in blobs}
    assert len(blobs) == 5


@pytest.mark.parametrize("lost", ["index.json", "oci-layout"])
def test_a_lost_index_forgets_no_other_signature(bench: Bench, lost: str) -> None:
    bench.put(FIRST)
    bench.put(SECOND)
    os.utime(_kept(bench, _referrer(bench, FIRST)), (1, 1))
    bench.layout.joinpath(lost).unlink()

    bench.put(SECOND)

    with bench.archive.open(bench.bundle.digest) as pulled:
        assert [signature.bundle for signature in pulled.artifact.signatures] == [FIRST, SECOND]


def test_a_damaged_signature_takes_the_others_nothing(bench: Bench) -> None:
    bench.put(FIRST)
    bench.put(SECOND)
    _kept(bench, sha256(FIRST)).write_bytes(b"something else")

    assert bench.archive.holds(bench.bundle.digest, sha256(SECOND).hex)
    assert not bench.archive.holds(bench.bundle.digest, sha256(FIRST).hex)
    assert bench.archive.signature(bench.bundle.digest, sha256(SECOND).hex).bundle == SECOND


def test_mending_that_fails_leaves_nothing_behind(bench: Bench) -> None:
    """A full disk would be fuller after each retry, and a sweep leaves damaged bundles alone."""
    bench.put()
    _kept(bench, bench.bundle.layer_digest).unlink()
    _kept(bench, bench.bundle.digest).unlink()
    before = sorted(bench.root.rglob("*"))
    bench.layer.write_bytes(b"something else")

    with pytest.raises(StoreError, match="expected a layer of"):
        bench.archive.put(artifact_of(bench.bundle), signature_of(bench.bundle, FIRST), str(bench.layer))

    assert sorted(bench.root.rglob("*")) == before


@pytest.mark.parametrize("damage", DAMAGES)
def test_nothing_is_exported_of_a_damaged_bundle(bench: Bench, damage: Callable[[Bench], object]) -> None:
    bench.put()
    damage(bench)

    with pytest.raises(StoreError) as caught:
        bench.archive.export_tar(bench.bundle.digest)

    assert caught.value.code == "ARCHIVE_DAMAGED"


def test_a_sweep_removes_what_no_record_names(bench: Bench) -> None:
    other = describe_bundle({"recipe.yaml": b"other\n"}, predicate_type=PREDICATE_V3, version="v1")
    bench.put(FIRST)
    bench.put(SECOND)
    bench.put(FIRST, other)
    (bench.layout.parent / ".tmp-left").mkdir()
    (bench.layout / "blobs" / "sha256" / ".tmp-left").write_bytes(b"x")
    known = {(bench.bundle.digest, sha256(SECOND).hex)}

    gone = bench.archive.sweep(lambda digest, signature: (digest, signature) in known)

    assert gone == 2
    assert list(bench.archive.digests()) == [bench.bundle.digest]
    assert not bench.archive.holds(bench.bundle.digest, sha256(FIRST).hex)
    assert bench.archive.holds(bench.bundle.digest, sha256(SECOND).hex)
    assert list(bench.root.rglob(".tmp-*")) == []
    names = {path.name for path in (bench.layout / "blobs" / "sha256").iterdir()}
    assert sha256(FIRST).hex not in names
    assert bench.archive.sweep(lambda digest, signature: (digest, signature) in known) == 0


def test_a_sweep_leaves_what_another_process_just_wrote(tmp_path: Path) -> None:
    bench = Bench(tmp_path, grace_seconds=3600.0)
    bench.put()
    (bench.layout.parent / ".tmp-running").mkdir()

    assert bench.archive.sweep(lambda _digest, _signature: False) == 0
    assert bench.archive.holds(bench.bundle.digest, sha256(FIRST).hex)
    assert (bench.layout.parent / ".tmp-running").is_dir()


def test_removed_bytes_are_gone_at_once(bench: Bench) -> None:
    bench.put()

    assert bench.archive.remove(bench.bundle.digest)
    assert not bench.archive.remove(bench.bundle.digest)
    assert not bench.archive.holds(bench.bundle.digest, sha256(FIRST).hex)
    assert [path for path in bench.root.rglob("*") if path.is_file()] == []


# --- crashes and races ---------------------------------------------------------------------------------

_CHILD = """
import os, signal, sys
sys.path.insert(0, os.getcwd())
from pathlib import Path
from tests.adapters.test_oci_archive import Bench
def die(name):
    if name == sys.argv[2]:
        os.kill(os.getpid(), signal.SIGKILL)
bench = Bench(Path(sys.argv[1]), failpoint=die)
bench.put(sys.argv[3].encode())
"""


@pytest.mark.parametrize(
    ("point", "second", "held"),
    [
        pytest.param("archive:blobs", False, set(), id="blobs"),
        pytest.param("archive:rename", False, {FIRST}, id="rename"),
        pytest.param("archive:synced", False, {FIRST}, id="synced"),
        pytest.param("archive:signature", True, {FIRST}, id="signature"),
        pytest.param("archive:index", True, {FIRST, SECOND}, id="index"),
    ],
)
def test_a_kill_at_any_step_leaves_a_whole_state(tmp_path: Path, point: str, held: set[bytes], *, second: bool) -> None:
    if second:
        Bench(tmp_path).put(FIRST)
    content = SECOND if second else FIRST

    child = subprocess.run([sys.executable, "-c", _CHILD, str(tmp_path), point, content.decode()], check=False)

    bench = Bench(tmp_path)
    assert child.returncode == -signal.SIGKILL
    assert {c for c in (FIRST, SECOND) if bench.archive.holds(bench.bundle.digest, sha256(c).hex)} == held
    bench.archive.sweep(lambda _digest, _signature: True)
    assert list(bench.root.rglob(".tmp-*")) == []
    bench.put(content)
    with bench.archive.open(bench.bundle.digest) as pulled:
        assert {signature.bundle for signature in pulled.artifact.signatures} == held | {content}


def test_a_kill_in_the_middle_of_mending_loses_nothing(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    bench.put(FIRST)
    bench.put(SECOND)
    shutil.rmtree(bench.layout / "blobs")

    child = subprocess.run([sys.executable, "-c", _CHILD, str(tmp_path), "archive:mended", FIRST.decode()], check=False)

    assert child.returncode == -signal.SIGKILL
    assert {c for c in (FIRST, SECOND) if bench.archive.holds(bench.bundle.digest, sha256(c).hex)} == set()
    bench.put(FIRST)
    assert bench.archive.signature(bench.bundle.digest, sha256(FIRST).hex).bundle == FIRST
    bench.put(SECOND)
    with bench.archive.open(bench.bundle.digest) as pulled:
        assert [signature.bundle for signature in pulled.artifact.signatures] == [FIRST, SECOND]
    assert list(bench.root.rglob(".tmp-*")) == []


@pytest.mark.parametrize("damage", DAMAGES)
def test_who_reads_while_a_bundle_is_mended_sees_damage_or_all_of_it(
    bench: Bench, damage: Callable[[Bench], object]
) -> None:
    contents = [FIRST, SECOND]
    for content in contents:
        bench.put(content)
    os.utime(_kept(bench, _referrer(bench, FIRST)), (1, 1))  # what tells their order when the index is lost
    whole = b"".join(bench.archive.export_tar(bench.bundle.digest))
    damage(bench)
    read: list[bytes] = []
    mended = threading.Event()

    def look() -> None:
        last = False
        while not last:
            last = mended.is_set()
            try:
                read.append(b"".join(bench.archive.export_tar(bench.bundle.digest)))
            except StoreError as err:
                read.append(err.code.encode())

    threads = [
        threading.Thread(
            target=bench.archive.put,
            args=(artifact_of(bench.bundle), signature_of(bench.bundle, content), str(bench.layer)),
        )
        for content in contents * 2
    ]
    reader = threading.Thread(target=look)
    for thread in (reader, *threads):
        thread.start()
    for thread in threads:
        thread.join()
    mended.set()
    reader.join()

    assert set(read) <= {b"ARCHIVE_DAMAGED", whole}
    assert read[-1] == whole


def test_parallel_puts_of_one_digest_keep_every_signature(bench: Bench) -> None:
    contents = [f'{{"sample": {n}}}'.encode() for n in range(12)]
    threads = [
        threading.Thread(
            target=bench.archive.put,
            args=(artifact_of(bench.bundle), signature_of(bench.bundle, content), str(bench.layer)),
        )
        for content in contents
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    with bench.archive.open(bench.bundle.digest) as pulled:
        assert {signature.bundle for signature in pulled.artifact.signatures} == set(contents)


def test_more_signatures_than_one_pull_may_bring_are_kept(bench: Bench) -> None:
    """Strangers may sign copies of one artifact; they must not make its archive unreadable."""
    for n in range(70):
        bench.put(f'{{"sample": {n}}}'.encode())

    with bench.archive.open(bench.bundle.digest) as pulled:
        assert len(pulled.artifact.signatures) == 70
    exported = b"".join(bench.archive.export_tar(bench.bundle.digest))
    path = bench.root.parent / "export.tar"
    path.write_bytes(exported)
    with read_layout_tar(str(path), str(bench.tmp)) as read:
        assert [signature.bundle for signature in read.artifact.signatures][:2] == [b'{"sample": 0}', b'{"sample": 1}']
        assert len(read.artifact.signatures) == 64


def test_signatures_without_end_are_refused(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.adapters.oci.archive.MAX_SIGNATURES", 2)
    for content in (FIRST, SECOND):
        bench.put(content)

    with pytest.raises(ConflictError):
        bench.put(b'{"sample": "third"}')


# --- tar -----------------------------------------------------------------------------------------------


def exported(bench: Bench) -> bytes:
    bench.put(FIRST)
    bench.put(SECOND)
    return b"".join(bench.archive.export_tar(bench.bundle.digest))


def test_an_export_reads_back_offline(bench: Bench, tmp_path: Path) -> None:
    (tmp_path / "export.tar").write_bytes(exported(bench))

    with read_layout_tar(str(tmp_path / "export.tar"), str(tmp_path / "offline")) as read:
        assert Path(read.directory, "recipe.yaml").read_bytes() == FILES["recipe.yaml"]
        assert Path(read.layer).read_bytes() == bench.bundle.layer
        with bench.archive.open(bench.bundle.digest) as opened:
            assert read.artifact == opened.artifact

    assert list((tmp_path / "offline").iterdir()) == []


def test_an_export_is_the_same_each_time_and_plain_tar(bench: Bench) -> None:
    first = exported(bench)

    assert b"".join(bench.archive.export_tar(bench.bundle.digest)) == first
    with tarfile.open(fileobj=io.BytesIO(first)) as archive:
        members = archive.getmembers()
    assert [member.name for member in members if "/" not in member.name] == ["blobs", "index.json", "oci-layout"]
    assert {member.mtime for member in members} == {0}
    assert len(members) == 11


def repack(data: bytes, change: Callable[[dict[str, bytes]], object]) -> bytes:
    """The same tar with altered files."""
    with tarfile.open(fileobj=io.BytesIO(data)) as archive:
        files = {m.name: archive.extractfile(m).read() for m in archive.getmembers() if m.isfile()}  # type: ignore[union-attr]
    change(files)
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        for name, content in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    return out.getvalue()


def without_types(files: dict[str, bytes]) -> None:
    index = json.loads(files["index.json"])
    for entry in index["manifests"]:
        entry.pop("artifactType")
        entry.pop("annotations", None)
    files["index.json"] = json.dumps(index).encode()


def test_a_layout_of_another_tool_is_read_by_its_manifests(bench: Bench, tmp_path: Path) -> None:
    (tmp_path / "other.tar").write_bytes(repack(exported(bench), without_types))

    with read_layout_tar(str(tmp_path / "other.tar"), str(tmp_path / "offline")) as read:
        assert read.artifact.digest == bench.bundle.digest
        assert [signature.bundle for signature in read.artifact.signatures] == [FIRST, SECOND]


def _blob(digest: Digest) -> str:
    return f"blobs/sha256/{digest.hex}"


BUNDLE = sample_bundle()
REFERRER = describe_signature(BUNDLE.descriptor, FIRST)


@pytest.mark.parametrize(
    ("change", "code"),
    [
        pytest.param(lambda f: f.pop("oci-layout"), "LAYOUT_INVALID", id="no-mark"),
        pytest.param(lambda f: f.update({"oci-layout": b"{}"}), "LAYOUT_INVALID", id="other-version"),
        pytest.param(lambda f: f.update({"oci-layout": b"{"}), "LAYOUT_INVALID", id="broken-mark"),
        pytest.param(lambda f: f.pop("index.json"), "LAYOUT_INVALID", id="no-index"),
        pytest.param(lambda f: f.update({"index.json": b"[]"}), "MANIFEST_INVALID", id="broken-index"),
        pytest.param(lambda f: f.pop(_blob(BUNDLE.digest)), "LAYOUT_INVALID", id="no-manifest"),
        pytest.param(lambda f: f.pop(_blob(BUNDLE.layer_digest)), "LAYOUT_INVALID", id="no-layer"),
        pytest.param(lambda f: f.pop(_blob(REFERRER.digest)), "LAYOUT_INVALID", id="no-referrer"),
        pytest.param(lambda f: f.pop(_blob(sha256(FIRST))), "LAYOUT_INVALID", id="no-signature"),
        pytest.param(
            lambda f: f.update({_blob(sha256(FIRST)): FIRST.replace(b"first", b"FIRST")}),
            "DIGEST_MISMATCH",
            id="altered-signature",
        ),
        pytest.param(lambda f: f.update({_blob(sha256(FIRST)): b"{}"}), "SIZE_MISMATCH", id="short-signature"),
        pytest.param(
            lambda f: f.update({_blob(BUNDLE.layer_digest): BUNDLE.layer[:-8] + bytes(8)}), "LAYER_UNSAFE", id="layer"
        ),
        pytest.param(lambda f: f.update({"../x": b""}), "LAYER_UNSAFE", id="traversal"),
        pytest.param(lambda f: f.update({str(n): b"" for n in range(300)}), "LAYER_UNSAFE", id="many-files"),
    ],
)
def test_an_altered_archive_is_refused(
    bench: Bench, tmp_path: Path, change: Callable[[dict[str, bytes]], object], code: str
) -> None:
    (tmp_path / "bad.tar").write_bytes(repack(exported(bench), change))

    with pytest.raises(FetchError) as caught, read_layout_tar(str(tmp_path / "bad.tar"), str(tmp_path / "offline")):
        raise AssertionError("an altered archive was handed out")

    assert caught.value.code == code
    assert list((tmp_path / "offline").iterdir()) == []


@pytest.mark.parametrize(
    ("content", "code"),
    [
        pytest.param(b"", "LAYER_UNSAFE", id="empty"),
        pytest.param(b"no tar" * 200, "LAYER_UNSAFE", id="text"),
    ],
)
def test_what_is_no_tar_is_refused(tmp_path: Path, content: bytes, code: str) -> None:
    (tmp_path / "bad.tar").write_bytes(content)

    with pytest.raises(FetchError) as caught, read_layout_tar(str(tmp_path / "bad.tar"), str(tmp_path / "offline")):
        raise AssertionError("no archive was handed out")

    assert caught.value.code == code


def test_reading_an_archive_ends_when_the_caller_says_so(bench: Bench, tmp_path: Path) -> None:
    (tmp_path / "export.tar").write_bytes(exported(bench))

    def late() -> None:
        raise fetch_error("REGISTRY_TIMEOUT", "too late")

    with (
        pytest.raises(FetchError, match="too late"),
        read_layout_tar(str(tmp_path / "export.tar"), str(tmp_path / "offline"), tick=late),
    ):
        raise AssertionError("an archive was handed out after the deadline")


def test_zeros_after_an_archive_count(bench: Bench, tmp_path: Path) -> None:
    path = tmp_path / "export.tar"
    path.write_bytes(exported(bench))
    os.truncate(path, 20 << 20)
    with read_layout_tar(str(path), str(tmp_path / "offline")) as read:
        assert read.artifact.digest == bench.bundle.digest
    small = ReaderLimits(blob_bytes=1 << 20, signatures_bytes=1 << 20, manifest_bytes=1 << 20)
    with (
        pytest.raises(FetchError, match="the archive has more than") as caught,
        read_layout_tar(str(path), str(tmp_path / "offline"), small),
    ):
        raise AssertionError("an archive with many zeros behind it was handed out")
    assert caught.value.code == "BODY_TOO_LARGE"


def test_a_pipe_is_no_archive_and_nobody_waits_for_its_other_end(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.tar")
    with (
        pytest.raises(FetchError, match="expected a regular file") as caught,
        read_layout_tar(str(tmp_path / "pipe.tar"), str(tmp_path / "offline")),
    ):
        raise AssertionError("no archive was handed out")
    assert caught.value.code == "LAYOUT_INVALID"


def test_an_archive_over_the_limits_is_told_apart(bench: Bench, tmp_path: Path) -> None:
    (tmp_path / "export.tar").write_bytes(exported(bench))
    small = ReaderLimits(blob_bytes=10)

    with (
        pytest.raises(FetchError) as caught,
        read_layout_tar(str(tmp_path / "export.tar"), str(tmp_path / "offline"), small),
    ):
        raise AssertionError("an oversize archive was handed out")

    assert caught.value.code == "BODY_TOO_LARGE"


def test_an_archive_that_can_not_be_written_is_a_store_error(tmp_path: Path) -> None:
    (tmp_path / "archive").write_text("a file is in the way")

    with pytest.raises(StoreError):
        OciArchive(str(tmp_path / "archive"), tmp=str(tmp_path / "tmp"))


def test_a_process_leaves_no_lock_behind(bench: Bench) -> None:
    bench.put()

    assert [path.name for path in bench.layout.parent.iterdir()] == [bench.bundle.digest.hex]
