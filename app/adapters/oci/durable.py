"""Bytes that are on the disk once a call returns.

Files are written first and flushed together: the file system commits a batch of parallel flushes about as fast as
one of them, and one after the other they cost more than all the rest of an ingest.
"""

import os
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path


def write_new(path: Path, pieces: Iterable[bytes]) -> None:
    """A new file, mode 0600; neither content nor name is durable before `Flusher.flush`."""
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with os.fdopen(handle, "wb") as out:
        for piece in pieces:
            out.write(piece)


class Flusher:
    """Flushes files and directories to the disk, several at a time; shared by all writers of an archive."""

    def __init__(self, threads: int = 8) -> None:
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="archive-flush")

    def flush(self, paths: Iterable[Path]) -> None:
        """Content of files, names in directories; raises the first `OSError`."""
        for done in [self._pool.submit(_flush, path) for path in paths]:
            done.result()


def _flush(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
