"""One of several server processes: its own container from the environment, for as long as it lives."""

import atexit
import logging
import sys
from contextlib import ExitStack

from fastapi import FastAPI

from app.bootstrap.container import open_container
from app.config import load_settings
from app.web.app import create_app

LOG_FORMAT = "%(asctime)s %(levelname)s %(name)s %(message)s"


def app() -> FastAPI:
    """What uvicorn calls in each process."""
    settings = load_settings()
    logging.basicConfig(level=settings.log_level.upper(), format=LOG_FORMAT, stream=sys.stderr)
    stack = ExitStack()
    container = stack.enter_context(open_container(settings))
    atexit.register(stack.close)
    return create_app(container)
