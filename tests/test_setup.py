"""`tools/setup.sh`: what `make demo` and `make test` do first, and what it says when a part can not be had.

Runs over a scratch copy with stubs for what is installed, so that nothing of this machine changes.
"""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
TOOLS = ("sh", "cat", "ls", "dirname", "touch", "env", "rm", "mkdir")
FINE = "#!/bin/sh\nexit 0\n"
USER = '#!/bin/sh\n[ "$1" = -u ] && echo 1000\n'


@pytest.fixture
def scratch(tmp_path: Path) -> Path:
    """A clone whose Python packages are installed already, on a machine of a user without sudo."""
    for name in ("tools/setup.sh", "pyproject.toml", "requirements/base.lock", "requirements/dev.lock"):
        target = tmp_path / "clone" / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, target)
    (tmp_path / "bin").mkdir()
    for tool in TOOLS:
        found = shutil.which(tool)
        assert found is not None
        (tmp_path / "bin" / tool).symlink_to(found)
    stub(tmp_path, "id", USER)
    stub(tmp_path, "python3", FINE)
    python = tmp_path / "clone" / ".venv" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text(FINE)
    python.chmod(0o755)
    for lock in ("base", "dev"):
        (tmp_path / "clone" / ".venv" / f".installed-{lock}").touch()
    return tmp_path


def stub(scratch: Path, name: str, text: str = FINE) -> None:
    path = scratch / "bin" / name
    path.write_text(text)
    path.chmod(0o755)


def setup(scratch: Path, mode: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        ["/bin/sh", "tools/setup.sh", mode],
        cwd=scratch / "clone",
        env={"PATH": str(scratch / "bin"), "HOME": str(scratch)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_nothing_is_done_twice(scratch: Path) -> None:
    done = setup(scratch, "base")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_a_missing_part_stops_with_the_exact_install_line(scratch: Path) -> None:
    done = setup(scratch, "dev")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.splitlines()[-2:] == [
        "setup: a real OCI registry is missing and could not be installed here. Run this, then try again:",
        "    sudo apt-get update && sudo apt-get install -y --no-install-recommends docker-registry",
    ]


def test_root_installs_a_missing_part_by_itself(scratch: Path) -> None:
    stub(scratch, "id", '#!/bin/sh\n[ "$1" = -u ] && echo 0\n')
    stub(scratch, "apt-get", f'#!/bin/sh\necho "$*" >> {scratch}/asked\n')
    done = setup(scratch, "dev")
    assert done.returncode == 0
    assert (scratch / "asked").read_text().splitlines()[:2] == [
        "update -qq",
        "install -y -qq --no-install-recommends docker-registry",
    ]


def test_an_installation_that_fails_is_no_success(scratch: Path) -> None:
    stub(scratch, "id", '#!/bin/sh\n[ "$1" = -u ] && echo 0\n')
    stub(scratch, "apt-get", "#!/bin/sh\nexit 100\n")
    done = setup(scratch, "dev")
    assert done.returncode == 1
    assert "sudo apt-get install -y --no-install-recommends docker-registry" in done.stderr


def test_an_old_python_is_told(scratch: Path) -> None:
    stub(scratch, "python3", '#!/bin/sh\n[ "$1" = --version ] && echo "Python 3.9.2"\nexit 1\n')
    done = setup(scratch, "base")
    assert done.returncode == 1
    assert "expected Python 3.11 or newer, found Python 3.9.2" in done.stderr
    assert "apt-get install -y python3" in done.stderr


def test_packages_that_can_not_be_installed_are_told_with_the_line_to_run(scratch: Path) -> None:
    (scratch / "clone" / ".venv" / ".installed-base").unlink()
    (scratch / "clone" / ".venv" / ".installed-dev").unlink()
    (scratch / "clone" / ".venv" / "bin" / "python").write_text("#!/bin/sh\necho 'no route to host' >&2\nexit 1\n")
    done = setup(scratch, "base")
    assert done.returncode == 1
    assert done.stderr.splitlines() == [
        "setup: installing the locked packages of requirements/base.lock into .venv",
        "no route to host",
        "setup: the Python packages could not be installed. With a package registry in reach, run:",
        "    .venv/bin/python -m pip install --require-hashes -r requirements/base.lock",
    ]
    assert not (scratch / "clone" / ".venv" / ".installed-base").exists()


def test_a_changed_lock_is_installed_again(scratch: Path) -> None:
    lock = scratch / "clone" / "requirements" / "dev.lock"
    later = (scratch / "clone" / ".venv" / ".installed-dev").stat().st_mtime + 10
    os.utime(lock, (later, later))
    python = scratch / "clone" / ".venv" / "bin" / "python"
    python.write_text(f'#!/bin/sh\necho "$*" >> {scratch}/asked\n')
    done = setup(scratch, "base")
    assert done.returncode == 0
    assert "--require-hashes -r requirements/dev.lock" in (scratch / "asked").read_text()


def test_an_unknown_mode_is_told(scratch: Path) -> None:
    assert setup(scratch, "nonsense").returncode == 2
