"""Phase digests (step 4b) and CTRF reports read within bounds (evidence-format 8.3, 9; trust 6)."""

import contextlib
import hashlib
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.core.bundle import Content, Entry, EntryKind, PhaseSummary, ReadFault
from app.core.ctrf import MAX_OVERRIDDEN_PATHS, MAX_TESTS, durations_print, parse_report
from app.core.errors import Category, DocumentInvalid
from app.core.phases import check_phases
from tests.support.bundles import check, ctrf, go_json

REPORT = go_json(ctrf([check("a")]))
REPORT_DIGEST = f"sha256:{hashlib.sha256(REPORT).hexdigest()}"


def content_with(report: bytes | ReadFault) -> Content:
    entry = Entry("ctrf/deployment.json", EntryKind.FILE, 1, hashlib.sha256(REPORT).hexdigest())
    return Content({entry.path: entry}, {entry.path: report})


def summary(phase: str = "deployment", digest: str = REPORT_DIGEST) -> PhaseSummary:
    return PhaseSummary(phase, 1, 0, 0, digest)


def test_a_phase_with_its_report_passes_and_a_report_without_phase_is_fine_here() -> None:
    assert check_phases(content_with(REPORT), [summary()]) is None
    assert check_phases(content_with(REPORT), []) is None


@pytest.mark.parametrize(
    ("phase", "report", "row"),
    [
        pytest.param(summary("upgrade"), REPORT, "predicate contains unknown phase", id="unknown-phase"),
        pytest.param(summary(digest=""), REPORT, "predicate has no ctrfDigest for this phase", id="no-digest"),
        pytest.param(
            summary(digest=f"sha256:{'0' * 64}"),
            REPORT,
            f"ctrfDigest mismatch (got {REPORT_DIGEST}, want sha256:{'0' * 64})",
            id="other-digest",
        ),
        pytest.param(
            summary(digest=REPORT_DIGEST.removeprefix("sha256:")),
            REPORT,
            f"ctrfDigest mismatch (got {REPORT_DIGEST}, want {REPORT_DIGEST[7:]})",
            id="digest-without-prefix",
        ),
        pytest.param(summary(), ReadFault.MISSING, "ctrf/deployment.json can not be read: missing", id="missing"),
        pytest.param(summary(), ReadFault.SYMLINK, "ctrf/deployment.json can not be read: symlink", id="link"),
        pytest.param(summary(), ReadFault.TOO_LARGE, "ctrf/deployment.json can not be read: too-large", id="large"),
    ],
)
def test_a_phase_that_does_not_hold_is_a_row(phase: PhaseSummary, report: bytes | ReadFault, row: str) -> None:
    fault = check_phases(content_with(report), [phase])
    assert fault is not None
    assert [(found.key, found.value) for found in fault.sub_rows] == [(phase.phase, row)]


def test_a_storage_fault_is_no_verdict() -> None:
    fault = check_phases(content_with(ReadFault.UNAVAILABLE), [summary("upgrade"), summary()])
    assert fault is not None
    assert fault.category is Category.UNAVAILABLE


# --- reports -----------------------------------------------------------------------------------------


def test_a_report_is_read_with_its_tests_and_times() -> None:
    report = ctrf(
        [
            check("a", "passed", 1500, extra={"runtimeSource": "cluster-capability"}),
            check("b", "skipped", 0, extra={"skipReason": "no-gpu-nodes"}),
            check("c", "other", 12.7, message="crashed", suite=["deployment"]),
        ]
    )
    found = parse_report("deployment", go_json(report))
    assert [(t.name, t.status, t.duration_ms, t.skip_reason, t.runtime_source) for t in found.tests] == [
        ("a", "passed", 1500, "", "cluster-capability"),
        ("b", "skipped", 0, "no-gpu-nodes", ""),
        ("c", "other", 12, "", ""),
    ]
    assert found.counted() == {"tests": 3, "passed": 1, "failed": 0, "skipped": 1, "pending": 0, "other": 1}
    assert found.summary == found.counted()
    assert found.ran


def test_a_report_without_tests_has_none_and_ran_nothing() -> None:
    report = ctrf([])
    report["results"]["tests"] = None  # type: ignore[index]
    found = parse_report("deployment", go_json(report))
    assert (found.tests, found.ran) == ((), False)


def test_overridden_paths_are_collected_once_and_sorted() -> None:
    tests = [
        check("a", runtimeProvenance={"overriddenPaths": ["z", "b"]}),
        check("b", runtimeProvenance={"overriddenPaths": ["b"], "inheritedPaths": ["q"]}),
    ]
    assert parse_report("deployment", go_json(ctrf(tests))).overridden_paths == ("b", "z")


def test_measured_figures_are_read_from_the_output_of_full_bundles() -> None:
    test = check("nccl-all-reduce-bw", stdout=["NCCL All Reduce bandwidth: 488.37 GB/s", "noise", 3])
    figures = parse_report("performance", go_json(ctrf([test]))).figures
    assert [(figure.check, figure.value, figure.unit) for figure in figures] == [("nccl-all-reduce-bw", 488.37, "GB/s")]


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b"", id="empty"),
        pytest.param(b"[]", id="a-list"),
        pytest.param(b"{}", id="no-results"),
        pytest.param(go_json({"results": {}}), id="no-summary"),
        pytest.param(go_json({"Results": {"summary": {}}}), id="case-variant"),
        pytest.param(go_json({"results": {"summary": {"Failed": 1}}}), id="case-variant-of-a-count"),
        pytest.param(go_json({"results": {"summary": {"tests": -1}}}), id="negative-count"),
        pytest.param(go_json({"results": {"summary": {"tests": True}}}), id="count-is-true"),
        pytest.param(go_json({"results": {"summary": {"tests": "1"}}}), id="count-is-text"),
        pytest.param(b'{"results": {"summary": {"tests": NaN}}}', id="count-is-nan"),
        pytest.param(b'{"results": {"summary": {}, "summary": {}}}', id="duplicate-key"),
        pytest.param(go_json({"results": {"summary": {}, "tests": {}}}), id="tests-is-an-object"),
        pytest.param(go_json(ctrf([])).replace(b'"tests": []', b'"tests": [1]'), id="test-is-a-number"),
        pytest.param(go_json(ctrf([check("")])), id="test-without-name"),
        pytest.param(go_json(ctrf([check("a" * 1025)])), id="endless-name"),
        pytest.param(go_json(ctrf([check("a\0b")])), id="nul-in-a-name"),
        pytest.param(go_json(ctrf([check("a", duration=-1)])), id="negative-duration"),
        pytest.param(go_json(ctrf([check("a", extra=[])])), id="extra-is-a-list"),
        pytest.param(go_json(ctrf([check("a", runtimeProvenance={"overriddenPaths": "x"})])), id="paths-are-text"),
        pytest.param(
            go_json(
                ctrf(
                    [
                        check(
                            "a",
                            runtimeProvenance={"overriddenPaths": [f"p{n}" for n in range(MAX_OVERRIDDEN_PATHS + 1)]},
                        )
                    ]
                )
            ),
            id="too-many-paths",
        ),
        pytest.param(b'{"results": {"summary": {}, "tests": [' + b"{}," * MAX_TESTS + b"{}]}}", id="too-many-tests"),
        pytest.param(b"[" * 100_000, id="too-deep"),
    ],
)
def test_a_report_of_another_form_is_refused(data: bytes) -> None:
    with pytest.raises(DocumentInvalid):
        parse_report("deployment", data)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["results", "summary", "tests", "name", "status", "extra", "duration", "start"]),
            inner,
            max_size=4,
        )
    ),
    max_leaves=20,
)


@settings(deadline=None)
@given(JSON)
def test_no_json_makes_the_reader_raise_anything_else(value: object) -> None:
    with contextlib.suppress(DocumentInvalid):
        parse_report("deployment", json.dumps(value).encode())


# --- the print of a run's durations ------------------------------------------------------------------


def prints(*tests: dict[str, object]) -> str | None:
    return durations_print([parse_report("deployment", go_json(ctrf(list(tests))))])


def test_three_timed_tests_give_a_print_whatever_their_order() -> None:
    tests = [check("a", duration=11), check("b", "failed", 12), check("c", duration=13)]
    assert prints(*tests) == prints(*reversed(tests)) is not None
    assert prints(*tests) != prints(check("a", duration=10), *tests[1:])


@pytest.mark.parametrize(
    "third",
    [
        pytest.param(check("c", duration=0), id="without-time"),
        pytest.param(check("c", "skipped", 9), id="skipped"),
        pytest.param(check("c", "other", 9), id="crashed"),
    ],
)
def test_fewer_than_three_timed_tests_that_ran_identify_nothing(third: dict[str, object]) -> None:
    assert prints(check("a", duration=11), check("b", duration=12), third) is None
