"""The strict tar and gzip reader against archives that a library would unpack."""

import gzip
import hashlib
import io
import struct
import tarfile
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from app.adapters.oci import ReaderLimits
from app.adapters.oci.limits import Deadline
from app.adapters.oci.pack import gzip_member, pack_tar
from app.adapters.oci.tar import ByteStream, read_tar
from app.adapters.oci.unpack import unpack_layer
from app.core.errors import FetchError
from app.core.refs import Digest

LIMITS = ReaderLimits()


def unpack(layer: bytes, directory: Path, limits: ReaderLimits = LIMITS) -> list[str]:
    """Unpack layer bytes; the paths of its files."""
    path = directory / "layer"
    path.write_bytes(layer)
    digest = Digest(hashlib.sha256(layer).hexdigest())
    unpack_layer(str(path), str(directory / "out"), digest=digest, size=len(layer), tar_digest=None, limits=limits)
    root = directory / "out"
    return sorted(str(path.relative_to(root)) for path in root.rglob("*") if path.is_file())


def header(name: bytes = b"a.txt", *, size: int = 0, kind: bytes = b"0", **fields: bytes) -> bytes:
    """One ustar header block; keyword fields overwrite raw bytes by name before the checksum."""
    block = bytearray(512)
    block[0 : len(name)] = name
    block[100:108] = b"0000644\0"
    block[108:124] = b"0000000\0" * 2
    block[124:136] = b"%011o\0" % size
    block[136:148] = b"00000000000\0"
    block[156:157] = kind
    block[257:265] = b"ustar\x0000"
    places = {"sized": 124, "linkname": 157, "magic": 257, "prefix": 345}
    for field, value in fields.items():
        block[places[field] : places[field] + len(value)] = value
    block[148:156] = b"        "
    block[148:156] = b"%06o\0 " % sum(block)
    return bytes(block)


def padded(data: bytes) -> bytes:
    return data + bytes(-len(data) % 512)


def pax(*records: tuple[str, str]) -> bytes:
    """An extended header with correct record lengths."""
    body = b""
    for key, value in records:
        rest = f" {key}={value}\n".encode()
        length = len(rest) + 1
        while len(str(length)) + len(rest) != length:
            length = len(str(length)) + len(rest)
        body += str(length).encode() + rest
    return header(b"PaxHeaders/x", size=len(body), kind=b"x") + padded(body)


END = bytes(1024)
FILE = header(size=2) + padded(b"hi")


@pytest.mark.parametrize(
    ("tar", "files"),
    [
        pytest.param(FILE + END, ["a.txt"], id="file"),
        pytest.param(END, [], id="empty"),
        pytest.param(FILE + END + bytes(10240), ["a.txt"], id="zero-padding"),
        pytest.param(header(b"./", kind=b"5") + header(b"./a.txt") + END, ["a.txt"], id="dot-slash"),
        pytest.param(header(b".", kind=b"5") + header(b"a.txt") + END, ["a.txt"], id="dot-root"),
        pytest.param(header(b"d/", kind=b"5") + header(b"d/x") + END, ["d/x"], id="directory-first"),
        pytest.param(header(b"d/x") + header(b"d/", kind=b"5") + END, ["d/x"], id="directory-afterwards"),
        pytest.param(header(b"d/x") + END, ["d/x"], id="implied-directory"),
        pytest.param(header(b"x", prefix=b"ctrf") + END, ["ctrf/x"], id="prefix"),
        pytest.param(header(b"a.txt", magic=b"ustar  \0") + END, ["a.txt"], id="gnu-magic"),
        pytest.param(header(b"a.txt", kind=b"\0") + END, ["a.txt"], id="old-regular-file"),
        pytest.param(pax(("path", "ctrf/long.json"), ("mtime", "1.5")) + FILE + END, ["ctrf/long.json"], id="pax-path"),
        pytest.param(pax(("mtime", "1.5")) + FILE + END, ["a.txt"], id="pax-time"),
        pytest.param(
            header(b"././@LongLink", size=5, kind=b"L") + padded(b"long\0") + FILE + END, ["long"], id="gnu-long-name"
        ),
    ],
)
def test_plain_archives_of_either_dialect_are_read(tmp_path: Path, tar: bytes, files: list[str]) -> None:
    assert unpack(gzip_member(tar), tmp_path) == files


@pytest.mark.parametrize(
    "tar",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(FILE, id="no-end"),
        pytest.param(FILE + bytes(512), id="one-zero-block"),
        pytest.param(FILE + bytes(512) + FILE + END, id="hole"),
        pytest.param(FILE + END + FILE + END, id="second-archive"),
        pytest.param(FILE[:700], id="cut-off"),
        pytest.param(header(size=2), id="no-content"),
        pytest.param(header(b"../x") + END, id="parent"),
        pytest.param(header(b"a/../../x") + END, id="inner-parent"),
        pytest.param(header(b"/x") + END, id="absolute"),
        pytest.param(header(b"a//x") + END, id="empty-part"),
        pytest.param(header(b"a/./x") + END, id="dot-part"),
        pytest.param(header(b"x/") + END, id="file-with-slash"),
        pytest.param(header(b"./") + END, id="file-named-root"),
        pytest.param(header(b"") + END, id="no-name"),
        pytest.param(header(b"", kind=b"5") + END, id="directory-without-name"),
        pytest.param(header(b"..", kind=b"5") + END, id="parent-directory"),
        pytest.param(header(b"a\\x") + END, id="backslash"),
        pytest.param(header(b"a\nx") + END, id="newline"),
        pytest.param(header(b"a\x1bx") + END, id="escape"),
        pytest.param(header(b"a\xc2\x85x") + END, id="c1-control"),
        pytest.param(header(b"\xff") + END, id="not-utf8"),
        pytest.param(header(b"a\0b") + END, id="bytes-behind-the-name"),
        pytest.param(header(b"x", prefix=b"..") + END, id="prefix-parent"),
        pytest.param(FILE + FILE + END, id="twice"),
        pytest.param(header(b"d", kind=b"5") + header(b"d") + END, id="directory-then-file"),
        pytest.param(header(b"d") + header(b"d", kind=b"5") + END, id="file-then-directory"),
        pytest.param(header(b"d") + header(b"d/x") + END, id="below-a-file"),
        pytest.param(header(b"d/x") + header(b"d") + END, id="file-over-a-directory"),
        pytest.param(header(b"d", kind=b"5") * 2 + END, id="directory-twice"),
        pytest.param(header(b"./", kind=b"5") * 2 + FILE + END, id="root-twice"),
        pytest.param(header(b".", kind=b"5") + header(b"./", kind=b"5") + END, id="root-in-two-spellings"),
        pytest.param(pax(("mtime", "1.5")) * 2 + FILE + END, id="two-extended-headers-without-a-path"),
        pytest.param(FILE + pax(("mtime", "1.5")) + END, id="extended-header-of-nothing"),
        pytest.param(header(b"Recipe.yaml") + header(b"recipe.yaml") + END, id="case"),
        pytest.param(header(b"D/x") + header(b"d/y") + END, id="case-of-a-parent"),
        pytest.param(header("\u00e9".encode()) + header("e\u0301".encode()) + END, id="unicode-form"),
        pytest.param(header("\ufb01".encode()) + header(b"fi") + END, id="compatibility-form"),
        pytest.param(header("stra\u00dfe".encode()) + header(b"STRASSE") + END, id="case-folding"),
        pytest.param(header(kind=b"1", linkname=b"b") + END, id="hard-link"),
        pytest.param(header(kind=b"2", linkname=b"b") + END, id="symbolic-link"),
        pytest.param(header(kind=b"3") + END, id="character-device"),
        pytest.param(header(kind=b"4") + END, id="block-device"),
        pytest.param(header(kind=b"6") + END, id="fifo"),
        pytest.param(header(kind=b"7") + END, id="contiguous"),
        pytest.param(header(kind=b"S") + END, id="gnu-sparse"),
        pytest.param(header(kind=b"M") + END, id="gnu-continuation"),
        pytest.param(header(kind=b"V") + END, id="volume-label"),
        pytest.param(header(kind=b"K", size=2) + padded(b"x\0") + FILE + END, id="gnu-long-link"),
        pytest.param(header(kind=b"g", size=0) + FILE + END, id="global-header"),
        pytest.param(header(linkname=b"b") + END, id="file-with-link-target"),
        pytest.param(header(b"d", kind=b"5", size=512) + bytes(512) + END, id="directory-with-content"),
        pytest.param(header(sized=b"\x80" + bytes(10) + b"\x02") + padded(b"hi") + END, id="binary-size"),
        pytest.param(header(sized=b"-0000000002\0") + END, id="negative-size"),
        pytest.param(header(sized=b"9\0         \0") + END, id="not-octal"),
        pytest.param(header(sized=bytes(12)) + END, id="no-size"),
        pytest.param(header(magic=bytes(8)) + END, id="v7"),
        pytest.param(FILE[:3] + b"!" + FILE[4:] + END, id="checksum"),
        pytest.param(pax(("path", "../x")) + FILE + END, id="pax-parent"),
        pytest.param(pax(("path", "/x")) + FILE + END, id="pax-absolute"),
        pytest.param(pax(("path", "a"), ("path", "b")) + FILE + END, id="pax-path-twice"),
        pytest.param(pax(("mtime", "1"), ("mtime", "1")) + FILE + END, id="pax-time-twice"),
        pytest.param(pax(("path", "")) + FILE + END, id="pax-empty-path"),
        pytest.param(pax(("size", "1")) + FILE + END, id="pax-size"),
        pytest.param(pax(("linkpath", "x")) + FILE + END, id="pax-linkpath"),
        pytest.param(pax(("GNU.sparse.major", "1")) + FILE + END, id="pax-sparse"),
        pytest.param(pax(("hdrcharset", "BINARY")) + FILE + END, id="pax-charset"),
        pytest.param(pax(("path", "a")) + pax(("path", "b")) + FILE + END, id="two-pax-headers"),
        pytest.param(pax(("path", "a")) + END, id="pax-for-nothing"),
        pytest.param(
            pax(("path", "a")) + header(b"././@LongLink", size=2, kind=b"L") + padded(b"b\0") + FILE + END,
            id="pax-and-long-name",
        ),
        pytest.param(header(kind=b"x", size=9) + padded(b"99 path=a") + FILE + END, id="pax-record-length"),
        pytest.param(header(kind=b"x", size=4) + padded(b"abcd") + FILE + END, id="pax-no-record"),
        pytest.param(header(kind=b"x", size=1 << 20) + bytes(1 << 20) + FILE + END, id="pax-huge"),
        pytest.param(header(kind=b"L", size=1) + padded(b"\0") + FILE + END, id="long-name-empty"),
        pytest.param(header(b"a/" * 17 + b"x") + END, id="deep"),
        pytest.param(pax(("path", "a" * 513)) + FILE + END, id="long-path"),
        pytest.param(pax(("path", "a" * 256)) + FILE + END, id="long-part"),
    ],
)
def test_anything_else_in_an_archive_is_refused_and_nothing_escapes(tmp_path: Path, tar: bytes) -> None:
    inside = tmp_path / "inside"
    inside.mkdir()

    with pytest.raises(FetchError) as caught:
        unpack(gzip_member(tar), inside)

    assert caught.value.code == "LAYER_UNSAFE"
    assert list(tmp_path.iterdir()) == [inside]
    assert {path.name for path in inside.iterdir()} == {"layer", "out"}
    assert not any(path.is_symlink() for path in inside.rglob("*"))


@pytest.mark.parametrize(
    "alter",
    [
        pytest.param(lambda data: data + b"x", id="trailing-byte"),
        pytest.param(lambda data: data + bytes(512), id="trailing-zeros"),
        pytest.param(lambda data: data + gzip_member(b""), id="empty-second-member"),
        pytest.param(lambda data: data + data, id="second-member"),
        pytest.param(lambda data: data[:-1], id="cut-off"),
        pytest.param(lambda data: data[:-8] + bytes(8), id="checksum"),
        pytest.param(lambda data: data[:-4] + struct.pack("<I", 1), id="length"),
        pytest.param(lambda data: b"\x78" + data[1:], id="not-gzip"),
        pytest.param(lambda data: zlib.compress(gzip.decompress(data)), id="zlib"),
        pytest.param(gzip.decompress, id="plain-tar"),
        pytest.param(lambda _: b"", id="empty"),
    ],
)
def test_a_layer_is_exactly_one_sound_gzip_member(tmp_path: Path, alter: Callable[[bytes], bytes]) -> None:
    with pytest.raises(FetchError) as caught:
        unpack(alter(gzip_member(FILE + END)), tmp_path)

    assert caught.value.code == "LAYER_UNSAFE"


def test_members_of_other_writers_are_read(tmp_path: Path) -> None:
    """A file name, a time and another compression level are in the gzip header of other tools."""
    out = io.BytesIO()
    with gzip.GzipFile("evidence.tar", "wb", compresslevel=1, fileobj=out, mtime=1_700_000_000) as member:
        member.write(FILE + END)

    assert unpack(out.getvalue(), tmp_path) == ["a.txt"]


def test_an_archive_of_the_systems_kind_is_read(tmp_path: Path) -> None:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz", format=tarfile.GNU_FORMAT) as archive:
        for name in ("recipe.yaml", "ctrf/" + "x" * 150):
            entry = tarfile.TarInfo(name)
            entry.size, entry.uname, entry.mtime = 3, "octocat", 1_700_000_000
            archive.addfile(entry, io.BytesIO(b"abc"))

    assert unpack(out.getvalue(), tmp_path) == ["ctrf/" + "x" * 150, "recipe.yaml"]


def test_a_file_that_claims_more_than_the_limit_is_refused_at_its_header(tmp_path: Path) -> None:
    with pytest.raises(FetchError) as caught:
        unpack(gzip_member(header(size=(256 << 20) + 1)), tmp_path)

    assert caught.value.code == "BODY_TOO_LARGE"


def test_the_ratio_is_asked_only_above_its_floor(tmp_path: Path) -> None:
    zeros = {"zeros.bin": bytes(900_000)}  # about 1 : 900

    assert unpack(gzip_member(pack_tar(zeros)), tmp_path) == ["zeros.bin"]

    other = tmp_path / "other"
    other.mkdir()
    with pytest.raises(FetchError) as caught:
        unpack(gzip_member(pack_tar({"zeros.bin": bytes(2 << 20)})), other)
    assert caught.value.code == "BOMB"


def test_content_that_fills_the_inflate_buffer_exactly_is_whole(tmp_path: Path) -> None:
    noise = hashlib.shake_256(b"noise").digest((256 << 10) * 3 - 1536)

    assert unpack(gzip_member(pack_tar({"noise.bin": noise})), tmp_path) == ["noise.bin"]
    assert (tmp_path / "out" / "noise.bin").read_bytes() == noise


def test_unpacking_ends_when_the_pull_has_no_time_left(tmp_path: Path) -> None:
    layer = gzip_member(FILE + END)
    (tmp_path / "layer").write_bytes(layer)
    now = 0.0
    deadline = Deadline(1.0, clock=lambda: now)
    now = 2.0

    with pytest.raises(FetchError) as caught:
        unpack_layer(
            str(tmp_path / "layer"),
            str(tmp_path / "out"),
            digest=Digest(hashlib.sha256(layer).hexdigest()),
            size=len(layer),
            tar_digest=None,
            limits=LIMITS,
            tick=deadline.remaining,
        )

    assert caught.value.code == "REGISTRY_TIMEOUT"


def test_a_missing_layer_file_is_a_storage_fault(tmp_path: Path) -> None:
    with pytest.raises(FetchError) as caught:
        unpack_layer(
            str(tmp_path / "absent"),
            str(tmp_path / "out"),
            digest=Digest("0" * 64),
            size=1,
            tar_digest=None,
            limits=LIMITS,
        )

    assert (caught.value.code, caught.value.retryable) == ("STORAGE_UNAVAILABLE", True)


_BLOCKS = st.lists(
    st.one_of(
        st.builds(
            lambda name, kind, size: header(name, kind=kind, size=size) + padded(bytes(size)),
            st.sampled_from([b"a", b"a/b", b"../a", b"A", b"./", b"", b"\xff", b"a/"]),
            st.sampled_from([b"0", b"5", b"2", b"x", b"L", b"g", b"\0"]),
            st.integers(0, 700),
        ),
        st.just(bytes(512)),
        st.binary(max_size=600),
        st.builds(pax, st.tuples(st.sampled_from(["path", "size", "mtime"]), st.text(max_size=12))),
    ),
    max_size=6,
).map(b"".join)


@settings(deadline=None)
@given(_BLOCKS, st.integers(1, 700))
@example(FILE + END, 1)
def test_any_bytes_are_an_archive_or_a_refusal(data: bytes, step: int) -> None:
    """Whatever the chunking, no foreign exception, and every path is relative and clean."""
    chunks = iter([data[start : start + step] for start in range(0, len(data), step)])
    seen = []
    try:
        for entry in read_tar(ByteStream(chunks), LIMITS):
            seen.append(entry.path)
            for _ in entry.chunks():
                pass
    except FetchError as err:
        assert err.code in {"LAYER_UNSAFE", "BODY_TOO_LARGE"}  # noqa: PT017
    assert len(seen) == len(set(seen))
    for path in seen:
        assert not path.startswith("/")
        assert not {"", ".", ".."} & set(path.split("/"))
