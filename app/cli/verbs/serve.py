"""`serve`, `migrate`, `rebuild`: what has the database to itself. `serve` is entered through `app.cli.verbs.start`."""

import argparse
import errno
import logging
import math
import socket
import sys
from dataclasses import asdict

import uvicorn
from tqdm import tqdm
from uvicorn.config import STARTUP_FAILURE
from uvicorn.supervisors import Multiprocess

from app.bootstrap.container import Container, migrate_database, open_container
from app.cli.exits import OK
from app.cli.output import say, write, write_json
from app.cli.verbs.start import Ending
from app.config import KEEPING, SERVING, STORE, Settings, load_settings
from app.core.errors import InputError, StoreError
from app.web.app import create_app
from app.web.draining import LAST_SECONDS
from app.web.process import LOG_FORMAT
from app.web.wire import TimedHeads

_BACKLOG = 512


def serve(options: argparse.Namespace, ending: Ending) -> None:
    """Serve until `ending` asks for the end; running requests may finish first."""
    given = {name: getattr(options, name) for name in ("host", "port") if getattr(options, name) is not None}
    settings = load_settings(given, uses=SERVING)
    _log(settings)
    if settings.workers > 1:
        _serve_many(settings, ending)
    else:
        with open_container(settings) as container:
            _serve(container, ending)


def migrate(_options: argparse.Namespace) -> int:
    """Bring the database to this release's schema."""
    revision = migrate_database(load_settings(uses=STORE))
    say(f"the database is at revision {revision}")
    return OK


def rebuild(options: argparse.Namespace) -> int:
    """Compute every projection anew; prints how many records there are."""
    settings = load_settings(uses=KEEPING)
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
    # Inherited by each connection; asyncio sets it only where the protocol number was named, and without it an answer
    # of two segments waits 40 ms for the caller's delayed acknowledgement.
    bound.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    try:
        bound.bind((settings.host, settings.port))
    except (socket.gaierror, UnicodeError) as err:
        bound.close()
        raise InputError(
            f"AICR_EVIDENCE_HOST: expected an address of this machine, got {settings.host!r}, which does not resolve",
            hint="127.0.0.1, ::1, or 0.0.0.0 for every address",
        ) from err
    except OSError as err:
        bound.close()
        hint = "set AICR_EVIDENCE_PORT to a free port, or 0"
        if err.errno not in {errno.EADDRINUSE, errno.EACCES}:
            hint = "set AICR_EVIDENCE_HOST to an address of this machine"
        raise StoreError(f"can not listen on {settings.host}:{settings.port}: {err.strerror}", hint=hint) from err
    bound.listen(_BACKLOG)
    return bound


def _serve(container: Container, ending: Ending | None = None) -> None:
    settings = container.settings
    bound = listen(settings)
    server = uvicorn.Server(uvicorn_config(create_app(container), settings))
    if ending is not None:
        ending.ends(lambda: setattr(server, "should_exit", True))
    _announce(bound, settings)
    server.run(sockets=[bound])


def uvicorn_config(app: object, settings: Settings, *, workers: int = 1) -> uvicorn.Config:
    """How uvicorn runs an application of ours: timeouts of corroboration 7.2, no log of addresses.

    With several `workers`, `app` is the import name of a factory. Headers of proxies are read by `app.web.limits`
    alone: uvicorn would believe whoever connects from this machine.
    """
    return uvicorn.Config(
        app,  # type: ignore[arg-type]  # any ASGI application
        factory=workers > 1,
        workers=workers,
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        http=TimedHeads,
        timeout_keep_alive=120,
        timeout_graceful_shutdown=math.ceil(min(settings.shutdown_timeout_seconds, LAST_SECONDS)),
        h11_max_incomplete_event_size=64 << 10,
        lifespan="on",
    )


def _serve_many(settings: Settings, ending: Ending) -> None:
    """The same socket for every process; each opens its own container, and says itself why it can not."""
    bound = listen(settings)
    _announce(bound, settings)
    processes = Multiprocess(uvicorn_config("app.web.process:app", settings, workers=settings.workers), sockets=[bound])
    ending.ends(processes.should_exit.set)
    processes.run()
    if any(process.exitcode == STARTUP_FAILURE for process in processes.processes):
        raise InputError("a server process could not start", hint="its error stands above")


def _announce(bound: socket.socket, settings: Settings) -> None:
    host, port = bound.getsockname()[:2]
    if settings.sandbox:
        say("sandbox: its trust roots are trusted by nobody else")
    say(f"serving on http://{f'[{host}]' if ':' in host else host}:{port}/ (SIGINT or SIGTERM ends it)")


def _log(settings: Settings) -> None:
    logging.basicConfig(level=settings.log_level.upper(), format=LOG_FORMAT, stream=sys.stderr)
