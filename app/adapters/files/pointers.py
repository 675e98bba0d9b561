"""Pointer files and the committed tree on disk; implements `app.ports.PointerTree`."""

import os
import stat
import tempfile
from dataclasses import dataclass
from pathlib import Path

from app.adapters.files.reading import (
    fault_of,
    file_error,
    kind_of,
    listing,
    open_directory,
    open_subdirectory,
    read_capped,
    shown_name,
    sync_directory,
)
from app.core.bundle import EntryKind, ReadFault
from app.core.errors import ConflictError, InputError, PointerInvalid
from app.core.input_form import PathKind
from app.core.pointer import MAX_POINTER_BYTES, canonical_suffix, parse_pointer
from app.core.tree_listing import TreeListing, TreeNode

_RECIPE_LEVEL, _SOURCE_LEVEL = 2, 3


@dataclass(frozen=True, slots=True)
class TreeLimits:
    """How much a pointer tree may hold; a pointer file has its own cap."""

    max_entries: int = 200_000
    max_bytes: int = 512 << 20


class PointerFiles:
    """Reads, writes and moves pointer files."""

    def __init__(self, limits: TreeLimits | None = None) -> None:
        self._limits = limits or TreeLimits()

    def kind_of(self, path: str, /) -> PathKind:
        """What stands at `path`, links followed; an unreadable path reads as missing."""
        try:
            mode = Path(path).stat().st_mode
        except (OSError, ValueError):
            return PathKind.MISSING
        return PathKind.DIRECTORY if stat.S_ISDIR(mode) else PathKind.FILE

    def read_pointer(self, path: str, /) -> bytes:
        """The bytes of a pointer file; a link, a special file and more than 1 MiB are refused."""
        try:
            return self.read_file(path, max_bytes=MAX_POINTER_BYTES)
        except InputError as err:
            raise PointerInvalid(f"pointer file: {err.message}") from err

    def read_file(self, path: str, /, *, max_bytes: int) -> bytes:
        """The bytes of any regular file, at most `max_bytes`."""
        try:
            return read_capped(path, max_bytes)
        except (OSError, ValueError) as err:
            raise file_error(path, err) from err

    def listing(self, root: str, /) -> TreeListing:
        """The tree down to its source directories; raises `NotFoundError` when the root can not be read."""
        walk = _TreeWalk(self._limits)
        with open_directory(root) as fd:
            walk.descend(fd, "", 1)
        return TreeListing(root, tuple(sorted(walk.nodes, key=lambda node: node.path)))

    def write(self, path: str, data: bytes, /) -> None:
        """Replace a file in one step: a temporary file beside it, then a rename; durable once this returns."""
        target = Path(path)
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            _replace(target, data)
            sync_directory(target.parent)
        except OSError as err:
            raise file_error(path, err) from err

    def relocate(self, path: str, /) -> str:
        """Move a signed flat pointer to its canonical place and say where that is (evidence-format 6.4).

        The move never overwrites: a destination with other content is a `ConflictError` and nothing moves.
        """
        data = self.read_pointer(path)
        suffix = canonical_suffix(parse_pointer(data))
        source = Path(path).absolute()
        if source.as_posix().endswith(f"/{suffix}"):
            return path
        destination = source.parent / suffix
        try:
            destination.parent.mkdir(parents=True, exist_ok=True)
            _place(source, destination, data)
            source.unlink()
            sync_directory(destination.parent)
        except OSError as err:
            raise file_error(path, err) from err
        return str(destination)


class _TreeWalk:
    """One pass over a tree, and what it has taken so far."""

    def __init__(self, limits: TreeLimits) -> None:
        self.nodes: list[TreeNode] = []
        self._limits = limits
        self._entries = 0
        self._bytes = 0

    def descend(self, fd: int, prefix: str, level: int) -> None:
        """Note all entries of an open directory and go below, not deeper than source directories."""
        for name, status in listing(fd, self._limits.max_entries):
            shown, exact = shown_name(name)
            path, kind = f"{prefix}{shown}", kind_of(status)
            self._check_room()
            if not exact:
                self.nodes.append(TreeNode(path, EntryKind.OTHER, fault=ReadFault.NOT_REGULAR))
            elif kind is EntryKind.DIRECTORY:
                self._directory(fd, name, path, level)
            elif kind is EntryKind.FILE and level != _RECIPE_LEVEL and name.endswith(".yaml"):
                self.nodes.append(self._pointer(fd, name, path))
            else:
                fault = ReadFault.SYMLINK if kind is EntryKind.SYMLINK else None
                self.nodes.append(TreeNode(path, kind, fault=fault))

    def _directory(self, fd: int, name: str, path: str, level: int) -> None:
        fault: ReadFault | None = None
        if level < _SOURCE_LEVEL:
            try:
                with open_subdirectory(name, fd) as child:
                    self.descend(child, f"{path}/", level + 1)
            except OSError as err:
                fault = fault_of(err)
        self.nodes.append(TreeNode(path, EntryKind.DIRECTORY, fault=fault))

    def _pointer(self, fd: int, name: str, path: str) -> TreeNode:
        try:
            data = read_capped(name, MAX_POINTER_BYTES, dir_fd=fd)
        except OSError as err:
            return TreeNode(path, EntryKind.FILE, fault=fault_of(err))
        self._bytes += len(data)
        return TreeNode(path, EntryKind.FILE, data=data)

    def _check_room(self) -> None:
        limits = self._limits
        self._entries += 1
        if self._entries > limits.max_entries or self._bytes > limits.max_bytes:
            raise InputError(
                f"expected at most {limits.max_entries} entries and {limits.max_bytes} bytes in a pointer tree, "
                "found more"
            )


def _replace(target: Path, data: bytes) -> None:
    handle, temporary = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fchmod(file.fileno(), 0o644)
            os.fsync(file.fileno())
        Path(temporary).replace(target)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def _place(source: Path, destination: Path, data: bytes) -> None:
    """Hard-link `source` to `destination`, which may exist only with the same bytes."""
    try:
        os.link(source, destination, follow_symlinks=False)
    except FileExistsError as err:
        if not destination.is_symlink() and (
            destination.samefile(source) or read_capped(str(destination), MAX_POINTER_BYTES) == data
        ):
            return
        raise ConflictError(
            f"{destination} exists with other content; nothing was moved",
            hint="compare both files; a committed pointer is never changed",
        ) from err
