"""Feeds made-up input to every parser that a stranger can reach, and expects answers or errors of the service only.

Usage: .venv/bin/python tools/fuzz.py [--seconds N] [--engine atheris|hypothesis] [TARGET ...]
       .venv/bin/python tools/fuzz.py --reproduce FILE TARGET

The main targets run N seconds each, the others a quarter of that; a target that is named runs N. Atheris steers by
coverage of our own code; where it is not installed, hypothesis draws from the same seeds as in the tests. An input
that ends in a foreign exception, takes longer than 20 s, or needs more than 2 GiB is a fault: it is kept below
var/fuzz, and the command that shows it again is printed. Exit 0 without a fault, 1 with one, 2 for a wrong call.
"""

import argparse
import contextlib
import hashlib
import importlib.util
import os
import re
import resource
import signal
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
WORK = ROOT / "var" / "fuzz"

MAX_INPUT_BYTES = 64 << 10
HANG_SECONDS = 20
MEMORY_BYTES = 2 << 30
GRACE_SECONDS = 60  # beyond its time until a target is ended from outside
SHARE = 4  # targets that are not main get this part of the time
_UNITS = re.compile(r"stat::number_of_executed_units:\s*(\d+)")
_COUNTED = re.compile(r"^inputs: (\d+)$", re.MULTILINE)


class Hang(BaseException):
    """An input took too long; no error of the service, and nothing that a parser could catch by accident."""


@dataclass(slots=True)
class Job:
    """One target that runs in a process of its own."""

    name: str
    seconds: float
    pid: int = 0
    started: float = 0.0

    @property
    def directory(self) -> Path:
        """Where its log, its corpus and its faults are kept."""
        return WORK / self.name

    @property
    def log(self) -> Path:
        """Everything that it said."""
        return self.directory / "log.txt"


def main(arguments: Sequence[str]) -> int:
    """Run what was asked for and print a line a target."""
    parser = argparse.ArgumentParser(prog="fuzz", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=60.0, help="how long each main target runs")
    parser.add_argument("--engine", choices=("atheris", "hypothesis"))
    parser.add_argument("--reproduce", type=Path, metavar="FILE", help="feed one kept input to one target")
    parser.add_argument("targets", nargs="*", metavar="TARGET")
    asked = parser.parse_args(arguments)
    os.chdir(ROOT)
    engine = asked.engine or ("atheris" if importlib.util.find_spec("atheris") else "hypothesis")
    if asked.engine == "atheris" and not importlib.util.find_spec("atheris"):
        print("atheris is not installed here; it is part of the extra `fuzz` on x86-64", file=sys.stderr)
        return 2
    if engine == "hypothesis" and asked.engine is None and asked.reproduce is None:
        print("atheris is not installed here: hypothesis draws the inputs, without looking at coverage")
    with _instrumented(engine == "atheris" and asked.reproduce is None):
        from tests.fuzz.targets import TARGETS  # noqa: PLC0415 - imported under instrumentation
    if unknown := [name for name in asked.targets if name not in TARGETS]:
        print(f"unknown targets {', '.join(unknown)}; known are {', '.join(TARGETS)}", file=sys.stderr)
        return 2
    if asked.reproduce is not None:
        if len(asked.targets) != 1:
            print("name the one target that the input is for", file=sys.stderr)
            return 2
        TARGETS[asked.targets[0]].run(asked.reproduce.read_bytes())
        print("nothing but an answer or an error of the service came out")
        return 0
    seconds = max(asked.seconds, 1.0)
    names = asked.targets or list(TARGETS)
    jobs = [Job(name, seconds if asked.targets or TARGETS[name].main else max(seconds / SHARE, 1.0)) for name in names]
    rounds: dict[str, Callable[[Job], None]] = {"atheris": _atheris_round, "hypothesis": _hypothesis_round}
    faults = _run_all(jobs, rounds[engine])
    print(f"{len(jobs) - faults} of {len(jobs)} targets without a fault ({engine})")
    return 1 if faults else 0


@contextlib.contextmanager
def _instrumented(wanted: bool) -> Iterator[None]:  # noqa: FBT001 - one switch
    """Import our own code so that atheris sees which lines an input reaches."""
    if not wanted:
        yield
        return
    import atheris  # noqa: PLC0415 - an extra that is not on every machine

    with (
        open(os.devnull, "w", encoding="utf-8") as nowhere,  # noqa: PTH123 - it names every module that it touches
        contextlib.redirect_stderr(nowhere),
        atheris.instrument_imports(include=["app"]),
    ):
        yield


def _run_all(jobs: Sequence[Job], work: Callable[[Job], None]) -> int:
    """Fork a process a job, as many at a time as there are cores; returns how many ended in a fault."""
    waiting, running, faults = list(jobs), dict[int, Job](), 0
    slots = max(1, min(os.cpu_count() or 1, 4))
    while waiting or running:
        while waiting and len(running) < slots:
            job = waiting.pop(0)
            _start(job, work)
            running[job.pid] = job
        pid, status = os.waitpid(-1, os.WNOHANG)
        if pid:
            faults += not _report(running.pop(pid), os.waitstatus_to_exitcode(status))
            continue
        for job in running.values():
            if time.monotonic() - job.started > job.seconds + GRACE_SECONDS:
                os.kill(job.pid, signal.SIGKILL)
        time.sleep(0.05)
    return faults


def _start(job: Job, work: Callable[[Job], None]) -> None:
    job.directory.mkdir(parents=True, exist_ok=True)
    for old in _faults(job):
        old.unlink()
    sys.stdout.flush()
    job.started = time.monotonic()
    job.pid = os.fork()
    if job.pid:
        return
    try:
        log = os.open(job.log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        os.dup2(log, 1)
        os.dup2(log, 2)
        work(job)
    except BaseException:  # noqa: BLE001 - a forked process must end here, whatever happened
        traceback.print_exc()
        sys.stderr.flush()
        os._exit(1)
    sys.stdout.flush()
    os._exit(0)


def _atheris_round(job: Job) -> None:
    """Coverage-guided; libFuzzer ends the process by itself."""
    import atheris  # noqa: PLC0415 - an extra that is not on every machine

    from tests.fuzz.mutation import TOKENS  # noqa: PLC0415 - as the targets
    from tests.fuzz.targets import CORPUS, TARGETS  # noqa: PLC0415 - imported by now

    words = job.directory / "words.txt"
    words.write_text("".join(f'"{_quoted(token)}"\n' for token in TOKENS if len(token) <= 64), encoding="ascii")
    grown = job.directory / "corpus"
    grown.mkdir(exist_ok=True)
    options = [
        f"-max_total_time={max(1, round(job.seconds))}",
        f"-timeout={HANG_SECONDS}",
        f"-rss_limit_mb={MEMORY_BYTES >> 20}",
        f"-max_len={MAX_INPUT_BYTES}",
        f"-artifact_prefix={job.directory}/",
        f"-dict={words}",
        "-print_final_stats=1",
        str(grown),
        str(CORPUS / job.name),
    ]
    atheris.Setup([sys.argv[0], *options], TARGETS[job.name].run)
    atheris.Fuzz()


def _quoted(token: bytes) -> str:
    return "".join(f"\\x{byte:02x}" for byte in token)


def _hypothesis_round(job: Job) -> None:
    """Rounds of drawn inputs until the time is up; what fails is shrunk and kept."""
    from hypothesis import HealthCheck, Phase, given, seed, settings  # noqa: PLC0415 - only this engine needs it

    from tests.fuzz.mutation import inputs_for  # noqa: PLC0415 - as the targets
    from tests.fuzz.targets import TARGETS  # noqa: PLC0415 - imported by now

    target, count, last = TARGETS[job.name], 0, b""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES + (1 << 30), resource.RLIM_INFINITY))
    signal.signal(signal.SIGALRM, _hang)
    ends = time.monotonic() + job.seconds

    def one(data: bytes) -> None:
        nonlocal count, last
        if time.monotonic() >= ends:
            return
        count, last = count + 1, data
        signal.setitimer(signal.ITIMER_REAL, HANG_SECONDS)
        try:
            target.run(data)
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)

    chosen = settings(
        max_examples=500,
        deadline=None,
        database=None,
        phases=(Phase.generate, Phase.shrink),
        suppress_health_check=list(HealthCheck),
    )
    number = time.time_ns()
    try:
        while time.monotonic() < ends:
            number += 1
            seed(number)(chosen(given(inputs_for(target))(one)))()
    except BaseException:
        name = job.directory / f"crash-{hashlib.sha256(last).hexdigest()[:40]}"
        name.write_bytes(last)
        raise
    print(f"inputs: {count}")


def _hang(_number: int, _frame: FrameType | None) -> None:
    raise Hang(f"one input took more than {HANG_SECONDS} s")


def _faults(job: Job) -> list[Path]:
    """Inputs that were kept: crash-, timeout- and oom-."""
    return sorted(path for kind in ("crash", "timeout", "oom") for path in job.directory.glob(f"{kind}-*"))


def _report(job: Job, code: int) -> bool:
    """Print the target's line; True when it ended well."""
    said = job.log.read_text(encoding="utf-8", errors="replace")
    counted = _UNITS.search(said) or _COUNTED.search(said)
    inputs = counted[1] if counted else "?"
    seconds = time.monotonic() - job.started
    kept = _faults(job)
    if code == 0 and not kept:
        print(f"{job.name:<15} ok     {inputs:>9} inputs  {seconds:5.1f} s", flush=True)
        return True
    print(f"{job.name:<15} FAULT  {inputs:>9} inputs  {seconds:5.1f} s  (ended with {code})")
    for path in kept:
        where = path.relative_to(ROOT)
        print(f"    again: .venv/bin/python tools/fuzz.py --reproduce {where} {job.name}")
    lines = [line for line in said.splitlines() if not line.startswith(("#", "INFO", "\t", "stat::"))]
    print("\n".join(f"    | {line[:160]}" for line in lines[-25:]), flush=True)
    return False


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
