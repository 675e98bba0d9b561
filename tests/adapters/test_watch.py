"""A watched file: read within its bound, and acted on once it settled (service 2, `ALLOWLIST`)."""

import os
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.adapters.files.watch import WatchedFile
from app.core.errors import InputError, NotFoundError, ServiceError, StoreError

INTERVAL = 0.05
PATIENCE = 20.0


class Watching:
    """Collects what the file held at each call; `fail` is raised by the next call instead."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.file = WatchedFile(str(path), max_bytes=1 << 20, interval_seconds=INTERVAL)
        self.seen: list[bytes | None] = []
        self.fail: list[Exception] = []
        self.called = threading.Condition()

    def changed(self) -> None:
        with self.called:
            self.seen.append(self.path.read_bytes() if self.path.exists() else None)
            self.called.notify_all()
            if self.fail:
                raise self.fail.pop(0)

    def wait_for(self, calls: int) -> list[bytes | None]:
        with self.called:
            assert self.called.wait_for(lambda: len(self.seen) >= calls, PATIENCE), self.seen
            return list(self.seen)


@pytest.fixture
def watching(tmp_path: Path) -> Iterator[Watching]:
    path = tmp_path / "allowlist.yaml"
    path.write_bytes(b"one")
    found = Watching(path)
    yield found
    found.file.stop()


def test_an_edit_in_place_is_seen_once(watching: Watching) -> None:
    watching.file.start(watching.changed)
    watching.path.write_bytes(b"two, longer")
    assert watching.wait_for(1) == [b"two, longer"]
    watching.path.write_bytes(b"three")
    assert watching.wait_for(2) == [b"two, longer", b"three"]


def test_a_replacement_by_rename_and_a_removal_are_seen(watching: Watching, tmp_path: Path) -> None:
    watching.file.start(watching.changed)
    new = tmp_path / "new"
    new.write_bytes(b"two")
    new.rename(watching.path)
    assert watching.wait_for(1) == [b"two"]
    watching.path.unlink()
    assert watching.wait_for(2) == [b"two", None]


def test_a_change_before_the_watch_began_counts(watching: Watching) -> None:
    watching.path.write_bytes(b"edited meanwhile")
    watching.file.start(watching.changed)
    assert watching.wait_for(1) == [b"edited meanwhile"]


def test_a_file_that_is_still_being_written_is_left_alone(watching: Watching) -> None:
    watching.file.start(watching.changed)
    pause = threading.Event()
    with watching.path.open("wb", buffering=0) as file:
        for _ in range(40):  # every write is another size, closer together than one interval
            file.write(b"part ")
            pause.wait(INTERVAL / 10)
        file.write(b"end")
    assert watching.wait_for(1)[-1] == b"part " * 40 + b"end"


@pytest.mark.parametrize(
    ("error", "calls"),
    [
        pytest.param(StoreError("the database does not answer"), 2, id="may-go-away-is-tried-again"),
        pytest.param(InputError("broken"), 1, id="stays-is-told-once"),
        pytest.param(RuntimeError("a defect"), 1, id="defect-ends-no-watch"),
    ],
)
def test_an_error_of_who_is_told(watching: Watching, error: Exception, calls: int) -> None:
    watching.fail.append(error)
    watching.file.start(watching.changed)
    watching.path.write_bytes(b"two")
    assert watching.wait_for(calls) == [b"two"] * calls
    watching.path.write_bytes(b"three")
    assert watching.wait_for(calls + 1) == [b"two"] * calls + [b"three"]


def _missing(path: Path) -> None:
    path.unlink()


def _directory(path: Path) -> None:
    path.unlink()
    path.mkdir()


def _pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def _large(path: Path) -> None:
    path.write_bytes(b"x" * 11)


@pytest.mark.parametrize(
    ("spoil", "error"),
    [
        pytest.param(_missing, NotFoundError, id="missing"),
        pytest.param(_directory, InputError, id="directory"),
        pytest.param(_pipe, InputError, id="pipe-that-nobody-writes-to"),
        pytest.param(_large, InputError, id="one-byte-too-many"),
    ],
)
def test_what_can_not_be_read_is_an_error_of_ours(tmp_path: Path, spoil: object, error: type[ServiceError]) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"x" * 10)
    file = WatchedFile(str(path), max_bytes=10)
    assert file.read() == b"x" * 10
    assert callable(spoil)
    spoil(path)
    with pytest.raises(error):
        file.read()
