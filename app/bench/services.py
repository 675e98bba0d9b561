"""Running services to measure: a container in this process over a registry, a private Sigstore and a fresh store."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from app.bench.samples import Workbench
from app.bootstrap.container import Container, open_container
from app.config import KEEPING, load_settings
from app.sandbox.demo.allowlists import allowlist


def write_allowlist(root: Path) -> Path:
    """The sandbox's allowlist as a file; it lists every sample signer but one."""
    path = root / "allowlist.yaml"
    path.write_text(allowlist(), encoding="utf-8")
    return path


def database_url(directory: Path) -> str:
    """The SQLite file of a service below `directory`; the name is `ServiceProcess`'s too."""
    return f"sqlite:///{directory / 'evidence.db'}"


@contextmanager
def container(bench: Workbench, directory: Path, *, registry: str, processes: int = 2) -> Iterator[Container]:
    """A service with its files below `directory`, made when it is not there."""
    directory.mkdir(parents=True, exist_ok=True)
    settings = load_settings(
        {
            "sandbox": True,
            "database_url": database_url(directory),
            "archive": str(directory / "archive"),
            "allowlist": str(write_allowlist(directory)),
            "trusted_root": str(bench.trusted_root),
            "trusted_registries": f"{registry}/aicr",
            "private_registries": registry,
            "plain_http_registries": registry,
            "verify_processes": processes,
        },
        uses=KEEPING,
    )
    with open_container(settings) as opened:
        yield opened
