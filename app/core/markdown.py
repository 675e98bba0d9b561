"""The verification report for people (evidence-format 8.7), everything in it escaped.

A report is made of what strangers wrote: names, digests, certificates. Nothing of that may become a heading, a link,
HTML or a terminal sequence, so every value passes `escape`. The last part says what was verified here and what no
signature proves (service 5).
"""

import math
import re
from collections.abc import Iterator, Mapping, Sequence

from app.core.bundle import PHASES
from app.core.party import visible
from app.core.report import Exit, FailureCause, Report, Step, StepName, StepStatus

MAX_VALUE_CHARS = 2000
MAX_LINES = 64
"""Lines of one part that a stranger can make longer at will."""
_MARKUP = re.compile(r"[\\`*\[\]#|~$]|(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])")
_NOTIFIES = re.compile(r"(?<![A-Za-z0-9])@|#(?=\d)")
_LINKS = re.compile(r":(?=//)|www(?=\.)|@(?=[\w-]*\.)", re.IGNORECASE)
"""Where GitHub's Markdown sees a mention or an issue, and where an address, without any markup around them."""
_JOINER = "\u2060"
_JOINED = rf"\g<0>{_JOINER}"
_BREAKS = re.compile(r"[\n\r\t\v\f\x85\u2028\u2029]")
_HTML = str.maketrans({"<": "&lt;", ">": "&gt;", "&": "&amp;"})
_VERIFIED: Mapping[StepName, str] = {
    StepName.SIGNATURE: "the signature, its certificate and its transparency-log entry hold under a trusted root",
    StepName.PREDICATE: "the statement is recipe evidence of a known type",
    StepName.MANIFEST: "every file is the one that was signed, and the recipe is the one that is named",
}
_VERIFIED_UNSIGNED: Mapping[StepName, str] = {
    StepName.PREDICATE: "the statement, which no verified signature covers, is recipe evidence of a known type",
    StepName.MANIFEST: "every file is one that this statement's manifest lists, and the recipe is the one it names",
}
"""Without a signature that holds, the files agree with one another and with nobody's word."""
NOT_PROVEN = (
    "that the validation ran on the hardware that is named: fingerprint and snapshot are the producer's words",
    "that recorded counts and figures were measured: they are signed, not observed",
    "that two signers ran independently of one another",
)


def render_markdown(report: Report) -> str:
    """The whole report; parts whose data is missing are left out. Ends with one newline."""
    predicate = report.predicate or {}
    parts = [
        _heading(report),
        _summary(report, predicate),
        *([_fingerprint(predicate)] if predicate else []),
        _phases(predicate),
        _bom(predicate),
        _redaction(predicate),
        _steps(report.steps),
        _failed_details(report.steps),
        _findings(report),
        _verdict(report),
        _limits(report),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def escape(text: object) -> str:
    """`text` as inert Markdown on one line: markup and HTML defused, control and bidi characters made visible.

    Word joiners keep a stranger's text from becoming a link, and from notifying people when a report becomes a
    comment. They are written as entities, which stay what they are where invisible characters are spelled out.
    """
    return _inert(_LINKS.sub(_JOINED, _NOTIFIES.sub(_JOINED, _shown(text)))) + _cut(text)


def certified(text: object) -> str:
    """A name that a certificate vouches for, as `escape` makes it but for its address: that can be copied (8.7)."""
    return _inert(_NOTIFIES.sub(_JOINED, _shown(text))) + _cut(text)


def _shown(text: object) -> str:
    return visible(_BREAKS.sub(" ", str(text)[:MAX_VALUE_CHARS]))


def _inert(value: str) -> str:
    return _MARKUP.sub(r"\\\g<0>", value.translate(_HTML)).replace(_JOINER, "&#8288;")


def _cut(text: object) -> str:
    return "…" if len(str(text)) > MAX_VALUE_CHARS else ""


def code(text: object) -> str:
    """`text` as a code span: backticks would end it and pipes would end a cell, so both are made visible."""
    value = _shown(text).replace("`", "\\x60").replace("|", "\\x7c")
    return f"`{value}`" if value.strip() else "(empty)"


def _heading(report: Report) -> str:
    name = f" — {escape(report.recipe_name)}" if report.recipe_name else ""
    return f"## Evidence verification{name}"


def _summary(report: Report, predicate: Mapping[str, object]) -> str:
    lines = [_signer(report)]
    for label, key in (("AICR", "aicrVersion"), ("Schema", "schemaVersion")):
        if predicate.get(key):
            lines.append(f"**{label}:** {escape(predicate[key])}")
    if report.bundle_digest:
        lines.append(f"**Bundle digest:** {code(report.bundle_digest)}")
    return "\n".join(f"{line}  " for line in lines if line).rstrip()


def _signer(report: Report) -> str:
    if report.signer is not None:
        index = report.signer.rekor_log_index
        rekor = f" • **Rekor:** index {index}" if index is not None else ""
        return f"**Signer:** {certified(report.signer.identity)} (issuer {certified(report.signer.issuer)}){rekor}"
    match next((step.status for step in report.steps if step.name is StepName.SIGNATURE), None):
        case StepStatus.FAILED:
            return "*signature verification failed; nothing below is vouched for by anybody*"
        case StepStatus.SKIPPED:
            return "*unsigned bundle; nothing below is vouched for by anybody*"
        case _:
            return ""


def _fingerprint(predicate: Mapping[str, object]) -> str:
    rows = _mappings(_mapping(predicate.get("criteriaMatch")).get("perDimension"))[:MAX_LINES]
    if not rows:
        return ""
    matches = [str(row.get("match", "")) for row in rows]
    if "mismatched" in matches:
        line = "The cluster does not satisfy some of the recipe's criteria."
    elif "not-inferable" in matches:
        line = "The recipe's criteria are satisfied; some can not be inferred from the cluster."
    else:
        line = "All of the recipe's criteria that were captured are satisfied."
    table = [
        f"| {escape(row.get('dimension', ''))} | {escape(row.get('match', ''))} "
        f"recipe={_or(row.get('recipeRequires'), '(any)')} "
        f"snapshot={_or(row.get('fingerprintProvides'), '(not captured)')} |"
        for row in rows
    ]
    return "\n".join(["### Cluster fingerprint", "", line, "", "| Dimension | Outcome |", "|---|---|", *table])


def _or(value: object, absent: str) -> str:
    return escape(value) if value else absent


def _phases(predicate: Mapping[str, object]) -> str:
    phases = _mapping(predicate.get("phases"))
    lines = [_phase(name, _mapping(phases[name])) for name in PHASES if name in phases]
    return "\n".join(["### Phase results", "", *lines]) if lines else ""


def _phase(name: str, counts: Mapping[str, object]) -> str:
    """One line; a phase in which nothing ran is no pass (E9), so it gets no check mark."""
    passed, failed, skipped = (_count(counts.get(key)) for key in ("passed", "failed", "skipped"))
    mark = "❌" if failed else "✅" if passed else "⚪"
    note = "" if passed or failed or skipped else " (nothing recorded)"
    return f"- {mark} **{name}** passed={passed} failed={failed} skipped={skipped}{note}"


def _bom(predicate: Mapping[str, object]) -> str:
    bom = _mapping(predicate.get("bom"))
    if not bom:
        return ""
    name = f"{escape(bom.get('format', ''))} {escape(bom.get('version', ''))}"
    components = f"{_count(bom.get('imageCount'))} components"
    return "\n".join(["### BOM", "", f"- {name}, {components}", f"- digest {code(bom.get('digest', ''))}"])


def _redaction(predicate: Mapping[str, object]) -> str:
    redaction = _mapping(predicate.get("redaction"))
    if not redaction:
        return ""
    applied = redaction.get("applied")
    rules = [f"- {code(rule)}" for rule in applied[:MAX_LINES]] if isinstance(applied, list) else []
    head = f"Policy {escape(redaction.get('policy', ''))} {escape(redaction.get('version', ''))}"
    return "\n".join(["### Redaction", "", head, "", *rules]).rstrip()


def _steps(steps: Sequence[Step]) -> str:
    rows = [f"| {s.name.number} | {s.name.value} | {s.status.value} | {escape(s.detail)} |" for s in steps]
    return "\n".join(["### Verification steps", "", "| # | Step | Status | Detail |", "|---|---|---|---|", *rows])


def _failed_details(steps: Sequence[Step]) -> str:
    lines: list[str] = []
    for step in steps:
        if step.status is StepStatus.FAILED and step.sub_rows:
            lines += [f"**{step.name.value}**", ""]
            lines += [f"- {code(row.key)} {escape(row.value)}" for row in step.sub_rows]
            lines.append("")
    return "\n".join(["### Failed check details", "", *lines]).rstrip() if lines else ""


def _findings(report: Report) -> str:
    if not report.findings:
        return ""
    rows = [f"- **{finding.rule}** {code(finding.code)} {escape(finding.message)}" for finding in report.findings]
    return "\n".join(["### Findings", "", "Checks that are stricter than upstream's:", "", *rows])


def _verdict(report: Report) -> str:
    text = {
        Exit.VALID: "valid, pending signature" if report.pending else "valid",
        Exit.PHASE_FAILURES: "valid; recorded phases have failures",
        Exit.INVALID: "invalid",
        Exit.NO_VERDICT: "no verdict was reached",
    }[report.exit]
    lines = ["---", "", f"**Verdict:** {text} ({report.exit})"]
    if report.failure_cause is not None:
        lines += ["", *_cause(report.failure_cause)]
    return "\n".join(lines)


def _cause(cause: FailureCause) -> Iterator[str]:
    status = f" (HTTP {cause.http_status})" if cause.http_status is not None else ""
    yield f"**Cause:** {cause.cause.value}{status}  "
    if cause.hint:
        yield f"**Hint:** {escape(cause.hint)}  "
    yield ""
    yield f"> {escape(cause.detail)}"


def _limits(report: Report) -> str:
    passed = [step.name for step in report.steps if step.status is StepStatus.PASSED]
    told = _VERIFIED if StepName.SIGNATURE in passed else _VERIFIED_UNSIGNED
    verified = [f"- {told[name]}" for name in passed if name in told]
    lines = ["### What this proves", "", "Verified here:", "", *(verified or ["- nothing"])]
    return "\n".join([*lines, "", "Not proven by any of it:", "", *(f"- {line}" for line in NOT_PROVEN)])


def _mapping(value: object) -> Mapping[str, object]:
    return value if isinstance(value, Mapping) else {}


def _mappings(value: object) -> list[Mapping[str, object]]:
    return [item for item in value if isinstance(item, Mapping)] if isinstance(value, list) else []


def _count(value: object) -> int:
    """A count of a predicate that was modelled already, so that anything but a finite number is absent."""
    return int(value) if isinstance(value, int | float) and abs(value) < math.inf else 0
