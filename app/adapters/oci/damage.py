"""What is wrong with an archive's own disk, told apart from what a registry sent: always a `StoreError`."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from app.core.errors import FetchError, StoreError

ARCHIVE_DAMAGED: Final = "ARCHIVE_DAMAGED"


@contextmanager
def storage() -> Iterator[None]:
    """A disk that fails is no verdict about anybody."""
    try:
        yield
    except OSError as err:
        raise StoreError(f"the archive can not be used: {err.strerror or err}", hint="check its disk") from err


@contextmanager
def damage() -> Iterator[None]:
    """What a registry may send is a refusal; what our own disk gives back is damage."""
    try:
        yield
    except FetchError as err:
        if err.code == "STORAGE_UNAVAILABLE":
            raise StoreError(err.message, hint=err.hint) from err
        raise damaged(err.message) from err


def damaged(what: str) -> StoreError:
    """The error of a bundle whose bytes are missing or altered."""
    return StoreError(
        f"the archived bundle is damaged: {what}",
        code=ARCHIVE_DAMAGED,
        hint="ingest the bundle again, which puts back what is lost, or restore its directory from a backup",
    )


def guarded(chunks: Iterator[bytes]) -> Iterator[bytes]:
    """The same chunks, with faults of the disk as `StoreError`."""
    with storage():
        yield from chunks
