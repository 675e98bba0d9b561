"""One run of the bench: the measurements by name, what they found, and the profiles of the slowest steps."""

import logging
import os
import platform
import time
from collections.abc import Callable, Mapping, Sequence

import psutil

from app.bench.figures import BenchReport, Figure, Machine, Outcome, Profile
from app.bench.growth import growth
from app.bench.ingesting import ingesting
from app.bench.judging import judging
from app.bench.memory import memory
from app.bench.plan import Plan
from app.bench.rebuilding import rebuilding
from app.bench.start import start
from app.bench.workers import workers
from app.core.errors import InputError

MEASUREMENTS: Mapping[str, Callable[[Plan], Outcome]] = {
    "start": start,
    "judge": judging,
    "workers": workers,
    "ingest": ingesting,
    "growth": growth,
    "rebuild": rebuilding,
    "memory": memory,
}
"""Every measurement, the quickest first."""

SHOWN_PROFILES = 2
"""How many of the slowest steps a report profiles."""


def _silent(_name: str) -> None:
    """Nobody watches."""


def chosen(names: Sequence[str]) -> tuple[str, ...]:
    """The measurements to run, all without a choice; raises `InputError` for a name that is none."""
    unknown = [name for name in names if name not in MEASUREMENTS]
    if unknown:
        raise InputError(f"no measurement is named {unknown[0][:80]!r}", hint=f"one of {', '.join(MEASUREMENTS)}")
    return tuple(name for name in MEASUREMENTS if not names or name in names)


def run(
    plan: Plan,
    names: Sequence[str] = (),
    *,
    measurements: Mapping[str, Callable[[Plan], Outcome]] = MEASUREMENTS,
    begins: Callable[[str], None] = _silent,
) -> BenchReport:
    """Run the measurements one after the other; `begins` is told the name of each."""
    begun, machine = time.monotonic(), this_machine()
    figures: list[Figure] = []
    profiles: list[Profile] = []
    level = logging.root.manager.disable
    logging.disable(logging.WARNING)  # hostile input is logged by those who refuse it
    try:
        for name in names or measurements:
            begins(name)
            outcome = measurements[name](plan)
            figures += outcome.figures
            profiles += outcome.profiles
    finally:
        logging.disable(level)
    slowest = sorted(profiles, key=lambda profile: profile.seconds, reverse=True)[:SHOWN_PROFILES]
    return BenchReport(plan.size, machine, tuple(figures), tuple(slowest), time.monotonic() - begun)


def this_machine() -> Machine:
    """What the figures of this run were measured on."""
    return Machine(
        cpus=os.cpu_count() or 1,
        python=platform.python_version(),
        system=f"{platform.system()} {platform.machine()}",
        load=os.getloadavg()[0],
        memory_mb=psutil.virtual_memory().total >> 20,
    )
