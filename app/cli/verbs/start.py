"""`serve` from its first moment: what a server is made of takes a second to import, and may be asked to end by then."""

import argparse
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from types import FrameType

from app.cli.exits import OK


def run(options: argparse.Namespace) -> int:
    """Serve until SIGINT or SIGTERM, which is the ordinary end at any time."""
    ending = Ending()
    with ending.by_signals(), suppress(KeyboardInterrupt):
        server = import_module("app.cli.verbs.serve")
        if not ending.asked:
            server.serve(options, ending)
    return OK


class Ending:
    """Whether SIGINT or SIGTERM asked for the end, from before there is a server until its container is closed.

    A signal raises nothing, so that a start or a close is not torn in two; only a second Ctrl-C does. While a server
    runs, uvicorn and `app.web.draining` have the signals, and uvicorn raises them again here when it has ended.
    """

    def __init__(self) -> None:
        self.asked = False
        self._stop: Callable[[], object] = lambda: None

    @contextmanager
    def by_signals(self) -> Iterator[None]:
        """Listen as long as the context lasts."""
        before = {number: signal.signal(number, self._end) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def ends(self, stop: Callable[[], object]) -> None:
        """From now on the end is to call `stop`, at once when it was asked for already."""
        self._stop = stop
        if self.asked:
            stop()

    def _end(self, number: int, _frame: FrameType | None) -> None:
        if self.asked and number == signal.SIGINT:
            raise KeyboardInterrupt
        self.asked = True
        self._stop()
