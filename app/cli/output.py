"""What people and pipes get: data on stdout, messages on stderr, nothing that moves a terminal's cursor."""

import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import TypeVar

from app.core.errors import ServiceError

T = TypeVar("T")

_KEPT = "\n\t"


def printable(text: str) -> str:
    """`text` with control, format and bidi characters made visible; line breaks and tabs stay (trust 5)."""
    return "".join(ch if ch.isprintable() or ch in _KEPT else ch.encode("unicode_escape").decode() for ch in text)


def write(text: str) -> None:
    """One block of data on stdout."""
    sys.stdout.write(printable(text) + "\n")


def write_json(value: object) -> None:
    """Indented by two, as the API's bodies; non-ASCII stays readable, control characters are escaped by JSON."""
    sys.stdout.write(json.dumps(value, indent=2, ensure_ascii=False) + "\n")


def say(text: str) -> None:
    """A message on stderr."""
    sys.stderr.write(printable(text) + "\n")
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
    """Columns padded to their widest cell; the last one is not padded."""
    cells = [list(headings), *([printable(cell).replace("\n", " ") for cell in row] for row in rows)]
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
