"""A small file that is read whole and watched for changes.

Polling `stat` sees edits, replacements by rename and mounted configuration alike, on every file system.
"""

import logging
import os
import stat
import threading
from collections.abc import Callable
from pathlib import Path

from app.core.errors import InputError, NotFoundError, ServiceError, StoreError

log = logging.getLogger(__name__)


class FileTooLarge(InputError):
    """A file that has more bytes than its reader takes."""


def _without_waiting(path: str, flags: int) -> int:
    """Open at once: a pipe that nobody writes to would hold the caller for ever before it is seen to be no file."""
    return os.open(path, flags | os.O_NONBLOCK)


class WatchedFile:
    """The file at `path`, at most `max_bytes` long."""

    def __init__(self, path: str, *, max_bytes: int, interval_seconds: float = 0.1) -> None:
        self._path = Path(path)
        self._max = max_bytes
        self._interval = interval_seconds
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self._seen = self._signature()

    def read(self) -> bytes:
        """The bytes as they are now.

        Raises `NotFoundError` when it can not be opened, `StoreError` when it can not be read, `FileTooLarge` and
        `InputError` when it is no regular file.
        """
        try:
            with open(self._path, "rb", opener=_without_waiting) as file:
                if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                    raise InputError(f"expected a regular file at {self._path}")
                data = file.read(self._max + 1)
        except FileNotFoundError as err:
            raise NotFoundError(f"{self._path} does not exist", hint="create it, or name another file") from err
        except IsADirectoryError as err:
            raise InputError(f"expected a file at {self._path}, found a directory") from err
        except PermissionError as err:
            raise NotFoundError(f"{self._path} can not be opened: permission denied") from err
        except OSError as err:
            raise StoreError(f"{self._path} can not be read: {err.strerror}") from err
        if len(data) > self._max:
            raise FileTooLarge(f"{self._path} is larger than {self._max} bytes")
        return data

    def start(self, changed: Callable[[], None]) -> None:
        """Call `changed` in a thread of its own once the file was changed and stayed the same for one interval.

        A change between construction and this call counts. A retryable error of `changed` is tried again.
        """
        self._thread = threading.Thread(target=self._watch, args=(changed,), name="aicr-watch", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End the thread; returns when a running `changed` has ended."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join()

    def _watch(self, changed: Callable[[], None]) -> None:
        last = self._seen
        while not self._stop.wait(self._interval):
            before, last = last, self._signature()
            # Twice the same: an editor that writes in place is done, and half a file is not taken for a whole one.
            if last == self._seen or last != before:
                continue
            try:
                changed()
            except ServiceError as err:
                log.warning("%s changed and could not be taken over: %s", self._path.name, err.message)
                if err.retryable:
                    continue  # asked again at the next look
            except Exception:
                log.exception("%s changed and could not be taken over", self._path.name)
            self._seen = last

    def _signature(self) -> tuple[int, int, int] | None:
        try:
            found = self._path.stat()
        except OSError:
            return None
        return found.st_mtime_ns, found.st_size, found.st_ino
