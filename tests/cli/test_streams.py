"""Standard streams that are closed, full, short of characters or left by their reader: the answer's exit stays."""

import io
import json
import subprocess
import sys
from pathlib import Path
from typing import cast

import pytest

from app.cli.streams import GuardedStream
from tests.support.runs import allowlist_text, person

ROOT = Path(__file__).parents[2]
RECIPE = "kind: RecipeResult\nmetadata:\n  version: v1\ncriteria:\n  service: eks\n"
DIGEST = "c28d9e9bf9d9d0f5c28ba549957107cd159b895d23a7e70593989a4d184debab\n"
CLOSED = "stdout can not be written, so its text is lost: Bad file descriptor\n"
FULL = "stdout can not be written, so its text is lost: No space left on device\n"


def shell(line: str, cwd: Path, **environment: str) -> "subprocess.CompletedProcess[bytes]":
    """`line` as a person types it; `aicr-evidence` is the command."""
    command = f'aicr-evidence() {{ "$PYTHON" -m app "$@"; }}\n{line}'
    values = {"PATH": "/usr/bin:/bin", "PYTHON": sys.executable, "PYTHONPATH": str(ROOT), "LANG": "C.UTF-8"}
    return subprocess.run(
        ["/bin/bash", "-c", command],
        env={**values, **environment},
        cwd=cwd,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=60,
        check=False,
    )


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """A recipe, a list that loads, one that does not, and a tree with one violation."""
    (tmp_path / "recipe.yaml").write_text(RECIPE)
    (tmp_path / "list.yaml").write_text(allowlist_text(person("dev-one")))
    (tmp_path / "broken.yaml").write_text("schemaVersion: 9.0.0\n")
    (tmp_path / "tree").mkdir()
    (tmp_path / "tree" / "allowlist.yaml").write_text(allowlist_text(person("dev-one")))
    (tmp_path / "tree" / "é日😀.txt").write_text("x")
    return tmp_path


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        pytest.param("digest -r recipe.yaml", 2, "error: ", id="a-printed-answer-is-no-success-without-it"),
        pytest.param("--help", 2, "error: ", id="help"),
        pytest.param("digest -r none.yaml", 3, "", id="an-error-is-the-exit-by-itself"),
        pytest.param("allowlist check list.yaml", 0, "warning: ", id="a-verdict-is-its-exit"),
        pytest.param("check-tree tree", 1, "warning: ", id="differences"),
    ],
)
def test_what_can_not_be_printed_changes_no_verdict(words: str, code: int, said: str, files: Path) -> None:
    for redirected, reason in ((">&-", CLOSED), (">/dev/full", FULL)):
        done = shell(f"aicr-evidence {words} {redirected}", files)
        assert done.returncode == code
        assert done.stderr.decode().endswith(said + reason if said else "No such file or directory\n")
        assert b"unexpected" not in done.stderr
        assert b"Exception ignored" not in done.stderr


@pytest.mark.parametrize("redirected", ["2>&-", "2>/dev/full", "<&- 2>&-"])
def test_messages_that_nobody_can_read_change_nothing(redirected: str, files: Path) -> None:
    missing = shell(f"aicr-evidence digest -r none.yaml {redirected}", files)
    assert (missing.returncode, missing.stdout, missing.stderr) == (3, b"", b"")
    good = shell(f"aicr-evidence digest -r recipe.yaml {redirected}", files)
    assert (good.returncode, good.stdout) == (0, DIGEST.encode())
    differs = shell(f"aicr-evidence check-tree tree {redirected}", files)
    assert (differs.returncode, differs.stdout.count(b"\n")) == (1, 1)


def test_with_no_stream_at_all_the_exit_is_left(files: Path) -> None:
    line = "; ".join(f"aicr-evidence {words} <&- >&- 2>&-; echo $?" for words in ("digest -r recipe.yaml", "bad-word"))
    assert shell(line, files).stdout == b"2\n2\n"


def test_a_closed_stdin_is_not_an_empty_one(files: Path) -> None:
    closed = shell("aicr-evidence digest -r - <&-", files)
    assert (closed.returncode, closed.stdout, closed.stderr.decode()) == (
        2,
        b"",
        "error: expected a resolved recipe on stdin, which can not be read: Bad file descriptor\n",
    )
    empty = shell("aicr-evidence digest -r -", files)
    assert (empty.returncode, b"zero bytes" in empty.stderr) == (2, True)
    assert shell("aicr-evidence digest -r - <recipe.yaml", files).stdout.decode() == DIGEST


def test_a_reader_that_leaves_takes_no_verdict_with_it(files: Path) -> None:
    for words, code in (("check-tree tree", 1), ("digest -r recipe.yaml", 0)):
        done = shell(f"aicr-evidence {words} | true; exit ${{PIPESTATUS[0]}}", files)
        assert (done.returncode, b"can not be written" in done.stderr) == (code, False)
        assert b"BrokenPipe" not in done.stderr


@pytest.mark.parametrize(
    "environment",
    [
        pytest.param({"PYTHONIOENCODING": "ascii"}, id="ascii"),
        pytest.param({"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "LANG": "C"}, id="c-locale"),
    ],
)
def test_what_an_encoding_can_not_hold_is_escaped(environment: dict[str, str], files: Path) -> None:
    text = shell("aicr-evidence check-tree tree", files, **environment)
    assert text.returncode == 1
    assert text.stdout.isascii()
    assert text.stdout.startswith(b"tree/\\")
    body = shell("aicr-evidence check-tree tree --format json", files, **environment)
    assert body.returncode == 1
    assert body.stdout.isascii()
    assert len(json.loads(body.stdout)["problems"]) == 1


def test_json_in_ascii_is_exact(files: Path) -> None:
    body = shell("aicr-evidence check-tree tree --format json", files, PYTHONIOENCODING="ascii")
    assert b'"path": "tree/\\u00e9\\u65e5\\ud83d\\ude00.txt"' in body.stdout
    assert json.loads(body.stdout)["problems"][0]["path"] == "tree/é日😀.txt"


class _Full(io.StringIO):
    """Takes a few characters, then there is no space left."""

    def write(self, text: str) -> int:
        if len(self.getvalue()) + len(text) > 4:
            raise OSError(28, "No space left on device")
        return super().write(text)


def test_a_lost_stream_takes_and_drops_the_rest() -> None:
    inner = _Full()
    stream = GuardedStream(inner)
    assert [stream.write(text) for text in ("ab", "cdefg", "x")] == [2, 5, 1]
    stream.flush()
    assert inner.getvalue() == "ab"
    assert (stream.lost is not None and stream.lost.errno, cast("io.StringIO", stream).isatty()) == (28, False)
