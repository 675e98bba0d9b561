"""The committed pointer tree: its contract and its index (evidence-format 6.3, service 4).

Structural only: the signer that a pointer claims is trusted here, since the certificate is checked at ingest. An
adapter gathers the tree into a `TreeListing`; nothing here opens a file.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from app.core.bundle import EntryKind, ReadFault
from app.core.errors import InputError, PointerInvalid, ReferenceInvalid
from app.core.identity import SourceClass, source_slug
from app.core.party import is_personal_address, mask_identity
from app.core.pointer import Pointer, digest_file_name, parse_pointer, time_text, yaml_scalar
from app.core.refs import Digest
from app.core.tree_listing import TreeListing, TreeNode

ROOT_FILES = frozenset({"README.md", "pointers.yaml", "allowlist.yaml"})
INDEX_FILE = "pointers.yaml"
INDEX_SCHEMA = "1.0.0"
REPORTED = "reported"
"""Class in the index of a signer that nobody listed."""

Classify = Callable[[str, str], SourceClass | None]
"""(issuer, identity) -> class under the allowlist in question; None when it is not listed."""

RegistryRefusal = Callable[[str], str | None]
"""Reference -> why ingest would refuse its registry; None when it would take it."""


@dataclass(frozen=True, slots=True)
class TreeLine:
    """One line about one path; `str()` is the printed form."""

    path: str
    message: str

    def __str__(self) -> str:
        return f"{self.path}: {self.message}"


@dataclass(frozen=True, slots=True)
class TreePointer:
    """A pointer that keeps the contract, with where it stands."""

    node: TreeNode
    pointer: Pointer

    @property
    def source(self) -> str:
        """The directory that names the signer."""
        return self.node.path.split("/")[1]


@dataclass(frozen=True, slots=True)
class TreeCheck:
    """What a tree is: violations, warnings, and the pointers that keep the contract."""

    problems: tuple[TreeLine, ...]
    warnings: tuple[TreeLine, ...]
    pointers: tuple[TreePointer, ...] = field(default=())


def check_tree(
    listing: TreeListing,
    *,
    classify: Classify,
    allow_pending: bool = False,
    refusal: RegistryRefusal = lambda _reference: None,
) -> TreeCheck:
    """Check a whole tree; at most one violation a pointer, in the order of 6.3, all in path order."""
    problems: list[TreeLine] = []
    warnings: list[TreeLine] = []
    pointers: list[TreePointer] = []
    for node in listing.nodes:
        path = f"{listing.root.rstrip('/')}/{node.path}"
        place = _misplaced(node, allow_pending=allow_pending)
        if place:
            problems.append(TreeLine(path, place))
        elif _is_pointer(node):
            found = _check_pointer(node, classify)
            if isinstance(found, str):
                problems.append(TreeLine(path, found))
            else:
                pointers.append(TreePointer(node, found))
                warnings += [TreeLine(path, line) for line in _warnings(found, refusal)]
        elif node.depth == 1 and node.name not in ROOT_FILES and node.kind is EntryKind.FILE:
            found = _check_pending(node)
            if isinstance(found, str):
                problems.append(TreeLine(path, found))
    return TreeCheck(tuple(problems), tuple(warnings), tuple(pointers))


def discover(listing: TreeListing, recipe: str) -> tuple[TreeNode, ...]:
    """The pointer files of one recipe, sorted; none for an unknown recipe (T7, T8)."""
    if not recipe:
        raise InputError("expected a recipe name, got an empty text")
    return tuple(node for node in listing.nodes if _is_pointer(node) and node.path.startswith(f"{recipe}/"))


def _misplaced(node: TreeNode, *, allow_pending: bool) -> str:
    """What is wrong with an entry's place, before anything is read from it."""
    if node.kind is EntryKind.DIRECTORY:
        if node.fault is not None and node.depth < 3:
            what = "recipe" if node.depth == 1 else "source"
            return f"failed to read {what} directory: {node.fault.value}"
        return ""
    if node.depth == 1:
        pending = allow_pending and node.kind is EntryKind.FILE
        if node.name in ROOT_FILES and node.kind is EntryKind.FILE:
            return ""
        return "" if pending else "unexpected file at evidence root"
    if node.depth == 2:
        return "must live under <recipe>/<source>/"
    if node.fault is ReadFault.NOT_REGULAR and node.kind is EntryKind.OTHER and node.name.endswith(".yaml"):
        return "invalid pointer: its name is no UTF-8"  # such an entry has no other fault and no other kind
    return ""


def _is_pointer(node: TreeNode) -> bool:
    """An entry of a source directory that discovery looks at; a link of that name too, so that it is reported."""
    return node.depth == 3 and node.name.endswith(".yaml") and node.kind in {EntryKind.FILE, EntryKind.SYMLINK}


def _read(node: TreeNode) -> Pointer | str:
    if node.kind is EntryKind.SYMLINK:
        return ReadFault.SYMLINK.value
    if node.data is None:
        return (node.fault or ReadFault.MISSING).value
    try:
        return parse_pointer(node.data)
    except PointerInvalid as err:
        return err.message


def _check_pointer(node: TreeNode, classify: Classify) -> Pointer | str:
    """The pointer, or the first of the violations of 6.3; the file name is our own check and comes last."""
    pointer = _read(node)
    if isinstance(pointer, str):
        return f"invalid pointer: {pointer}"
    recipe, source, name = node.path.split("/")
    if pointer.recipe != recipe:
        return f"recipe {pointer.recipe[:200]!r} does not match recipe directory {recipe!r}"
    if pointer.signer is None:
        return "committed pointer must be signed"
    issuer, identity = pointer.signer.issuer, pointer.signer.identity
    try:
        slug = source_slug(issuer, identity)
    except InputError as err:
        return f"invalid pointer: {err.message}"
    if slug != source:
        return f"path ownership / squat: the claimed signer's directory is {slug}, this is {source}"
    listed = classify(issuer, identity)
    if listed is None:
        return f"signer {mask_identity(identity)!r} (issuer {issuer[:200]!r}) is not in the allowlist"
    if listed is SourceClass.FIRST_PARTY:
        return "first-party signer must ingest directly; such runs are not committed"
    try:
        expected = digest_file_name(Digest.parse(pointer.digest))
    except ReferenceInvalid as err:
        return f"bundle.digest: {err.message}"
    return pointer if name == expected else f"file name does not match bundle.digest: expected {expected}"


def _check_pending(node: TreeNode) -> Pointer | str:
    """A flat file at the root, which may stay only while its signature is pending (6.3)."""
    if not node.name.endswith(".yaml"):
        return "unexpected file at evidence root"
    pointer = _read(node)
    if isinstance(pointer, str):
        return f"invalid pending pointer: {pointer}"
    if node.name != f"{pointer.recipe}.yaml":
        return f"flat pending pointer must be named {pointer.recipe[:200]}.yaml"
    if pointer.signer is not None:
        return "signed pointer must live under <recipe>/<source>/"
    if not (pointer.oci and pointer.digest):
        return "flat pending pointer must reference a pushed bundle"
    return pointer


def _warnings(pointer: Pointer, refusal: RegistryRefusal) -> Iterator[str]:
    if pointer.oci and (reason := refusal(pointer.oci)):
        yield f"ingest would refuse its registry: {reason}"
    if pointer.signer is not None and is_personal_address(pointer.signer.identity):
        yield f"names a personal address ({mask_identity(pointer.signer.identity)}), public for as long as the history"


# --- index -------------------------------------------------------------------------------------------


def index_entries(check: TreeCheck, *, classify: Classify) -> list[dict[str, str]]:
    """What the index says of every pointer that keeps the contract, sorted by recipe, source and digest."""
    found = sorted(check.pointers, key=lambda found: (found.pointer.recipe, found.source, found.pointer.digest))
    return [_index_entry(each, classify) for each in found]


def render_index(check: TreeCheck, *, classify: Classify) -> bytes:
    """The index file: `index_entries` as YAML."""
    entries = index_entries(check, classify=classify)
    lines = ["pointers:" if entries else "pointers: []"]
    for entry in entries:
        marker = "  - "
        for key, value in entry.items():
            lines.append(f"{marker}{key}: {_index_scalar(key, value)}")
            marker = "    "
    return ("\n".join([*lines, f"schemaVersion: {INDEX_SCHEMA}"]) + "\n").encode()


def _index_entry(found: TreePointer, classify: Classify) -> dict[str, str]:
    pointer = found.pointer
    signer = pointer.signer
    listed = classify(signer.issuer, signer.identity) if signer else None
    return {
        "recipe": pointer.recipe,
        "profile": pointer.profile,
        "source": found.source,
        "class": listed.value if listed else REPORTED,
        "digest": pointer.digest,
        "oci": pointer.oci,
        "predicateType": pointer.predicate_type,
        "attestedAt": time_text(pointer.attested_at) if pointer.attested_at else "",
    }


def _index_scalar(key: str, value: str) -> str:
    match key:
        case "source":
            return f'"{value}"'  # always quoted: 32 digits would read as a number
        case "attestedAt" if value:
            return value  # plain, as in a pointer
        case _:
            return yaml_scalar(value)
