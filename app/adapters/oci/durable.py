"""Bytes that are on the disk once a call returns."""

import os
from collections.abc import Iterable
from pathlib import Path


def write_synced(path: Path, pieces: Iterable[bytes]) -> None:
    """A new file, mode 0600, with its content flushed to the disk; its name is not, see `sync_directory`."""
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with os.fdopen(handle, "wb") as out:
        for piece in pieces:
            out.write(piece)
        out.flush()
        os.fsync(out.fileno())


def sync_directory(path: Path) -> None:
    """The names in a directory, flushed to the disk."""
    handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
