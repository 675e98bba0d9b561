"""A committed pointer tree as a value, as an adapter gathers it; its rules are in `core.tree`."""

from dataclasses import dataclass

from app.core.bundle import EntryKind, ReadFault


@dataclass(frozen=True, slots=True)
class TreeNode:
    """One entry below the root; `path` is relative with `/`.

    `data` holds the bytes of a file that can be a pointer (`*.yaml` at the root or in a source directory); `fault`
    says why a file or a directory could not be read.
    """

    path: str
    kind: EntryKind
    data: bytes | None = None
    fault: ReadFault | None = None

    @property
    def depth(self) -> int:
        """1 at the root, 2 in a recipe directory, 3 in a source directory."""
        return self.path.count("/") + 1

    @property
    def name(self) -> str:
        """The last path segment."""
        return self.path.rpartition("/")[2]


@dataclass(frozen=True, slots=True)
class TreeListing:
    """Everything below `root` down to three levels, sorted by path."""

    root: str
    nodes: tuple[TreeNode, ...]
