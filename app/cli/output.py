"""What people and pipes get: data on stdout, messages on stderr, nothing that moves a terminal's cursor.

Much of it was written by strangers: names of files, recipes, identities. A text is one line wherever it goes, so that
none of it can begin a line of its own, which a CI job would read as a command to itself (trust 5); nor does it hold
`##[`, which some read as one in the middle of a line. Only `write_block` keeps line breaks, for texts whose breaks are
ours.
"""

import json
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import TypeVar

from app.core.errors import ServiceError

T = TypeVar("T")

_NOT_ASCII = re.compile(r"[^\n -~]")
_COMMAND = re.compile(r"(##\w*)\[")
"""`##[error]` and its like (`##vso[`, `##teamcity[`): CI runners look for it anywhere in a line."""


def one_line(text: str) -> str:
    """`text` with control, format, bidi and line-breaking characters made visible and `##[` broken; tabs stay."""
    shown = "".join(ch if ch.isprintable() or ch == "\t" else ch.encode("unicode_escape").decode() for ch in text)
    return _COMMAND.sub(r"\1\\x5b", shown)


def block(text: str) -> str:
    """Several lines, each as `one_line`; for a text in which whatever a stranger wrote is on one line already."""
    return "\n".join(map(one_line, text.split("\n")))


def json_text(value: object, *, encoding: str = "utf-8") -> str:
    """Indented by two, as the API's bodies: what can be read stays as it is, any other character is a JSON escape.

    So is one that `encoding` does not have.
    """

    def shown(found: re.Match[str]) -> str:
        ch = found.group()
        return ch if ch.isprintable() and _has(encoding, ch) else _json_escape(ch)

    text = _NOT_ASCII.sub(shown, json.dumps(value, indent=2, ensure_ascii=False))
    return _COMMAND.sub(r"\1\\u005b", text)  # inside a string: nowhere else in JSON stands a `#`


def _has(encoding: str, ch: str) -> bool:
    try:
        ch.encode(encoding)
    except UnicodeEncodeError:
        return False
    return True


def _json_escape(ch: str) -> str:
    """A character inside a JSON string; beyond U+FFFF an escape is a surrogate pair (RFC 8259, 7)."""
    units = ch.encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4))


def write(*lines: str) -> None:
    """Data on stdout, one line each."""
    sys.stdout.write("".join(one_line(line) + "\n" for line in lines))


def write_block(text: str) -> None:
    """Data on stdout whose line breaks are ours: a table, a report."""
    sys.stdout.write(block(text) + "\n")


def write_json(value: object) -> None:
    """Data on stdout as JSON."""
    sys.stdout.write(json_text(value, encoding=sys.stdout.encoding or "utf-8") + "\n")


def say(text: str) -> None:
    """A message on stderr, one line."""
    sys.stderr.write(one_line(text) + "\n")
    sys.stderr.flush()


def say_error(err: ServiceError) -> None:
    """What was expected and found, and what to do."""
    say(f"error: {err.message}")
    for key, value in err.details.items():
        if key in {"rule", "step", "code"}:
            say(f"{key}: {value}")
    if err.hint:
        say(f"hint: {err.hint}")


def table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Columns padded to their widest cell, a row a line; the last column is not padded."""
    cells = [list(headings), *([one_line(cell) for cell in row] for row in rows)]
    widths = [max(len(row[i]) for row in cells) for i in range(len(headings))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in cells
    )


def progress(items: Sequence[T], what: str) -> Iterator[T]:
    """The items, with a bar on stderr when that is a terminal and there is something to wait for."""
    if not sys.stderr.isatty() or len(items) < 2:
        yield from items
        return
    from tqdm import tqdm  # noqa: PLC0415 - only long work on a terminal pays for it

    yield from tqdm(items, desc=what, unit="", leave=False)
