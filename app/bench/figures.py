"""What a measurement says: figures beside the bars of service 7, and where the time of its slow steps goes."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field


@dataclass(frozen=True, slots=True)
class Bar:
    """What a figure is held to; `goal` is what would be better still."""

    limit: float
    at_least: bool = False
    goal: float | None = None

    def holds(self, value: float) -> bool:
        """Whether a figure meets the bar."""
        return value >= self.limit if self.at_least else value <= self.limit

    def __str__(self) -> str:
        """The bar as the table shows it."""
        sign = ">=" if self.at_least else "<="
        return f"{sign} {self.limit:g}" + ("" if self.goal is None else f" (goal {self.goal:g})")


@dataclass(frozen=True, slots=True)
class Figure:
    """One measured figure. Without a bar it is only reported; `details` are what it was made from."""

    name: str
    what: str
    value: float
    unit: str
    bar: Bar | None = None
    details: Mapping[str, float] = field(default_factory=dict)
    note: str = ""

    @property
    def met(self) -> bool | None:
        """Whether the bar holds; None without one."""
        return None if self.bar is None else self.bar.holds(self.value)

    def to_json(self) -> dict[str, object]:
        """Keys `name, what, value, unit, bar, met, details, note`; `bar` has `limit, atLeast, goal` or is null."""
        bar = self.bar
        return {
            "name": self.name,
            "what": self.what,
            "value": round(self.value, 4),
            "unit": self.unit,
            "bar": None if bar is None else {"limit": bar.limit, "atLeast": bar.at_least, "goal": bar.goal},
            "met": self.met,
            "details": {key: round(value, 6) for key, value in self.details.items()},
            "note": self.note,
        }


@dataclass(frozen=True, slots=True)
class ProfileLine:
    """One function: calls, seconds in itself and with what it called, both for one run of the step."""

    function: str
    calls: int
    own_seconds: float
    cumulative_seconds: float


@dataclass(frozen=True, slots=True)
class Profile:
    """A step with the seconds that one run of it takes unprofiled, and its functions by cumulative time."""

    step: str
    seconds: float
    lines: tuple[ProfileLine, ...]

    def to_json(self) -> dict[str, object]:
        """Keys `step, seconds, functions`."""
        return {
            "step": self.step,
            "seconds": self.seconds,
            "functions": [
                {
                    "function": line.function,
                    "calls": line.calls,
                    "ownSeconds": round(line.own_seconds, 6),
                    "cumulativeSeconds": round(line.cumulative_seconds, 6),
                }
                for line in self.lines
            ],
        }


@dataclass(frozen=True, slots=True)
class Machine:
    """What the ratios were measured on; no name, no address."""

    cpus: int
    python: str
    system: str
    load: float  # of one minute, at the start
    memory_mb: int


@dataclass(frozen=True, slots=True)
class Outcome:
    """Everything that one measurement found."""

    figures: tuple[Figure, ...]
    profiles: tuple[Profile, ...] = ()


@dataclass(frozen=True, slots=True)
class BenchReport:
    """One run of the bench."""

    size: str
    machine: Machine
    figures: tuple[Figure, ...]
    profiles: tuple[Profile, ...]  # of the slowest steps, slowest first
    seconds: float

    @property
    def missed(self) -> tuple[Figure, ...]:
        """Figures that do not meet their bar."""
        return tuple(figure for figure in self.figures if figure.met is False)

    def to_json(self) -> dict[str, object]:
        """Keys `size, machine, seconds, figures, profiles, missed`."""
        return {
            "size": self.size,
            "machine": asdict(self.machine),
            "seconds": round(self.seconds, 1),
            "figures": [figure.to_json() for figure in self.figures],
            "profiles": [profile.to_json() for profile in self.profiles],
            "missed": [figure.name for figure in self.missed],
        }
