"""Who has an SQLite file: `serve` and every verb that rewrites it hold this lock, one at a time (service 4).

The lock is the operating system's, on a file beside the database, so a killed holder leaves nothing behind. A server
database needs none: its transactions are enough.
"""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from app.adapters.db.session import parse_url
from app.core.errors import ConflictError, StoreError


@contextmanager
def exclusive(url: str, holder: str) -> Iterator[None]:
    """Hold the file of `url` as `holder` (a verb); raises `ConflictError` (DATABASE_IN_USE) naming who has it."""
    parsed = parse_url(url)
    if parsed.get_backend_name() != "sqlite":
        yield
        return
    path = Path(f"{parsed.database}.lock")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o644)
    except OSError as err:
        raise StoreError(
            f"can not open the lock {path} beside the database: {err.strerror}",
            hint="set AICR_EVIDENCE_DATABASE_URL to a file in a directory that can be written",
        ) from err
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as err:
            by = os.pread(handle, 200, 0).decode("utf-8", "replace").strip() or "another process"
            raise ConflictError(
                f"the database {Path(str(parsed.database)).name} is in use by {by}",
                code="DATABASE_IN_USE",
                hint="stop it first, or use a server database for several processes",
                details={"holder": by},
            ) from err
        os.ftruncate(handle, 0)
        os.pwrite(handle, f"{holder} (pid {os.getpid()})\n".encode(), 0)
        yield
    finally:
        os.close(handle)
