"""The client of `tests.support.crashing_service`: services that die at a chosen step, one after the other."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx

from tests.support.service import Service, Stage


class Nursery:
    """The process that forks services; a child is a real process with its own pid, sockets and death."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.support.crashing_service"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def order(self, **order: object) -> int:
        """One order and its reply."""
        process = self._process
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(json.dumps(order) + "\n")
        process.stdin.flush()
        return int(json.loads(process.stdout.readline()))

    def close(self) -> None:
        """End it and whatever it still has."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait(30)
        self._process.stdout.close()


@contextmanager
def open_nursery() -> Iterator[Nursery]:
    """A nursery that ends with the context."""
    nursery = Nursery()
    try:
        yield nursery
    finally:
        nursery.close()


class CrashingService(Service):
    """A service of the nursery over the files of one directory."""

    def __init__(self, nursery: Nursery, stage: Stage, directory: Path, database_url: str) -> None:
        super().__init__(stage, directory, database_url)
        self._nursery = nursery
        self._pid = 0

    @property
    def pid(self) -> int:
        return self._pid

    def arm(self, step: str, count: int) -> None:
        """Start it; it dies when `step` is passed for the `count`th time."""
        self.log.unlink(missing_ok=True)
        self._pid = self._nursery.order(
            do="serve", step=step, count=count, log=str(self.log), environment=self._settings()
        )
        deadline = time.monotonic() + 60
        while not (found := self.listening()):
            assert time.monotonic() < deadline, self.said()
            assert Path(f"/proc/{self._pid}/stat").read_text().split()[2] != "Z", self.said()
            time.sleep(0.01)
        self.url = found
        self.client.close()
        self.client = httpx.Client(base_url=self.url, timeout=60)

    def start(self, *extra: str) -> None:
        """Start it with nothing armed."""
        assert not extra
        self.arm("", 0)

    def ended(self) -> int:
        """Wait for its end; negative for the signal that killed it."""
        status = self._nursery.order(do="wait", pid=self._pid)
        self._pid = 0
        return status

    def stop(self) -> None:
        if self._pid:
            os.kill(self._pid, signal.SIGTERM)
            self.ended()

    def kill(self) -> None:
        os.kill(self._pid, signal.SIGKILL)
        self.ended()

    def rebuilt(self) -> Mapping[str, Any]:
        """Rebuild while nothing runs; what the command says."""
        out = self.directory / "rebuild.log"
        pid = self._nursery.order(do="rebuild", words=["--format", "json"], log=str(out), environment=self._settings())
        code = self._nursery.order(do="wait", pid=pid)
        text = out.read_text()
        assert code == 0, text
        told: Mapping[str, Any] = json.loads(text[text.index("\n{") :] if "\n{" in text else text)
        return told

    def _settings(self) -> dict[str, str]:
        return {name: value for name, value in self._environment.items() if name.startswith("AICR_EVIDENCE_")}
