"""Order of AICR versions: corroboration 2.6, Go's semver rules."""

from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.core.versions import compare, is_release, kubernetes_minor, newest_first, parse

START = datetime(2026, 1, 1, tzinfo=UTC)


def order(*versions: str, later: str = "") -> list[str]:
    newest = {(version, ""): START + timedelta(days=version == later) for version in versions}
    return [version for version, _ in newest_first(newest)]


@pytest.mark.parametrize(
    ("versions", "later", "expected"),
    [
        ("v0.9.0 v1.0.0 v0.10.0 v0.13.0", "", "v1.0.0 v0.13.0 v0.10.0 v0.9.0"),
        ("v1.0.0-rc.1 v1.0.0 v0.16.0", "", "v1.0.0 v1.0.0-rc.1 v0.16.0"),
        ("edge nightly", "nightly", "nightly edge"),
        ("edge nightly", "edge", "edge nightly"),
        ("edge v0.14.0", "edge", "v0.14.0 edge"),
        ("0.21.1 v0.1.0", "0.21.1", "v0.1.0 0.21.1"),
        ("main dev", "", "main dev"),
        ("v1.0.0 v1.0.0+build", "v1.0.0", "v1.0.0 v1.0.0+build"),
    ],
)
def test_newest_version_comes_first(versions: str, later: str, expected: str) -> None:
    assert order(*versions.split(), later=later) == expected.split()


def test_precedence_of_pre_releases() -> None:
    """The example of semver 2.0.0, section 11."""
    ascending = [
        "v1.0.0-alpha",
        "v1.0.0-alpha.1",
        "v1.0.0-alpha.beta",
        "v1.0.0-beta",
        "v1.0.0-beta.2",
        "v1.0.0-beta.11",
        "v1.0.0-rc.1",
        "v1.0.0",
    ]
    assert all(compare(low, high) < 0 < compare(high, low) for low, high in pairwise(ascending))


@pytest.mark.parametrize(
    ("left", "right"), [("v1", "v1.0.0"), ("v1.2", "v1.2.0"), ("v1.0.0+a", "v1.0.0+b"), ("dev", "main"), ("1.0.0", "")]
)
def test_equal_versions(left: str, right: str) -> None:
    assert compare(left, right) == 0


@pytest.mark.parametrize(
    "text",
    [
        "",
        "v",
        "1.0.0",
        "v01.0.0",
        "v1.0.0.0",
        "v1.0-rc",
        "v1-rc",
        "v1.0.0-01",
        "v1.0.0-",
        "v1.0.0\n",
        "V1.0.0",
        "v1.+a",
    ],
)
def test_go_refuses_these(text: str) -> None:
    assert parse(text) is None


@pytest.mark.parametrize("text", ["v1", "v1.2", "v1.2.3-rc.1", "v1.2.3-0a", "v1.2.3+b.1", "v1.2.3--"])
def test_go_accepts_these(text: str) -> None:
    assert parse(text) is not None


@pytest.mark.parametrize(
    ("text", "release"),
    [
        ("v1.0.0", True),
        ("0.21.1", True),
        ("v1.0.0-rc.1", True),
        ("main", False),
        ("dev", False),
        ("", False),
        ("vv1", False),
    ],
)
def test_releases_and_builds(text: str, *, release: bool) -> None:
    assert is_release(text) is release


def test_thousands_of_digits_are_no_version() -> None:
    assert parse("v" + "9" * 5000) is None
    assert compare("v" + "9" * 5000, "v1.0.0") < 0


def test_big_numbers_compare_without_overflow() -> None:
    assert compare("v1.0.10000000000000000000000", "v1.0.9999999999999999999999") > 0


@settings(deadline=None)
@given(st.lists(st.sampled_from(["v1.0.0", "v1", "v0.9.0", "v1.0.0-a", "dev", "", "main", "0.1.0"]), unique=True))
def test_order_does_not_depend_on_the_order_of_input(versions: list[str]) -> None:
    assert order(*versions) == order(*reversed(versions))


@pytest.mark.parametrize(
    ("version", "minor"),
    [
        ("v1.35.5-eks-a3a0722", "1.35"),
        ("1.35", "1.35"),
        ("1.35+", "1.35"),
        (" v1.9.0 ", "1.9"),
        ("", ""),
        ("v1", "v1"),
        ("1.x", "1.x"),
        ("latest", "latest"),
    ],
)
def test_kubernetes_versions_are_compared_by_their_minor_one(version: str, minor: str) -> None:
    assert kubernetes_minor(version) == minor
