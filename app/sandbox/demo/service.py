"""The service as a process of its own, as an operator would start it, over the sandbox's roots and registry."""

import os
import re
import secrets
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

from app.core.errors import StoreError

_READY = re.compile(r"serving on (http://\S+?)/ ")
_START_SECONDS = 60.0
_STOP_SECONDS = 20.0


class ServiceProcess:
    """`aicr evidence serve` with its files below `directory`; `url` is known once it is entered.

    `settings` by their names without the prefix win over those that follow from the other arguments.
    """

    def __init__(
        self,
        directory: Path,
        *,
        registry: str,
        allowlist: Path,
        trusted_root: Path,
        port: int = 0,
        settings: Mapping[str, str] | None = None,
    ) -> None:
        self.directory = directory
        self.catalogue_token = secrets.token_urlsafe(16)
        self.url = ""
        self.log = directory / "service.log"
        self._port = port
        inherited = {k: v for k, v in os.environ.items() if not k.startswith("AICR_EVIDENCE_")}
        self._environment = inherited | {
            "AICR_EVIDENCE_SANDBOX": "true",
            "AICR_EVIDENCE_DATABASE_URL": f"sqlite:///{directory / 'evidence.db'}",
            "AICR_EVIDENCE_ARCHIVE": str(directory / "archive"),
            "AICR_EVIDENCE_ALLOWLIST": str(allowlist),
            "AICR_EVIDENCE_TRUSTED_ROOT": str(trusted_root),
            "AICR_EVIDENCE_TRUSTED_REGISTRIES": f"{registry}/aicr",
            "AICR_EVIDENCE_PRIVATE_REGISTRIES": registry,
            "AICR_EVIDENCE_PLAIN_HTTP_REGISTRIES": registry,
            "AICR_EVIDENCE_CATALOGUE_TOKEN": self.catalogue_token,
            **{f"AICR_EVIDENCE_{name}": value for name, value in (settings or {}).items()},
        }

    def __enter__(self) -> Self:
        with self.log.open("wb") as log:
            self._process = subprocess.Popen(  # noqa: S603 - our own interpreter and module
                [sys.executable, "-m", "app", "serve", "--port", str(self._port)],
                env=self._environment,
                stdout=subprocess.DEVNULL,
                stderr=log,
                start_new_session=True,  # the terminal's Ctrl-C is for the demo, which then ends the service in order
            )
        try:
            self.url = self._announced()
        except BaseException:  # Ctrl-C too: in its session the service hears of none, and nobody else would end it
            self.stop()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, err: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    @property
    def pid(self) -> int:
        """The service's process id."""
        return self._process.pid

    def stop(self) -> None:
        """End it as an operator would, and for good when it does not listen."""
        self._process.terminate()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(_STOP_SECONDS)
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()

    def _announced(self) -> str:
        """Wait for the line that says where it listens; raises `StoreError` when it ends or takes too long."""
        deadline = time.monotonic() + _START_SECONDS
        while time.monotonic() < deadline and self._process.poll() is None:
            if found := _READY.search(self._said()):
                return found.group(1)
            threading.Event().wait(0.05)
        last = "; ".join(self._said().strip().splitlines()[-3:])
        raise StoreError(f"the service did not start: {last or 'it said nothing'}", hint=f"see {self.log}")

    def _said(self) -> str:
        return self.log.read_text("utf-8", "replace")
