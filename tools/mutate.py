"""Takes every rule out in turn and expects a test to fail: a rule that no test misses is not tested.

Usage: .venv/bin/python tools/mutate.py [RULE ...]

A rule is replaced by one that never speaks, in a forked process of its own, so nothing in the product knows about it.
Tests are chosen by name: those whose id holds the rule's; a file that names none of its tests so runs whole.
"""

import contextlib
import importlib
import io
import json
import os
import re
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

import pytest  # noqa: E402  the path above comes first

from app.adapters.sigstore import rules as signature_rules  # noqa: E402
from app.core import cross_check, findings  # noqa: E402
from app.core.rules import RULES, RuleKind  # noqa: E402


@dataclass(frozen=True, slots=True)
class Target:
    """A rule, the files whose tests should miss it, and how it is silenced in this process.

    `name` tells apart the two places where a signature rule can speak: S16 and S18 are findings too.
    """

    rule: str
    files: tuple[str, ...]
    silence: Callable[[], None]
    name: str


@dataclass(slots=True)
class Outcome:
    """What pytest said: how many tests were chosen and which failed."""

    chosen: int = 0
    failed: list[str] = field(default_factory=list)
    broken: str = ""


class Selection:
    """A pytest plugin that keeps the tests of one rule and notes what fails."""

    def __init__(self, rule: str | None) -> None:
        self.rule = rule
        self.outcome = Outcome()

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Keep what names the rule, or everything when nothing does."""
        if self.rule is not None:
            name = re.compile(rf"(?<![A-Za-z0-9]){self.rule}(?![A-Za-z0-9])|_{self.rule.lower()}_")
            items[:] = [item for item in items if name.search(item.nodeid.partition("::")[2])] or items
        self.outcome.chosen = len(items)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note a failure in any phase."""
        if report.failed:
            self.outcome.failed.append(report.nodeid)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """A file that can not be collected proves nothing."""
        if report.failed:
            self.outcome.broken = report.nodeid


def _silence_signature_rule(rule: str) -> Callable[[], None]:
    def silence() -> None:
        signature_rules.CHECKS = tuple(
            signature_rules.Check(check.rule, check.stage, _says_nothing) if check.rule == rule else check
            for check in signature_rules.CHECKS
        )

    return silence


def _silence_finding(rule: str) -> Callable[[], None]:
    def silence() -> None:
        findings.FINDING_RULES = tuple(
            (name, _finds_nothing if name == rule else judge) for name, judge in findings.FINDING_RULES
        )
        findings.find.__defaults__ = (findings.FINDING_RULES,)

    return silence


def _silence_cross_check() -> None:
    cross_check.cross_check = _says_nothing


def _says_nothing(*_: object) -> None:
    return None


def _finds_nothing(*_: object) -> tuple[str, ...]:
    return ()


_RULE_TESTS = ("tests/adapters/test_sigstore_rules.py",)
_JUDGE_TESTS = ("tests/adapters/test_sigstore_verifier.py",)


def targets() -> Iterator[Target]:
    """Every rule of the registries, in their order."""
    for rule in dict.fromkeys(check.rule for check in signature_rules.CHECKS):
        files = _RULE_TESTS if RULES[rule].kind is RuleKind.SIGNATURE else _JUDGE_TESTS
        yield Target(rule, files, _silence_signature_rule(rule), rule)
    yield Target("S17", ("tests/core/test_cross_check.py",), _silence_cross_check, "S17")
    found = tuple(
        str(path.relative_to(ROOT))
        for path in sorted((ROOT / "tests").rglob("test_*.py"))
        if "app.core.findings" in path.read_text(encoding="utf-8")
    )
    for rule, _ in findings.FINDING_RULES:
        name = rule if RULES[rule].kind is RuleKind.FINDING else f"{rule}-finding"
        yield Target(rule, found, _silence_finding(rule), name)


def run(rule: str | None, files: Sequence[str], silence: Callable[[], None]) -> Outcome:
    """Run the tests of `rule` in a fork in which it is silent; the fork keeps what was imported here."""
    if not files:
        return Outcome(broken="no test file")
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        _run_in_child(rule, files, silence, writer)
    os.close(writer)
    with os.fdopen(reader) as pipe:
        text = pipe.read()
    os.waitpid(child, 0)
    if not text:
        return Outcome(broken="the test run died")
    said = json.loads(text)
    return Outcome(said["chosen"], said["failed"], said["broken"])


def _run_in_child(rule: str | None, files: Sequence[str], silence: Callable[[], None], writer: int) -> None:
    selection = Selection(rule)
    try:
        silence()
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            stop = ["--maxfail=1"] if rule is not None else []
            code = pytest.main(["-q", "-p", "no:cacheprovider", *stop, *files], plugins=[selection])
        outcome = selection.outcome
        if code not in {pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED} and not outcome.broken:
            outcome.broken = f"pytest ended with {code!r}"
        said = {"chosen": outcome.chosen, "failed": outcome.failed, "broken": outcome.broken}
        os.write(writer, json.dumps(said).encode())
    finally:
        os._exit(0)


def judge(target: Target) -> tuple[bool, str]:
    """Whether a test missed the rule, and the line that says so."""
    started = time.monotonic()
    outcome = run(target.rule, target.files, target.silence)
    seconds = time.monotonic() - started
    if outcome.broken:
        return False, f"{target.name:<11} ERROR     {outcome.broken}"
    if not outcome.failed:
        return False, f"{target.name:<11} SURVIVED  none of {outcome.chosen} tests missed it"
    name = outcome.failed[0].partition("::")[2]
    return True, f"{target.name:<11} caught    {name}  ({outcome.chosen} tests, {seconds:.1f} s)"


def main(arguments: Sequence[str]) -> int:
    """Print a line a rule; exit 1 when a rule is missed by nobody or tests fail with all rules in place."""
    os.chdir(ROOT)
    known: Mapping[str, Target] = {target.name: target for target in targets()}
    unknown = [rule for rule in arguments if rule not in known]
    if unknown:
        print(f"unknown rules {', '.join(unknown)}; known are {', '.join(known)}", file=sys.stderr)
        return 2
    chosen = [known[rule] for rule in arguments or known]
    importlib.import_module("tests.support.signatures")  # once, for all forks
    files = sorted({file for target in chosen for file in target.files})
    baseline = run(None, files, _says_nothing)
    if baseline.failed or baseline.broken:
        print(f"with every rule in place: {baseline.broken or baseline.failed[0]} fails", file=sys.stderr)
        return 1
    print(f"with every rule in place: {baseline.chosen} tests pass")
    caught = 0
    for target in chosen:
        good, line = judge(target)
        caught += good
        print(line, flush=True)
    print(f"{caught} of {len(chosen)} rules: a test fails when the rule is silent")
    return 0 if caught == len(chosen) else 1


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
