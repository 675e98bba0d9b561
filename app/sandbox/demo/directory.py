"""One demo a directory: a second one would take the first one's files away, and nobody else's are ever taken."""

import fcntl
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from app.core.errors import ConflictError, InputError

MARK = ".aicr-demo"
"""Stands in a directory that a demo made, and so may make anew."""

_HINT = "name an empty or a new directory with --directory"


@contextmanager
def claimed(directory: Path) -> Iterator[Path]:
    """Hold `directory`, made anew, for this process.

    The lock is the operating system's and lies beside the directory, so that a killed demo leaves nothing held. Raises
    `ConflictError` while another demo has it, `InputError` for one that no demo made or that can not be written.
    """
    try:
        here = directory.resolve()
        _expect_own(directory, here)
        lock = here.with_name(f"{here.name}.lock")
        lock.parent.mkdir(parents=True, exist_ok=True)
        handle = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o644)
    except (OSError, RuntimeError) as err:  # RuntimeError: links that lead in a circle
        raise _unwritable(directory, err) from err
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        _make_anew(directory, here)
        yield here
    except BlockingIOError as err:
        raise ConflictError(
            f"another demo runs in {directory}", hint="end it first, or name another place with --directory"
        ) from err
    finally:
        os.close(handle)


def _expect_own(directory: Path, here: Path) -> None:
    """Refuse what is no directory, and one with files that somebody may still want."""
    if not here.name or (here.exists() and not here.is_dir()):
        raise InputError(f"expected a directory for the demo's files, got {directory}", hint=_HINT)
    found = os.listdir(here) if here.exists() else []  # noqa: PTH208 - names only
    if found and MARK not in found:
        raise InputError(
            f"expected an empty directory or one of an earlier demo (with {MARK}), got {directory} with other files",
            hint=f"{_HINT}; or remove this one, if nothing in it is wanted any more",
        )


def _make_anew(directory: Path, here: Path) -> None:
    """Empty it, its mark last, so that one that was left half empty is still known."""
    try:
        here.mkdir(parents=True, exist_ok=True)
        (here / MARK).touch()
        for each in here.iterdir():
            if each.is_dir() and not each.is_symlink():
                shutil.rmtree(each)
            elif each.name != MARK:
                each.unlink()
    except OSError as err:
        raise _unwritable(directory, err) from err


def _unwritable(directory: Path, err: Exception) -> InputError:
    why = err.strerror if isinstance(err, OSError) else "its links lead in a circle"
    return InputError(f"{directory} can not be written: {why}", hint="name another place with --directory")
