"""The closed world of a bundle: listed files, extras, links, and a manifest read strictly (evidence-format 4)."""

import hashlib
import json
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.core.bundle import Content, Entry, EntryKind, ReadFault
from app.core.errors import Category, DocumentInvalid
from app.core.inventory import (
    MAX_ROWS,
    check_inventory,
    local_path,
    locate_bundle,
    parse_manifest,
    recipe_bytes,
)
from tests.support.bundles import go_json, manifest_of

BODY = {"recipe.yaml": b"a: 1\n", "ctrf/deployment.json": b"{}", "snapshot.yaml": b"s"}


def content_of(files: dict[str, bytes], *more: Entry) -> Content:
    """What an adapter would gather of `files` and further entries."""
    entries = {
        path: Entry(path, EntryKind.FILE, len(data), hashlib.sha256(data).hexdigest()) for path, data in files.items()
    }
    entries |= {entry.path: entry for entry in more}
    return Content(entries, dict(files))


def rows_of(content: Content, manifest: bytes | None = None) -> list[tuple[str, str]]:
    """Sub-rows of the check against the content's own manifest."""
    data = manifest if manifest is not None else content.read("manifest.json")
    assert isinstance(data, bytes)
    fault = check_inventory(content, f"sha256:{hashlib.sha256(data).hexdigest()}").fault
    return [(row.key, row.value) for row in fault.sub_rows] if fault else []


def listed(body: dict[str, bytes], *more: dict[str, object]) -> bytes:
    """A manifest of `body` with further lines."""
    manifest = json.loads(manifest_of(body))
    manifest["files"] += more
    return go_json(manifest)


def test_a_bundle_that_holds_what_its_manifest_lists_passes() -> None:
    manifest = manifest_of(BODY)
    exempt = {"manifest.json": manifest, "statement.intoto.json": b"{}", "attestation.intoto.jsonl": b"{}"}
    content = content_of(BODY | exempt, Entry("ctrf", EntryKind.DIRECTORY), Entry("empty", EntryKind.DIRECTORY))
    found = check_inventory(content, f"sha256:{hashlib.sha256(manifest).hexdigest()}")
    assert found.fault is None
    assert [file.path for file in found.files] == sorted(BODY)
    assert recipe_bytes(content, found) == b"a: 1\n"


def test_the_exempt_names_are_exempt_at_the_root_only() -> None:
    manifest = manifest_of(BODY)
    content = content_of(BODY | {"manifest.json": manifest, "ctrf/manifest.json": b"x"})
    assert rows_of(content) == [("ctrf/manifest.json", "file not in manifest.json (unsigned)")]


@pytest.mark.parametrize(
    ("line", "row"),
    [
        pytest.param({"path": "../../../etc/passwd"}, "not a local path", id="escapes"),
        pytest.param({"path": "/etc/passwd"}, "not a local path", id="absolute"),
        pytest.param({"path": ""}, "not a local path", id="empty"),
        pytest.param({"path": "a/../../b"}, "not a local path", id="escapes-inside"),
        pytest.param({"path": "."}, "is a directory", id="the-root"),
        pytest.param({"path": "ctrf"}, "is a directory", id="a-directory"),
        pytest.param({"path": "gone.log", "sha256": "sha256:00"}, "file missing from bundle", id="missing"),
        pytest.param(
            {"path": "snapshot.yaml", "size": 2, "sha256": "sha256:00"},
            "size mismatch for snapshot.yaml (got 1, want 2)",
            id="size",
        ),
        pytest.param(
            {"path": "snapshot.yaml", "size": 0, "sha256": "sha256:00"},
            "sha256 mismatch (got 043a718774c572bd8a25adbeb1bfcd5c0256ae11cecf9f9c3f925d0e52beaf89, want 00)",
            id="sha256-and-a-size-of-zero-is-not-checked",
        ),
        pytest.param({"path": "link"}, "is a symbolic link, not a regular file", id="link"),
        pytest.param({"path": "pipe"}, "is a special file, not a regular file", id="special"),
    ],
)
def test_each_line_that_does_not_hold_is_one_row(line: dict[str, object], row: str) -> None:
    manifest = listed(BODY, line)
    content = content_of(
        BODY | {"manifest.json": manifest},
        Entry("ctrf", EntryKind.DIRECTORY),
        Entry("link", EntryKind.SYMLINK, fault=ReadFault.SYMLINK),
        Entry("pipe", EntryKind.OTHER, fault=ReadFault.NOT_REGULAR),
    )
    assert (line["path"], row) in rows_of(content)


def test_a_digest_without_prefix_is_the_same_digest() -> None:
    manifest = manifest_of(BODY).replace(b'"sha256:', b'"')
    assert rows_of(content_of(BODY | {"manifest.json": manifest})) == []


def test_an_unlisted_link_is_an_extra() -> None:
    manifest = manifest_of(BODY)
    content = content_of(BODY | {"manifest.json": manifest}, Entry("link", EntryKind.SYMLINK, fault=ReadFault.SYMLINK))
    assert rows_of(content) == [("link", "file not in manifest.json (unsigned)")]


def test_all_problems_are_collected_and_counted_up_to_a_bound() -> None:
    manifest = listed(BODY, *({"path": f"gone-{n}"} for n in range(MAX_ROWS + 5)))
    content = content_of(BODY | {"manifest.json": manifest})
    rows = rows_of(content)
    assert len(rows) == MAX_ROWS + 1
    assert rows[-1] == ("walk", "5 more are not shown")
    fault = check_inventory(content, f"sha256:{hashlib.sha256(manifest).hexdigest()}").fault
    assert fault is not None
    assert str(MAX_ROWS + 5) in fault.message


def test_a_manifest_that_is_not_the_stated_one_stops_with_one_row() -> None:
    content = content_of(BODY | {"manifest.json": manifest_of(BODY), "stray": b"x"})
    fault = check_inventory(content, f"sha256:{'0' * 64}").fault
    assert fault is not None
    assert [row.key for row in fault.sub_rows] == ["manifest.json"]
    assert fault.sub_rows[0].value.startswith("sha256 mismatch (got sha256:")


def test_an_empty_manifest_digest_fails() -> None:
    assert check_inventory(content_of(BODY | {"manifest.json": manifest_of(BODY)}), "").fault is not None


@pytest.mark.parametrize("fault", [ReadFault.SYMLINK, ReadFault.NOT_REGULAR, ReadFault.TOO_LARGE, ReadFault.MISSING])
def test_a_manifest_that_can_not_be_read_is_a_verdict(fault: ReadFault) -> None:
    found = check_inventory(Content({}, {"manifest.json": fault}), "sha256:00").fault
    assert found is not None
    assert found.category is Category.INVALID_REQUEST


def test_a_storage_fault_is_no_verdict_wherever_it_is() -> None:
    found = check_inventory(Content({}, {"manifest.json": ReadFault.UNAVAILABLE}), "sha256:00").fault
    assert found is not None
    assert found.category is Category.UNAVAILABLE
    manifest = manifest_of(BODY)
    content = content_of(
        BODY | {"manifest.json": manifest}, Entry("ctrf", EntryKind.DIRECTORY, fault=ReadFault.UNAVAILABLE)
    )
    later = check_inventory(content, f"sha256:{hashlib.sha256(manifest).hexdigest()}").fault
    assert later is not None
    assert later.category is Category.UNAVAILABLE


def test_a_recipe_over_its_cap_is_a_row() -> None:
    manifest = manifest_of(BODY)
    content = content_of(BODY | {"manifest.json": manifest})
    content = Content(content.entries, {**content.captured, "recipe.yaml": ReadFault.TOO_LARGE})
    assert rows_of(content) == [("recipe.yaml", "larger than 1048576 bytes")]


def test_the_recipe_counts_only_when_the_manifest_covers_it() -> None:
    body = {path: data for path, data in BODY.items() if path != "recipe.yaml"}
    manifest = manifest_of(body)
    content = content_of(BODY | {"manifest.json": manifest})
    assert recipe_bytes(content, check_inventory(content, f"sha256:{hashlib.sha256(manifest).hexdigest()}")) is None


# --- manifest text -----------------------------------------------------------------------------------

LINE = '{"path": "a", "size": 1, "sha256": "sha256:00"}'


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("not json", id="no-json"),
        pytest.param("[]", id="a-list"),
        pytest.param('{"schemaVersion": "2.0.0", "files": [@]}'.replace("@", LINE), id="V7-schema"),
        pytest.param('{"schemaVersion": "1.00", "files": [@]}'.replace("@", LINE), id="schema-1.00"),
        pytest.param('{"files": [@]}'.replace("@", LINE), id="no-schema"),
        pytest.param('{"schemaVersion": "1.0.0", "files": []}', id="no-files"),
        pytest.param('{"schemaVersion": "1.0.0"}', id="files-absent"),
        pytest.param('{"schemaVersion": "1.0.0", "files": ["a"]}', id="line-is-text"),
        pytest.param('{"schemaVersion": "1.0.0", "files": [{"path": 3}]}', id="path-is-a-number"),
        pytest.param('{"schemaVersion": "1.0.0", "files": [{"path": "a", "size": "1"}]}', id="size-is-text"),
        pytest.param('{"schemaVersion": "1.0.0", "files": [{"path": "a", "size": true}]}', id="size-is-true"),
        pytest.param('{"schemaVersion": "1.0.0", "files": [{"path": "a", "size": -1}]}', id="size-is-negative"),
        pytest.param('{"schemaVersion": "1.0.0", "files": [{"path": "a", "size": 1.5}]}', id="size-is-half"),
        pytest.param(
            '{"schemaVersion": "1.0.0", "files": [@], "Files": []}'.replace("@", LINE), id="case-variant-of-files"
        ),
        pytest.param('{"schemaVersion": "1.0.0", "files": [{"Path": "a"}]}', id="case-variant-of-path"),
        pytest.param('{"schemaVersion": "1.0.0", "files": [@], "files": [@]}'.replace("@", LINE), id="duplicate-key"),
        pytest.param('{"schemaVersion": "1.0.0", "files": [{"path": "\\ud800"}]}', id="half-a-character"),
    ],
)
def test_a_manifest_of_another_form_is_refused(text: str) -> None:
    with pytest.raises(DocumentInvalid):
        parse_manifest(text.encode())


def test_unknown_keys_and_a_schema_of_1_0_are_accepted() -> None:
    text = '{"schemaVersion": "1.0", "files": [{"path": "a", "size": 1, "sha256": "00", "x": 1}], "y": 2}'
    assert [(file.path, file.size, file.sha256) for file in parse_manifest(text.encode())] == [("a", 1, "00")]


# --- paths and roots ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("a", "a"),
        ("a/b", "a/b"),
        ("./a", "a"),
        ("a//b", "a/b"),
        ("a/../b", "b"),
        ("", None),
        ("/a", None),
        ("..", None),
        ("../a", None),
        ("a/../..", None),
        (".", ""),
        ("..a", "..a"),
    ],
)
def test_a_path_is_local_when_it_stays_in_the_bundle(path: str, expected: str | None) -> None:
    assert local_path(path) == expected


@settings(deadline=None)
@given(st.text(st.sampled_from("ab./"), max_size=12))
def test_a_local_path_never_leaves_the_bundle(path: str) -> None:
    local = local_path(path)
    if local is not None:
        assert ".." not in local.split("/")
        assert not local.startswith("/")


def test_a_bundle_is_found_at_the_root_or_below_summary_bundle() -> None:
    plain = content_of({"recipe.yaml": b"r", "manifest.json": b"m"})
    assert locate_bundle(plain) is plain
    nested = content_of(
        {"summary-bundle/recipe.yaml": b"r", "summary-bundle/manifest.json": b"m", "pointer.yaml": b"p"},
        Entry("summary-bundle", EntryKind.DIRECTORY),
    )
    found = locate_bundle(nested)
    assert found is not None
    assert sorted(found.entries) == ["manifest.json", "recipe.yaml"]
    assert found.entries["recipe.yaml"].path == "recipe.yaml"
    assert found.read("recipe.yaml") == b"r"


def test_a_root_with_a_directory_for_a_mark_is_no_bundle() -> None:
    content = content_of({"manifest.json": b"m"}, Entry("recipe.yaml", EntryKind.DIRECTORY))
    assert locate_bundle(content) is None


def test_a_linked_summary_bundle_is_no_bundle() -> None:
    content = content_of({"summary-bundle/recipe.yaml": b"r", "summary-bundle/manifest.json": b"m"})
    linked = replace(Entry("summary-bundle", EntryKind.SYMLINK), fault=ReadFault.SYMLINK)
    assert locate_bundle(Content({**content.entries, "summary-bundle": linked}, content.captured)) is None
