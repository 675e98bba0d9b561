"""Entry points: `aicr evidence VERB` and `aicr-evidence VERB`.

A first word other than `evidence` is handed to the next `aicr` on PATH, so that this command can stand before
NVIDIA's binary. Verbs are imported when they are called: `--help` and `digest` stay quick (service 7).
"""

import os
import sys
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

from app import __version__
from app.cli.exits import INTERNAL, INVALID, OK, exit_of
from app.cli.output import say, say_error
from app.cli.parser import build_parser
from app.cli.streams import standard_streams
from app.core.errors import Cancelled, ServiceError

_OWN_HELP = f"""usage: aicr evidence VERB [options]
       aicr OTHER ...   is handed to the next aicr on PATH

aicr-evidence {__version__}: says whether a GPU-cluster recipe is really confirmed.
`aicr evidence --help` lists the verbs.
"""


def aicr(argv: Sequence[str] | None = None) -> int:
    """The `aicr` command."""
    words = list(sys.argv[1:] if argv is None else argv)
    if words[:1] == ["evidence"]:
        return aicr_evidence(words[1:])
    found = _next_aicr()
    if found is not None:
        try:
            os.execv(found, [found, *words])  # noqa: S606
        except OSError as err:
            problem = f"error: {found} can not be run: {err.strerror}"
            return _guarded(lambda: _Ended(_refuse(problem)))
    return _guarded(lambda: _alone(words))


def aicr_evidence(argv: Sequence[str] | None = None) -> int:
    """The `aicr-evidence` command; returns the process exit code."""
    return _guarded(lambda: _verb(sys.argv[1:] if argv is None else list(argv)))


@dataclass(frozen=True, slots=True)
class _Ended:
    """The exit of a command, and whether what it printed was the answer: then it is no success without it."""

    code: int
    printed_answer: bool = False


def _guarded(command: Callable[[], _Ended]) -> int:
    """Run it on whatever standard streams there are.

    The exit of a verdict, or of work that was done, is the same when what was printed is lost. A reader that leaves
    (`| head`) is no fault in any case.
    """
    with standard_streams() as out:
        ended = command()
        out.flush()
        if out.lost is None or isinstance(out.lost, BrokenPipeError):
            return ended.code
        failed = ended.printed_answer and ended.code == OK
        say(f"{'error' if failed else 'warning'}: stdout can not be written, so its text is lost: {out.lost.strerror}")
        return INVALID if failed else ended.code


def _verb(words: list[str]) -> _Ended:
    parser = build_parser()
    try:
        options = parser.parse_args(words)
    except SystemExit as end:  # help, the version or a usage error was printed
        return _Ended(end.code if isinstance(end.code, int) else INVALID, printed_answer=True)
    module, _, function = options.handler.partition(":")
    try:
        code: int = getattr(import_module(module), function)(options)
    except ServiceError as err:
        say_error(err)
        code = exit_of(err) if options.can_not_run is None else options.can_not_run
    except KeyboardInterrupt:
        say_error(Cancelled("interrupted; nothing was decided"))
        code = exit_of(Cancelled(""))
    except Exception as err:  # noqa: BLE001 - the last resort: people get a sentence, never a stack trace
        code = _unexpected(err)
    return _Ended(code, options.prints_answer)


def _unexpected(err: Exception) -> int:
    """A fault of this program; what was thrown is told by its type alone, since its text may hold what a stranger sent.

    The level is read here and not from the settings, which may be what could not be read.
    """
    say(f"error: an unexpected {type(err).__name__} ended the command; this is a fault of aicr-evidence")
    if os.environ.get("AICR_EVIDENCE_LOG_LEVEL", "").lower() == "debug":
        for line in "".join(traceback.format_exception(err)).splitlines():
            say(line)
    else:
        say("hint: AICR_EVIDENCE_LOG_LEVEL=debug shows where")
    return INTERNAL


def _alone(words: list[str]) -> _Ended:
    """There is no other aicr: help is ours, and any other word is nobody's."""
    if words in ([], ["--help"], ["-h"]):
        sys.stdout.write(_OWN_HELP)
        return _Ended(OK, printed_answer=True)
    return _Ended(
        _refuse(
            f"error: {words[0]!r} is not a verb of aicr-evidence and there is no other aicr on PATH",
            "hint: verbs of this command start with `aicr evidence`; install NVIDIA's aicr for the others",
        )
    )


def _refuse(*lines: str) -> int:
    for line in lines:
        say(line)
    return INVALID


def _next_aicr() -> str | None:
    """The first other `aicr` on PATH; ourselves, by whatever link, is not it."""
    own = Path(sys.argv[0]).resolve()
    for folder in os.environ.get("PATH", "").split(os.pathsep):
        candidate = Path(folder or ".") / "aicr"
        if candidate.is_file() and os.access(candidate, os.X_OK) and candidate.resolve() != own:
            return str(candidate)
    return None
