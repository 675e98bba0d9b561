"""CTRF phase reports, read within bounds (evidence-format 9).

A report was written by a stranger: what can not be read is a `DocumentInvalid`, which makes a finding (E3) and no
verdict of its own, since upstream never looks inside. How statuses weigh is in `core.consensus`.
"""

import hashlib
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from app.core.bundle import CAPTURED_LIMITS, Figure, TestOutcome, ctrf_file
from app.core.errors import DocumentInvalid
from app.core.figures import MAX_FIGURES, read_figures
from app.core.jsontext import parse_json, refuse_case_variants

MAX_TESTS = 1000
MAX_TEXT_CHARS = 256
MAX_OVERRIDDEN_PATHS = 1024
STATUSES = ("passed", "failed", "skipped", "pending", "other")
RAN = frozenset({"passed", "failed"})
MIN_DURATIONS = 3
"""So many timed tests make the durations of two runs comparable (trust 6)."""

_KNOWN = frozenset(
    {"results", "summary", "tests", "name", "status", "duration", "stdout", "extra", "skipReason", "runtimeSource"}
    | {"runtimeProvenance", "overriddenPaths", "start", "stop", *STATUSES}
)


@dataclass(frozen=True, slots=True)
class PhaseReport:
    """One report: its tests, its own summary by name, start and stop in ms since the epoch (0 is unset)."""

    phase: str
    tests: tuple[TestOutcome, ...]
    summary: Mapping[str, int]
    start_ms: int
    stop_ms: int
    overridden_paths: tuple[str, ...] = ()
    figures: tuple[Figure, ...] = ()  # measured, only in the output of full bundles

    def counted(self) -> Mapping[str, int]:
        """The same numbers as `summary`, counted from the tests."""
        by_status = Counter(test.status for test in self.tests)
        return {"tests": len(self.tests), **{status: by_status[status] for status in STATUSES}}

    @property
    def ran(self) -> bool:
        """Whether any test passed or failed, so that the report says something about the cluster."""
        return any(test.status in RAN for test in self.tests)


def parse_report(phase: str, data: bytes) -> PhaseReport:
    """Read one report; raises `DocumentInvalid` for anything that is no CTRF report of usual size."""
    what = ctrf_file(phase)
    document = _object(parse_json(data, max_bytes=CAPTURED_LIMITS[what], what=what), what)
    results = _object(document.get("results"), f"{what} results")
    summary = _object(results.get("summary"), f"{what} summary")
    tests = results.get("tests")
    if tests is None:
        tests = []
    if not isinstance(tests, list) or len(tests) > MAX_TESTS:
        raise DocumentInvalid(f"expected a list of at most {MAX_TESTS} tests in {what}")
    overridden: set[str] = set()
    figures: list[Figure] = []
    outcomes: list[TestOutcome] = []
    for item in tests:
        test = _object(item, f"{what} test")
        outcome = _outcome(phase, test)
        outcomes.append(outcome)
        overridden |= _overridden(test.get("runtimeProvenance"))
        if len(overridden) > MAX_OVERRIDDEN_PATHS:
            raise DocumentInvalid(f"expected at most {MAX_OVERRIDDEN_PATHS} overridden paths in {what}, got more")
        if len(figures) < MAX_FIGURES:
            figures += read_figures(phase, outcome.name, _lines(test.get("stdout")))
    return PhaseReport(
        phase=phase,
        tests=tuple(outcomes),
        summary={key: _whole(summary.get(key), f"{what} summary.{key}") for key in ("tests", *STATUSES)},
        start_ms=_whole(summary.get("start"), f"{what} summary.start"),
        stop_ms=_whole(summary.get("stop"), f"{what} summary.stop"),
        overridden_paths=tuple(sorted(overridden)),
        figures=tuple(figures[:MAX_FIGURES]),
    )


def _outcome(phase: str, test: Mapping[str, object]) -> TestOutcome:
    name, status = _text(test.get("name"), "name"), _text(test.get("status"), "status")
    if not name or not status:
        raise DocumentInvalid(f"expected a name and a status for each test in {ctrf_file(phase)}")
    extra = test.get("extra")
    extra = {} if extra is None else _object(extra, "extra")
    return TestOutcome(
        phase=phase,
        name=name,
        status=status,
        duration_ms=_duration(test.get("duration")),
        skip_reason=_text(extra.get("skipReason"), "skipReason"),
        runtime_source=_text(extra.get("runtimeSource"), "runtimeSource"),
    )


def _overridden(provenance: object) -> set[str]:
    if provenance is None:
        return set()
    paths = _object(provenance, "runtimeProvenance").get("overriddenPaths")
    if paths is None:
        return set()
    if not isinstance(paths, list):
        raise DocumentInvalid("expected a list as runtimeProvenance.overriddenPaths")
    return {_text(path, "overridden path") for path in paths}


def _lines(stdout: object) -> list[str]:
    """The output lines of a full bundle's test; output is no evidence, so any other shape is nothing."""
    return [line for line in stdout if isinstance(line, str)] if isinstance(stdout, list) else []


def _object(value: object, what: str) -> Mapping[str, object]:
    """An object whose known keys are in their own case: Go's decoder would read the others too."""
    if not isinstance(value, dict):
        raise DocumentInvalid(f"expected an object as {what}")
    if not value.keys() <= _KNOWN:
        refuse_case_variants(value, _KNOWN)
    return value


def _text(value: object, what: str) -> str:
    if value is None:
        return ""
    if not isinstance(value, str) or len(value) > MAX_TEXT_CHARS or "\0" in value:
        raise DocumentInvalid(f"expected a text of at most {MAX_TEXT_CHARS} characters without U+0000 as {what}")
    return value


def _whole(value: object, what: str) -> int:
    if value is None:
        return 0
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < 1 << 53:
        raise DocumentInvalid(f"expected a count as {what}")
    return value


def _duration(value: object) -> int | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1 << 53:
        raise DocumentInvalid("expected milliseconds as a test's duration")
    return int(value)


def durations_print(reports: Sequence[PhaseReport]) -> str | None:
    """What identifies a run by its timing: bare hex over phase, name and duration of every timed test that ran.

    None below `MIN_DURATIONS` such tests, and for a run without timing, since zeros would make all runs alike.
    """
    timed = sorted(
        (test.phase, test.name, test.duration_ms)
        for report in reports
        for test in report.tests
        if test.status in RAN and test.duration_ms
    )
    if len(timed) < MIN_DURATIONS:
        return None
    return hashlib.sha256(json.dumps(timed).encode()).hexdigest()
