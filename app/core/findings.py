"""Findings: what is wrong with a bundle although upstream would accept it (trust 2), by E rules and two S rules.

Each rule is one small function over what was read already; the registry at the end names them in order. A finding
changes no exit by itself: `services.judge` decides when findings fail (with `--strict`, and for every ingest).
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Final

from app.core.bundle import (
    BOM_FILE,
    CAPTURED_LIMITS,
    PHASES,
    Content,
    EntryKind,
    ReadFault,
    Statement,
    VerifiedSignature,
    ctrf_file,
)
from app.core.coordinate import ANY, coordinate_of
from app.core.criteria_match import CriteriaMatch, match_criteria
from app.core.ctrf import STATUSES, PhaseReport
from app.core.documents import Predicate
from app.core.errors import DocumentInvalid, RecipeInvalid
from app.core.inventory import Inventory, local_path
from app.core.jsontext import parse_members
from app.core.pointer import PRODUCED_POINTER, Pointer, digest_file_name
from app.core.recipe import Recipe
from app.core.refs import Digest
from app.core.report import Finding
from app.core.rules import RULES
from app.core.statement import refuse_statement_type

CLOCK_SKEW: Final = timedelta(minutes=10)
LATE_AFTER: Final = timedelta(days=7)
MAX_PER_RULE: Final = 20
_PLAIN_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,199}")
"""A name is a path segment, a key and a heading: nothing that looks like another one, or like nothing, is one."""
_COUNTS: Final = ("passed", "failed", "skipped")


@dataclass(frozen=True, slots=True)
class FindingContext:
    """Everything that was read of one bundle; parts that could not be read are None or absent.

    `reports` by phase, `unreadable` the phases whose report is no CTRF with the reason. `ambiguous` says why none of
    several signatures is the one that is meant.
    """

    content: Content
    statement: Statement
    predicate: Predicate
    inventory: Inventory
    reports: Mapping[str, PhaseReport] = field(default_factory=dict)
    unreadable: Mapping[str, str] = field(default_factory=dict)
    recipe: Recipe | None = None
    pointer: Pointer | None = None
    pointer_name: str = ""
    signature: VerifiedSignature | None = None
    signatures: int = 0
    ambiguous: str = ""
    digest: Digest | None = None


def statement_typed(ctx: FindingContext) -> Iterator[str]:
    """S16 for the unsigned statement, of which step 3 asks neither type nor subject; a signed one passed it before."""
    try:
        refuse_statement_type(ctx.statement)
    except DocumentInvalid as err:
        yield err.message


def full_weight(ctx: FindingContext) -> Iterator[str]:
    """S18, which fails nothing: as evidence the signature has no weight."""
    if ctx.signature is not None and ctx.signature.weightless:
        yield ctx.signature.weightless


def manifest_exact(ctx: FindingContext) -> Iterator[str]:
    """E1: paths once, counted, no links, none that another file system would merge."""
    files = ctx.inventory.files
    for path, times in Counter(local_path(file.path) for file in files).items():
        if times > 1 and path is not None:
            yield f"manifest.json lists {path[:200]!r} {times} times"
    stated = ctx.predicate.manifest.file_count
    if files and stated != len(files):
        yield f"expected predicate.manifest.fileCount {len(files)}, got {stated}"
    merged: dict[str, str] = {}
    for path, entry in sorted(ctx.content.entries.items()):
        if entry.kind in {EntryKind.SYMLINK, EntryKind.OTHER}:
            yield f"{path[:200]!r} is a {entry.kind.value}, expected files and directories only"
        folded = unicodedata.normalize("NFC", path).casefold()
        if (other := merged.setdefault(folded, path)) != path:
            yield f"{path[:200]!r} and {other[:200]!r} differ only by case or Unicode form"


def bom_holds(ctx: FindingContext) -> Iterator[str]:
    """E2: the bill of materials is the one that the predicate describes."""
    bom = ctx.predicate.bom
    data = ctx.content.read(BOM_FILE)
    if isinstance(data, ReadFault):
        yield f"{BOM_FILE} can not be read: {data.value}"  # every bundle has one (evidence-format 1.2, 5.1)
        return
    got = f"sha256:{ctx.content.entries[BOM_FILE].sha256}"
    if bom.digest != got:
        yield f"expected predicate.bom.digest {got}, got {bom.digest[:80]!r}"
    try:
        document = parse_members(data, {"components"}, max_bytes=CAPTURED_LIMITS[BOM_FILE], what=BOM_FILE)
    except DocumentInvalid as err:
        yield err.message
        return
    components = document.get("components") if isinstance(document, dict) else None
    count = len(components) if isinstance(components, list) else 0
    if bom.image_count != count:
        yield f"expected predicate.bom.imageCount {count}, got {bom.image_count}"


def counts_agree(ctx: FindingContext) -> Iterator[str]:
    """E3: the predicate counts what the report's tests say, and so does the report's own summary."""
    yield from (reason for _, reason in sorted(ctx.unreadable.items()))
    for summary in ctx.predicate.phase_summaries:
        report = ctx.reports.get(summary.phase)
        if report is None:
            continue
        counted = report.counted()
        stated = {"passed": summary.passed, "failed": summary.failed, "skipped": summary.skipped}
        for status in _COUNTS:
            if stated[status] != counted[status]:
                yield f"{summary.phase}: the predicate says {stated[status]} {status}, its tests {counted[status]}"
    for phase, report in sorted(ctx.reports.items()):
        counted = report.counted()
        for key, count in counted.items():
            if report.summary[key] != count:
                yield f"{phase}: the summary of its report says {report.summary[key]} {key}, its tests {count}"
        strange = {test.status for test in report.tests} - set(STATUSES)
        for status in sorted(strange):
            yield f"{phase}: a test has the status {status[:80]!r}, expected one of {', '.join(STATUSES)}"


def tests_once(ctx: FindingContext) -> Iterator[str]:
    """E4: upstream keeps the last test of a name, so that a pass can hide a failure."""
    for phase, report in sorted(ctx.reports.items()):
        for name, times in Counter(test.name for test in report.tests).items():
            if times > 1:
                yield f"{phase}: the test {name[:200]!r} appears {times} times"


def pointer_agrees(ctx: FindingContext) -> Iterator[str]:
    """E5: a pointer says the type and time of the bundle, and its file is named after the bundle's digest."""
    pointer = ctx.pointer
    if pointer is None:
        return
    if pointer.predicate_type != ctx.statement.predicate_type:
        yield (
            f"the pointer says predicateType {pointer.predicate_type}, "
            f"the statement {ctx.statement.predicate_type[:200]}"
        )
    attested = ctx.predicate.attested_at
    if pointer.attested_at != attested:
        yield f"the pointer says attestedAt {_shown(pointer.attested_at)}, the predicate {_shown(attested)}"
    if ctx.pointer_name and ctx.digest is not None:
        expected = digest_file_name(ctx.digest)
        # what a producer writes before the pointer has its place in the tree (evidence-format 5.1, 6.3)
        if ctx.pointer_name not in {expected, PRODUCED_POINTER, f"{pointer.recipe}.yaml"}:
            yield f"expected the pointer's file name {expected}, got {ctx.pointer_name[:100]!r}"


def not_from_future(ctx: FindingContext) -> Iterator[str]:
    """E6: a later date than the log's would pin an old result as the latest."""
    attested = ctx.predicate.attested_at
    if attested is None:
        yield "expected predicate.attestedAt, got none"
    elif ctx.signature is not None and attested > ctx.signature.logged_at + CLOCK_SKEW:
        yield f"attestedAt {_shown(attested)} is later than the log entry of {_shown(ctx.signature.logged_at)}"


def one_signature(ctx: FindingContext) -> Iterator[str]:
    """E7: more than one signature; `ambiguous` when nothing says which one is meant."""
    if ctx.ambiguous:
        yield ctx.ambiguous
    elif ctx.signatures > 1:
        yield f"the artifact has {ctx.signatures} signatures; the others were not judged"


def recipe_comparable(ctx: FindingContext) -> Iterator[str]:
    """E8: a recipe under a name and a coordinate, and a hardware match that follows from what was captured."""
    recipe = ctx.recipe
    if recipe is None:
        return
    if not recipe.name:
        yield "recipe.yaml gives no name: it has no criteria, or a profile that is not well-formed"
        return
    if not _PLAIN_NAME.fullmatch(recipe.name):
        yield f"recipe.yaml gives the name {recipe.name[:200]!r}, expected up to 200 of A-Z a-z 0-9 . _ -"
    try:
        coordinate_of(recipe.criteria, recipe.profile_segment)
    except RecipeInvalid as err:
        yield f"recipe.yaml gives no coordinate: {err.message}"
    yield from _match_differs(ctx.predicate, match_criteria(recipe.criteria, ctx.predicate.fingerprint))


def _match_differs(predicate: Predicate, expected: CriteriaMatch) -> Iterator[str]:
    """Every difference from the six rows in their order; evidence from before `not-inferable` has its own form."""
    recorded = [
        replace(row, requires=_specific(row.requires), provides=_specific(row.provides)) for row in predicate.dimensions
    ]
    names, due = [row.dimension for row in recorded], [row.dimension for row in expected.dimensions]
    if names != due:
        shown = ", ".join(name[:40] for name in names[: len(due) + 1]) or "none"
        yield f"expected the rows {', '.join(due)} in criteriaMatch, got {shown!r}"
        return
    older = expected.before_not_inferable()
    if [row.match for row in recorded] == [row.match for row in older.dimensions]:
        expected = older
    for got, row in zip(recorded, expected.dimensions, strict=True):
        for what, said, follows in (
            ("match", got.match, row.match),
            ("recipeRequires", got.requires, row.requires),
            ("fingerprintProvides", got.provides, row.provides),
        ):
            if said != follows:
                shown = f"{what} {said[:40]!r} for {row.dimension}"
                yield f"criteriaMatch says {shown}, recipe and fingerprint give {follows[:40]!r}"
    stated = predicate.criteria_match.matched
    if stated != expected.matched:
        yield f"criteriaMatch.matched says {stated}, recipe and fingerprint give {expected.matched}"


def _specific(value: str) -> str:
    """A recorded value without the word that says nothing (evidence-format 1.4)."""
    return "" if value == ANY else value


def statement_complete(ctx: FindingContext) -> Iterator[str]:
    """E9: one subject; phases and reports match one to one."""
    if len(ctx.statement.subjects) != 1:
        yield f"expected exactly one subject, got {len(ctx.statement.subjects)}"
    stated = {summary.phase for summary in ctx.predicate.phase_summaries}
    present = {
        path.removeprefix("ctrf/").removesuffix(".json")
        for path, entry in ctx.content.entries.items()
        if path.startswith("ctrf/") and path.endswith(".json") and entry.kind is not EntryKind.DIRECTORY
    }
    for phase in sorted(present - stated):
        yield f"{ctrf_file(phase)[:200]} has no phase in the predicate"
    for phase in sorted(stated - present):
        yield f"phase {phase[:80]!r} has no report"


def times_in_order(ctx: FindingContext) -> Iterator[str]:
    """E10: a report starts, stops and is attested in this order; unset times (0) claim nothing."""
    for phase in PHASES:
        report = ctx.reports.get(phase)
        if report is None:
            continue
        if report.start_ms > report.stop_ms:
            yield f"{phase}: its report stops before it starts"
        attested = ctx.predicate.attested_at
        if attested is not None and report.stop_ms > _milliseconds(attested + CLOCK_SKEW):
            yield f"{phase}: its report stops after attestedAt {_shown(attested)}"


def _milliseconds(at: datetime) -> float:
    return at.timestamp() * 1000


def _shown(at: datetime | None) -> str:
    return "none" if at is None else at.astimezone(UTC).isoformat().replace("+00:00", "Z")


FindingRule = Callable[[FindingContext], Iterable[str]]

FINDING_RULES: tuple[tuple[str, FindingRule], ...] = (
    ("S16", statement_typed),
    ("S18", full_weight),
    ("E1", manifest_exact),
    ("E2", bom_holds),
    ("E3", counts_agree),
    ("E4", tests_once),
    ("E5", pointer_agrees),
    ("E6", not_from_future),
    ("E7", one_signature),
    ("E8", recipe_comparable),
    ("E9", statement_complete),
    ("E10", times_in_order),
)
"""Every rule with its id, in order; one that is taken out speaks no more and nothing else changes."""


def find(ctx: FindingContext, rules: Sequence[tuple[str, FindingRule]] = FINDING_RULES) -> tuple[Finding, ...]:
    """What every rule says about the bundle, at most `MAX_PER_RULE` lines each."""
    found: list[Finding] = []
    for rule, judge in rules:
        messages = list(judge(ctx))
        found += [Finding(rule, RULES[rule].code, message) for message in messages[:MAX_PER_RULE]]
        if len(messages) > MAX_PER_RULE:
            found.append(Finding(rule, RULES[rule].code, f"{len(messages) - MAX_PER_RULE} more are not shown"))
    return tuple(found)


def failing(findings: Sequence[Finding], *, ambiguous: bool) -> tuple[Finding, ...]:
    """Those that fail a strict judgement: all but S18, which takes the weight, and E7 unless it is `ambiguous`."""
    harmless = {"S18"} if ambiguous else {"S18", "E7"}
    return tuple(finding for finding in findings if finding.rule not in harmless)
