"""`serve`, `migrate`, `rebuild`: what has the database to itself."""

import argparse
import logging
import socket
import sys
from dataclasses import asdict

import uvicorn
from tqdm import tqdm

from app.bootstrap.container import Container, migrate_database, open_container
from app.cli.exits import OK
from app.cli.output import say, write, write_json
from app.config import Settings, load_settings
from app.core.errors import StoreError
from app.web.app import create_app

_LOG_FORMAT = "%(asctime)s %(levelname)s %(name)s %(message)s"
_BACKLOG = 512


def run(options: argparse.Namespace) -> int:
    """Serve until SIGINT or SIGTERM; running requests may finish first."""
    given = {name: getattr(options, name) for name in ("host", "port") if getattr(options, name) is not None}
    settings = load_settings(given)
    _log(settings)
    if settings.workers > 1:
        _serve_many(settings)
        return OK
    with open_container(settings) as container:
        _serve(container)
    return OK


def migrate(_options: argparse.Namespace) -> int:
    """Bring the database to this release's schema."""
    revision = migrate_database(load_settings())
    say(f"the database is at revision {revision}")
    return OK


def rebuild(options: argparse.Namespace) -> int:
    """Compute every projection anew; prints how many records there are."""
    settings = load_settings()
    _log(settings)
    with open_container(settings, holder="rebuild") as container:
        total = sum(1 for _ in container.store.acknowledged())
        with tqdm(total=total, desc="rebuild", unit="bundle", leave=False, disable=None) as bar:
            done = container.rebuild.rebuild(allow_missing=options.allow_missing, watch=lambda _known: bar.update(1))
    if options.format == "json":
        write_json(
            {"records": done.records, "lost": [asdict(lost) | {"digest": str(lost.digest)} for lost in done.lost]}
        )
    else:
        write(f"{done.records} records rebuilt")
        for lost in done.lost:
            say(f"lost: {lost.digest} of {lost.source_id[:32]}: {lost.code}: {lost.reason}")
    return OK


def listen(settings: Settings) -> socket.socket:
    """A bound socket, so that port 0 is known before anybody asks; raises `StoreError` when it is taken."""
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    bound = socket.socket(family, socket.SOCK_STREAM)
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        bound.bind((settings.host, settings.port))
    except OSError as err:
        bound.close()
        raise StoreError(
            f"can not listen on {settings.host}:{settings.port}: {err.strerror}",
            hint="set AICR_EVIDENCE_PORT to a free port, or 0",
        ) from err
    bound.listen(_BACKLOG)
    return bound


def _serve(container: Container) -> None:
    settings = container.settings
    bound = listen(settings)
    host, port = bound.getsockname()[:2]
    app = create_app(container)
    server = uvicorn.Server(uvicorn_config(app, settings))
    if settings.sandbox:
        say("sandbox: its trust roots are trusted by nobody else")
    say(f"serving on http://{f'[{host}]' if ':' in host else host}:{port}/ (SIGINT or SIGTERM ends it)")
    server.run(sockets=[bound])


def uvicorn_config(app: object, settings: Settings) -> uvicorn.Config:
    """How uvicorn runs an application of ours: timeouts of corroboration 7.2, no log of addresses."""
    return uvicorn.Config(
        app,  # type: ignore[arg-type]  # any ASGI application
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_keep_alive=120,
        timeout_graceful_shutdown=int(settings.shutdown_timeout_seconds),
        h11_max_incomplete_event_size=64 << 10,
        lifespan="on",
    )


def _serve_many(settings: Settings) -> None:
    uvicorn.run(
        "app.web.process:app",
        factory=True,
        host=settings.host,
        port=settings.port,
        workers=settings.workers,
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_keep_alive=120,
        timeout_graceful_shutdown=int(settings.shutdown_timeout_seconds),
    )


def _log(settings: Settings) -> None:
    logging.basicConfig(level=settings.log_level.upper(), format=_LOG_FORMAT, stream=sys.stderr)
