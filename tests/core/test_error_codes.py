"""Every code that somebody can meet is documented, with a cause and a cure."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.adapters.oci.codes import FETCH_CODES
from app.config import Settings
from app.core import error_codes
from app.core.canonical.refusals import Refusal
from app.core.rules import CODES as RULE_CODES
from app.core.verdict import Staleness
from app.web.problems import PROBLEMS
from tools.generate_docs import ERRORS, errors_page

ROOT = Path(__file__).parents[2]
APP = ROOT / "app"
DOCS = (ROOT / "docs" / "errors.md").read_text(encoding="utf-8")

CODE = re.compile(r"[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+")
RULE = re.compile(r"[JG][0-9]{1,2}")
NO_CODES = frozenset(
    {
        # settings and other names of the environment
        "PLAIN_HTTP_REGISTRIES PRIVATE_REGISTRIES TRUSTED_REGISTRIES TRUSTED_ROOT TEST_BUNDLES GITHUB_ACTIONS",
        "ACTIONS_ID_TOKEN_REQUEST_TOKEN ACTIONS_ID_TOKEN_REQUEST_URL",
        # names of a protocol or a file format
        "PKIX_ECDSA_P256_SHA_256 PKIX_ECDSA_P384_SHA_384 PKIX_ED25519 SHA2_256 SHA2_384 SHA2_512",
        "ID_LIKE PRETTY_NAME VERSION_CODENAME VERSION_ID",
        # what a registry says, the sandbox's and others
        "BLOB_UNKNOWN BLOB_UPLOAD_UNKNOWN DIGEST_INVALID MANIFEST_BLOB_UNKNOWN MANIFEST_UNKNOWN NAME_UNKNOWN",
        "SIZE_INVALID",
        # a category of the command line's exits
        "RATE_LIMITED",
    }
)
EXEMPT = frozenset(name for names in NO_CODES for name in names.split()) | {n.upper() for n in Settings.model_fields}


def sources() -> list[Path]:
    return sorted(APP.rglob("*.py"))


def written_codes(path: Path) -> Iterator[str]:
    """Texts of a module that look like a code, but for names that it exports."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    exported = {
        id(name)
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign) and any(isinstance(t, ast.Name) and t.id == "__all__" for t in node.targets)
        for name in ast.walk(node.value)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in exported:
            text = node.value
            if CODE.fullmatch(text) and not text.startswith("AICR_EVIDENCE_") and text not in EXEMPT:
                yield text


@pytest.mark.parametrize("path", sources(), ids=lambda path: str(path.relative_to(APP)))
def test_every_code_in_the_code_is_in_the_docs(path: Path) -> None:
    assert [code for code in written_codes(path) if f"`{code}`" not in DOCS] == []


def test_every_single_word_code_is_in_the_docs() -> None:
    """Class attributes and keyword arguments named `code`, whatever they look like."""
    found = set()
    for path in sources():
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            values: list[ast.expr | None] = []
            if isinstance(node, ast.keyword) and node.arg == "code":
                values = [node.value]
            elif isinstance(node, ast.Assign | ast.AnnAssign):
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                if any(isinstance(target, ast.Name) and target.id == "code" for target in targets):
                    values = [node.value]
            found |= {v.value for v in values if isinstance(v, ast.Constant) and isinstance(v.value, str)}
    assert {code for code in found if code and f"`{code}`" not in DOCS} == {"STORED"}  # what an attempt succeeded with


def test_every_allowlist_rule_in_the_code_is_in_its_table() -> None:
    raised = {
        node.value.value
        for path in sources()
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.keyword) and node.arg == "rule" and isinstance(node.value, ast.Constant)
        if isinstance(node.value.value, str) and RULE.fullmatch(node.value.value)
    }
    assert raised <= set(error_codes.ALLOWLIST_RULES)
    assert set(error_codes.ALLOWLIST_RULES) - raised == {"J1", "J2"}  # errors of the file, not of its text


def test_the_tables_hold_every_code_once() -> None:
    tables = (PROBLEMS, RULE_CODES, FETCH_CODES, error_codes.CODES, Refusal.__members__, error_codes.STALENESS)
    names = [str(name) for table in tables for name in table]
    twice = {name for name in names if names.count(name) > 1}
    assert twice <= {"TOO_LARGE"}


def test_every_entry_says_cause_and_cure() -> None:
    entries = [*error_codes.CODES.values(), *error_codes.STALENESS.values()]
    assert all(entry.cause.endswith(".") and entry.cure and not entry.cure.endswith(".") for entry in entries)
    assert all(problem.meaning and problem.cure for problem in PROBLEMS.values())
    assert all(rule.title and rule.cure for rule in RULE_CODES.values())
    assert all(entry.cause and entry.cure for entry in FETCH_CODES.values())


def test_the_page_is_what_the_tables_say() -> None:
    assert ERRORS.read_text(encoding="utf-8") == errors_page()


def test_states_and_refusals_are_complete() -> None:
    assert set(error_codes.STALENESS) == set(Staleness)
    assert set(error_codes.RECIPE_CURES) == set(Refusal)


def test_the_threat_model_names_tests_that_exist() -> None:
    text = (ROOT / "docs" / "threat-model.md").read_text(encoding="utf-8")
    named = re.findall(r"`(tests/[a-z_/]+\.py)`", text)
    assert len(named) >= 5
    assert [name for name in named if not (ROOT / name).is_file()] == []
