"""The pages about commands: `docs/cli.md` from the parser, the settings of `docs/operating.md` from the code."""

import argparse
import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from app.cli.parser import build_parser  # noqa: E402  the path above comes first
from app.config import Settings, describe  # noqa: E402

CLI = ROOT / "docs" / "cli.md"
OPERATING = ROOT / "docs" / "operating.md"

_BEGIN, _END = "<!-- settings: made by tools/generate_docs.py -->", "<!-- end of settings -->"
_PER_MACHINE = {"AICR_EVIDENCE_VERIFY_PROCESSES": "number of cores, at most 4"}
"""Defaults that are not the same everywhere, in words."""

_HEAD = """\
# Command line

<!-- Made by tools/generate_docs.py from app/cli/parser.py; change the parser. -->

`aicr evidence VERB` and `aicr-evidence VERB` are the same. A first word that is not `evidence` is handed to the next
`aicr` on PATH, so that this command can stand before another one of that name.

Data goes to stdout, messages to stderr. `--format json` prints what the API answers, the refusal of a bundle too; any
other error is a message. Verbs that ask a service take its address from `--api`, then `AICR_EVIDENCE_API`; they never
open the database. Everything else that can be set is in [operating.md](operating.md).

"""

_EXITS = """\
## Exit codes

| code | meaning |
|---|---|
| 0 | done; valid; stored |
| 1 | a comparison found differences: `check-tree`, `index --check`, `demo --once` |
| 2 | the input is not what was asked for, or the verdict is that it does not count; a conflict with what is in force; \
a printed answer or a named file that can not be written |
| 3 | not found |
| 4 | a token or login is missing or wrong |
| 5 | no verdict was reached: try again |
| 6 | the service or the storage can not be reached |
| 7 | too many requests: try again later |
| 8 | a fault of this program; `AICR_EVIDENCE_LOG_LEVEL=debug` shows where |
| 9 | aborted |

An output that is lost (closed, or a full disk) is told on stderr and changes no other exit: a verdict, or work that was
done, ends as it would have. A reader that leaves early (`| head`) is no fault. Characters that the encoding of stdout
does not have are escaped.
"""


def cli_page() -> str:
    """`docs/cli.md`."""
    sections = [_section(name, parser, summary) for name, parser, summary in verbs(build_parser())]
    return _HEAD + "\n".join(sections) + "\n" + _EXITS


def verbs(parser: argparse.ArgumentParser, before: str = "") -> Iterator[tuple[str, argparse.ArgumentParser, str]]:
    """Every verb with its full name, parser and summary; groups are walked into."""
    for action in parser._actions:  # noqa: SLF001 - argparse has no other way to ask
        if isinstance(action, argparse._SubParsersAction):  # noqa: SLF001
            summaries = {choice.dest: choice.help or "" for choice in action._choices_actions}  # noqa: SLF001
            for name, child in action.choices.items():
                full = f"{before}{name}"
                if child.get_default("handler"):
                    yield full, child, summaries[name]
                else:
                    yield from verbs(child, f"{full} ")


def _section(name: str, parser: argparse.ArgumentParser, summary: str) -> str:
    actions = [a for a in parser._actions if a.dest != "help" and a.help != argparse.SUPPRESS]  # noqa: SLF001
    positional = [action for action in actions if not action.option_strings]
    words = " ".join(f"[{a.metavar}]" if a.nargs == "?" else str(a.metavar) for a in positional)
    lines = [f"## `{name}`", "", f"{summary[0].upper()}{summary[1:]}.", ""]
    if parser.epilog:
        lines += [*_prose(parser.epilog), ""]
    lines += ["```", f"aicr evidence {name}{' [options]' if len(actions) > len(positional) else ''} {words}".rstrip()]
    lines += ["```", ""]
    rows = [(_written(action), action.help or "") for action in actions]
    if rows:
        lines += [
            "| argument | meaning |",
            "|---|---|",
            *(f"| `{left}` | {_cell(right)} |" for left, right in rows),
            "",
        ]
    return "\n".join(lines)


def _written(action: argparse.Action) -> str:
    if not action.option_strings:
        return str(action.metavar)
    names = ", ".join(action.option_strings)
    if action.nargs == 0:
        return names
    return f"{names} {action.metavar or '{' + ','.join(map(str, action.choices or ())) + '}'}"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _prose(epilog: str) -> list[str]:
    """Sentences as they are; examples, which are indented, as code."""
    text, _, examples = epilog.partition("\nexamples:\n")
    lines = [line + "  " if line else "" for line in text.strip().splitlines()]
    lines[-1] = lines[-1].rstrip()
    if examples:
        lines += ["", "```", *(line.strip() for line in examples.splitlines()), "```"]
    return lines


def settings_table() -> str:
    """Every setting with its default and meaning."""
    rows = [
        f"| `{line.name}` | {_default(line.name, line.default)} | {_cell(line.meaning)} |"
        for line in describe(Settings.model_construct(), {}, {})
    ]
    return "\n".join(["| setting | default | meaning |", "|---|---|---|", *rows])


def _default(name: str, text: str) -> str:
    if name in _PER_MACHINE:
        return _PER_MACHINE[name]
    return f"`{text}`" if text else "empty"


def operating_page() -> str:
    """`docs/operating.md` with its settings as they are now; the rest of the page is written by hand."""
    page = OPERATING.read_text(encoding="utf-8")
    made = f"{_BEGIN}\n{settings_table()}\n{_END}"
    return re.sub(f"{re.escape(_BEGIN)}.*?{re.escape(_END)}", lambda _: made, page, count=1, flags=re.DOTALL)
