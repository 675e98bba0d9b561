"""What verbs have in common on the command line; nothing heavy is imported here, so that help is quick."""

import argparse
from collections.abc import Sequence
from typing import NoReturn

from app.cli.output import one_line

_VERBS = "app.cli.verbs."


class Parser(argparse.ArgumentParser):
    """argparse, whose complaint about a word stays on one line, whatever the word holds."""

    def error(self, message: str) -> NoReturn:
        """End with exit 2."""
        super().error(one_line(message))


class Formatter(argparse.RawDescriptionHelpFormatter):
    """Help as it was written, with room for the option names."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=30, width=110)


def add_verb(
    verbs: "argparse._SubParsersAction[argparse.ArgumentParser]",
    name: str,
    handler: str,
    summary: str,
    epilog: str = "",
    *,
    can_not_run: int | None = None,
    prints_answer: bool = False,
) -> argparse.ArgumentParser:
    """A verb; `can_not_run` is its one exit for every error that ends it, instead of the error's category.

    `prints_answer`: what it prints is all that it is asked for, so that it has failed when that can not be written.
    """
    parser = verbs.add_parser(
        name,
        help=summary,
        description=summary[0].upper() + summary[1:] + ".",
        epilog=epilog,
        formatter_class=Formatter,
    )
    parser.set_defaults(handler=_VERBS + handler, can_not_run=can_not_run, prints_answer=prints_answer)
    return parser


def add_format(
    parser: argparse.ArgumentParser, choices: Sequence[str] = ("text", "json"), *, short: bool = False
) -> None:
    """`--format`, also as `-t` where upstream has it."""
    names = ("-t", "--format") if short else ("--format",)
    parser.add_argument(*names, choices=choices, default="text", help="what is printed on stdout (default: text)")


def add_api(parser: argparse.ArgumentParser) -> None:
    """`--api` and `--timeout` of a verb that asks a service."""
    parser.add_argument(
        "--api", metavar="URL", help="the service (default: AICR_EVIDENCE_API, else http://127.0.0.1:8080)"
    )
    parser.add_argument(
        "--timeout", metavar="SECONDS", type=seconds, default=120.0, help="how long to wait (default: 120)"
    )


def add_token(parser: argparse.ArgumentParser, variable: str) -> None:
    """`--token-file`, in whose place `variable` gives the token; a token as a word is refused and not repeated."""
    parser.add_argument(
        "--token-file", metavar="FILE", help=f"a file that holds the bearer token to send (default: {variable})"
    )
    parser.add_argument("--token", metavar="TOKEN", action=_NoToken, nargs="?", help=argparse.SUPPRESS)


class _NoToken(argparse.Action):
    """Refuses a token on the command line, without repeating it."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        parser.error("a token on the command line can be seen by others: give a file that holds it, by --token-file")


def seconds(text: str) -> float:
    """A time of up to a day."""
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value <= 86400:
        raise argparse.ArgumentTypeError(f"expected seconds between 0 and 86400, got {text!r}")
    return value


def port_number(text: str) -> int:
    """A port, or 0."""
    if not (text.isascii() and text.isdecimal() and len(text) <= 5 and int(text) <= 65535):
        raise argparse.ArgumentTypeError(f"expected a port from 0 to 65535, got {text!r}")
    return int(text)
