"""One demo a directory: a second one would take the first one's files away."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from app.core.errors import ConflictError, StoreError


@contextmanager
def claimed(directory: Path) -> Iterator[Path]:
    """Hold `directory` for this process; raises `ConflictError` while another demo has it.

    The lock is the operating system's and lies beside the directory, so that a killed demo leaves nothing held.
    """
    lock = directory.with_name(f"{directory.name}.lock")
    try:
        lock.parent.mkdir(parents=True, exist_ok=True)
        handle = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o644)
    except OSError as err:
        raise StoreError(f"can not write {lock}: {err.strerror}") from err
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield directory
    except BlockingIOError as err:
        raise ConflictError(
            f"another demo runs in {directory}", hint="end it first, or name another place with --directory"
        ) from err
    finally:
        os.close(handle)
