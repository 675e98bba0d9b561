"""Every measurement runs at a tiny size and gives the figures that it promises; none is held to its bar here."""

import json
from functools import cache
from pathlib import Path

import pytest

from app.bench.figures import BenchReport, Figure, Outcome, Profile
from app.bench.plan import Plan
from app.bench.run import MEASUREMENTS, SHOWN_PROFILES, chosen, run
from app.cli.main import aicr_evidence
from app.core.errors import InputError

TINY = Plan("small", scale=0.02)
FIGURES = {
    "start": ["start-help", "start-digest"],
    "judge": ["judge-v2-p384", "judge-v2-p384-libyaml", "judge-v1-p384", "judge-v2-p256", "judge-v1-p256"],
    "workers": ["workers-two"],
    "ingest": ["ingest-pull", "ingest-pull-large"],
    "growth": ["read-stored", "read-304", "ingest-stored"],
    "rebuild": ["rebuild-linear", "rebuild-same"],
    "memory": ["memory-idle", "memory-2", "memory-hostile"],
}
BARRED = {
    "start-help": (8.0, False),
    "start-digest": (8.0, False),
    "judge-v2-p384": (3.0, False),
    "workers-two": (1.6, True),
    "ingest-pull": (0.8, True),
    "read-stored": (1.5, False),
    "read-304": (5.0, True),
    "ingest-stored": (1.3, False),
    "rebuild-linear": (1.2, False),
    "rebuild-same": (1.0, True),
    "memory-idle": (250.0, False),
    "memory-hostile": (400.0, False),
}


@cache
def tiny(name: str) -> BenchReport:
    """One measurement, run once for all tests that look at it."""
    return run(TINY, [name])


@pytest.mark.parametrize("name", MEASUREMENTS)
def test_a_measurement_gives_its_figures(name: str) -> None:
    report = tiny(name)
    assert [figure.name for figure in report.figures] == FIGURES[name]
    assert all(figure.value > 0 for figure in report.figures)
    for figure in report.figures:
        bar = None if figure.bar is None else (figure.bar.limit, figure.bar.at_least)
        assert bar == BARRED.get(figure.name)
    json.dumps(report.to_json())


def test_a_rebuild_says_the_same() -> None:
    (same,) = [figure for figure in tiny("rebuild").figures if figure.name == "rebuild-same"]
    assert same.value == 1


def _outcome(name: str, seconds: float) -> Outcome:
    return Outcome((Figure(name, name, 1.0, "x"),), (Profile(name, seconds, ()),))


FAKES = {
    "quick": lambda _: _outcome("quick", 0.001),
    "slow": lambda _: _outcome("slow", 3.0),
    "middling": lambda _: _outcome("middling", 0.5),
}


def test_the_slowest_steps_are_profiled_slowest_first() -> None:
    begun: list[str] = []
    report = run(Plan(), measurements=FAKES, begins=begun.append)
    assert begun == ["quick", "slow", "middling"]
    assert [profile.step for profile in report.profiles] == ["slow", "middling"]
    assert SHOWN_PROFILES == 2


def test_measurements_run_in_their_order_whatever_order_was_asked_for() -> None:
    assert chosen(["memory", "start"]) == ("start", "memory")
    assert chosen([]) == tuple(MEASUREMENTS)


def test_an_unknown_measurement_is_named_with_the_known_ones() -> None:
    with pytest.raises(InputError, match="no measurement is named 'speed'") as raised:
        chosen(["speed"])
    assert raised.value.hint == "one of start, judge, workers, ingest, growth, rebuild, memory"


@pytest.mark.parametrize(
    ("size", "scale", "rounds"),
    [
        pytest.param("small", 1.0, 80, id="small"),
        pytest.param("full", 1.0, 400, id="full"),
        pytest.param("small", 0.1, 8, id="scaled"),
        pytest.param("small", 0.001, 2, id="never-less-than-two"),
    ],
)
def test_a_plan_picks_rounds(size: str, scale: float, rounds: int) -> None:
    assert Plan(size, scale).pick(small=80, full=400) == rounds


def test_the_verb_prints_a_table_and_writes_json(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(MEASUREMENTS, "start", FAKES["quick"])
    monkeypatch.setattr("sys.argv", ["aicr-evidence", "bench", "--only", "start", "--output", str(tmp_path / "b.json")])
    assert aicr_evidence() == 0
    assert "quick   1.00 x" in capsys.readouterr().out
    assert json.loads((tmp_path / "b.json").read_text())["figures"][0]["name"] == "quick"


def test_the_verb_refuses_a_measurement_that_is_none(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["aicr-evidence", "bench", "--only", "speed"])
    assert aicr_evidence() == 2
    assert "no measurement is named 'speed'" in capsys.readouterr().err


def test_an_output_that_can_not_be_written_ends_it_before_anything_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(MEASUREMENTS, "start", lambda _: pytest.fail("it ran"))
    target = str(tmp_path / "missing" / "b.json")
    monkeypatch.setattr("sys.argv", ["aicr-evidence", "bench", "--only", "start", "--output", target])
    assert aicr_evidence() == 2
    assert "can not be written" in capsys.readouterr().err
