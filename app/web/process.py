"""One of several server processes: its own container from the environment, for as long as it lives."""

import atexit
from contextlib import ExitStack

from fastapi import FastAPI

from app.bootstrap.container import open_container
from app.config import load_settings
from app.web.app import create_app


def app() -> FastAPI:
    """What `uvicorn --factory` calls in each process."""
    stack = ExitStack()
    container = stack.enter_context(open_container(load_settings()))
    atexit.register(stack.close)
    return create_app(container)
