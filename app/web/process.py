"""One of several server processes: its own container from the environment, for as long as it lives."""

import logging
import multiprocessing
import os
import signal
import sys
import threading
from contextlib import ExitStack

from fastapi import FastAPI
from uvicorn.config import STARTUP_FAILURE

from app.bootstrap.container import open_container
from app.config import SERVING, load_settings
from app.core.errors import ServiceError
from app.web.app import create_app

LOG_FORMAT = "%(asctime)s %(levelname)s %(name)s %(message)s"

log = logging.getLogger(__name__)


def app() -> FastAPI:
    """What uvicorn calls in each process; the container is closed at the end of the application's life.

    A start that can not work ends every process; one that may work later, since a database does not answer, is
    tried again by uvicorn.
    """
    _end_with_the_first_process()
    stack = ExitStack()
    try:
        settings = load_settings(uses=SERVING - {"host", "port"})  # the first process listens, by its options
        logging.basicConfig(level=settings.log_level.upper(), format=LOG_FORMAT, stream=sys.stderr)
        container = stack.enter_context(open_container(settings))
    except ServiceError as err:
        hint = f" ({err.hint})" if err.hint else ""
        log.error("a server process can not start: %s%s", err.message, hint)  # noqa: TRY400 - no trace, as everywhere
        sys.exit(1 if err.retryable else STARTUP_FAILURE)
    return create_app(container, close=stack.close)


def _end_with_the_first_process() -> None:
    """End in order when the process that started this one is gone, killed too: nobody else would end it.

    Left alone it would keep the port, so that no other service could start there.
    """
    first = multiprocessing.parent_process()
    if first is None:
        return

    def watch() -> None:
        first.join()
        log.warning("the process that started this one has ended, so this one ends too")
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=watch, name="aicr-first-process", daemon=True).start()
