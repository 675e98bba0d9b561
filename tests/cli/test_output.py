"""What reaches a terminal or a pipe."""

import io
import json

import pytest

from app.cli import output
from app.core.errors import AllowlistInvalid, InputError


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        pytest.param("plain … é 日本", "plain … é 日本", id="text"),
        pytest.param("a\tb", "a\tb", id="tab"),
        pytest.param("a\n::error::b\nc", "a\\n::error::b\\nc", id="line-break"),
        pytest.param("a\x85b\u2028c\x0b", "a\\x85b\\u2028c\\x0b", id="other-line-breaks"),
        pytest.param("\x1b[31mred", "\\x1b[31mred", id="escape"),
        pytest.param("a\u202eb", "a\\u202eb", id="bidi"),
        pytest.param("a\rb\x08", "a\\rb\\x08", id="overwriting"),
        pytest.param("\u200b\ufeff", "\\u200b\\ufeff", id="invisible"),
        pytest.param("\udcff", "\\udcff", id="lone-surrogate"),
        pytest.param("\x9b31m", "\\x9b31m", id="c1"),
        pytest.param("a ##[add-mask]b ##vso[x]##[", "a ##\\x5badd-mask]b ##vso\\x5bx]##\\x5b", id="runner-command"),
        pytest.param("## [x] #[y] # #[z] a[##]", "## [x] #[y] # #[z] a[##]", id="no-runner-command"),
    ],
)
def test_what_would_move_a_cursor_is_made_visible(text: str, shown: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert output.one_line(text) == shown
    output.write(text)
    output.say(text)
    assert tuple(capsys.readouterr()) == (shown + "\n", shown + "\n")


def test_only_a_block_has_several_lines(capsys: pytest.CaptureFixture[str]) -> None:
    output.write_block("a\n\x1bb\r\nc")
    output.write("d\ne", "f")
    assert capsys.readouterr().out == "a\n\\x1bb\\r\nc\nd\\ne\nf\n"


def test_a_table_has_one_line_a_row_and_no_trailing_spaces() -> None:
    assert output.table(("A", "LONGER"), [("x", "1"), ("yy\nz", "\x07")]) == "A      LONGER\nx      1\nyy\\nz  \\x07"


def test_json_is_readable_and_escapes_controls(capsys: pytest.CaptureFixture[str]) -> None:
    output.write_json({"b": "é", "a": "\x1b"})
    out = capsys.readouterr().out
    assert out == '{\n  "b": "é",\n  "a": "\\u001b"\n}\n'
    assert json.loads(out)["a"] == "\x1b"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        pytest.param("a\nb", '"a\\nb"', id="line-break"),
        pytest.param("日本 é", '"日本 é"', id="text"),
        pytest.param("\x7f\x9b31m", '"\\u007f\\u009b31m"', id="delete-and-c1"),
        pytest.param("\xa0\xad", '"\\u00a0\\u00ad"', id="latin-1"),
        pytest.param("\u202e\u2028", '"\\u202e\\u2028"', id="bidi-and-line-separator"),
        pytest.param("\U000e0001", '"\\udb40\\udc01"', id="surrogate-pair"),
        pytest.param("\udcff", '"\\udcff"', id="lone-surrogate"),
        pytest.param("x ##[error]é", '"x ##\\u005berror]é"', id="runner-command"),
    ],
)
def test_json_escapes_what_can_not_be_shown_and_stays_exact(text: str, shown: str) -> None:
    assert output.json_text(text) == shown
    assert json.loads(shown) == text


@pytest.mark.parametrize(
    ("encoding", "shown"),
    [("ascii", '"\\u00e9 \\u65e5 \\ud83d\\ude00"'), ("latin-1", '"é \\u65e5 \\ud83d\\ude00"'), ("utf-8", '"é 日 😀"')],
)
def test_json_escapes_what_an_encoding_does_not_have(encoding: str, shown: str) -> None:
    assert output.json_text("é 日 😀", encoding=encoding) == shown
    assert json.loads(shown) == "é 日 😀"


def test_an_error_says_rule_and_hint(capsys: pytest.CaptureFixture[str]) -> None:
    output.say_error(AllowlistInvalid("expected a list", rule="J5", hint="write one"))
    assert tuple(capsys.readouterr()) == ("", "error: expected a list\nrule: J5\nhint: write one\n")
    output.say_error(InputError("no", details={"secret": "hidden"}))
    assert tuple(capsys.readouterr()) == ("", "error: no\n")


def test_a_progress_bar_is_for_long_work_on_a_terminal_only(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    for stream, items, drawn in (
        (io.StringIO(), [1, 2, 3], False),
        (Terminal(), [1], False),
        (Terminal(), [1, 2], True),
    ):
        monkeypatch.setattr("sys.stderr", stream)
        assert list(output.progress(items, "reading")) == items
        assert ("reading" in stream.getvalue()) is drawn
