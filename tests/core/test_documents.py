"""The predicate as a model: what producers of every age wrote is read, a wrong type is refused (1)."""

import contextlib
from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.core.documents import Predicate, parse_time
from app.core.errors import DocumentInvalid
from tests.support.bundles import PROFILE_BLOCK, Sample, profiled


def body(sample: Sample) -> dict[str, object]:
    return sample.predicate_of(sample.body(), b"{}")


def test_everything_that_is_read_of_a_predicate() -> None:
    found = Predicate.read(body(profiled()))
    assert found.attested_at == datetime(2026, 5, 8, 10, 23, 11, tzinfo=UTC)
    assert (found.aicr_version, found.aicr_commit, found.validator_images) == ("v0.42.0", "abc1234", [])
    assert found.recipe.name == "h100-aks-ubuntu-training-gpustack-operator-managed"
    assert (found.fingerprint.k8s_version.value, found.fingerprint.node_count.value) == ("1.33.4", 4)
    assert (found.fingerprint.service.value, found.fingerprint.os.version) == ("aks", "24.04")
    assert [row.match for row in found.dimensions] == ["matched", "matched", "matched", "unknown", "matched", "matched"]
    assert [summary.phase for summary in found.phase_summaries] == ["deployment", "performance", "conformance"]
    assert (found.bom.image_count, found.manifest.file_count) == (2, 6)
    assert found.redaction is not None
    assert found.redaction.policy == "minimal"
    assert found.profile is not None
    assert found.profile.policy_descriptor_identity == PROFILE_BLOCK["policyDescriptorIdentity"]


def test_the_very_first_producers_left_much_out() -> None:
    found = Predicate.read({})
    assert (found.recipe.name, found.recipe.digest, found.attested_at, found.phases) == ("", "", None, {})


def test_nulls_read_as_absent_and_whole_floats_as_counts() -> None:
    found = Predicate.read(
        {"validatorImages": None, "phases": {"deployment": {"passed": 3.0, "failed": None}}, "bom": None}
    )
    assert (found.phases["deployment"].passed, found.phases["deployment"].failed) == (3, 0)


def test_unknown_fields_are_kept() -> None:
    found = Predicate.read({"novelty": {"a": 1}, "recipe": {"name": "r", "aliases": ["x"]}})
    assert found.model_extra == {"novelty": {"a": 1}}
    assert found.recipe.model_extra == {"aliases": ["x"]}


@pytest.mark.parametrize(
    ("change", "place"),
    [
        ({"phases": []}, "phases"),
        ({"phases": {"deployment": {"passed": "1"}}}, "phases.deployment.passed"),
        ({"phases": {"deployment": {"passed": True}}}, "phases.deployment.passed"),
        ({"phases": {"deployment": {"passed": 1.5}}}, "phases.deployment.passed"),
        ({"phases": {"deployment": {"passed": -1}}}, "phases.deployment.passed"),
        ({"phases": {"deployment": {"passed": 1e300}}}, "phases.deployment.passed"),
        ({"attestedAt": "yesterday"}, "attestedAt"),
        ({"attestedAt": 1778235791}, "attestedAt"),
        ({"attestedAt": "2026-02-30T00:00:00Z"}, "attestedAt"),
        ({"recipe": "h100"}, "recipe"),
        ({"recipe": {"name": 3}}, "recipe.name"),
        ({"aicrVersion": "v" * 4097}, "aicrVersion"),
        ({"criteriaMatch": {"matched": "yes"}}, "criteriaMatch.matched"),
        ({"criteriaMatch": {"perDimension": [3]}}, "criteriaMatch.perDimension.0"),
        ({"novelty": ["a\0b"]}, "U+0000"),
        ({"novelty": {"a\0b": 1}}, "U+0000"),
    ],
)
def test_a_wrong_type_is_refused_with_its_place(change: dict[str, object], place: str) -> None:
    with pytest.raises(DocumentInvalid) as caught:
        Predicate.read(body(Sample()) | change)
    assert place in caught.value.message
    assert caught.value.message.startswith("predicate: ")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2026-05-08T10:23:11Z", datetime(2026, 5, 8, 10, 23, 11, tzinfo=UTC)),
        ("2026-05-08t10:23:11z", datetime(2026, 5, 8, 10, 23, 11, tzinfo=UTC)),
        ("2026-05-08T10:23:11.123456789Z", datetime(2026, 5, 8, 10, 23, 11, 123456, tzinfo=UTC)),
        ("2026-05-08T12:23:11+02:00", datetime(2026, 5, 8, 10, 23, 11, tzinfo=UTC)),
    ],
)
def test_times_are_rfc_3339_in_utc(text: str, expected: datetime) -> None:
    assert parse_time(text) == expected


@pytest.mark.parametrize(
    "text",
    ["", "2026-05-08", "2026-05-08 10:23:11Z", "2026-05-08T10:23:11", "20260508T102311Z", "0001-01-01T00:00:00+01:00"],
)
def test_other_times_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="expected"):
        parse_time(text)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["phases", "recipe", "attestedAt", "bom", "fingerprint", "os", "x"]), inner)
    ),
    max_leaves=20,
)


@settings(deadline=None)
@given(st.dictionaries(st.sampled_from(["phases", "recipe", "attestedAt", "bom", "criteriaMatch", "x"]), JSON))
def test_no_json_makes_the_model_raise_anything_else(value: dict[str, object]) -> None:
    with contextlib.suppress(DocumentInvalid):
        assert Predicate.read(value).phase_summaries is not None


@pytest.mark.parametrize(
    ("place", "items"),
    [
        ("criteriaMatch.perDimension", {"criteriaMatch": {"perDimension": [{}] * 1001}}),
        ("validatorImages", {"validatorImages": [{}] * 1001}),
        ("redaction.applied", {"redaction": {"applied": [""] * 1001}}),
        ("phases", {"phases": {str(n): {} for n in range(1001)}}),
    ],
    ids=["rows", "images", "redactions", "phases"],
)
def test_no_list_of_a_predicate_grows_at_will(place: str, items: dict[str, object]) -> None:
    with pytest.raises(DocumentInvalid) as caught:
        Predicate.read(items)
    assert caught.value.message == f"predicate: {place}: expected at most 1000 items, got 1001"
