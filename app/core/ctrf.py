"""CTRF phase reports, read within bounds (evidence-format 9).

A report was written by a stranger: what can not be read is a `DocumentInvalid`, which makes a finding (E3) and no
verdict of its own, since upstream never looks inside. How statuses weigh is in `core.consensus`.
"""

import hashlib
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from app.core.bundle import CAPTURED_LIMITS, TestOutcome, ctrf_file
from app.core.errors import DocumentInvalid
from app.core.jsontext import parse_json

MAX_TESTS = 10_000
MAX_TEXT_CHARS = 1024
MAX_OVERRIDDEN_PATHS = 1024
STATUSES = ("passed", "failed", "skipped", "pending", "other")
RAN = frozenset({"passed", "failed"})
MIN_DURATIONS = 3
"""So many timed tests make the durations of two runs comparable (trust 6)."""

_KNOWN = frozenset({"results", "summary", "tests", "name", "status", "duration", "extra", "start", "stop", *STATUSES})
_FOLDED: Mapping[str, str] = {key.casefold(): key for key in _KNOWN}


@dataclass(frozen=True, slots=True)
class PhaseReport:
    """One report: its tests, its own summary by name, start and stop in ms since the epoch (0 is unset)."""

    phase: str
    tests: tuple[TestOutcome, ...]
    summary: Mapping[str, int]
    start_ms: int
    stop_ms: int
    overridden_paths: tuple[str, ...] = ()

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
    outcomes = tuple(_outcome(phase, _object(test, f"{what} test"), overridden) for test in tests)
    return PhaseReport(
        phase=phase,
        tests=outcomes,
        summary={key: _whole(summary.get(key), f"{what} summary.{key}") for key in ("tests", *STATUSES)},
        start_ms=_whole(summary.get("start"), f"{what} summary.start"),
        stop_ms=_whole(summary.get("stop"), f"{what} summary.stop"),
        overridden_paths=tuple(sorted(overridden)),
    )


def _outcome(phase: str, test: Mapping[str, object], overridden: set[str]) -> TestOutcome:
    name, status = _text(test.get("name"), "name"), _text(test.get("status"), "status")
    if not name or not status:
        raise DocumentInvalid(f"expected a name and a status for each test in {ctrf_file(phase)}")
    extra = test.get("extra")
    extra = {} if extra is None else _object(extra, "extra")
    _collect_overridden(test.get("runtimeProvenance"), overridden)
    return TestOutcome(
        phase=phase,
        name=name,
        status=status,
        duration_ms=_duration(test.get("duration")),
        skip_reason=_text(extra.get("skipReason"), "skipReason"),
        runtime_source=_text(extra.get("runtimeSource"), "runtimeSource"),
    )


def _collect_overridden(provenance: object, overridden: set[str]) -> None:
    if provenance is None:
        return
    paths = _object(provenance, "runtimeProvenance").get("overriddenPaths")
    if paths is None:
        return
    if not isinstance(paths, list):
        raise DocumentInvalid("expected a list as runtimeProvenance.overriddenPaths")
    overridden.update(_text(path, "overridden path") for path in paths)
    if len(overridden) > MAX_OVERRIDDEN_PATHS:
        raise DocumentInvalid(f"expected at most {MAX_OVERRIDDEN_PATHS} overridden paths, got more")


def _object(value: object, what: str) -> Mapping[str, object]:
    """An object whose known keys are in their own case: Go's decoder would read the others too."""
    if not isinstance(value, dict):
        raise DocumentInvalid(f"expected an object as {what}")
    for key in value:
        if key not in _KNOWN and key.casefold() in _FOLDED:
            raise DocumentInvalid(f"expected the key {_FOLDED[key.casefold()]!r} in {what}, got {key[:80]!r}")
    return value


def _text(value: object, what: str) -> str:
    if value is None:
        return ""
    if not isinstance(value, str) or len(value) > MAX_TEXT_CHARS:
        raise DocumentInvalid(f"expected a text of at most {MAX_TEXT_CHARS} characters as {what}")
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
