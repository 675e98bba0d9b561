"""The entry points: which words are whose, what is imported for them, and that nobody ever sees a stack trace."""

import io
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from app import __version__
from app.cli import main
from app.cli.parser import build_parser
from tests.support.endtoend import cli

ROOT = Path(__file__).parents[2]
VECTORS = ROOT / "tests/assets/canonical_vectors.jsonl"
SCRIPTS = Path(sys.executable).parent
HEAVY = ("pydantic", "httpx", "fastapi", "sqlalchemy", "sigstore", "starlette", "oras", "cryptography", "tqdm")
RECIPE = "kind: RecipeResult\nmetadata:\n  version: v1\ncriteria:\n  service: eks\n"


def run(*command: str, path: str = "/usr/bin:/bin", cwd: Path | None = None) -> "subprocess.CompletedProcess[str]":
    environment = {"PATH": path, "HOME": "/nonexistent", "PYTHONPATH": str(ROOT), "LANG": "C.UTF-8"}
    return subprocess.run(command, env=environment, cwd=cwd, capture_output=True, text=True, timeout=60, check=False)


def stub(directory: Path, name: str = "aicr", says: str = "upstream") -> Path:
    """An executable that prints its words and exits 7."""
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / name
    path.write_text(f'#!/bin/sh\necho "{says}: $*"\nexit 7\n')
    path.chmod(0o755)
    return path


# --- handing over --------------------------------------------------------------------------------------


def test_another_first_word_is_handed_to_the_next_aicr(tmp_path: Path) -> None:
    stub(tmp_path / "next")
    done = run(str(SCRIPTS / "aicr"), "recipe", "--service", "a b", path=f"{SCRIPTS}:{tmp_path / 'next'}:/usr/bin:/bin")
    assert (done.returncode, done.stdout) == (7, "upstream: recipe --service a b\n")


def test_called_by_a_link_it_does_not_find_itself(tmp_path: Path) -> None:
    (tmp_path / "links").mkdir()
    link = tmp_path / "links" / "aicr"
    link.symlink_to(SCRIPTS / "aicr")
    stub(tmp_path / "next")
    path = f"{tmp_path / 'links'}:{SCRIPTS}:{tmp_path / 'next'}:/usr/bin:/bin"
    done = run(str(link), "snapshot", path=path)
    assert (done.returncode, done.stdout) == (7, "upstream: snapshot\n")
    alone = run(str(link), "snapshot", path=f"{tmp_path / 'links'}:{SCRIPTS}:/usr/bin:/bin")
    assert alone.returncode == 2
    assert "no other aicr on PATH" in alone.stderr


def test_what_can_not_be_run_is_not_the_next_aicr(tmp_path: Path) -> None:
    stub(tmp_path / "plain").chmod(0o644)
    (tmp_path / "folder" / "aicr").mkdir(parents=True)
    stub(tmp_path / "next")
    path = ":".join(str(tmp_path / name) for name in ("plain", "folder", "missing", "next"))
    done = run(str(SCRIPTS / "aicr"), "recipe", path=f"{path}:/usr/bin:/bin")
    assert (done.returncode, done.stdout) == (7, "upstream: recipe\n")


def test_a_next_aicr_that_is_no_program_is_told(tmp_path: Path) -> None:
    broken = stub(tmp_path / "next")
    broken.write_bytes(b"\x00\x01")
    done = run(str(SCRIPTS / "aicr"), "recipe", path=f"{tmp_path / 'next'}:/usr/bin:/bin")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"error: {broken} can not be run: Exec format error\n"


def test_help_is_the_next_ones_when_there_is_one(tmp_path: Path) -> None:
    own = run(str(SCRIPTS / "aicr"), "--help")
    assert (own.returncode, own.stdout.splitlines()[0]) == (0, "usage: aicr evidence VERB [options]")
    assert run(str(SCRIPTS / "aicr")).stdout == own.stdout
    stub(tmp_path / "next")
    assert run(str(SCRIPTS / "aicr"), "--help", path=f"{tmp_path / 'next'}:/bin").stdout == "upstream: --help\n"


def test_evidence_is_never_handed_over(tmp_path: Path) -> None:
    stub(tmp_path / "next")
    done = run(str(SCRIPTS / "aicr"), "evidence", "--version", path=f"{tmp_path / 'next'}:/usr/bin:/bin")
    assert (done.returncode, done.stdout) == (0, f"aicr-evidence {__version__}\n")
    assert run(str(SCRIPTS / "aicr-evidence"), "--version").stdout == done.stdout
    assert run(sys.executable, "-m", "app", "--version").stdout == done.stdout


# --- quick verbs ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "words",
    [
        pytest.param(["--help"], id="help"),
        pytest.param(["verify", "--help"], id="help-of-a-verb"),
        pytest.param(["digest", "-r", "recipe.yaml"], id="digest"),
        pytest.param(["--version"], id="version"),
        pytest.param(["nonsense"], id="usage-error"),
    ],
)
def test_quick_verbs_import_nothing_heavy(words: list[str], tmp_path: Path) -> None:
    (tmp_path / "recipe.yaml").write_text(RECIPE)
    program = (
        "import json, sys\n"
        "from app.cli.main import aicr_evidence\n"
        "try: aicr_evidence(sys.argv[1:])\n"
        "except SystemExit: pass\n"
        "sys.stderr.write('MODULES ' + json.dumps(sorted(sys.modules)))\n"
    )
    done = run(sys.executable, "-c", program, *words, cwd=tmp_path)
    loaded = {name.partition(".")[0] for name in json.loads(done.stderr.rpartition("MODULES ")[2])}
    assert "argparse" in loaded
    assert loaded & set(HEAVY) == set()


def test_digest_prints_bare_hex_alone(tmp_path: Path) -> None:
    path = tmp_path / "recipe.yaml"
    path.write_text(RECIPE)
    legacy = cli("digest", "-r", str(path), "--predicate-type", "v1")
    content_only = cli("digest", "-r", str(path))
    assert (legacy.code, legacy.err, content_only.code, content_only.err) == (0, "", 0, "")
    assert (len(legacy.out), len(content_only.out)) == (65, 65)
    assert legacy.out != content_only.out
    path.write_text(RECIPE.replace("version: v1", "version: v2"))
    assert cli("digest", "-r", str(path)).out == content_only.out
    assert cli("digest", "-r", str(path), "--predicate-type", "v2").out != legacy.out


@pytest.mark.parametrize(
    ("text", "said"),
    [
        pytest.param(
            "kind: RecipeMetadata\nspec: {}\n",
            "error: expected a resolved recipe (kind RecipeResult), got an overlay (kind RecipeMetadata)\n"
            "hint: resolve it first: aicr recipe\n",
            id="overlay",
        ),
        pytest.param("kind: Deployment\n", "error: kind: expected RecipeResult, got 'Deployment'\n", id="other-kind"),
        pytest.param(
            "kind: [RecipeMetadata]\n", "error: kind: expected text, got a list at line 1\n", id="kind-is-no-text"
        ),
        pytest.param(
            "x: &k RecipeMetadata\nkind: *k\n",
            "error: expected a resolved recipe (kind RecipeResult), got an overlay (kind RecipeMetadata)\n"
            "hint: resolve it first: aicr recipe\n",
            id="overlay-by-alias",
        ),
        pytest.param(
            "x: &k kind\n*k : RecipeMetadata\n",
            "error: expected a resolved recipe (kind RecipeResult), got an overlay (kind RecipeMetadata)\n"
            "hint: resolve it first: aicr recipe\n",
            id="overlay-by-alias-key",
        ),
        pytest.param(
            "x: &k {kind: RecipeMetadata}\n<<: *k\n",
            "error: merge key at line 2\nhint: write the entries out\n",
            id="overlay-by-merge",
        ),
        pytest.param(
            "kind: RecipeResult\nkind: RecipeMetadata\n",
            "error: expected a resolved recipe (kind RecipeResult), got an overlay (kind RecipeMetadata)\n"
            "hint: resolve it first: aicr recipe\n",
            id="overlay-by-repetition",
        ),
        pytest.param(
            "apiVersion: evil/v9\nkind: RecipeResult\n",
            "error: apiVersion: expected aicr.run/v1 or aicr.run/v1beta2, got 'evil/v9'\n",
            id="other-version",
        ),
    ],
)
def test_digest_refuses_what_is_no_resolved_recipe(text: str, said: str, tmp_path: Path) -> None:
    path = tmp_path / "recipe.yaml"
    path.write_text(text)
    run = cli("digest", "-r", str(path))
    assert (run.code, run.out, run.err) == (2, "", said)


def test_digest_takes_a_text_that_names_no_kind(tmp_path: Path) -> None:
    path = tmp_path / "recipe.yaml"
    path.write_text("foo: bar\nbaz: qux\n")
    run = cli("digest", "-r", str(path), "--predicate-type", "v1")
    assert (run.code, run.out) == (0, "994d29bbb070a374a7c235770297d0449186cddf8959f037e3ac46db10f67eee\n")


@pytest.mark.parametrize("text", ["hello\n", "- a\n", "[]\n", "# only a comment\n"])
def test_digest_warns_that_a_text_is_no_recipe_at_all(text: str, tmp_path: Path) -> None:
    path = tmp_path / "recipe.yaml"
    path.write_text(text)
    run = cli("digest", "-r", str(path))
    assert (run.code, len(run.out)) == (0, 65)
    assert run.err == "warning: this is no mapping, so no evidence can carry its digest; a resolved recipe is one\n"


def test_digest_answers_every_vector(tmp_path: Path) -> None:
    path = tmp_path / "recipe.yaml"
    answered = 0
    for line in VECTORS.read_text().splitlines():
        vector = json.loads(line)
        path.write_bytes(vector["in"].encode())
        runs = [cli("digest", "-r", str(path), "--predicate-type", kind) for kind in ("v1", "v3")]
        if vector.get("error"):
            expected = [(2, ""), (2, "")]
        else:
            digests = (vector["sha256"], vector.get("v3_sha256", vector["sha256"]))
            expected = [(0, f"{digest}\n") for digest in digests]
        assert [(run.code, run.out) for run in runs] == expected, vector["id"]
        answered += 1
    assert answered == 94


# --- help ----------------------------------------------------------------------------------------------


def _verbs() -> list[str]:
    (actions,) = [action for action in build_parser()._actions if action.dest == "==SUPPRESS=="] or [
        action for action in build_parser()._actions if action.choices
    ]
    assert actions.choices is not None
    return list(actions.choices)


@pytest.mark.parametrize("verb", _verbs())
def test_each_verb_has_help_and_a_handler_that_exists(verb: str) -> None:
    shown = cli(verb, "--help")
    assert (shown.code, shown.err) == (0, "")
    assert shown.out.startswith(f"usage: aicr evidence {verb}")


def test_usage_errors_are_exit_2_and_leave_stdout_alone() -> None:
    for words in (
        (),
        ("nonsense",),
        ("settings", "a\n::error::b"),
        ("verify",),
        ("verify", "x", "--format", "xml"),
        ("digest",),
        ("allowlist",),
    ):
        shown = cli(*words)
        assert (shown.code, shown.out) == (2, ""), words
        assert "usage: aicr evidence" in shown.err
        assert "\n::error" not in shown.err


# --- the last resort -----------------------------------------------------------------------------------


def test_an_unexpected_fault_is_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_name: str) -> object:
        raise ZeroDivisionError("secret text of a stranger")

    monkeypatch.setattr(main, "import_module", broken)
    shown = cli("settings")
    assert (shown.code, shown.out) == (8, "")
    assert shown.err.splitlines() == [
        "error: an unexpected ZeroDivisionError ended the command; this is a fault of aicr-evidence",
        "hint: AICR_EVIDENCE_LOG_LEVEL=debug shows where",
    ]
    monkeypatch.setenv("AICR_EVIDENCE_LOG_LEVEL", "debug")
    assert "Traceback" in cli("settings").err


def test_an_interrupt_is_exit_9(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(_name: str) -> object:
        raise KeyboardInterrupt

    monkeypatch.setattr(main, "import_module", interrupted)
    shown = cli("settings")
    assert (shown.code, shown.err) == (9, "error: interrupted; nothing was decided\n")


def test_a_reader_that_leaves_is_no_fault() -> None:
    command = f"{SCRIPTS / 'aicr-evidence'} settings | head -n 1"
    done = run("/bin/sh", "-c", command)
    assert done.returncode == 0
    assert done.stdout.startswith("SETTING")
    assert "Traceback" not in done.stderr
    assert "BrokenPipe" not in done.stderr


# --- bad input -----------------------------------------------------------------------------------------

LONG = "a" * 5000
BAD_TEXTS = (
    "",
    " ",
    "\udcff",
    "\x1b[31m",
    "\u202e",
    "..",
    "/",
    "-",
    LONG,
    "ghcr.io/x",
    "sha256:zz",
    "http://[",
    "%00",
    "a:b:c",
)
BAD_FILES = {
    "empty": b"",
    "binary": bytes(range(256)),
    "not-utf-8": b"\xff\xfe\x00",
    "deep-json": b"[" * 50_000,
    "deep-yaml": b"- " * 20_000,
    "alias": b"a: &a [*a]\n",
    "billion-laughs": b"a: &a [x, x]\nb: &b [*a, *a]\nc: [*b, *b]\n",
    "tag": b"!!python/object:os.system [x]\n",
    "two-documents": b"a: 1\n---\nb: 2\n",
    "null-byte": b"a: \x00\n",
    "list": b"[1, 2]\n",
    "number": b"1e999999\n",
    "long-key": b"? " + b"k" * 5000 + b"\n: v\n",
}
FILE_VERBS = (
    ("verify", "{file}.yaml"),
    ("verify", "{file}.tar"),
    ("verify", "--signature-only", "{file}.yaml"),
    ("digest", "-r", "{file}.yaml"),
    ("allowlist", "check", "{file}.yaml"),
    ("allowlist", "classify", "{file}.yaml", "--issuer", "i", "--identity", "s"),
    ("allowlist", "diff", "{file}.yaml", "{file}.yaml"),
    ("allowlist", "activate", "{file}.yaml"),
    ("trust", "show", "--trusted-root", "{file}.yaml"),
    ("answer", "-s", "{file}.yaml"),
    ("submit", "{file}.yaml"),
    ("catalogue", "push", "{dir}", "--commit", "0123456"),
    ("check-tree", "{dir}"),
    ("index", "{dir}"),
)


@pytest.fixture
def nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty working directory, and an API that nobody serves."""
    for name in list(os.environ):
        if name.startswith("AICR_EVIDENCE_"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("AICR_EVIDENCE_API", "http://127.0.0.1:9")
    monkeypatch.setenv("AICR_EVIDENCE_CATALOGUE_TOKEN", "token")
    monkeypatch.setenv("AICR_EVIDENCE_DATABASE_URL", f"sqlite:///{tmp_path / 'none.db'}")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("kind", BAD_FILES)
def test_no_file_makes_a_verb_fall_over(nowhere: Path, kind: str) -> None:
    folder = nowhere / "tree"
    folder.mkdir()
    for suffix in (".yaml", ".tar"):
        (folder / f"bad{suffix}").write_bytes(BAD_FILES[kind])
    for words in FILE_VERBS:
        filled = [word.format(file=folder / "bad", dir=folder) for word in words]
        _is_told(filled, cli(*filled))


@pytest.mark.parametrize(
    "verb",
    [
        ("verify",),
        ("verify", "--signature-only"),
        ("digest", "-r"),
        ("submit",),
        ("status",),
        ("why",),
        ("answer", "-s"),
        ("answer", "--service"),
        ("status", "--api"),
        ("check-tree",),
        ("index",),
        ("allowlist", "check"),
        ("trust", "show", "--trusted-root"),
        ("verify", "x", "--expected-identity-regexp"),
    ],
    ids=" ".join,
)
def test_no_word_makes_a_verb_fall_over(nowhere: Path, verb: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO()))  # `-` reads it
    for text in BAD_TEXTS:
        words = [*verb, text]
        _is_told(words, cli(*words))


def _is_told(words: list[str], shown: object) -> None:
    """A known exit, a message, and nothing that a terminal would act on."""
    code, err, out = shown.code, shown.err, shown.out  # type: ignore[attr-defined]
    assert code in {0, 1, 2, 3, 4, 5, 6}, (words, code, err)
    assert "Traceback" not in err + out
    assert "unexpected" not in err.partition("\n")[0] or code != 8
    assert "\x1b" not in err + out
    assert "\u202e" not in err + out
    if code:
        assert err or out
