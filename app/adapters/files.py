"""Files on disk as values: bundle directories, pointers and the committed tree. Implements `ContentReader`.

No link is followed below the directory that is named, nothing but a regular file is opened, and every read has a
bound. What the content means is decided in the core.
"""

import contextlib
import errno
import hashlib
import itertools
import os
import stat
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from app.core.bundle import CAPTURED_LIMITS, MANIFEST_FILE, RECIPE_FILE, Content, Entry, EntryKind, ReadFault
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
from app.core.inventory import NESTED_ROOT
from app.core.pointer import MAX_POINTER_BYTES, canonical_suffix, parse_pointer
from app.core.tree_listing import TreeListing, TreeNode

_CHUNK_BYTES = 1 << 18
_OPEN_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_OPEN_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_STORAGE_FAULTS = frozenset({errno.EIO, errno.ESTALE, errno.EACCES, errno.EPERM, errno.ENXIO, errno.ETIMEDOUT})
"""Faults that say nothing about the bundle, so that no verdict follows from them (evidence-format 8.4)."""


@dataclass(frozen=True, slots=True)
class ContentLimits:
    """How much a directory may hold before reading stops (trust 3)."""

    max_entries: int = 4096
    max_bytes: int = 256 << 20
    max_depth: int = 16
    max_path_bytes: int = 512


@dataclass(frozen=True, slots=True)
class TreeLimits:
    """How much a pointer tree may hold; a pointer file has its own cap."""

    max_entries: int = 200_000
    max_bytes: int = 512 << 20


@dataclass(slots=True)
class _Gathered:
    """What one walk has found so far."""

    entries: dict[str, Entry] = field(default_factory=dict)
    captured: dict[str, bytes | ReadFault] = field(default_factory=dict)
    read_bytes: int = 0


class DirectoryReader:
    """Gathers a directory into `Content`; implements `app.ports.ContentReader`."""

    def __init__(self, limits: ContentLimits | None = None) -> None:
        self._limits = limits or ContentLimits()

    def read(self, directory: str, /) -> Content:
        """Every entry of `directory`, or of its `summary-bundle` alone when the bundle lies there.

        Raises `NotFoundError` when there is no directory, `DocumentInvalid` (code CONTENT_LIMIT) beyond a limit, and
        `FetchError` for a storage fault of the directory itself.
        """
        with _directory(directory) as root:
            gathered = _Gathered()
            only = None if _has_bundle_files(root) else _nested_bundle(root)
            self._walk(root, "", 1, gathered, only)
        return Content(gathered.entries, gathered.captured)

    def _walk(self, fd: int, prefix: str, depth: int, gathered: _Gathered, only: str | None) -> None:
        for name, status in _listing(fd, self._limits.max_entries):
            if only is not None and name != only:
                continue
            shown, exact = _shown(name)
            path = f"{prefix}{shown}"
            self._check_room(path, depth, gathered)
            gathered.entries[path] = self._entry(fd, name, path, status, depth, gathered, exact=exact)

    def _entry(
        self, fd: int, name: str, path: str, status: os.stat_result, depth: int, gathered: _Gathered, *, exact: bool
    ) -> Entry:
        kind = _kind(status)
        if kind is EntryKind.DIRECTORY:
            return self._descend(fd, name, path, depth, gathered)
        if kind is EntryKind.FILE and exact:
            return self._hash(fd, name, path, gathered)
        fault = ReadFault.SYMLINK if kind is EntryKind.SYMLINK else ReadFault.NOT_REGULAR
        if _cap(path) is not None:
            gathered.captured[path] = fault
        return Entry(path, kind if exact else EntryKind.OTHER, fault=fault)

    def _descend(self, fd: int, name: str, path: str, depth: int, gathered: _Gathered) -> Entry:
        try:
            child = os.open(name, _OPEN_DIRECTORY | os.O_NOFOLLOW, dir_fd=fd)
        except OSError as err:
            return Entry(path, EntryKind.DIRECTORY, fault=_fault_of(err))
        try:
            self._walk(child, f"{path}/", depth + 1, gathered, None)
        except OSError as err:
            return Entry(path, EntryKind.DIRECTORY, fault=_fault_of(err))
        finally:
            os.close(child)
        return Entry(path, EntryKind.DIRECTORY)

    def _hash(self, fd: int, name: str, path: str, gathered: _Gathered) -> Entry:
        """Read a file once: its digest always, its bytes when it is one of the captured ones."""
        cap = _cap(path)
        kept = bytearray()
        digest, size = hashlib.sha256(), 0
        try:
            with _regular(name, dir_fd=fd) as file:
                while chunk := os.read(file, _CHUNK_BYTES):
                    size += len(chunk)
                    gathered.read_bytes += len(chunk)
                    if gathered.read_bytes > self._limits.max_bytes:
                        raise DocumentInvalid(
                            f"expected at most {self._limits.max_bytes} bytes in a bundle, found more",
                            code="CONTENT_LIMIT",
                        )
                    digest.update(chunk)
                    if cap is not None and size <= cap:
                        kept += chunk
        except OSError as err:
            fault = _fault_of(err)
            if cap is not None:
                gathered.captured[path] = fault
            return Entry(path, EntryKind.FILE, fault=fault)
        if cap is not None:
            gathered.captured[path] = ReadFault.TOO_LARGE if size > cap else bytes(kept)
        return Entry(path, EntryKind.FILE, size=size, sha256=digest.hexdigest())

    def _check_room(self, path: str, depth: int, gathered: _Gathered) -> None:
        limits = self._limits
        for what, have, most in (
            ("entries", len(gathered.entries) + 1, limits.max_entries),
            ("levels", depth, limits.max_depth),
            ("bytes in a path", len(path.encode()), limits.max_path_bytes),
        ):
            if have > most:
                raise DocumentInvalid(f"expected at most {most} {what} in a bundle, found more", code="CONTENT_LIMIT")


class PointerFiles:
    """Pointer files and the committed tree; implements `app.ports.PointerTree`."""

    def __init__(self, limits: TreeLimits | None = None) -> None:
        self._limits = limits or TreeLimits()

    def kind_of(self, path: str, /) -> PathKind:
        """What stands at `path`, links followed; an unreadable path reads as missing."""
        try:
            mode = os.stat(path).st_mode  # noqa: PTH116 - one call tells both kinds apart
        except (OSError, ValueError):
            return PathKind.MISSING
        return PathKind.DIRECTORY if stat.S_ISDIR(mode) else PathKind.FILE

    def read_pointer(self, path: str, /) -> bytes:
        """The bytes of a pointer file; a link, a special file and more than 1 MiB are refused."""
        try:
            return _read_capped(path, MAX_POINTER_BYTES)
        except OSError as err:
            raise _pointer_error(path, err) from err

    def read_file(self, path: str, /, *, max_bytes: int) -> bytes:
        """The bytes of any regular file, at most `max_bytes`; raises `NotFoundError`, `InputError`, `FetchError`."""
        try:
            return _read_capped(path, max_bytes)
        except OSError as err:
            raise _file_error(path, err) from err

    def listing(self, root: str, /) -> TreeListing:
        """The tree down to its source directories; raises `NotFoundError` when the root can not be read."""
        nodes: list[TreeNode] = []
        with _directory(root) as fd:
            room = _Room(self._limits)
            self._collect(fd, "", 1, nodes, room)
        return TreeListing(root, tuple(sorted(nodes, key=lambda node: node.path)))

    def _collect(self, fd: int, prefix: str, depth: int, nodes: list[TreeNode], room: "_Room") -> None:
        for name, status in _listing(fd, self._limits.max_entries):
            shown, exact = _shown(name)
            path, kind = f"{prefix}{shown}", _kind(status)
            room.take(entries=1)
            if not exact:
                nodes.append(TreeNode(path, EntryKind.OTHER, fault=ReadFault.NOT_REGULAR))
            elif kind is EntryKind.DIRECTORY:
                nodes.append(self._subdirectory(fd, name, path, depth, nodes, room))
            elif kind is EntryKind.FILE and depth != 2 and name.endswith(".yaml"):
                nodes.append(_pointer_node(fd, name, path, room))
            else:
                nodes.append(TreeNode(path, kind, fault=ReadFault.SYMLINK if kind is EntryKind.SYMLINK else None))

    def _subdirectory(
        self, fd: int, name: str, path: str, depth: int, nodes: list[TreeNode], room: "_Room"
    ) -> TreeNode:
        if depth == 3:
            return TreeNode(path, EntryKind.DIRECTORY)
        try:
            child = os.open(name, _OPEN_DIRECTORY | os.O_NOFOLLOW, dir_fd=fd)
        except OSError as err:
            return TreeNode(path, EntryKind.DIRECTORY, fault=_fault_of(err))
        try:
            self._collect(child, f"{path}/", depth + 1, nodes, room)
        except OSError as err:
            return TreeNode(path, EntryKind.DIRECTORY, fault=_fault_of(err))
        finally:
            os.close(child)
        return TreeNode(path, EntryKind.DIRECTORY)

    def write(self, path: str, data: bytes, /) -> None:
        """Replace a file in one step: a temporary file beside it, then a rename; durable once this returns."""
        target = Path(path)
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            handle, temporary = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
            try:
                with os.fdopen(handle, "wb") as file:
                    file.write(data)
                    file.flush()
                    os.fchmod(file.fileno(), 0o644)
                    os.fsync(file.fileno())
                Path(temporary).replace(target)
            except BaseException:
                Path(temporary).unlink(missing_ok=True)
                raise
            _sync_directory(target.parent)
        except OSError as err:
            raise _file_error(path, err) from err

    def relocate(self, path: str, /) -> str:
        """Move a signed flat pointer to its canonical place and say where that is (evidence-format 6.4).

        The move never overwrites: a destination with other content is a `ConflictError` and nothing moves.
        """
        data = self.read_pointer(path)
        suffix = canonical_suffix(parse_pointer(data))
        source = Path(path).absolute()
        if source.as_posix().endswith(f"/{suffix}"):
            return path
        destination = source.parent / suffix
        try:
            destination.parent.mkdir(parents=True, exist_ok=True)
            self._place(source, destination, data)
            source.unlink()
            _sync_directory(destination.parent)
        except OSError as err:
            raise _file_error(path, err) from err
        return str(destination)

    def _place(self, source: Path, destination: Path, data: bytes) -> None:
        try:
            os.link(source, destination, follow_symlinks=False)
        except FileExistsError as err:
            if destination.is_symlink() or not (
                destination.samefile(source) or _read_capped(str(destination), MAX_POINTER_BYTES) == data
            ):
                raise ConflictError(
                    f"{destination} exists with other content; nothing was moved",
                    hint="compare both files; a committed pointer is never changed",
                ) from err


class _Room:
    """Counts what a tree walk has taken, and stops it at the limits."""

    def __init__(self, limits: TreeLimits) -> None:
        self._limits = limits
        self._entries = 0
        self._bytes = 0

    def take(self, *, entries: int = 0, size: int = 0) -> None:
        """Add to the count; raises `InputError` beyond a limit."""
        self._entries += entries
        self._bytes += size
        if self._entries > self._limits.max_entries or self._bytes > self._limits.max_bytes:
            raise InputError(
                f"expected at most {self._limits.max_entries} entries and {self._limits.max_bytes} bytes "
                "in a pointer tree, found more"
            )


def _pointer_node(fd: int, name: str, path: str, room: _Room) -> TreeNode:
    try:
        data = _read_capped(name, MAX_POINTER_BYTES, dir_fd=fd)
    except OSError as err:
        return TreeNode(path, EntryKind.FILE, fault=_fault_of(err))
    room.take(size=len(data))
    return TreeNode(path, EntryKind.FILE, data=data)


def _cap(path: str) -> int | None:
    """The cap in bytes of a captured file, at the root or below `summary-bundle`."""
    return CAPTURED_LIMITS.get(path.removeprefix(f"{NESTED_ROOT}/"))


def _shown(name: str) -> tuple[str, bool]:
    """A file name as text, and whether it is exact; names that are no UTF-8 are shown with escapes."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return os.fsencode(name).decode(errors="backslashreplace"), False
    return name, True


def _kind(status: os.stat_result) -> EntryKind:
    mode = status.st_mode
    if stat.S_ISREG(mode):
        return EntryKind.FILE
    if stat.S_ISDIR(mode):
        return EntryKind.DIRECTORY
    return EntryKind.SYMLINK if stat.S_ISLNK(mode) else EntryKind.OTHER


def _fault_of(err: OSError) -> ReadFault:
    if err.errno in _STORAGE_FAULTS:
        return ReadFault.UNAVAILABLE
    match err.errno:
        case errno.ELOOP:
            return ReadFault.SYMLINK
        case errno.EFBIG:
            return ReadFault.TOO_LARGE
        case errno.ENOENT:
            return ReadFault.MISSING
        case errno.EINVAL | errno.ENOTDIR | errno.EISDIR:
            return ReadFault.NOT_REGULAR
        case _:
            return ReadFault.UNAVAILABLE


@contextlib.contextmanager
def _directory(path: str) -> Iterator[int]:
    """An open directory that the caller named; links up to it are his own and are followed."""
    try:
        fd = os.open(path, _OPEN_DIRECTORY)
    except (OSError, ValueError) as err:
        raise _file_error(path, err) from err
    try:
        yield fd
    except OSError as err:
        raise _file_error(path, err) from err
    finally:
        os.close(fd)


def _listing(fd: int, most: int) -> list[tuple[str, os.stat_result]]:
    """Up to `most` + 1 names with their status, sorted, links not followed; what vanishes meanwhile is left out."""
    found = []
    with os.scandir(fd) as entries:
        for entry in itertools.islice(entries, most + 1):
            with contextlib.suppress(FileNotFoundError):
                found.append((entry.name, entry.stat(follow_symlinks=False)))
    return sorted(found, key=lambda pair: os.fsencode(pair[0]))


@contextlib.contextmanager
def _regular(path: str, *, dir_fd: int | None = None) -> Iterator[int]:
    """An open regular file that is no link; raises `OSError` (EINVAL for anything that is no regular file)."""
    fd = os.open(path, _OPEN_FILE, dir_fd=dir_fd)
    try:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            raise OSError(errno.EINVAL, "not a regular file")
        yield fd
    finally:
        os.close(fd)


def _read_capped(path: str, cap: int, *, dir_fd: int | None = None) -> bytes:
    """A whole regular file of at most `cap` bytes; raises `OSError` (EFBIG beyond it)."""
    data = bytearray()
    with _regular(path, dir_fd=dir_fd) as fd:
        while chunk := os.read(fd, min(_CHUNK_BYTES, cap + 1 - len(data))):
            data += chunk
            if len(data) > cap:
                raise OSError(errno.EFBIG, "file too large")
    return bytes(data)


def _has_bundle_files(fd: int) -> bool:
    """Whether both marks of a bundle stand here as non-directories (evidence-format 5.1)."""
    for name in (RECIPE_FILE, MANIFEST_FILE):
        try:
            if stat.S_ISDIR(os.stat(name, dir_fd=fd, follow_symlinks=False).st_mode):
                return False
        except OSError:
            return False
    return True


def _nested_bundle(fd: int) -> str | None:
    """The name of the nested root if it is a directory here, so that what lies beside it is not read."""
    try:
        status = os.stat(NESTED_ROOT, dir_fd=fd, follow_symlinks=False)
    except OSError:
        return None
    return NESTED_ROOT if stat.S_ISDIR(status.st_mode) else None


def _sync_directory(path: Path) -> None:
    fd = os.open(path, _OPEN_DIRECTORY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def _file_error(path: str, err: OSError | ValueError) -> ServiceError:
    """What a failed file operation is for the caller: his path, or a storage fault."""
    shown = path.encode(errors="backslashreplace").decode()
    number = err.errno if isinstance(err, OSError) else None
    reason = os.strerror(number).lower() if number is not None else "not a path"
    if number in {errno.ENOENT, errno.ENOTDIR}:
        return NotFoundError(f"can not read {shown}: {reason}")
    if number in _STORAGE_FAULTS:
        return FetchError(f"can not read {shown}: {reason}", hint="check the file's owner and mode, then retry")
    match number:
        case errno.ELOOP:
            return InputError(f"expected a regular file at {shown}, got a symbolic link")
        case errno.EINVAL:
            return InputError(f"expected a regular file at {shown}, got something else")
        case errno.EFBIG:
            return InputError(f"{shown} is larger than allowed")
        case _:
            return InputError(f"can not use {shown}: {reason}")


def _pointer_error(path: str, err: OSError) -> ServiceError:
    error = _file_error(path, err)
    if isinstance(error, InputError):
        return PointerInvalid(f"pointer file: {error.message}")
    return error
