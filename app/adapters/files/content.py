"""A bundle directory gathered into `core.bundle.Content`; implements `app.ports.ContentReader`."""

import hashlib
import os
import stat
from dataclasses import dataclass

from app.adapters.files.reading import (
    CHUNK_BYTES,
    fault_of,
    kind_of,
    listing,
    open_directory,
    open_regular,
    open_subdirectory,
    shown_name,
)
from app.core.bundle import CAPTURED_LIMITS, MANIFEST_FILE, RECIPE_FILE, Content, Entry, EntryKind, ReadFault
from app.core.errors import DocumentInvalid
from app.core.inventory import NESTED_ROOT


@dataclass(frozen=True, slots=True)
class ContentLimits:
    """How much a directory may hold before reading stops (trust 3)."""

    max_files: int = 4096  # and at most as many directories, as the tar reader counts them
    max_bytes: int = 256 << 20
    max_depth: int = 16
    max_path_bytes: int = 512


class DirectoryReader:
    """Gathers a directory into `Content`: every entry, every file hashed, the captured ones kept."""

    def __init__(self, limits: ContentLimits | None = None) -> None:
        self._limits = limits or ContentLimits()

    def read(self, directory: str, /) -> Content:
        """Everything in `directory`, or in its `summary-bundle` alone when the bundle lies there.

        Raises `NotFoundError` when there is no directory, `DocumentInvalid` (code CONTENT_LIMIT) beyond a limit, and
        `FetchError` for a storage fault of the directory itself.
        """
        walk = _Walk(self._limits)
        with open_directory(directory) as root:
            walk.descend(root, "", 1, only="" if _is_bundle(root) else _nested_bundle(root))
        return Content(walk.entries, walk.captured)


class _Walk:
    """One pass over a directory, and what it has found so far."""

    def __init__(self, limits: ContentLimits) -> None:
        self.entries: dict[str, Entry] = {}
        self.captured: dict[str, bytes | ReadFault] = {}
        self._limits = limits
        self._read_bytes = 0
        self._files = 0
        self._directories = 0

    def descend(self, fd: int, prefix: str, depth: int, *, only: str = "") -> None:
        """Note all entries of an open directory, or the one named `only`, and go below."""
        for name, status in listing(fd, 2 * self._limits.max_files):
            if only and name != only:
                continue
            shown, exact = shown_name(name)
            path = f"{prefix}{shown}"
            kind = kind_of(status)
            self._check_room(path, depth, directory=kind is EntryKind.DIRECTORY and exact)
            if not exact:
                self._note(Entry(path, EntryKind.OTHER, fault=ReadFault.NOT_REGULAR))
            elif kind is EntryKind.DIRECTORY:
                self._directory(fd, name, path, depth)
            elif kind is EntryKind.FILE:
                self._note(self._file(fd, name, path))
            else:
                fault = ReadFault.SYMLINK if kind is EntryKind.SYMLINK else ReadFault.NOT_REGULAR
                self._note(Entry(path, kind, fault=fault))

    def _note(self, entry: Entry) -> None:
        self.entries[entry.path] = entry
        if entry.fault is not None and _cap(entry.path) is not None:
            self.captured[entry.path] = entry.fault

    def _directory(self, fd: int, name: str, path: str, depth: int) -> None:
        """Go below; a directory where a captured file belongs is a fault of that file, not its absence."""
        self.entries[path] = Entry(path, EntryKind.DIRECTORY)
        if _cap(path) is not None:
            self.captured[path] = ReadFault.NOT_REGULAR
        try:
            with open_subdirectory(name, fd) as child:
                self.descend(child, f"{path}/", depth + 1)
        except OSError as err:
            self.entries[path] = Entry(path, EntryKind.DIRECTORY, fault=fault_of(err))

    def _file(self, fd: int, name: str, path: str) -> Entry:
        """Read a file once: its digest always, its bytes when it is one of the captured ones."""
        cap = _cap(path) or 0
        kept, digest, size = bytearray(), hashlib.sha256(), 0
        try:
            with open_regular(name, dir_fd=fd) as file:
                while chunk := os.read(file, CHUNK_BYTES):
                    size += len(chunk)
                    self._count(len(chunk))
                    digest.update(chunk)
                    if size <= cap:
                        kept += chunk
        except OSError as err:
            return Entry(path, EntryKind.FILE, fault=fault_of(err))
        if cap:
            self.captured[path] = bytes(kept) if size <= cap else ReadFault.TOO_LARGE
        return Entry(path, EntryKind.FILE, size=size, sha256=digest.hexdigest())

    def _count(self, size: int) -> None:
        self._read_bytes += size
        if self._read_bytes > self._limits.max_bytes:
            raise _too_much(self._limits.max_bytes, "bytes in a bundle")

    def _check_room(self, path: str, depth: int, *, directory: bool) -> None:
        limits = self._limits
        self._directories += directory
        self._files += not directory
        if self._files > limits.max_files:
            raise _too_much(limits.max_files, "files in a bundle")
        if self._directories > limits.max_files:
            raise _too_much(limits.max_files, "directories in a bundle")
        if depth > limits.max_depth:
            raise _too_much(limits.max_depth, "levels in a bundle")
        if len(path.encode()) > limits.max_path_bytes:
            raise _too_much(limits.max_path_bytes, "bytes in a path of a bundle")


def _too_much(most: int, what: str) -> DocumentInvalid:
    return DocumentInvalid(f"expected at most {most} {what}, found more", code="CONTENT_LIMIT")


def _cap(path: str) -> int | None:
    """The cap in bytes of a captured file, at the root or below `summary-bundle`."""
    return CAPTURED_LIMITS.get(path.removeprefix(f"{NESTED_ROOT}/"))


def _is_bundle(fd: int) -> bool:
    """Whether both marks of a bundle stand here as non-directories (evidence-format 5.1)."""
    for name in (RECIPE_FILE, MANIFEST_FILE):
        try:
            if stat.S_ISDIR(os.stat(name, dir_fd=fd, follow_symlinks=False).st_mode):
                return False
        except OSError:
            return False
    return True


def _nested_bundle(fd: int) -> str:
    """The name of the nested root if it is a directory here, so that what lies beside it is not read; else empty."""
    try:
        status = os.stat(NESTED_ROOT, dir_fd=fd, follow_symlinks=False)
    except OSError:
        return ""
    return NESTED_ROOT if stat.S_ISDIR(status.st_mode) else ""
