"""A strict streaming tar reader: plain files and directories at safe, distinct paths, and nothing else.

Written out because the library's reader holds extended headers of any size in memory and takes links, devices,
sparse files and numbers of several dialects. Formats read: POSIX ustar, its `x` records for `path`, and GNU's
long names. Nothing is written here; every refusal is a `FetchError` of code LAYER_UNSAFE or BODY_TOO_LARGE.
"""

import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass

from app.adapters.oci.codes import fetch_error
from app.adapters.oci.limits import ReaderLimits
from app.core.errors import FetchError

BLOCK = 512
_ZERO = bytes(BLOCK)
_MAX_COMPONENT_BYTES = 255
_MAX_EXTENDED_BYTES = 16 << 10
_COPY_BYTES = 64 << 10

_TOLERATED_RECORDS = frozenset({"mtime", "atime", "ctime", "uid", "gid", "uname", "gname", "comment", "charset"})
"""`x` records that change nothing we keep; any other but `path` is refused (size, linkpath, GNU.sparse.*, ...)."""


class ByteStream:
    """Exact reads over an iterator of chunks."""

    def __init__(self, chunks: Iterator[bytes]) -> None:
        self._chunks = chunks
        self._buffer = b""
        self._position = 0

    def some(self, most: int) -> bytes:
        """Between 1 and `most` bytes; empty at the end."""
        while self._position == len(self._buffer):
            chunk = next(self._chunks, None)
            if chunk is None:
                return b""
            self._buffer, self._position = chunk, 0
        end = min(self._position + most, len(self._buffer))
        piece = self._buffer[self._position : end]
        self._position = end
        return piece

    def exact(self, count: int) -> bytes:
        """`count` bytes; raises when the stream ends before."""
        pieces: list[bytes] = []
        left = count
        while left:
            piece = self.some(left)
            if not piece:
                raise _unsafe("the archive ends in the middle of an entry")
            pieces.append(piece)
            left -= len(piece)
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)


@dataclass(frozen=True, slots=True)
class TarEntry:
    """One file or directory; `path` is relative, `/`-separated, without `.` or `..`."""

    path: str
    directory: bool
    size: int
    stream: ByteStream

    def chunks(self) -> Iterator[bytes]:
        """The file's bytes; must be read to the end before the next entry."""
        left = self.size
        while left:
            piece = self.stream.some(min(left, _COPY_BYTES))
            if not piece:
                raise _unsafe("the archive ends in the middle of an entry")
            left -= len(piece)
            yield piece


def read_tar(stream: ByteStream, limits: ReaderLimits) -> Iterator[TarEntry]:
    """Entries in the archive's order; the caller reads each file's chunks before it asks for the next.

    The archive must end with two zero blocks and then hold zeros only.
    """
    paths = PathRules(limits)
    long_name: bytes | None = None
    extended = False  # a header before this one was about it, whether it gave a path or not
    while True:
        header = stream.exact(BLOCK)
        if header == _ZERO:
            if extended or stream.exact(BLOCK) != _ZERO:
                raise _unsafe("a zero block stands inside the archive")
            _only_zeros(stream)
            return
        _check_header(header)
        kind = header[156:157]
        size = _number(header[124:136], "size")
        if kind in {b"x", b"L"}:
            if extended:
                raise _unsafe("one entry has two extended headers")
            if size > _MAX_EXTENDED_BYTES:
                raise _unsafe(f"extended header has {size} bytes, at most {_MAX_EXTENDED_BYTES}")
            body = stream.exact(size)
            _padding(stream, size)
            long_name = _pax_path(body) if kind == b"x" else _gnu_name(body)
            extended = True
            continue
        name = long_name or _header_name(header)
        long_name, extended = None, False
        directory = kind == b"5"
        if kind not in {b"0", b"\0", b"5"}:
            raise _unsafe(f"expected regular files and directories only, got type {kind!r} at {_show(name)}")
        if directory and size:
            raise _unsafe(f"directory {_show(name)} has content")
        if any(header[157:257]):
            raise _unsafe(f"entry {_show(name)} names a link target")
        if size > limits.unpacked_bytes:
            raise fetch_error("BODY_TOO_LARGE", f"file {_show(name)} has {size} bytes, at most {limits.unpacked_bytes}")
        path = paths.admit(name, directory=directory)
        if path:
            yield TarEntry(path, directory, size, stream)
        _padding(stream, size)


class PathRules:
    """Admits each path once, also when another spelling differs only by case or Unicode form (trust E1)."""

    def __init__(self, limits: ReaderLimits) -> None:
        self._limits = limits
        self._spelling: dict[str, str] = {}
        self._files: set[str] = set()
        self._parents: set[str] = set()
        self._named: set[str] = set()

    def admit(self, raw: bytes, *, directory: bool) -> str:
        """The path of an entry, "" for the root directory itself; raises for anything unsafe."""
        text = self._decode(raw, directory=directory)
        if not text:
            if text in self._named:  # an entry that makes nothing counts nowhere else
                raise _unsafe("the root directory appears twice")
            self._named.add(text)
            return ""
        parts = text.split("/")
        if len(parts) > self._limits.depth:
            raise _unsafe(f"path {_show(raw)} is {len(parts)} levels deep, at most {self._limits.depth}")
        for part in parts:
            if part in {"", ".", ".."}:
                raise _unsafe(f"path {_show(raw)} has a part {part!r}")
            if len(part.encode()) > _MAX_COMPONENT_BYTES:
                raise _unsafe(f"path {_show(raw)} has a part of more than {_MAX_COMPONENT_BYTES} bytes")
        for end in range(1, len(parts)):
            parent = "/".join(parts[:end])
            self._settle(parent, raw)
            if parent in self._files:
                raise _unsafe(f"path {_show(raw)} lies below a file")
            self._parents.add(parent)
        self._settle(text, raw)
        if text in self._named or (not directory and text in self._parents):
            raise _unsafe(f"path {_show(raw)} appears twice")
        self._named.add(text)
        if not directory:
            self._files.add(text)
        most = self._limits.files
        if len(self._files) > most:
            raise _unsafe(f"more than {most} files")
        if len(self._spelling) - len(self._files) > most:
            raise _unsafe(f"more than {most} directories")
        return text

    def _settle(self, path: str, raw: bytes) -> None:
        """Fix the one spelling of `path`."""
        key = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", path).casefold())
        held = self._spelling.setdefault(key, path)
        if held != path:
            raise _unsafe(f"path {_show(raw)} differs from another only by case or Unicode form")

    def _decode(self, raw: bytes, *, directory: bool) -> str:
        if len(raw) > self._limits.path_bytes:
            raise _unsafe(f"path has {len(raw)} bytes, at most {self._limits.path_bytes}")
        try:
            text = raw.decode()
        except UnicodeDecodeError as err:
            raise _unsafe(f"path {_show(raw)} is not UTF-8") from err
        if any(unicodedata.category(ch) in {"Cc", "Cs"} for ch in text) or "\\" in text:
            raise _unsafe(f"path {_show(raw)} has a control character or a backslash")
        if directory:
            text = text.removesuffix("/")
            if text == ".":
                return ""
        text = text.removeprefix("./")
        if not text and not directory:
            raise _unsafe("a file has no name")
        if not text:
            raise _unsafe("a directory has no name")
        return text


def _check_header(header: bytes) -> None:
    if header[257:265] not in {b"ustar\x0000", b"ustar  \x00"}:
        raise _unsafe("expected a ustar header")
    wanted = sum(header[:148]) + 8 * 0x20 + sum(header[156:])
    if _number(header[148:156], "checksum") != wanted:
        raise _unsafe("a header's checksum does not hold")


def _header_name(header: bytes) -> bytes:
    name = _text(header[:100])
    prefix = _text(header[345:500]) if header[257:263] == b"ustar\0" else b""
    return prefix + b"/" + name if prefix else name


def _text(field: bytes) -> bytes:
    head, _, tail = field.partition(b"\0")
    if tail.strip(b"\0"):
        raise _unsafe("a header has bytes after the end of a name")
    return head


def _number(field: bytes, what: str) -> int:
    digits = field.strip(b" \0")
    if not digits or any(ch not in b"01234567" for ch in digits):
        raise _unsafe(f"expected an octal {what}, got {field!r}")
    return int(digits, 8)


def _pax_path(body: bytes) -> bytes | None:
    """The `path` of an `x` header, None without one; any record that changes meaning is refused."""
    found: bytes | None = None
    seen: set[bytes] = set()
    position = 0
    while position < len(body):
        space = body.find(b" ", position, position + 8)
        digits = body[position:space] if space > 0 else b""
        if not digits.isdigit() or digits.startswith(b"0"):
            raise _unsafe("an extended header is malformed")
        end = position + int(digits)
        record = body[space + 1 : end]
        if end > len(body) or not record.endswith(b"\n") or b"=" not in record:
            raise _unsafe("an extended header is malformed")
        keyword, _, value = record[:-1].partition(b"=")
        if keyword in seen:  # no writer does, and thousands of headers full of them take long to read
            raise _unsafe(f"extended header record {keyword[:40]!r} appears twice")
        seen.add(keyword)
        if keyword == b"path":
            if not value or b"\0" in value:
                raise _unsafe("an extended header gives no clear path")
            found = value
        elif keyword.decode("latin-1") not in _TOLERATED_RECORDS:
            raise _unsafe(f"extended header record {keyword[:40]!r} is not admitted")
        position = end
    return found


def _gnu_name(body: bytes) -> bytes:
    name = body.removesuffix(b"\0")
    if not name or b"\0" in name:
        raise _unsafe("a long name is malformed")
    return name


def _padding(stream: ByteStream, size: int) -> None:
    stream.exact(-size % BLOCK)


def _only_zeros(stream: ByteStream) -> None:
    while piece := stream.some(_COPY_BYTES):
        if piece.strip(b"\0"):
            raise _unsafe("the archive goes on after its end")


def _show(raw: bytes) -> str:
    return repr(raw.decode("utf-8", "backslashreplace"))[:120]


def _unsafe(message: str) -> FetchError:
    return fetch_error("LAYER_UNSAFE", message)
