"""Private directories that nobody else reads and that a crash does not leave behind for ever."""

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from app.adapters.oci.codes import fetch_error

_PREFIX = "pull-"


def prepare_root(root: str) -> None:
    """Make `root` (mode 0700 when new) and remove directories whose owner died."""
    try:
        Path(root).mkdir(0o700, parents=True, exist_ok=True)
        left = [path for path in Path(root).iterdir() if path.name.startswith(_PREFIX)]
    except OSError as err:
        raise fetch_error("STORAGE_UNAVAILABLE", f"the temporary directory can not be used: {err.strerror}") from err
    for path in left:
        _sweep(path)


@contextmanager
def private_directory(root: str) -> Iterator[str]:
    """A new directory, mode 0700, gone when the context ends.

    It is locked while in use, which is how a sweep of another process tells it from one that a crash left.
    """
    try:
        path, lock = _make_locked(root)
    except OSError as err:
        raise fetch_error("STORAGE_UNAVAILABLE", f"no private directory: {err.strerror}") from err
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)
        os.close(lock)


def _make_locked(root: str) -> tuple[str, int]:
    while True:
        path = tempfile.mkdtemp(prefix=_PREFIX, dir=root)
        try:
            lock = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
        except FileNotFoundError:
            continue  # a sweep was faster than our lock
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.path.samestat(Path(path).stat(), os.fstat(lock)):
                return path, lock
        except (BlockingIOError, FileNotFoundError):
            pass
        os.close(lock)


def _sweep(path: Path) -> None:
    try:
        lock = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except OSError:
        return
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        shutil.rmtree(path, ignore_errors=True)
    except BlockingIOError:
        pass  # in use
    finally:
        os.close(lock)
