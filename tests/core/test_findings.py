"""The E rules one by one over values: each speaks for its own break and for nothing else (trust 2)."""

from dataclasses import replace
from datetime import timedelta

import pytest

from app.core.bundle import BOM_FILE, Content, Entry, EntryKind, PhaseSummary, ReadFault, Statement, Subject
from app.core.ctrf import parse_report
from app.core.documents import Predicate, parse_time
from app.core.findings import FINDING_RULES, MAX_PER_RULE, FindingContext, failing, find
from app.core.inventory import Inventory, ManifestFile
from app.core.pointer import Pointer
from app.core.recipe import Recipe
from app.core.report import Finding
from app.core.rules import RULES, RuleKind
from tests.support.bundles import (
    ATTESTED_AT,
    NAME,
    RECIPE,
    V1,
    V3,
    Sample,
    check,
    criteria_match,
    ctrf,
    go_json,
    sha256,
)
from tests.support.verifiers import DIGEST, signed

SAMPLE = Sample()
BODY = SAMPLE.body()
MANIFEST = SAMPLE.files()["manifest.json"]
PREDICATE = SAMPLE.predicate_of(BODY, MANIFEST)


def context(predicate: dict[str, object] | None = None, **changes: object) -> FindingContext:
    """A bundle in which no rule finds anything, changed."""
    body = PREDICATE | (predicate or {})
    files = BODY | {"manifest.json": MANIFEST}
    entries = {path: Entry(path, EntryKind.FILE, len(data), sha256(data)) for path, data in files.items()}
    base = FindingContext(
        content=Content(entries, dict(files)),
        statement=Statement(b"{}", "https://in-toto.io/Statement/v1", V3, (Subject("r", "ab"),), body),
        predicate=Predicate.read(body),
        inventory=Inventory(tuple(ManifestFile(path, len(data), sha256(data)) for path, data in BODY.items())),
        reports={phase: parse_report(phase, go_json(report)) for phase, report in SAMPLE.reports.items()},
        recipe=Recipe.parse(RECIPE),
        pointer=Pointer(NAME, V3, digest=str(DIGEST), attested_at=parse_time(ATTESTED_AT)),
        pointer_name=f"sha256-{DIGEST.hex}.yaml",
        signature=signed(body, V3),
        signatures=1,
        digest=DIGEST,
    )
    return replace(base, **changes)  # type: ignore[arg-type]


def with_entry(entry: Entry) -> Content:
    content = context().content
    return Content({**content.entries, entry.path: entry}, content.captured)


def with_bom(data: bytes | ReadFault) -> Content:
    content = context().content
    return Content(content.entries, {**content.captured, BOM_FILE: data})


def report(*tests: dict[str, object], **summary: object) -> dict[str, object]:
    return {"deployment": parse_report("deployment", go_json(ctrf(list(tests), **summary)))}


def unsigned(**changes: object) -> FindingContext:
    """The bundle without a signature, whose own statement is changed."""
    return context(signature=None, signatures=0, statement=replace(context().statement, **changes))  # type: ignore[arg-type]


def without_bom() -> Content:
    content = context().content
    entries = {path: entry for path, entry in content.entries.items() if path != BOM_FILE}
    return Content(entries, {path: data for path, data in content.captured.items() if path != BOM_FILE})


def row(dimension: str, match: str, requires: str = "", provides: str = "") -> dict[str, object]:
    return {"dimension": dimension, "match": match, "recipeRequires": requires, "fingerprintProvides": provides}


def rows(*changed: dict[str, object], before: bool = False, matched: bool = True) -> dict[str, object]:
    """The criteria match in order, with rows of a known dimension replaced, and others put in front or at the end."""
    honest = criteria_match()["perDimension"]
    assert isinstance(honest, list)
    known = {entry["dimension"] for entry in honest}
    replaced = [next((new for new in changed if new["dimension"] == old["dimension"]), old) for old in honest]
    other = [new for new in changed if before or new["dimension"] not in known]
    kept = honest if before else replaced
    listed = [*other, *kept] if before else [*kept, *other]
    return {"criteriaMatch": {"matched": matched, "perDimension": listed}}


def generic(match: str, *, matched: bool, provides: str = "eks") -> FindingContext:
    """A recipe for `generic` whose cluster was captured as eks: no snapshot shows that choice."""
    recipe = Recipe.parse(RECIPE.replace(b"service: eks", b"service: generic"))
    return context(rows(row("service", match, "generic", provides), matched=matched), recipe=recipe)


def counted(**counts: int) -> dict[str, object]:
    base = {"passed": 1, "failed": 0, "skipped": 0, "ctrfDigest": "x"}
    return {"phases": {"deployment": base | counts}}


def test_a_bundle_in_order_has_no_finding() -> None:
    assert find(context()) == ()


def test_every_rule_of_the_table_is_judged_once_and_in_order() -> None:
    findings = [rule.id for rule in RULES.values() if rule.kind is RuleKind.FINDING]
    assert [rule for rule, _ in FINDING_RULES] == ["S16", "S18", *findings]


CASES = [
    pytest.param(
        "S16", unsigned(type="evil"), "expected statement type https://in-toto.io/Statement/v1", id="S16-type"
    ),
    pytest.param("S16", unsigned(type=""), "got ''", id="S16-no-type"),
    pytest.param(
        "S18",
        context(signature=signed(PREDICATE, V3, weightless="S18_PULL_REQUEST: issued to a run on pull_request")),
        "S18_PULL_REQUEST: issued to a run on pull_request",
        id="S18",
    ),
    pytest.param(
        "E1",
        context(
            inventory=Inventory((ManifestFile("a", 1, "x"), ManifestFile("./a", 1, "x"))),
            predicate={"manifest": {"fileCount": 2}},
        ),
        "lists 'a' 2 times",
        id="E1-same-path-written-twice",
    ),
    pytest.param("E1", context({"manifest": {"fileCount": 9}}), "fileCount 6, got 9", id="E1-count"),
    pytest.param(
        "E1",
        context(content=with_entry(Entry("l", EntryKind.SYMLINK, fault=ReadFault.SYMLINK))),
        "'l' is a symlink",
        id="E1-link",
    ),
    pytest.param(
        "E1",
        context(content=with_entry(Entry("RECIPE.yaml", EntryKind.FILE, 1, "x"))),
        "'recipe.yaml' and 'RECIPE.yaml' differ only by case",
        id="E1-case",
    ),
    pytest.param(
        "E1",
        context(content=with_entry(Entry("\u017fnapshot.yaml", EntryKind.FILE, 1, "x"))),
        "differ only by case",
        id="E1-long-s",
    ),
    pytest.param(
        "E2", context({"bom": {"digest": "", "imageCount": 2}}), "predicate.bom.digest sha256:", id="E2-no-digest"
    ),
    pytest.param("E2", context(content=without_bom()), "bom.cdx.json can not be read: missing", id="E2-missing"),
    pytest.param(
        "E2",
        context({"bom": {"digest": "", "imageCount": 5}}, content=without_bom()),
        "bom.cdx.json can not be read: missing",
        id="E2-components-of-no-file",
    ),
    pytest.param(
        "E2", context({"bom": None}, content=without_bom()), "bom.cdx.json can not be read", id="E2-none-at-all"
    ),
    pytest.param("E2", context(content=with_bom(ReadFault.TOO_LARGE)), "can not be read: too-large", id="E2-too-large"),
    pytest.param("E2", context(content=with_bom(b"[]")), "imageCount 0, got 2", id="E2-a-list"),
    pytest.param("E2", context(content=with_bom(b'{"a": 1, "a": 2}')), "bom.cdx.json", id="E2-duplicate-key"),
    pytest.param(
        "E3",
        context(counted(passed=0), reports=report(check("a"))),
        "deployment: the predicate says 0 passed, its tests 1",
        id="E3-fewer-passed",
    ),
    pytest.param(
        "E3",
        context(counted(failed=0, passed=0), reports=report(check("a", "failed"))),
        "deployment: the predicate says 0 failed, its tests 1",
        id="E3-hidden-failure",
    ),
    pytest.param(
        "E3",
        context(counted(), reports=report(check("a"), tests=2)),
        "deployment: the summary of its report says 2 tests, its tests 1",
        id="E3-summary",
    ),
    pytest.param("E3", context(unreadable={"deployment": "no report"}), "no report", id="E3-unreadable"),
    pytest.param(
        "E4",
        context(counted(failed=1), reports=report(check("a", "failed"), check("a"))),
        "deployment: the test 'a' appears 2 times",
        id="E4",
    ),
    pytest.param("E5", context(pointer=Pointer(NAME, V1)), "the pointer says predicateType", id="E5-type"),
    pytest.param(
        "E5",
        context(pointer=Pointer(NAME, V3, attested_at=parse_time("2026-05-08T10:23:12Z"))),
        "attestedAt 2026-05-08T10:23:12Z, the predicate 2026-05-08T10:23:11Z",
        id="E5-time",
    ),
    pytest.param(
        "E5",
        context(pointer=Pointer(NAME, V3)),
        "attestedAt none, the predicate 2026-05-08T10:23:11Z",
        id="E5-no-time",
    ),
    *(
        pytest.param("E5", context(pointer_name=name), f"file name sha256-{DIGEST.hex}.yaml, got ", id=f"E5-name-{n}")
        for n, name in enumerate(
            (
                "sha256-00.yaml",
                "x.yaml",
                f"SHA256-{DIGEST.hex}.yaml",
                f" sha256-{DIGEST.hex}.yaml",
                f"sha256-{DIGEST.hex}.yml",
                "h200-eks-ubuntu-training.yaml",
            )
        )
    ),
    pytest.param("E6", context({"attestedAt": None}, pointer=None), "expected predicate.attestedAt", id="E6-none"),
    pytest.param(
        "E6",
        context(signature=signed(PREDICATE, V3, logged_at=parse_time(ATTESTED_AT) - timedelta(minutes=11))),
        "is later than the log entry",
        id="E6-future",
    ),
    pytest.param("E7", context(signatures=2), "has 2 signatures", id="E7-more-than-one"),
    pytest.param("E7", context(signatures=2, ambiguous="which one?"), "which one?", id="E7-ambiguous"),
    pytest.param(
        "E8",
        context(recipe=Recipe.parse(b"kind: RecipeResult\n"), predicate={"criteriaMatch": {}}),
        "gives no name",
        id="E8-no-name",
    ),
    pytest.param(
        "E8",
        context(
            recipe=Recipe.parse(RECIPE.replace(b"    intent: training\n", b"")),
            predicate={"criteriaMatch": criteria_match(intent="matched")},
        ),
        "gives no coordinate: intent",
        id="E8-no-coordinate",
    ),
    pytest.param(
        "E8",
        context({"criteriaMatch": {"matched": True}}),
        "expected the rows service, accelerator, os, intent, platform, nodes in criteriaMatch, got 'none'",
        id="E8-rows-left-out",
    ),
    pytest.param(
        "E8",
        context(rows(row("bogus", "mismatched"))),
        "got 'service, accelerator, os, intent, platform, nodes, bogus'",
        id="E8-one-row-more",
    ),
    pytest.param(
        "E8",
        context(rows(row("accelerator", "mismatched", "gb200", "gb200"), before=True)),
        "got 'accelerator, service, accelerator",
        id="E8-row-twice",
    ),
    pytest.param(
        "E8",
        context(rows(row("platform", "matched", "dynamo", "dynamo"))),
        "criteriaMatch says recipeRequires 'dynamo' for platform, recipe and fingerprint give ''",
        id="E8-invented-requirement",
    ),
    pytest.param(
        "E8",
        context(rows(row("nodes", "matched", "", "4096"))),
        "criteriaMatch says fingerprintProvides '4096' for nodes, recipe and fingerprint give '4'",
        id="E8-invented-capture",
    ),
    pytest.param(
        "E8",
        context(rows(row("accelerator", "mismatched", "h100", "h100"))),
        "criteriaMatch says match 'mismatched' for accelerator, recipe and fingerprint give 'matched'",
        id="E8-other-outcome",
    ),
    pytest.param("E8", context(rows(matched=False)), "criteriaMatch.matched says False", id="E8-other-total"),
    pytest.param(
        "E8",
        generic("mismatched", matched=True),
        "criteriaMatch.matched says True, recipe and fingerprint give False",
        id="E8-older-total",
    ),
    pytest.param(
        "E8",
        generic("mismatched", matched=False, provides="gke"),
        "criteriaMatch says fingerprintProvides 'gke' for service",
        id="E8-older-capture",
    ),
    pytest.param(
        "E9",
        context(statement=replace(context().statement, subjects=(Subject("a", "ab"), Subject("b", "cd")))),
        "exactly one subject, got 2",
        id="E9-two-subjects",
    ),
    pytest.param(
        "E9",
        context(content=with_entry(Entry("ctrf/upgrade.json", EntryKind.FILE, 1, "x"))),
        "ctrf/upgrade.json has no phase",
        id="E9-report-without-phase",
    ),
    pytest.param(
        "E9",
        context({"phases": dict(PREDICATE["phases"]) | {"upgrade": {}}}),  # type: ignore[call-overload]
        "phase 'upgrade' has no report",
        id="E9-phase-without-report",
    ),
    pytest.param(
        "E10",
        context(reports=report(check("a"), start=2, stop=1), predicate={}),
        "deployment: its report stops before it starts",
        id="E10-backwards",
    ),
    pytest.param(
        "E10",
        context(
            reports=report(
                check("a"), stop=int((parse_time(ATTESTED_AT) + timedelta(minutes=10)).timestamp() * 1000) + 1
            )
        ),
        "deployment: its report stops after attestedAt 2026-05-08T10:23:11Z",
        id="E10-after-attestation",
    ),
]


@pytest.mark.parametrize(("rule", "ctx", "text"), CASES)
def test_a_rule_speaks_for_its_break(rule: str, ctx: FindingContext, text: str) -> None:
    spoken = [finding for finding in find(ctx) if finding.rule == rule]
    assert spoken
    assert text in spoken[0].message
    assert spoken[0].code == RULES[rule].code


@pytest.mark.parametrize(("rule", "ctx", "text"), CASES)
def test_a_rule_that_is_taken_out_is_silent(rule: str, ctx: FindingContext, text: str) -> None:
    others = [found for found in FINDING_RULES if found[0] != rule]
    assert rule not in {finding.rule for finding in find(ctx, others)}


@pytest.mark.parametrize(
    "ctx",
    [
        pytest.param(context(pointer=None, pointer_name=""), id="no-pointer"),
        pytest.param(context(pointer_name=""), id="pointer-of-no-file"),
        pytest.param(context(pointer_name="pointer.yaml"), id="pointer-as-produced"),
        pytest.param(context(pointer_name=f"{NAME}.yaml"), id="pointer-before-its-place"),
        pytest.param(unsigned(type="https://in-toto.io/Statement/v0.1"), id="older-statement-type"),
        pytest.param(generic("not-inferable", matched=True), id="not-inferable"),
        pytest.param(generic("mismatched", matched=False), id="from-before-not-inferable"),
        pytest.param(context(rows(row("platform", "matched", "any"))), id="any-is-no-requirement"),
        pytest.param(context(signature=None, signatures=0), id="unsigned"),
        pytest.param(context(recipe=None), id="recipe-not-read"),
        pytest.param(
            context(signature=signed(PREDICATE, V3, logged_at=parse_time(ATTESTED_AT) - timedelta(minutes=10))),
            id="exactly-ten-minutes",
        ),
    ],
)
def test_what_is_not_there_claims_nothing(ctx: FindingContext) -> None:
    assert find(ctx) == ()


def test_messages_of_one_rule_are_bounded() -> None:
    tests = [check(f"t{n}") for n in range(MAX_PER_RULE + 3)] * 2
    found = [finding for finding in find(context(reports=report(*tests))) if finding.rule == "E4"]
    assert len(found) == MAX_PER_RULE + 1
    assert found[-1].message == "3 more are not shown"


def test_more_than_one_signature_fails_only_when_it_is_ambiguous() -> None:
    found = (Finding("E7", "c", "m"), Finding("E3", "c", "m"))
    assert failing(found, ambiguous=False) == found[1:]
    assert failing(found, ambiguous=True) == found


def test_a_signature_without_weight_fails_nothing() -> None:
    found = (Finding("S18", "c", "m"), Finding("S16", "c", "m"))
    assert failing(found, ambiguous=False) == failing(found, ambiguous=True) == found[1:]


def test_unset_times_of_a_report_claim_nothing() -> None:
    assert find(context(counted(), reports=report(check("a"), start=0, stop=0), content=without_other_reports())) == ()


def without_other_reports() -> Content:
    content = context().content
    kept = {path: entry for path, entry in content.entries.items() if not path.startswith(("ctrf/p", "ctrf/c"))}
    return Content(kept, content.captured)


def test_a_phase_summary_is_ordered_as_the_predicate_orders_phases() -> None:
    phases = {"conformance": {}, "upgrade": {}, "deployment": {"passed": 2.0}}
    summaries = Predicate.read({"phases": phases}).phase_summaries
    assert summaries[0] == PhaseSummary("deployment", 2, 0, 0, "")
    assert [summary.phase for summary in summaries] == ["deployment", "conformance", "upgrade"]
