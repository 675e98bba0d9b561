"""Every row of the tables that other programs hold us to is a test.

A row counts as tested when its id stands in the id of a test, or in the first line of a test's docstring, in one of
the files that its table is tested in.
"""

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

TESTS = Path(__file__).parent


@dataclass(frozen=True)
class Table:
    """Rows `letter`first..last of one table; `width` is how many digits an id is written with."""

    name: str
    letter: str
    first: int
    last: int
    files: tuple[str, ...]
    width: int = 1
    without: frozenset[int] = frozenset()

    def rows(self) -> tuple[str, ...]:
        numbers = (number for number in range(self.first, self.last + 1) if number not in self.without)
        return tuple(f"{self.letter}{number:0{self.width}d}" for number in numbers)


TABLES = (
    Table("source slugs", "S", 1, 9, ("core/test_identity.py",)),
    Table("policy descriptors", "D", 1, 6, ("core/test_policy.py",)),
    Table("recipe names", "N", 1, 14, ("core/test_recipe.py",)),
    Table("small fields", "F", 1, 10, ("core/test_produce.py", "core/test_criteria_match.py")),
    Table("coherence", "C", 1, 13, ("core/test_statement.py", "core/test_produce.py")),
    Table("pointers", "P", 0, 13, ("core/test_pointer.py",)),
    Table("relocation", "R", 1, 8, ("core/test_pointer.py", "adapters/test_files.py")),
    Table("tree check", "T", 1, 8, ("core/test_tree.py", "services/test_tree_service.py")),
    Table(
        "references",
        "O",
        1,
        14,
        ("core/test_refs.py", "core/test_pointer.py", "services/test_verify.py", "adapters/test_oci_pack.py"),
    ),
    Table("signer cross-check", "X", 1, 9, ("core/test_cross_check.py",)),
    Table(
        "verdicts",
        "V",
        1,
        22,
        ("services/test_judge.py", "core/test_report.py", "core/test_input_form.py", "services/test_verify.py"),
    ),
    Table("recipe identity", "I", 1, 9, ("services/test_judge.py",)),
    Table("canonical forms", "Y", 1, 94, ("core/test_canonical.py",), width=2),
    Table("allowlists", "A", 1, 39, ("core/test_allowlist.py",), width=2),
    Table("classification", "C", 1, 15, ("core/test_allowlist.py",), width=2),
    Table("consensus of a row", "K", 1, 35, ("core/test_consensus.py",), width=2),
    Table("roll-ups", "R", 1, 12, ("core/test_consensus.py",), width=2),
    Table("coordinates", "O", 1, 17, ("core/test_coordinate.py",), width=2),
    Table("coordinates back", "V", 1, 12, ("core/test_coordinate.py",), width=2),
    Table("trusted registries", "T", 1, 10, ("core/test_gate.py",), width=2),
    Table(
        "scenarios",
        "G",
        1,
        20,
        ("core/test_corroborate.py", "core/test_scenarios.py", "attacks/test_evidence_attacks.py"),
        width=2,
        without=frozenset({11, 20}),  # about upstream's own tree of results and the files written from it
    ),
    Table("signature rules", "S", 1, 18, ("adapters/test_sigstore_rules.py", "core/test_cross_check.py")),
    Table("findings", "E", 1, 10, ("core/test_findings.py",)),
    Table("findings in a verdict", "E", 1, 10, ("services/test_judge.py",)),
)


@pytest.fixture(scope="module")
def told() -> dict[str, str]:
    """File -> all that its tests are called, ids and docstrings together."""
    files = sorted({file for table in TABLES for file in table.files})
    listed = subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            "--collect-only",
            "-q",
            "-p",
            "no:cacheprovider",
            *(f"tests/{file}" for file in files),
        ],
        cwd=TESTS.parent,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    found: dict[str, list[str]] = {file: list(_docstrings(TESTS / file)) for file in files}
    for line in listed.splitlines():
        file, _, name = line.partition("::")
        if name:
            found[file.removeprefix("tests/")].append(name)
    return {file: "\n".join(names) for file, names in found.items()}


def _docstrings(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
            yield (ast.get_docstring(node) or "").partition("\n")[0]


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.name)
def test_every_row_is_a_test(table: Table, told: dict[str, str]) -> None:
    text = "\n".join(told[file] for file in table.files)
    assert [row for row in table.rows() if not _names(text, row)] == []


def _names(text: str, row: str) -> bool:
    return re.search(rf"(?<![A-Za-z0-9]){row}(?![A-Za-z0-9])|_{row.lower()}(?![A-Za-z0-9])", text) is not None


def test_a_row_that_is_named_nowhere_is_seen() -> None:
    assert not _names("test_x[A10]\ntest_bar1_x", "A1")
    assert _names("test_x[A1-empty]", "A1")
    assert _names("test_a1_is_refused", "A1")
