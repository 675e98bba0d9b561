"""Entry points: `aicr evidence VERB` and `aicr-evidence VERB`.

A first word other than `evidence` is handed to the next `aicr` on PATH, so that this command can stand before
NVIDIA's binary. Verbs are imported when they are called: `--help` and `digest` stay quick (service 7).
"""

import os
import sys
import traceback
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

from app import __version__
from app.cli.exits import INTERNAL, INVALID, exit_of
from app.cli.output import say, say_error
from app.cli.parser import build_parser
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
    if words in ([], ["--help"], ["-h"]) and _next_aicr() is None:
        sys.stdout.write(_OWN_HELP)
        return 0
    return _hand_over(words)


def aicr_evidence(argv: Sequence[str] | None = None) -> int:
    """The `aicr-evidence` command; returns the process exit code."""
    parser = build_parser()
    options = parser.parse_args(sys.argv[1:] if argv is None else list(argv))
    module, _, function = options.handler.partition(":")
    try:
        code: int = getattr(import_module(module), function)(options)
        sys.stdout.flush()
    except ServiceError as err:
        say_error(err)
        return exit_of(err) if options.can_not_run is None else options.can_not_run
    except KeyboardInterrupt:
        say_error(Cancelled("interrupted; nothing was decided"))
        return exit_of(Cancelled(""))
    except BrokenPipeError:
        # The reader left (`| head`): nothing is wrong, and Python must not complain at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except Exception as err:  # noqa: BLE001 - the last resort: people get a sentence, never a stack trace
        return _unexpected(err)
    return code


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


def _hand_over(words: list[str]) -> int:
    found = _next_aicr()
    if found is None:
        word = words[0] if words else ""
        say(f"error: {word!r} is not a verb of aicr-evidence and there is no other aicr on PATH")
        say("hint: verbs of this command start with `aicr evidence`; install NVIDIA's aicr for the others")
        return INVALID
    os.execv(found, [found, *words])  # noqa: S606
    return INVALID


def _next_aicr() -> str | None:
    """The first other `aicr` on PATH; ourselves, by whatever link, is not it."""
    own = Path(sys.argv[0]).resolve()
    for folder in os.environ.get("PATH", "").split(os.pathsep):
        candidate = Path(folder or ".") / "aicr"
        if candidate.is_file() and os.access(candidate, os.X_OK) and candidate.resolve() != own:
            return str(candidate)
    return None
