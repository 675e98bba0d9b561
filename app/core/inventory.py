"""Step 4a: the bundle holds exactly the files that its manifest lists (evidence-format 4).

The files were gathered and hashed by an adapter; here the manifest is read and compared with that value. Duplicate
paths, the file count and paths that collide are findings (E1), judged in `core.findings`.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from app.core.bundle import (
    ATTESTATION_FILE,
    CAPTURED_LIMITS,
    MANIFEST_FILE,
    RECIPE_FILE,
    STATEMENT_FILE,
    Content,
    Entry,
    EntryKind,
    ReadFault,
)
from app.core.errors import Category, DocumentInvalid
from app.core.jsontext import parse_json, refuse_case_variants
from app.core.report import Fault, SubRow
from app.core.rules import RULES

NESTED_ROOT = "summary-bundle"
NEVER_LISTED = frozenset({MANIFEST_FILE, STATEMENT_FILE, ATTESTATION_FILE})
MAX_ROWS = 200
"""Rows that a report shows of one fault; a manifest of 1 MiB could list far more."""

_CODE = RULES["INVENTORY"].code
_KEYS = ("schemaVersion", "files")
_FILE_KEYS = ("path", "size", "sha256", "mediaType")


@dataclass(frozen=True, slots=True)
class ManifestFile:
    """One line of the manifest; `sha256` without its prefix, as it was written otherwise."""

    path: str
    size: int
    sha256: str


@dataclass(frozen=True, slots=True)
class Inventory:
    """What the manifest says, and why it does not hold; `files` is empty when it could not be read."""

    files: tuple[ManifestFile, ...] = ()
    fault: Fault | None = None


def locate_bundle(content: Content) -> Content | None:
    """The content re-rooted at its bundle: here or below `summary-bundle`; None when there is none (5.1)."""
    if _is_bundle(content.entries, ""):
        return content
    prefix = f"{NESTED_ROOT}/"
    nested = content.entries.get(NESTED_ROOT)
    if nested is None or nested.kind is not EntryKind.DIRECTORY or not _is_bundle(content.entries, prefix):
        return None
    entries = {
        path.removeprefix(prefix): Entry(path.removeprefix(prefix), e.kind, e.size, e.sha256, e.fault)
        for path, e in content.entries.items()
        if path.startswith(prefix)
    }
    captured = {p.removeprefix(prefix): data for p, data in content.captured.items() if p.startswith(prefix)}
    return Content(entries, captured)


def _is_bundle(entries: Mapping[str, Entry], prefix: str) -> bool:
    marks = (entries.get(f"{prefix}{name}") for name in (RECIPE_FILE, MANIFEST_FILE))
    return all(mark is not None and mark.kind is not EntryKind.DIRECTORY for mark in marks)


def check_inventory(content: Content, manifest_digest: str) -> Inventory:
    """Compare `content` with its manifest, whose prefixed digest the predicate states.

    A manifest that is not the stated one, or can not be read, stops here; everything else is collected as rows. A
    storage fault is no verdict and ends the check (category UNAVAILABLE).
    """
    data = content.read(MANIFEST_FILE)
    if isinstance(data, ReadFault):
        return Inventory(fault=_unreadable(MANIFEST_FILE, data))
    if not manifest_digest:
        return Inventory(fault=Fault(_CODE, "expected predicate.manifest.digest, got an empty text"))
    entry = content.entries[MANIFEST_FILE]
    if f"sha256:{entry.sha256}" != manifest_digest:
        row = SubRow(MANIFEST_FILE, _sha_mismatch(f"sha256:{entry.sha256}", manifest_digest))
        return Inventory(fault=Fault(_CODE, "manifest.json is not the one that the predicate names", sub_rows=(row,)))
    try:
        files = parse_manifest(data)
    except DocumentInvalid as err:
        return Inventory(fault=Fault(_CODE, err.message))
    for found in content.entries.values():
        if found.fault is ReadFault.UNAVAILABLE:
            return Inventory(files, _unreadable(found.path, ReadFault.UNAVAILABLE))
    rows = [*_listed_rows(content, files), *_extra_rows(content, files)]
    return Inventory(files, _fault(rows))


def recipe_bytes(content: Content, inventory: Inventory) -> bytes | None:
    """The very bytes of `recipe.yaml` that the manifest covers; None when it lists none."""
    data = content.read(RECIPE_FILE)
    listed = any(local_path(file.path) == RECIPE_FILE for file in inventory.files)
    return data if listed and isinstance(data, bytes) else None


def parse_manifest(data: bytes) -> tuple[ManifestFile, ...]:
    """Read `manifest.json`; raises `DocumentInvalid`.

    Stricter than upstream where its decoder guesses: a key twice, or a known key in another case, is refused.
    """
    document = parse_json(data, max_bytes=CAPTURED_LIMITS[MANIFEST_FILE], what=MANIFEST_FILE)
    if not isinstance(document, dict):
        raise DocumentInvalid("expected an object in manifest.json, got something else")
    refuse_case_variants(document, _KEYS)
    version = document.get("schemaVersion")
    if not isinstance(version, str) or not (version == "1.0" or version.startswith("1.0.")):
        raise DocumentInvalid(f"expected manifest.json schemaVersion 1.0 or 1.0.x, got {str(version)[:80]!r}")
    files = document.get("files")
    if not isinstance(files, list) or not files:
        raise DocumentInvalid("expected a non-empty list of files in manifest.json")
    return tuple(_manifest_file(item) for item in files)


def _manifest_file(item: object) -> ManifestFile:
    if not isinstance(item, dict):
        raise DocumentInvalid("expected an object for each file in manifest.json")
    refuse_case_variants(item, _FILE_KEYS)
    path, size, sha256 = (item.get(key) for key in ("path", "size", "sha256"))
    if not isinstance(path, str | None) or not isinstance(sha256, str | None):
        raise DocumentInvalid("expected texts for path and sha256 in manifest.json")
    if size is not None and (not isinstance(size, int) or isinstance(size, bool) or size < 0):
        raise DocumentInvalid(f"expected a whole number of bytes as size in manifest.json, got {str(size)[:40]!r}")
    return ManifestFile(path or "", size or 0, (sha256 or "").removeprefix("sha256:"))


def local_path(path: str) -> str | None:
    """`path` without `.` and inner `..`; None when it is empty, absolute or leaves the bundle."""
    if not path or path.startswith("/"):
        return None
    parts: list[str] = []
    for part in path.split("/"):
        if part in {"", "."}:
            continue
        if part == "..":
            if not parts:
                return None
            parts.pop()
        else:
            parts.append(part)
    return "/".join(parts)


def _listed_rows(content: Content, files: Sequence[ManifestFile]) -> Iterator[SubRow]:
    for file in files:
        problem = _problem(content, file)
        if problem:
            yield SubRow(file.path, problem)


def _problem(content: Content, file: ManifestFile) -> str:
    path = local_path(file.path)
    if path is None:
        return "not a local path"
    entry = content.entries.get(path)
    if path == "" or (entry is not None and entry.kind is EntryKind.DIRECTORY):
        return "is a directory"
    if entry is None or entry.fault is ReadFault.MISSING:
        return "file missing from bundle"
    if entry.kind is not EntryKind.FILE or entry.sha256 is None:
        return f"{_article(entry.kind)}, not a regular file"
    if file.size > 0 and file.size != entry.size:
        return f"size mismatch for {file.path} (got {entry.size}, want {file.size})"
    if file.sha256 != entry.sha256:
        return _sha_mismatch(entry.sha256, file.sha256)
    if path == RECIPE_FILE and not isinstance(content.read(RECIPE_FILE), bytes):
        return f"larger than {CAPTURED_LIMITS[RECIPE_FILE]} bytes"
    return ""


def _extra_rows(content: Content, files: Sequence[ManifestFile]) -> Iterator[SubRow]:
    """The closed world: whatever is no directory must be listed or be one of the three exempt names."""
    listed = {file.path for file in files}
    for path in sorted(content.entries):
        if content.entries[path].kind is EntryKind.DIRECTORY or path in listed or path in NEVER_LISTED:
            continue
        yield SubRow(path, "file not in manifest.json (unsigned)")


def _fault(rows: list[SubRow]) -> Fault | None:
    if not rows:
        return None
    return Fault(_CODE, f"{len(rows)} of the bundle's files differ from manifest.json", sub_rows=bounded_rows(rows))


def bounded_rows(rows: Sequence[SubRow]) -> tuple[SubRow, ...]:
    """At most `MAX_ROWS` rows, the last one saying how many more there are."""
    if len(rows) <= MAX_ROWS:
        return tuple(rows)
    return (*rows[:MAX_ROWS], SubRow("walk", f"{len(rows) - MAX_ROWS} more are not shown"))


def _unreadable(path: str, fault: ReadFault) -> Fault:
    if fault is ReadFault.UNAVAILABLE:
        return Fault(_CODE, f"{path} can not be read from storage", category=Category.UNAVAILABLE)
    problem = {
        ReadFault.SYMLINK: "is a symbolic link, not a regular file",
        ReadFault.NOT_REGULAR: "is not a regular file",
        ReadFault.TOO_LARGE: f"larger than {CAPTURED_LIMITS.get(path, 0)} bytes",
        ReadFault.MISSING: "file missing from bundle",
    }[fault]
    return Fault(_CODE, f"{path}: {problem}", sub_rows=(SubRow(path, problem),))


def _sha_mismatch(got: str, want: str) -> str:
    return f"sha256 mismatch (got {got}, want {want})"


def _article(kind: EntryKind) -> str:
    return "is a symbolic link" if kind is EntryKind.SYMLINK else "is a special file"
