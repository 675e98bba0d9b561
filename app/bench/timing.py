"""Interleaved pairs and their medians: what a ratio on a noisy machine is made of.

Both sides of a pair run right after each other, their order swapped from pair to pair, so that a slow moment of the
machine meets both; the median of the pairs' ratios then says what is true of most moments.
"""

import cProfile
import gc
import pstats
import resource
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import PurePath

from app.bench.figures import Profile, ProfileLine

_PROFILE_LINES = 25
_SHOWN_PARTS = 3

Step = Callable[[], object]
Watch = Callable[[], None]
"""Told each time that something was done, for a progress bar."""


@dataclass(frozen=True, slots=True)
class Pairs:
    """Seconds of both sides, pair by pair: `wall` by the clock, `cpu` in this process and in children that ended."""

    wall: tuple[tuple[float, float], ...]
    cpu: tuple[tuple[float, float], ...]

    @property
    def ratio(self) -> float:
        """How much longer the first side takes than the second, by the clock: the median over the pairs."""
        return statistics.median(a / b for a, b in self.wall)

    @property
    def cpu_ratio(self) -> float:
        """The same by processor time."""
        return statistics.median(a / b if b else 0.0 for a, b in self.cpu)

    @property
    def seconds(self) -> tuple[float, float]:
        """The median of each side."""
        return statistics.median(a for a, _ in self.wall), statistics.median(b for _, b in self.wall)

    def details(self, first: str, second: str) -> dict[str, float]:
        """For a figure: the medians in milliseconds, the ratio by processor time and its quartiles by the clock."""
        one, other = self.seconds
        low, _, high = (
            statistics.quantiles([a / b for a, b in self.wall], n=4) if len(self.wall) > 1 else (self.ratio,) * 3
        )
        return {
            f"{first}Ms": one * 1e3,
            f"{second}Ms": other * 1e3,
            "cpuRatio": self.cpu_ratio,
            "quartileLow": low,
            "quartileHigh": high,
            "pairs": len(self.wall),
        }


def interleave(first: Callable[[int], object], second: Callable[[int], object], *, rounds: int, warm: int = 1) -> Pairs:
    """Time both sides `rounds` times; each is told the number of its round. `warm` rounds before do not count."""
    for index in range(warm):
        first(index)
        second(index)
    wall, cpu = [], []
    with _quiet():
        for index in range(rounds):
            if index % 2:
                other, one = _timed(second, index), _timed(first, index)
            else:
                one, other = _timed(first, index), _timed(second, index)
            wall.append((one[0], other[0]))
            cpu.append((one[1], other[1]))
    return Pairs(tuple(wall), tuple(cpu))


def _timed(side: Callable[[int], object], index: int) -> tuple[float, float]:
    wall, cpu = time.perf_counter(), _cpu_seconds()
    side(index)
    return time.perf_counter() - wall, _cpu_seconds() - cpu


def _cpu_seconds() -> float:
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + ended.ru_utime + ended.ru_stime


@contextmanager
def _quiet() -> Iterator[None]:
    """What was made before the measurement is not collected during it; what it makes itself is."""
    gc.collect()
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


def profiled(step: str, run: Step, *, seconds: float, times: int = 20, each: int = 1) -> Profile:
    """Where the time of `run` goes; `seconds` is what one unprofiled step takes, a run is `each` of them."""
    profiler = cProfile.Profile()
    profiler.enable()
    for _ in range(times):
        run()
    profiler.disable()
    stats = pstats.Stats(profiler).stats  # type: ignore[attr-defined]  # typeshed leaves it out
    done = times * each
    lines = [
        ProfileLine(_named(where), calls // done, own / done, cumulative / done)
        for where, (_, calls, own, cumulative, _) in stats.items()
        if "_lsprof" not in where[2]
    ]
    lines.sort(key=lambda line: line.cumulative_seconds, reverse=True)
    return Profile(step, seconds, tuple(lines[:_PROFILE_LINES]))


def _named(where: tuple[str, int, str]) -> str:
    """`core/canonical/emit.py:72 _node`: the end of the path says enough, and nothing about this machine."""
    file, line, name = where
    if file in {"~", ""}:
        return name
    parts = PurePath(file).parts
    for root in sys.path:
        if root and file.startswith(root.rstrip("/") + "/"):
            parts = PurePath(file).relative_to(root).parts
    return f"{'/'.join(parts[-_SHOWN_PARTS:])}:{line} {name}"


def rotating(steps: Sequence[Step]) -> Callable[[int], object]:
    """A side that takes the next of `steps` each round, so that nothing is judged twice in a row."""
    return lambda index: steps[index % len(steps)]()
