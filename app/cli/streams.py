"""Standard input, output and error, whatever a command was given for them.

A stream may be closed, full, of an encoding with few characters, or its reader may have left. Verbs print and go on;
what became of the output is looked at once, at the end, so that a lost output changes no verdict.
"""

import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TextIO, cast


class GuardedStream:
    """A text stream whose writes never fail; `lost` is the error of the first one that did, and ends the writing.

    Everything else is the stream's own.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self.lost: OSError | None = None
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")

    def write(self, text: str) -> int:
        """Write unless the stream is lost; the whole of `text` counts as taken."""
        if self.lost is None:
            try:
                self._stream.write(text)
            except OSError as err:
                self._lose(err)
        return len(text)

    def flush(self) -> None:
        """Hand over what is buffered, unless the stream is lost."""
        if self.lost is None:
            try:
                self._stream.flush()
            except OSError as err:
                self._lose(err)

    def _lose(self, err: OSError) -> None:
        """Remember why; what is still buffered goes nowhere, or Python would complain about it when it ends."""
        self.lost = err
        with suppress(OSError):
            null = os.open(os.devnull, os.O_WRONLY)
            os.dup2(null, self._stream.fileno())
            os.close(null)

    def __getattr__(self, name: str) -> object:
        return getattr(self._stream, name)


@contextmanager
def standard_streams() -> Iterator[GuardedStream]:
    """Put guarded streams in the place of the standard ones; gives standard output, for who asks what became of it."""
    _occupy()
    before = sys.stdin, sys.stdout, sys.stderr
    out = GuardedStream(sys.stdout or _opened(1, "w"))
    err = GuardedStream(sys.stderr or _opened(2, "w"))
    sys.stdin, sys.stdout, sys.stderr = sys.stdin or _opened(0, "r"), cast("TextIO", out), cast("TextIO", err)
    try:
        yield out
    finally:
        out.flush()
        err.flush()
        sys.stdin, sys.stdout, sys.stderr = before


def _occupy() -> None:
    """Fill a closed descriptor, so that no database or socket gets the number of a standard stream.

    Input and output are filled with what fails when it is read or written: closed is not empty. Messages may vanish.
    """
    for number, access in ((0, os.O_WRONLY), (1, os.O_RDONLY), (2, os.O_WRONLY)):
        try:
            os.fstat(number)
        except OSError:
            os.set_inheritable(os.open(os.devnull, access), True)  # noqa: FBT003 - positional only


def _opened(number: int, mode: str) -> TextIO:
    """A stream over a descriptor that Python found closed when it began."""
    return cast("TextIO", open(number, mode, encoding="utf-8", closefd=False))
