"""Directories and pointer files: no link is followed, no read is unbounded (trust 3, evidence-format 6)."""

import errno
import hashlib
import os
import socket
from pathlib import Path

import pytest

from app.adapters.files import ContentLimits, DirectoryReader, PointerFiles, TreeLimits
from app.adapters.files.reading import file_error
from app.core.bundle import Entry, EntryKind, ReadFault
from app.core.cross_check import SignerClaim
from app.core.errors import (
    ConflictError,
    DocumentInvalid,
    FetchError,
    InputError,
    NotFoundError,
    PointerInvalid,
    ServiceError,
)
from app.core.input_form import PathKind
from app.core.pointer import Pointer, dump_pointer
from tests.support.bundles import Sample, write

V3 = "https://aicr.run/recipe-evidence/v3"


def test_every_entry_is_hashed_and_the_captured_files_are_kept(tmp_path: Path) -> None:
    files = Sample().files() | {"logs/run.log": b"line\n"}
    content = DirectoryReader().read(str(write(tmp_path, files)))
    assert {path for path, entry in content.entries.items() if entry.kind is EntryKind.FILE} == set(files)
    assert content.entries["logs"] == Entry("logs", EntryKind.DIRECTORY)
    assert content.entries["logs/run.log"] == Entry(
        "logs/run.log", EntryKind.FILE, 5, hashlib.sha256(b"line\n").hexdigest()
    )
    assert content.read("manifest.json") == files["manifest.json"]
    assert content.read("ctrf/deployment.json") == files["ctrf/deployment.json"]
    assert content.read("logs/run.log") is ReadFault.MISSING  # hashed, not kept
    assert content.read("attestation.intoto.jsonl") is ReadFault.MISSING


def test_no_link_is_followed(tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "secret").write_bytes(b"secret")
    directory = write(tmp_path / "bundle", Sample().files())
    (directory / "to-file").symlink_to(tmp_path / "outside" / "secret")
    (directory / "to-directory").symlink_to(tmp_path / "outside")
    (directory / "nowhere").symlink_to("gone")
    (directory / "bom.cdx.json").unlink()
    (directory / "bom.cdx.json").symlink_to(tmp_path / "outside" / "secret")
    content = DirectoryReader().read(str(directory))
    for name in ("to-file", "to-directory", "nowhere", "bom.cdx.json"):
        assert content.entries[name] == Entry(name, EntryKind.SYMLINK, fault=ReadFault.SYMLINK)
    assert content.read("bom.cdx.json") is ReadFault.SYMLINK
    assert not any(path.startswith("to-directory/") for path in content.entries)


def test_special_files_are_noted_and_never_opened(tmp_path: Path) -> None:
    directory = write(tmp_path, Sample().files())
    os.mkfifo(directory / "pipe")
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(directory / "socket"))
        content = DirectoryReader().read(str(directory))
    for name in ("pipe", "socket"):
        assert content.entries[name] == Entry(name, EntryKind.OTHER, fault=ReadFault.NOT_REGULAR)


def test_a_directory_at_the_path_of_a_captured_file_is_a_fault_of_that_file(tmp_path: Path) -> None:
    directory = write(tmp_path, {"recipe.yaml": b"r", "manifest.json": b"{}", "attestation.intoto.jsonl/x": b"1"})
    (directory / "statement.intoto.json").mkdir()
    content = DirectoryReader().read(str(directory))
    assert content.read("attestation.intoto.jsonl") is ReadFault.NOT_REGULAR
    assert content.read("statement.intoto.json") is ReadFault.NOT_REGULAR
    assert content.entries["attestation.intoto.jsonl"].kind is EntryKind.DIRECTORY
    assert content.read("bom.cdx.json") is ReadFault.MISSING


def test_a_captured_file_over_its_cap_is_hashed_and_not_kept(tmp_path: Path) -> None:
    directory = write(tmp_path, Sample().files() | {"recipe.yaml": b"#" * ((1 << 20) + 1)})
    content = DirectoryReader().read(str(directory))
    assert content.read("recipe.yaml") is ReadFault.TOO_LARGE
    assert content.entries["recipe.yaml"].size == (1 << 20) + 1
    write(tmp_path, {"recipe.yaml": b"#" * (1 << 20)})
    assert content.read("manifest.json") == Sample().files()["manifest.json"]
    assert DirectoryReader().read(str(directory)).read("recipe.yaml") == b"#" * (1 << 20)


def test_only_the_nested_bundle_is_read_when_the_bundle_lies_there(tmp_path: Path) -> None:
    write(tmp_path / "summary-bundle", Sample().files())
    write(tmp_path, {"pointer.yaml": b"x", "huge/file": b"x" * 100})
    content = DirectoryReader(ContentLimits(max_bytes=16_384)).read(str(tmp_path))
    assert "huge" not in content.entries
    assert isinstance(content.read("summary-bundle/manifest.json"), bytes)


@pytest.mark.parametrize(
    ("limits", "files"),
    [
        pytest.param(ContentLimits(max_files=3), {f"{n}": b"" for n in range(4)}, id="files"),
        pytest.param(ContentLimits(max_files=3), {"a/b/c/d/e": b""}, id="directories"),
        pytest.param(ContentLimits(max_bytes=10), {"a": b"123456", "b": b"12345"}, id="bytes"),
        pytest.param(ContentLimits(max_depth=2), {"a/b/c": b""}, id="depth"),
        pytest.param(ContentLimits(max_path_bytes=5), {"ab/cde": b""}, id="path"),
    ],
)
def test_a_directory_beyond_a_limit_is_refused(tmp_path: Path, limits: ContentLimits, files: dict[str, bytes]) -> None:
    with pytest.raises(DocumentInvalid) as caught:
        DirectoryReader(limits).read(str(write(tmp_path, files)))
    assert caught.value.code == "CONTENT_LIMIT"


def test_a_directory_at_its_limits_is_read(tmp_path: Path) -> None:
    limits = ContentLimits(max_files=2, max_bytes=2, max_depth=2, max_path_bytes=3)
    content = DirectoryReader(limits).read(str(write(tmp_path, {"a/b": b"1", "c": b"2"})))
    assert sorted(content.entries) == ["a", "a/b", "c"]


def test_a_name_that_is_no_utf_8_is_refused_visibly(tmp_path: Path) -> None:
    Path(os.fsdecode(os.fsencode(tmp_path) + b"/bad\xff")).write_bytes(b"x")
    content = DirectoryReader().read(str(tmp_path))
    assert content.entries == {"bad\\xff": Entry("bad\\xff", EntryKind.OTHER, fault=ReadFault.NOT_REGULAR)}


def test_a_missing_directory_and_a_file_are_not_found(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    for name in ("gone", "file"):
        with pytest.raises(NotFoundError):
            DirectoryReader().read(str(tmp_path / name))
    with pytest.raises(InputError):
        DirectoryReader().read("a\0b")


class _Failing:
    """`os.read` that fails as a broken disk does."""

    def __init__(self, number: int) -> None:
        self.number = number

    def __call__(self, fd: int, size: int) -> bytes:
        raise OSError(self.number, os.strerror(self.number))


@pytest.mark.parametrize("name", ["EIO", "ESTALE", "EACCES", "EPERM", "ENXIO", "ETIMEDOUT"])
def test_a_storage_fault_of_a_file_is_no_verdict(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    directory = write(tmp_path, {"recipe.yaml": b"r"})
    monkeypatch.setattr("app.adapters.files.content.os.read", _Failing(getattr(errno, name)))
    content = DirectoryReader().read(str(directory))
    assert content.entries["recipe.yaml"].fault is ReadFault.UNAVAILABLE
    assert content.read("recipe.yaml") is ReadFault.UNAVAILABLE


def test_a_file_that_vanishes_while_it_is_read_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    directory = write(tmp_path, {"recipe.yaml": b"r"})
    monkeypatch.setattr("app.adapters.files.content.os.read", _Failing(errno.ENOENT))
    assert DirectoryReader().read(str(directory)).read("recipe.yaml") is ReadFault.MISSING


# --- pointer files -----------------------------------------------------------------------------------


def test_a_pointer_file_is_read_up_to_one_mebibyte(tmp_path: Path) -> None:
    path = tmp_path / "p.yaml"
    path.write_bytes(b"#" * (1 << 20))
    assert len(PointerFiles().read_pointer(str(path))) == 1 << 20
    path.write_bytes(b"#" * ((1 << 20) + 1))
    with pytest.raises(PointerInvalid, match="larger than allowed"):
        PointerFiles().read_pointer(str(path))


def test_a_pointer_that_is_a_link_or_no_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "real.yaml").write_bytes(b"x")
    (tmp_path / "link.yaml").symlink_to("real.yaml")
    os.mkfifo(tmp_path / "pipe.yaml")
    (tmp_path / "dir.yaml").mkdir()
    for name, message in (("link", "symbolic link"), ("pipe", "something else"), ("dir", "something else")):
        with pytest.raises(PointerInvalid, match=message):
            PointerFiles().read_pointer(str(tmp_path / f"{name}.yaml"))
    with pytest.raises(NotFoundError):
        PointerFiles().read_pointer(str(tmp_path / "gone.yaml"))


@pytest.mark.parametrize(
    ("number", "expected"),
    [
        ("ENOENT", NotFoundError),
        ("EACCES", FetchError),
        ("EIO", FetchError),
        ("EFBIG", InputError),
        ("EROFS", InputError),
    ],
)
def test_a_failed_operation_is_an_error_of_this_service(number: str, expected: type[ServiceError]) -> None:
    assert isinstance(file_error("x", OSError(getattr(errno, number), "x")), expected)


def test_what_stands_at_a_path_is_told_through_links(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    (tmp_path / "to-dir").symlink_to(tmp_path)
    files = PointerFiles()
    assert files.kind_of(str(tmp_path / "file")) is PathKind.FILE
    assert files.kind_of(str(tmp_path / "to-dir")) is PathKind.DIRECTORY
    assert files.kind_of(str(tmp_path / "gone")) is PathKind.MISSING
    assert files.kind_of("a\0b") is PathKind.MISSING


def test_a_write_replaces_in_one_step_and_leaves_nothing_behind(tmp_path: Path) -> None:
    path = tmp_path / "new" / "p.yaml"
    PointerFiles().write(str(path), b"one")
    PointerFiles().write(str(path), b"two")
    assert path.read_bytes() == b"two"
    assert [found.name for found in path.parent.iterdir()] == ["p.yaml"]
    assert path.stat().st_mode & 0o777 == 0o644


def test_a_failed_write_keeps_the_old_file(tmp_path: Path) -> None:
    (tmp_path / "p.yaml").mkdir()
    with pytest.raises(ServiceError):
        PointerFiles().write(str(tmp_path / "p.yaml"), b"x")
    assert [found.name for found in tmp_path.iterdir()] == ["p.yaml"]


# --- the tree ----------------------------------------------------------------------------------------


def test_a_tree_is_listed_down_to_its_source_directories(tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            "README.md": b"r",
            "flat.yaml": b"f",
            "recipe/loose.yaml": b"l",
            "recipe/source/sha256-1.yaml": b"p",
            "recipe/source/notes.md": b"n",
            "recipe/source/deeper/x.yaml": b"d",
        },
    )
    (tmp_path / "recipe" / "source" / "link.yaml").symlink_to("sha256-1.yaml")
    listing = PointerFiles().listing(str(tmp_path))
    assert [(node.path, node.kind, node.data) for node in listing.nodes] == [
        ("README.md", EntryKind.FILE, None),
        ("flat.yaml", EntryKind.FILE, b"f"),
        ("recipe", EntryKind.DIRECTORY, None),
        ("recipe/loose.yaml", EntryKind.FILE, None),
        ("recipe/source", EntryKind.DIRECTORY, None),
        ("recipe/source/deeper", EntryKind.DIRECTORY, None),
        ("recipe/source/link.yaml", EntryKind.SYMLINK, None),
        ("recipe/source/notes.md", EntryKind.FILE, None),
        ("recipe/source/sha256-1.yaml", EntryKind.FILE, b"p"),
    ]


def test_a_missing_root_is_an_operational_error(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError):
        PointerFiles().listing(str(tmp_path / "gone"))


@pytest.mark.parametrize("limits", [TreeLimits(max_entries=2), TreeLimits(max_bytes=1)])
def test_a_tree_beyond_a_limit_is_refused(tmp_path: Path, limits: TreeLimits) -> None:
    write(tmp_path, {"r/s/a.yaml": b"12", "r/s/b.yaml": b"12"})
    with pytest.raises(InputError, match="pointer tree"):
        PointerFiles(limits).listing(str(tmp_path))


# --- relocation (6.4, R5-R8) -------------------------------------------------------------------------

DIGEST = f"sha256:{'1f' * 32}"
SIGNED = Pointer(
    "r",
    V3,
    oci="ghcr.io/octocat/aicr-evidence:v1",
    digest=DIGEST,
    signer=SignerClaim("1234567+octocat@users.noreply.github.com", "https://github.com/login/oauth"),
)
PLACE = f"r/6a07962adbca2d3f377d8c67f2584e71/sha256-{'1f' * 32}.yaml"


def flat(directory: Path, pointer: Pointer = SIGNED) -> Path:
    path = directory / "pointer.yaml"
    path.write_bytes(dump_pointer(pointer))
    return path


def test_a_signed_pointer_moves_to_its_place(tmp_path: Path) -> None:
    path = flat(tmp_path)
    assert PointerFiles().relocate(str(path)) == str(tmp_path / PLACE)
    assert (tmp_path / PLACE).read_bytes() == dump_pointer(SIGNED)
    assert not path.exists()


def test_r5_an_unsigned_pointer_stays(tmp_path: Path) -> None:
    path = flat(tmp_path, Pointer("r", V3, oci="ghcr.io/a/b:v1", digest=DIGEST))
    with pytest.raises(PointerInvalid):
        PointerFiles().relocate(str(path))
    assert path.exists()


@pytest.mark.parametrize("link", [False, True])
def test_r6_other_content_at_the_place_is_a_conflict_and_nothing_moves(tmp_path: Path, link: bool) -> None:  # noqa: FBT001
    path = flat(tmp_path)
    place = tmp_path / PLACE
    place.parent.mkdir(parents=True)
    if link:
        place.symlink_to(path)
    else:
        place.write_bytes(b"other")
    with pytest.raises(ConflictError):
        PointerFiles().relocate(str(path))
    assert path.exists()
    assert place.is_symlink() is link


@pytest.mark.parametrize("same_inode", [False, True])
def test_r7_identical_content_at_the_place_completes_the_move(tmp_path: Path, same_inode: bool) -> None:  # noqa: FBT001
    path = flat(tmp_path)
    place = tmp_path / PLACE
    place.parent.mkdir(parents=True)
    if same_inode:
        os.link(path, place)
    else:
        place.write_bytes(path.read_bytes())
    assert PointerFiles().relocate(str(path)) == str(place)
    assert not path.exists()
    assert place.read_bytes() == dump_pointer(SIGNED)


def test_r8_a_pointer_at_its_place_stays(tmp_path: Path) -> None:
    moved = PointerFiles().relocate(str(flat(tmp_path)))
    assert PointerFiles().relocate(moved) == moved
    assert Path(moved).exists()
