"""Who writes to an archive: each process holds its root for as long as it lives, by a lock of the operating system.

A killed process leaves no lock behind, so whoever comes and finds the root free knows that nothing is on its way into
it: what no record names then is an orphan, however young.
"""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from app.core.errors import StoreError


class Occupancy:
    """One process in an archive; `alone` holds until `share` lets others in."""

    def __init__(self, handle: int, *, alone: bool) -> None:
        self._handle = handle
        self.alone = alone

    def share(self) -> None:
        """Let other processes in; they wait until this is called."""
        fcntl.flock(self._handle, fcntl.LOCK_SH)


@contextmanager
def occupied(root: str) -> Iterator[Occupancy]:
    """Hold `root` (made when it is not there); `alone` when no other process does."""
    try:
        Path(root).mkdir(0o700, parents=True, exist_ok=True)
        handle = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as err:
        raise StoreError(
            f"the archive can not be used: {root}: {err.strerror or err}",
            hint="set AICR_EVIDENCE_ARCHIVE to a directory that can be written",
        ) from err
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            alone = True
        except BlockingIOError:
            fcntl.flock(handle, fcntl.LOCK_SH)
            alone = False
        yield Occupancy(handle, alone=alone)
    finally:
        os.close(handle)
