"""Measured figures: reading them from a check's output, and comparing them with the catalogue's floors.

Figures stand only in the output of full bundles and prove nothing; a figure below a floor is a remark, no verdict.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import TypeVar

from app.core.bundle import Figure, Run

MAX_FIGURES = 100
"""Figures that are kept of one check's output."""

KUBERNETES_FLOOR = "K8s.server.version"
"""The one floor that is no figure: the recipe's constraint on the observed Kubernetes version."""

_MAX_LINE_CHARS = 300
_FIGURE = re.compile(
    r"(?:RESULT: )?(?P<name>[A-Za-z][A-Za-z0-9 /_-]{1,80}): (?P<value>[0-9]{1,15}(?:\.[0-9]{1,9})?) ?"
    r"(?P<unit>[A-Za-z%]{1,12}(?:/[A-Za-z]{1,12})?)"
)
_OPERATOR = r"(?P<op>>=|<=|==|>|<)?\s*"
_FLOOR = re.compile(
    _OPERATOR + r"(?P<value>[0-9]{1,15}(?:\.[0-9]{1,9})?)(?:\s*(?P<unit>[A-Za-z%]{1,12}(?:/[A-Za-z]{1,12})?))?"
)
_VERSION_FLOOR = re.compile(_OPERATOR + r"v?(?P<value>[0-9]{1,6}(?:\.[0-9]{1,6}){0,2})")
_KUBERNETES = re.compile(r"v?([0-9]{1,6}(?:\.[0-9]{1,6}){1,2})(?![0-9.])")
_Number = TypeVar("_Number", float, tuple[int, ...])


def read_figures(phase: str, check: str, lines: Iterable[str]) -> tuple[Figure, ...]:
    """The figures in a check's output lines (`NCCL All Reduce bandwidth: 488.37 GB/s`), at most `MAX_FIGURES`."""
    found: list[Figure] = []
    for line in lines:
        if len(found) == MAX_FIGURES:
            break
        if len(line) <= _MAX_LINE_CHARS and (match := _FIGURE.fullmatch(line.strip())):
            name = "-".join(match["name"].lower().split())
            found.append(Figure(phase, check, name, float(match["value"]), match["unit"]))
    return tuple(found)


def below_floors(run: Run, floors: Mapping[str, str]) -> Iterator[tuple[str, str, str]]:
    """(floor, measured, asked) of every floor that the run does not reach.

    A floor is named after a figure, or after a check with one figure. What was not measured is not below. A floor that
    does not read as a whole as a comparison with a number is passed over: `1,000` and `1e3` are no 1. One that names a
    unit says nothing about a figure in another.
    """
    by_check = Counter(figure.check for figure in run.figures)
    for name in sorted(floors):
        asked = floors[name].strip()
        if name == KUBERNETES_FLOOR:
            if _kubernetes_misses(run.k8s_version, asked):
                yield name, run.k8s_version, asked
            continue
        floor = _FLOOR.fullmatch(asked)
        if floor is None:
            continue
        for figure in run.figures:
            named = name == figure.name or (name == figure.check and by_check[figure.check] == 1)
            comparable = named and floor["unit"] in (None, figure.unit)
            if comparable and _misses(figure.value, floor["op"], float(floor["value"])):
                yield name, f"{figure.value:g} {figure.unit}", asked


def _kubernetes_misses(observed: str, asked: str) -> bool:
    """Compared to the precision of the floor: 1.34.2 satisfies `<= 1.34`."""
    match, floor = _KUBERNETES.match(observed), _VERSION_FLOOR.fullmatch(asked)
    if match is None or floor is None:
        return False
    due = tuple(int(part) for part in floor["value"].split("."))
    return _misses(tuple(int(part) for part in match[1].split("."))[: len(due)], floor["op"], due)


def _misses(measured: _Number, op: str | None, due: _Number) -> bool:
    match op or ">=":
        case ">=":
            return measured < due
        case "<=":
            return measured > due
        case ">":
            return measured <= due
        case "<":
            return measured >= due
        case _:
            return measured != due
