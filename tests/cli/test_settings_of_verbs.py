"""A wrong setting stops the verbs that read it, and no other."""

import os
from pathlib import Path

import pytest

from app.config import JUDGING, KEEPING, PREFIX, STORE, WEIGHING, Settings
from tests.support.endtoend import Run, cli

NOBODY = "http://127.0.0.1:1"
"""Where no service is."""
REFERENCE = f"127.0.0.1:1/a/b@sha256:{'0' * 64}"
READING = frozenset({"trusted_registries"})

VERBS = [
    pytest.param(("digest", "-r", "recipe.yaml"), frozenset(), 0, id="digest"),
    pytest.param(("allowlist", "check", "list.yaml"), frozenset(), 0, id="allowlist-check"),
    pytest.param(
        ("allowlist", "classify", "list.yaml", "--issuer", "https://example.org", "--identity", "a@example.org"),
        frozenset(),
        0,
        id="allowlist-classify",
    ),
    pytest.param(("allowlist", "diff", "list.yaml", "list.yaml"), WEIGHING, 0, id="allowlist-diff"),
    pytest.param(("check-tree", "tree"), READING, 0, id="check-tree"),
    pytest.param(("check-tree",), READING | {"pointers"}, 0, id="check-tree-of-the-setting"),
    pytest.param(("check-tree", "bare"), READING | {"allowlist"}, 0, id="check-tree-with-the-list-of-the-setting"),
    pytest.param(("index", "tree"), READING, 0, id="index"),
    pytest.param(("verify", "tree"), JUDGING - {"pull_timeout_seconds"}, 2, id="verify"),
    pytest.param(
        ("verify", "tree", "--trusted-root", "public-good"),
        JUDGING - {"pull_timeout_seconds", "trusted_root"},
        2,
        id="verify-with-a-root",
    ),
    pytest.param(
        ("verify", "--signature-only", "list.yaml"),
        frozenset({"trusted_root", "max_signature_bytes"}),
        2,
        id="verify-signature-only",
    ),
    pytest.param(("verify", REFERENCE, "--api", NOBODY), frozenset({"api_token"}), 6, id="verify-by-a-service"),
    pytest.param(("submit", REFERENCE), frozenset({"api", "api_token"}), 6, id="submit"),
    pytest.param(("submit", REFERENCE, "--api", NOBODY), frozenset({"api_token"}), 6, id="submit-to"),
    pytest.param(("status",), frozenset({"api"}), 6, id="status"),
    pytest.param(("why", "x", "--api", NOBODY), frozenset(), 6, id="why"),
    pytest.param(("answer", "--service", "eks", "--api", NOBODY), frozenset(), 6, id="answer"),
    pytest.param(
        ("catalogue", "push", "recipes", "--commit", "0123456"),
        frozenset({"api", "catalogue_token"}),
        6,
        id="catalogue-push",
    ),
    pytest.param(("trust", "show"), frozenset({"trusted_root"}), 0, id="trust-show"),
    pytest.param(("trust", "show", "--trusted-root", "public-good"), frozenset(), 0, id="trust-show-a-root"),
    pytest.param(("migrate",), STORE, 0, id="migrate"),
    pytest.param(("rebuild",), KEEPING, 0, id="rebuild"),
]

RECIPE = """\
apiVersion: aicr.run/v1
kind: RecipeResult
criteria:
  service: eks
  accelerator: h100
  os: ubuntu
  intent: training
"""


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory with what the verbs are given."""
    monkeypatch.chdir(tmp_path)
    for name in list(os.environ):
        if name.startswith(PREFIX):
            monkeypatch.delenv(name)
    monkeypatch.setenv(PREFIX + "API", NOBODY)
    monkeypatch.setenv(PREFIX + "CATALOGUE_TOKEN", "a-token")
    monkeypatch.setenv(PREFIX + "VERIFY_PROCESSES", "1")
    for name in ("tree", "evidence", "bare", "recipes"):
        (tmp_path / name).mkdir()
    for path in ("list.yaml", "allowlist.yaml", "tree/allowlist.yaml", "evidence/allowlist.yaml"):
        (tmp_path / path).write_text("schemaVersion: 1.0.0\n")
    for path in ("recipe.yaml", "recipes/one.yaml"):
        (tmp_path / path).write_text(RECIPE)
    return tmp_path


def spoil(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """Give a setting a value that fits none."""
    monkeypatch.setenv(PREFIX + name.upper(), "{" if name == "registry_credentials" else "\udcff,x,x,x")


def words_of(run: Run) -> tuple[int, str, list[str]]:
    """What a verb printed; a log line begins with its time."""
    return run.code, run.out, [line for line in run.err.splitlines() if not line[:1].isdigit()]


@pytest.mark.parametrize(("words", "read", "code"), VERBS)
def test_a_verb_runs_whatever_the_settings_are_that_it_does_not_read(
    words: tuple[str, ...], read: frozenset[str], code: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    undisturbed = words_of(cli(*words))
    assert undisturbed[0] == code
    for name in Settings.model_fields.keys() - read:
        spoil(monkeypatch, name)
    assert words_of(cli(*words)) == undisturbed


@pytest.mark.parametrize(("words", "read", "code"), VERBS)
def test_a_verb_is_stopped_by_each_setting_that_it_reads(
    words: tuple[str, ...], read: frozenset[str], code: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in sorted(read):
        with monkeypatch.context() as patch:
            spoil(patch, name)
            stopped = cli(*words)
        assert (stopped.code, stopped.out) == (2, ""), name
        assert stopped.err.startswith(f"error: settings can not be read: {PREFIX}{name.upper()}: expected "), name
