"""Use cases on a committed pointer tree: check its contract, write its index (service 4, `check-tree` and `index`)."""

from collections.abc import Mapping
from dataclasses import dataclass

from app.core.allowlist import MAX_ALLOWLIST_BYTES, Allowlist
from app.core.errors import NotFoundError
from app.core.identity import SourceClass
from app.core.tree import (
    INDEX_FILE,
    INDEX_SCHEMA,
    Classify,
    RegistryRefusal,
    TreeCheck,
    TreeLine,
    check_tree,
    index_entries,
    render_index,
)
from app.core.tree_listing import TreeListing
from app.ports import PointerTree

MAX_INDEX_BYTES = 64 << 20


@dataclass(frozen=True, slots=True)
class Index:
    """An index that was made, as its file and as data, and the violations of pointers that are therefore not in it."""

    text: bytes
    document: Mapping[str, object]
    problems: tuple[TreeLine, ...]


@dataclass(frozen=True, slots=True)
class TreeService:
    """Checks a tree against an allowlist file; operational errors are raised, violations are returned (T6)."""

    tree: PointerTree
    refusal: RegistryRefusal

    def check(self, root: str, allowlist: str | None = None, *, allow_pending: bool = False) -> TreeCheck:
        """Check `root` against `allowlist`, by default the one at the root.

        Raises `NotFoundError` for a missing root or allowlist, `AllowlistInvalid` for a malformed one.
        """
        listing, classify = self._read(root, allowlist)
        return check_tree(listing, classify=classify, allow_pending=allow_pending, refusal=self.refusal)

    def index(self, root: str, allowlist: str | None = None) -> Index:
        """The index of every pointer in `root` that keeps the contract."""
        listing, classify = self._read(root, allowlist)
        found = check_tree(listing, classify=classify)
        document = {"pointers": index_entries(found, classify=classify), "schemaVersion": INDEX_SCHEMA}
        return Index(render_index(found, classify=classify), document, found.problems)

    def write_index(self, root: str, out: str | None = None, allowlist: str | None = None) -> Index:
        """Make the index and write it, by default to its place at the root."""
        index = self.index(root, allowlist)
        self.tree.write(out or f"{root.rstrip('/')}/{INDEX_FILE}", index.text)
        return index

    def index_differs(self, root: str, out: str | None = None, allowlist: str | None = None) -> bool:
        """Whether the written index is not the one that the tree gives now; a missing one differs."""
        index = self.index(root, allowlist)
        try:
            written = self.tree.read_file(out or f"{root.rstrip('/')}/{INDEX_FILE}", max_bytes=MAX_INDEX_BYTES)
        except NotFoundError:
            return True
        return written != index.text

    def _read(self, root: str, allowlist: str | None) -> tuple[TreeListing, Classify]:
        """The tree and its list; a tree that is not there is told before a list that therefore is not there either."""
        return self.tree.listing(root), self._classify(root, allowlist)

    def _classify(self, root: str, allowlist: str | None) -> Classify:
        path = allowlist or f"{root.rstrip('/')}/allowlist.yaml"
        listed = Allowlist.load(self.tree.read_file(path, max_bytes=MAX_ALLOWLIST_BYTES))

        def classify(issuer: str, identity: str) -> SourceClass | None:
            found = listed.classify(issuer, identity)
            return found.source_class if found.allowlisted else None

        return classify
