"""Bytes that are on the disk once a call returns.

Files are written first and flushed together: the file system commits a batch of parallel flushes about as fast as
one of them, and one after the other they cost more than all the rest of an ingest.
"""

import os
import secrets
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

from app.core.errors import StoreError

TEMPORARY: Final = ".tmp-"
"""How the name begins of what is not in its place yet."""

Writing = Callable[[Path], None]
"""Makes the new file at a path."""


def write_new(path: Path, pieces: Iterable[bytes]) -> None:
    """A new file, mode 0600; neither content nor name is durable before `Flusher.flush`."""
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with os.fdopen(handle, "wb") as out:
        for piece in pieces:
            out.write(piece)


def writing(data: bytes) -> Writing:
    """What makes a file of exactly these bytes."""
    return lambda path: write_new(path, (data,))


class Flusher:
    """Flushes files and directories to the disk, several at a time; shared by all writers of an archive."""

    def __init__(self, threads: int = 8) -> None:
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="archive-flush")

    def flush(self, paths: Iterable[Path]) -> None:
        """Content of files, names in directories; raises the first `OSError`."""
        for done in [self._pool.submit(_flush, path) for path in paths]:
            done.result()

    def replace(self, contents: Mapping[Path, Writing]) -> None:
        """Put what each writes at its path by one rename; the names are durable once their directory is flushed.

        Nothing is left of what fails: on a full disk, where it is tried again and again, that would fill it further.
        """
        fresh = {path: path.with_name(f"{TEMPORARY}{secrets.token_hex(8)}") for path in contents}
        try:
            for path, write in contents.items():
                write(fresh[path])
            self.flush(fresh.values())
            for path, written in fresh.items():
                written.rename(path)
        except (OSError, StoreError):
            for written in fresh.values():
                written.unlink(missing_ok=True)
            raise


def _flush(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
