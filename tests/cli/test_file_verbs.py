"""`allowlist`, `check-tree`, `index`: verbs over files, with the exits that a CI job acts on."""

import json
from pathlib import Path

import pytest

from app.core.cross_check import SignerClaim
from app.core.identity import GITHUB_OAUTH_ISSUER, source_slug
from app.core.pointer import Pointer, dump_pointer
from tests.support.endtoend import cli
from tests.support.runs import PATTERN, allowlist_text, person, workflow

ONE, TWO = person("dev-one"), person("dev-two")
DIGEST = f"sha256:{'ab' * 32}"
V3 = "https://aicr.run/recipe-evidence/v3"
RECIPE = "h100-eks-ubuntu-training"


@pytest.fixture(autouse=True)
def _nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No database, no files of the repository."""
    monkeypatch.setenv("AICR_EVIDENCE_DATABASE_URL", f"sqlite:///{tmp_path / 'none.db'}")
    monkeypatch.chdir(tmp_path)


def listed(path: Path, text: str) -> str:
    path.write_text(text)
    return str(path)


# --- allowlist -----------------------------------------------------------------------------------------


def test_check_counts_the_entries(tmp_path: Path) -> None:
    path = listed(tmp_path / "list.yaml", allowlist_text(ONE, TWO, patterns=[PATTERN]))
    run = cli("allowlist", "check", path)
    assert (run.code, run.out.split(" (")[0]) == (0, "valid: 1 first-party, 2 community")
    body = cli("allowlist", "check", path, "--format", "json").json
    assert (body["valid"], body["entries"], len(body["sha256"])) == (True, {"first-party": 1, "community": 2}, 64)
    empty = cli("allowlist", "check", listed(tmp_path / "empty.yaml", "schemaVersion: 1.0.0\n"))
    assert (empty.code, empty.out.split(" (")[0]) == (0, "valid: no entries: nobody is listed")


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        pytest.param("schemaVersion: 9.0.0\n", "J", id="version"),
        pytest.param("schemaVersion: 1.0.0\nother: 1\n", "J", id="unknown-key"),
        pytest.param("schemaVersion: 1.0.0\ncommunity:\n  - source: x\n", "J7", id="no-issuer"),
        pytest.param(
            f"schemaVersion: 1.0.0\nfirstParty:\n  - issuer: {GITHUB_OAUTH_ISSUER}\n    identityPattern: '['\n",
            "J",
            id="no-expression",
        ),
    ],
)
def test_a_broken_list_is_exit_2_with_its_rule(tmp_path: Path, text: str, rule: str) -> None:
    run = cli("allowlist", "check", listed(tmp_path / "list.yaml", text))
    assert (run.code, run.out) == (2, "")
    assert f"\nrule: {rule}" in run.err
    assert cli("allowlist", "classify", str(tmp_path / "list.yaml"), "--issuer", "i", "--identity", "s").code == 2


def test_a_missing_list_is_told(tmp_path: Path) -> None:
    run = cli("allowlist", "check", str(tmp_path / "none.yaml"))
    assert (run.code, run.out) == (2, "")  # `allowlist check` ends with 0 or 2 (service 4)
    message = f"{tmp_path / 'none.yaml'} does not exist"
    assert run.err == f"error: {message}\nrule: J1\nhint: create it, or name another file\n"
    assert cli("allowlist", "check", str(tmp_path / "none.yaml"), "--format", "json").json == {
        "valid": False,
        "rule": "J1",
        "message": message,
        "hint": "create it, or name another file",
    }
    assert cli("allowlist", "classify", str(tmp_path / "none.yaml"), "--issuer", "i", "--identity", "s").code == 3


def test_a_broken_list_as_json_is_a_document_too(tmp_path: Path) -> None:
    run = cli("allowlist", "check", listed(tmp_path / "list.yaml", "schemaVersion: 9.0.0\n"), "--format", "json")
    assert (run.code, run.json) == (
        2,
        {
            "valid": False,
            "rule": "J6",
            "message": "expected schemaVersion 1.0 or 1.0.*, got '9.0.0'",
            "hint": "start the file with `schemaVersion: 1.0.0`",
        },
    )
    assert run.err.startswith("error: expected schemaVersion 1.0 or 1.0.*, got '9.0.0'\nrule: J6\n")


@pytest.mark.parametrize("size", [(1 << 20) + 1, 3_000_000])
def test_a_list_that_is_too_large_breaks_j3(size: int, tmp_path: Path) -> None:
    path = listed(tmp_path / "list.yaml", " " * size)
    run = cli("allowlist", "check", path)
    assert (run.code, run.out, run.err) == (2, "", f"error: {path} is larger than 1048576 bytes\nrule: J3\n")


def test_a_directory_is_no_list(tmp_path: Path) -> None:
    run = cli("allowlist", "check", str(tmp_path))
    assert (run.code, run.err) == (2, f"error: expected a file at {tmp_path}, found a directory\nrule: J2\n")


def test_classify_says_class_source_and_label(tmp_path: Path) -> None:
    path = listed(tmp_path / "list.yaml", allowlist_text(ONE, patterns=[PATTERN], labels={ONE.slug: "lab-one"}))

    def asked(issuer: str, identity: str) -> object:
        return cli("allowlist", "classify", path, "--issuer", issuer, "--identity", identity, "--format", "json").json

    assert asked(ONE.issuer, ONE.identity) == {
        "class": "community",
        "allowlisted": True,
        "source": ONE.slug,
        "label": "lab-one",
    }
    assert asked(workflow().issuer, workflow().identity) == {
        "class": "first-party",
        "allowlisted": True,
        "source": workflow().slug,
    }
    assert asked(TWO.issuer, TWO.identity) == {"class": "community", "allowlisted": False, "source": TWO.slug}
    assert cli("allowlist", "classify", path, "--issuer", ONE.issuer, "--identity", f"{ONE.identity}\n").code == 2
    text = cli("allowlist", "classify", path, "--issuer", TWO.issuer, "--identity", TWO.identity)
    assert (text.code, text.out) == (0, f"{TWO.slug}  community  is not listed: shown, never counted\n")


def test_diff_names_entries_and_says_that_there_is_no_database(tmp_path: Path) -> None:
    old = listed(tmp_path / "old.yaml", allowlist_text(ONE))
    new = listed(tmp_path / "new.yaml", allowlist_text(TWO, patterns=[PATTERN]))
    run = cli("allowlist", "diff", old, new)
    assert run.code == 0
    assert [line[0] for line in run.out.splitlines()] == ["-", "+", "+"]
    assert "there is no database here" in run.err
    body = cli("allowlist", "diff", old, new, "--format", "json").json
    assert (len(body["removed"]), len(body["added"]), body["recipes"]) == (1, 2, None)
    same = cli("allowlist", "diff", old, old)
    assert (same.code, same.out) == (0, "both files list the same signers\n")


def test_activate_needs_a_database_that_was_migrated(tmp_path: Path) -> None:
    path = listed(tmp_path / "list.yaml", allowlist_text(ONE))
    before = cli("allowlist", "activate", path)
    assert (before.code, before.out) == (2, "")
    assert "migrate" in before.err
    assert cli("migrate").code == 0
    run = cli("allowlist", "activate", path, "--format", "json")
    assert (run.code, sorted(run.json)) == (0, ["sha256", "since"])
    again = cli("allowlist", "activate", path, "--format", "json")
    assert again.json == run.json
    diff = cli("allowlist", "diff", path, listed(tmp_path / "empty.yaml", "schemaVersion: 1.0.0\n"))
    assert (diff.code, "no stored recipe changes" in diff.out, diff.err) == (0, True, "")


# --- trees ---------------------------------------------------------------------------------------------


def tree(tmp_path: Path, *, registry: str = "ghcr.io/nvidia") -> Path:
    """A committed tree with one good pointer."""
    root = tmp_path / "evidence"
    slug = source_slug(ONE.issuer, ONE.identity)
    path = root / RECIPE / slug / f"sha256-{'ab' * 32}.yaml"
    path.parent.mkdir(parents=True)
    pointer = Pointer(
        RECIPE, V3, oci=f"{registry}/aicr-evidence", digest=DIGEST, signer=SignerClaim(ONE.identity, ONE.issuer, 7)
    )
    path.write_bytes(dump_pointer(pointer))
    (root / "allowlist.yaml").write_text(allowlist_text(ONE))
    return root


def test_a_clean_tree_is_exit_0(tmp_path: Path) -> None:
    root = tree(tmp_path)
    run = cli("check-tree", str(root))
    assert (run.code, run.out) == (0, "")
    assert run.err.splitlines()[-1] == "1 pointers keep the contract, 0 violations"
    body = cli("check-tree", str(root), "--format", "json").json
    assert (body["problems"], body["pointers"]) == ([], 1)


def test_each_violation_is_one_line_and_exit_1(tmp_path: Path) -> None:
    root = tree(tmp_path)
    (root / "stray.txt").write_text("x")
    (root / RECIPE / "not-a-slug").mkdir()
    (root / RECIPE / "not-a-slug" / "x.yaml").write_text("x")
    run = cli("check-tree", str(root))
    assert run.code == 1
    assert [line.partition(": ")[0] for line in run.out.splitlines()] == [
        f"{root}/{RECIPE}/not-a-slug/x.yaml",
        f"{root}/stray.txt",
    ]
    body = cli("check-tree", str(root), "--format", "json").json
    assert len(body["problems"]) == 2


def test_a_registry_that_ingest_would_refuse_is_a_warning(tmp_path: Path) -> None:
    run = cli("check-tree", str(tree(tmp_path, registry="registry.example.org/x")))
    assert (run.code, run.out) == (0, "")
    assert "warning: " in run.err
    assert "registry.example.org" in run.err


@pytest.mark.parametrize("verb", ["check-tree", "index"])
def test_a_tree_that_can_not_be_checked_is_exit_2_and_named(verb: str, tmp_path: Path) -> None:
    missing = cli(verb, str(tmp_path / "none"))
    assert (missing.code, missing.out) == (2, "")
    assert missing.err == f"error: can not read {tmp_path / 'none'}: no such file or directory\n"
    root = tree(tmp_path)
    file = cli(verb, str(root / "allowlist.yaml"))
    assert (file.code, file.out) == (2, "")
    assert file.err == f"error: can not read {root / 'allowlist.yaml'}: not a directory\n"
    unlisted = cli(verb, str(root), "--allowlist", str(tmp_path / "gone.yaml"))
    assert (unlisted.code, unlisted.out) == (2, "")
    assert unlisted.err == f"error: can not read {tmp_path / 'gone.yaml'}: no such file or directory\n"


INJECTED = "a\n::error file=z::owned\nb"
"""Raw, its middle would be a line of its own, which a CI runner takes for a command."""


def test_a_name_with_line_breaks_is_one_line(tmp_path: Path) -> None:
    root = tree(tmp_path)
    below = root / RECIPE / "not-a-slug"
    below.mkdir()
    (below / f"{INJECTED}.yaml").write_text("x")
    run = cli("check-tree", str(root))
    assert run.code == 1
    assert run.out.startswith(f"{below}/a\\n::error file=z::owned\\nb.yaml: invalid pointer: ")
    assert run.out.count("\n") == 1
    body = cli("check-tree", str(root), "--format", "json").json
    assert [problem["path"] for problem in body["problems"]] == [f"{below}/{INJECTED}.yaml"]
    left_out = cli("index", str(root))
    assert [line[:9] for line in left_out.err.splitlines()] == ["left out:"]


def test_a_pending_recipe_with_line_breaks_is_one_line(tmp_path: Path) -> None:
    root = tree(tmp_path)
    text = dump_pointer(Pointer("h100", V3, oci="ghcr.io/nvidia/aicr-evidence", digest=DIGEST)).decode()
    (root / "flat.yaml").write_text(text.replace("recipe: h100", 'recipe: "a\\n::stop-commands::x\\nb"'))
    run = cli("check-tree", str(root), "--allow-pending")
    assert run.code == 1
    assert run.out == (f"{root}/flat.yaml: flat pending pointer must be named a\\n::stop-commands::x\\nb.yaml\n")


def test_json_of_a_tree_moves_no_terminal(tmp_path: Path) -> None:
    root = tree(tmp_path)
    (root / "evil\u202e\x9b31m.yaml").write_text("x")
    run = cli("check-tree", str(root), "--format", "json")
    assert 'evil\\u202e\\u009b31m.yaml"' in run.out
    assert run.json["problems"][0]["path"] == f"{root}/evil\u202e\x9b31m.yaml"
    foreign = tmp_path / "not-utf8-\udcff"
    root.rename(foreign)
    named = cli("check-tree", str(foreign), "--format", "json")
    assert "not-utf8-\\udcff/evil" in named.out
    assert "\udcff" not in named.out


def test_the_index_is_printed_written_and_compared(tmp_path: Path) -> None:
    root = tree(tmp_path)
    printed = cli("index", str(root))
    assert printed.code == 0
    assert f"recipe: {RECIPE}" in printed.out
    assert cli("index", str(root), "--check").code == 1
    assert cli("index", str(root), "--out", str(root / "pointers.yaml")).out == ""
    assert (root / "pointers.yaml").read_text() == printed.out
    assert cli("index", str(root), "--check").code == 0
    assert cli("check-tree", str(root)).code == 0
    other = tmp_path / "other.yaml"
    assert cli("index", str(root), "--check", "--out", str(other)).code == 1
    assert cli("index", str(root), "--out", str(other)).code == 0
    assert cli("index", str(root), "--check", "--out", str(other)).code == 0


def test_a_sandbox_that_can_not_write_its_files_says_so(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    run = cli("sandbox", "--directory", str(tmp_path / "file" / "sandbox"))
    assert (run.code, run.out, run.err) == (
        2,
        "",
        f"error: {tmp_path}/file/sandbox can not be written: Not a directory\n",
    )


def test_the_index_as_json_says_the_same(tmp_path: Path) -> None:
    root = tree(tmp_path)
    run = cli("index", str(root), "--format", "json")
    assert (run.code, run.err, run.json) == (
        0,
        "",
        {
            "pointers": [
                {
                    "recipe": RECIPE,
                    "profile": "",
                    "source": ONE.slug,
                    "class": "community",
                    "digest": DIGEST,
                    "oci": "ghcr.io/nvidia/aicr-evidence",
                    "predicateType": V3,
                    "attestedAt": "",
                }
            ],
            "schemaVersion": "1.0.0",
        },
    )
    refused = cli("index", str(root), "--format", "json", "--out", str(tmp_path / "index.json"))
    assert (refused.code, refused.out) == (2, "")
    assert refused.err.startswith("error: --format json is for an index that is printed\n")
    assert not (tmp_path / "index.json").exists()
    assert cli("index", str(root), "--check", "--format", "json").code == 1, "a comparison prints nothing anyway"


def test_an_index_that_can_not_be_written_is_exit_2(tmp_path: Path) -> None:
    run = cli("index", str(tree(tmp_path)), "--out", str(tmp_path))
    assert (run.code, run.out) == (2, "")
    assert run.err.startswith(f"error: can not use {tmp_path}: ")


def test_the_repositorys_own_tree_and_list_are_clean() -> None:
    root = Path(__file__).parents[2]
    assert cli("check-tree", str(root / "evidence"), "--allowlist", str(root / "allowlist.yaml")).code == 0
    body = cli("allowlist", "check", str(root / "allowlist.yaml"), "--format", "json").json
    assert body["entries"] == {"first-party": 4}
    assert json.dumps(body["valid"]) == "true"
