"""What a report says of its figures, as values, JSON and a table."""

import pytest

from app.bench.figures import Bar, BenchReport, Figure, Machine, Profile, ProfileLine
from app.bench.table import render

MACHINE = Machine(cpus=2, python="3.11.7", system="Linux x86_64", load=0.5, memory_mb=8000)
SLOW = Figure("judge", "judge against bare", 3.25, "x", Bar(3.0, goal=1.5), {"judgeMs": 6.5, "bareMs": 2.0}, "busy")
QUICK = Figure("workers", "two against one", 1.75, "x", Bar(1.6, at_least=True))
REPORTED = Figure("memory-60", "after 60 bundles", 187.0, "MB")
PROFILE = Profile("judge", 0.0065, (ProfileLine("app/services/judge.py:64 judge", 1, 0.00001, 0.0065),))
REPORT = BenchReport("small", MACHINE, (SLOW, QUICK, REPORTED), (PROFILE,), 12.34)


@pytest.mark.parametrize(
    ("bar", "value", "holds"),
    [
        pytest.param(Bar(3.0), 3.0, True, id="at-the-limit"),
        pytest.param(Bar(3.0), 3.01, False, id="above-the-limit"),
        pytest.param(Bar(1.6, at_least=True), 1.6, True, id="just-enough"),
        pytest.param(Bar(1.6, at_least=True), 1.59, False, id="too-little"),
    ],
)
def test_a_bar_holds_up_to_its_limit(bar: Bar, value: float, *, holds: bool) -> None:
    assert bar.holds(value) is holds


def test_a_figure_without_a_bar_is_neither_met_nor_missed() -> None:
    assert [figure.met for figure in REPORT.figures] == [False, True, None]
    assert [figure.name for figure in REPORT.missed] == ["judge"]


def test_the_report_as_json() -> None:
    assert REPORT.to_json() == {
        "size": "small",
        "machine": {"cpus": 2, "python": "3.11.7", "system": "Linux x86_64", "load": 0.5, "memory_mb": 8000},
        "seconds": 12.3,
        "figures": [
            {
                "name": "judge",
                "what": "judge against bare",
                "value": 3.25,
                "unit": "x",
                "bar": {"limit": 3.0, "atLeast": False, "goal": 1.5},
                "met": False,
                "details": {"judgeMs": 6.5, "bareMs": 2.0},
                "note": "busy",
            },
            {
                "name": "workers",
                "what": "two against one",
                "value": 1.75,
                "unit": "x",
                "bar": {"limit": 1.6, "atLeast": True, "goal": None},
                "met": True,
                "details": {},
                "note": "",
            },
            {
                "name": "memory-60",
                "what": "after 60 bundles",
                "value": 187.0,
                "unit": "MB",
                "bar": None,
                "met": None,
                "details": {},
                "note": "",
            },
        ],
        "profiles": [
            {
                "step": "judge",
                "seconds": 0.0065,
                "functions": [
                    {
                        "function": "app/services/judge.py:64 judge",
                        "calls": 1,
                        "ownSeconds": 0.00001,
                        "cumulativeSeconds": 0.0065,
                    }
                ],
            }
        ],
        "missed": ["judge"],
    }


def test_the_report_as_a_table() -> None:
    assert render(REPORT) == (
        "size small, 2 CPUs, load 0.5, Python 3.11.7, Linux x86_64; 12 s\n"
        "\n"
        "figure     value      bar                      what\n"
        "judge      3.25 x     <= 3 (goal 1.5)  MISSED  judge against bare (judge 6.50 ms, bare 2.00 ms)\n"
        "workers    1.75 x     >= 1.6           met     two against one\n"
        "memory-60  187.00 MB                           after 60 bundles\n"
        "\n"
        "judge: busy\n"
        "\n"
        "judge: 6.50 ms a run; profiled, a run in milliseconds:\n"
        "  cumulative  own   calls  function\n"
        "  6.50        0.01  1      app/services/judge.py:64 judge\n"
    )
