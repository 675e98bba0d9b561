"""Opening and reading without surprises: no links, no devices, no unbounded reads, and what a failure means."""

import contextlib
import errno
import itertools
import os
import stat
from collections.abc import Iterator
from pathlib import Path

from app.core.bundle import EntryKind, ReadFault
from app.core.errors import FetchError, InputError, NotFoundError, ServiceError

CHUNK_BYTES = 1 << 18
_OPEN_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_OPEN_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_STORAGE_FAULTS = frozenset({errno.EIO, errno.ESTALE, errno.EACCES, errno.EPERM, errno.ENXIO, errno.ETIMEDOUT})
"""Faults that say nothing about the bundle, so that no verdict follows from them (evidence-format 8.4)."""
_FAULTS = {
    errno.ELOOP: ReadFault.SYMLINK,
    errno.EFBIG: ReadFault.TOO_LARGE,
    errno.ENOENT: ReadFault.MISSING,
    errno.EINVAL: ReadFault.NOT_REGULAR,
    errno.ENOTDIR: ReadFault.NOT_REGULAR,
    errno.EISDIR: ReadFault.NOT_REGULAR,
}


@contextlib.contextmanager
def open_directory(path: str) -> Iterator[int]:
    """A directory that the caller named; links up to it are his own and are followed.

    Whatever `OSError` leaves the block is raised as `file_error`.
    """
    try:
        fd = os.open(path, _OPEN_DIRECTORY)
    except (OSError, ValueError) as err:
        raise file_error(path, err) from err
    try:
        yield fd
    except OSError as err:
        raise file_error(path, err) from err
    finally:
        os.close(fd)


@contextlib.contextmanager
def open_subdirectory(name: str, fd: int) -> Iterator[int]:
    """A directory below an open one, if it is no link; raises `OSError`."""
    child = os.open(name, _OPEN_DIRECTORY | os.O_NOFOLLOW, dir_fd=fd)
    try:
        yield child
    finally:
        os.close(child)


@contextlib.contextmanager
def open_regular(path: str, *, dir_fd: int | None = None) -> Iterator[int]:
    """A regular file that is no link; raises `OSError`, EINVAL for anything that is no regular file."""
    fd = os.open(path, _OPEN_FILE, dir_fd=dir_fd)
    try:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            raise OSError(errno.EINVAL, "not a regular file")
        yield fd
    finally:
        os.close(fd)


def read_capped(path: str, cap: int, *, dir_fd: int | None = None) -> bytes:
    """A whole regular file of at most `cap` bytes; raises `OSError`, EFBIG beyond the cap."""
    data = bytearray()
    with open_regular(path, dir_fd=dir_fd) as fd:
        while chunk := os.read(fd, min(CHUNK_BYTES, cap + 1 - len(data))):
            data += chunk
            if len(data) > cap:
                raise OSError(errno.EFBIG, "file too large")
    return bytes(data)


def listing(fd: int, most: int) -> list[tuple[str, os.stat_result]]:
    """Up to `most` + 1 names with their status, sorted, links not followed; what vanishes meanwhile is left out."""
    found = []
    with os.scandir(fd) as entries:
        for entry in itertools.islice(entries, most + 1):
            with contextlib.suppress(FileNotFoundError):
                found.append((entry.name, entry.stat(follow_symlinks=False)))
    return sorted(found, key=lambda pair: os.fsencode(pair[0]))


def shown_name(name: str) -> tuple[str, bool]:
    """A file name as text, and whether it is exact; names that are no UTF-8 are shown with escapes."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return os.fsencode(name).decode(errors="backslashreplace"), False
    return name, True


def kind_of(status: os.stat_result) -> EntryKind:
    """What an entry is, from a status that followed no link."""
    mode = status.st_mode
    if stat.S_ISREG(mode):
        return EntryKind.FILE
    if stat.S_ISDIR(mode):
        return EntryKind.DIRECTORY
    return EntryKind.SYMLINK if stat.S_ISLNK(mode) else EntryKind.OTHER


def fault_of(err: OSError) -> ReadFault:
    """Why a file inside a bundle or a tree could not be read; what is unknown counts as a storage fault."""
    return _FAULTS.get(err.errno or 0, ReadFault.UNAVAILABLE)


def file_error(path: str, err: OSError | ValueError) -> ServiceError:
    """What a failed operation on a file that the caller named is for him: his path, or a storage fault."""
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


def sync_directory(path: Path) -> None:
    """Make a rename or a link in `path` durable."""
    fd = os.open(path, _OPEN_DIRECTORY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
