"""One of several server processes: its own container from the environment, for as long as it lives."""

import logging
import sys
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
