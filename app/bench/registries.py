"""A registry to pull from: Debian's `docker-registry` where it is installed, else the sandbox's."""

import json
import shutil
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from app.adapters.oci.publishing import OciPublisher
from app.adapters.oci.writer import Writer
from app.bench.samples import SignedBundle
from app.core.errors import StoreError
from app.core.refs import OciRef
from app.sandbox.registry import SandboxRegistry

DEBIAN = "docker-registry"
REPOSITORY = "aicr/evidence"
_START_SECONDS = 20.0


@dataclass(frozen=True, slots=True)
class BenchRegistry:
    """A registry that answers now; `kind` is what it is."""

    host: str
    kind: str

    def push(self, bundle: SignedBundle) -> OciRef:
        """Push a bundle with its signature; the pinned reference."""
        publisher = OciPublisher(Writer(plain_http_hosts=(self.host,)))
        ref = OciRef(self.host, REPOSITORY, tag=f"b-{bundle.digest.hex[:16]}")
        publisher.push(bundle.artifact, ref)
        publisher.attach(bundle.artifact, ref, bundle.signature)
        return ref.at(bundle.digest)


@contextmanager
def registry() -> Iterator[BenchRegistry]:
    """The best registry that this machine has; both listen on loopback and forget everything at the end."""
    program = shutil.which(DEBIAN)
    if program is None:
        with SandboxRegistry() as sandbox:
            yield BenchRegistry(sandbox.host, "sandbox")
        return
    with TemporaryDirectory(prefix="aicr-bench-") as scratch, _free_port() as port:
        host = f"127.0.0.1:{port}"
        config = Path(scratch, "config.yml")
        config.write_text(json.dumps(_config(scratch, host)), encoding="utf-8")  # JSON is YAML
        with Path(scratch, "log").open("wb") as log:
            process = subprocess.Popen([program, "serve", str(config)], stdout=log, stderr=log)
            try:
                _wait_for(f"http://{host}/v2/", process)
                yield BenchRegistry(host, "debian")
            finally:
                process.terminate()
                process.wait(10)


def _config(scratch: str, host: str) -> dict[str, object]:
    return {
        "version": 0.1,
        "log": {"level": "error", "accesslog": {"disabled": True}},
        "storage": {"filesystem": {"rootdirectory": f"{scratch}/data"}},
        "http": {"addr": host, "secret": "not-a-secret"},
    }


@contextmanager
def _free_port() -> Iterator[int]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = int(probe.getsockname()[1])
    yield port


def _wait_for(url: str, process: "subprocess.Popen[bytes]") -> None:
    end = time.monotonic() + _START_SECONDS
    while time.monotonic() < end and process.poll() is None:
        try:
            with urllib.request.urlopen(url, timeout=1):  # noqa: S310 - loopback, our own process
                return
        except urllib.error.HTTPError as err:
            err.close()
            return
        except OSError:
            time.sleep(0.02)
    raise StoreError(f"{DEBIAN} does not answer")
