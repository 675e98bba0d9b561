"""Step 4b: every phase of the predicate has its report with the stated digest (evidence-format 8.3).

What the reports say is read in `core.ctrf`; whether counts agree with them is a finding (E3).
"""

from collections.abc import Sequence

from app.core.bundle import PHASES, Content, PhaseSummary, ReadFault, ctrf_file
from app.core.errors import Category
from app.core.inventory import bounded_rows
from app.core.report import Fault, SubRow
from app.core.rules import RULES

_CODE = RULES["PHASES"].code


def check_phases(content: Content, phases: Sequence[PhaseSummary]) -> Fault | None:
    """Compare each phase's `ctrfDigest` with the report in the bundle; reports without a phase are fine here."""
    rows: list[SubRow] = []
    for summary in phases:
        problem = _problem(content, summary)
        if isinstance(problem, Fault):
            return problem
        if problem:
            rows.append(SubRow(summary.phase, problem))
    if not rows:
        return None
    return Fault(_CODE, f"{len(rows)} phases do not hold", sub_rows=bounded_rows(rows))


def _problem(content: Content, summary: PhaseSummary) -> str | Fault:
    if summary.phase not in PHASES:
        return "predicate contains unknown phase"
    if not summary.ctrf_digest:
        return "predicate has no ctrfDigest for this phase"
    path = ctrf_file(summary.phase)
    data = content.read(path)
    if data is ReadFault.UNAVAILABLE:
        return Fault(_CODE, f"{path} can not be read from storage", category=Category.UNAVAILABLE)
    if isinstance(data, ReadFault):
        return f"{path} can not be read: {data.value}"
    got = f"sha256:{content.entries[path].sha256}"
    if got != summary.ctrf_digest:
        return f"ctrfDigest mismatch (got {got}, want {summary.ctrf_digest})"
    return ""
