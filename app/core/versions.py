"""Order of AICR versions, by Go's semver rules (corroboration 2.6); Kubernetes versions by their minor one.

A version is grouped by its verbatim text everywhere; this module only sorts and tells releases from builds.
"""

import re
from collections.abc import Mapping
from datetime import datetime
from functools import cmp_to_key
from typing import NamedTuple

_NUMBER = r"(?:0|[1-9][0-9]*)"
_IDENTIFIER = r"[0-9A-Za-z-]+"
_SEMVER = re.compile(
    rf"v(?P<major>{_NUMBER})(?:\.(?P<minor>{_NUMBER})(?:\.(?P<patch>{_NUMBER})"
    rf"(?:-(?P<pre>{_IDENTIFIER}(?:\.{_IDENTIFIER})*))?(?:\+{_IDENTIFIER}(?:\.{_IDENTIFIER})*)?)?)?"
)
_KUBERNETES = re.compile(r"v?([0-9]{1,9})\.([0-9]{1,9})(?![0-9])")
_COMMIT = re.compile(r"[0-9a-f]{7,40}")
_MAX_CHARS = 256  # longer than any version; a signed predicate may hold anything


class Semver(NamedTuple):
    """A parsed version. Numbers stay decimal text, since a stranger may write thousands of digits."""

    major: str
    minor: str
    patch: str
    pre: tuple[str, ...]


def parse(version: str) -> Semver | None:
    """Read a version as Go's `semver.IsValid` does; None for anything invalid.

    A leading `v` is required, `v1` and `v1.2` are short forms without suffix, build metadata is dropped, and a
    numeric pre-release identifier has no leading zero.
    """
    if len(version) > _MAX_CHARS:
        return None
    match = _SEMVER.fullmatch(version)
    if match is None:
        return None
    pre = tuple(match["pre"].split(".")) if match["pre"] else ()
    if any(part.isdigit() and len(part) > 1 and part[0] == "0" for part in pre):
        return None
    return Semver(match["major"], match["minor"] or "0", match["patch"] or "0", pre)


def normalized_commit(text: str) -> str:
    """A build commit in lower case; empty unless it is 7 to 40 hex characters (F1-F4, corroboration 2.4)."""
    commit = text.lower()
    return commit if _COMMIT.fullmatch(commit) else ""


def is_release(version: str) -> bool:
    """Whether the text names a release: a semantic version, with or without the leading `v`.

    `main`, `dev`, a bare commit and an empty text are builds: two runs of one such version need not be of the same
    code, so the strict grid groups them by commit too (service 5).
    """
    return parse(version) is not None or (not version.startswith("v") and parse(f"v{version}") is not None)


def _compare_numbers(left: str, right: str) -> int:
    """Decimal texts without leading zeros: the longer one is greater, else the text decides."""
    if len(left) != len(right):
        return -1 if len(left) < len(right) else 1
    return (left > right) - (left < right)


def _compare_identifiers(left: str, right: str) -> int:
    if left.isdigit() and right.isdigit():
        return _compare_numbers(left, right)
    if left.isdigit() != right.isdigit():
        return -1 if left.isdigit() else 1  # numbers sort below words
    return (left > right) - (left < right)


def _compare_pre(left: tuple[str, ...], right: tuple[str, ...]) -> int:
    if not left or not right:
        return bool(right) - bool(left)  # without a pre-release part is the greater one
    for a, b in zip(left, right, strict=False):
        if order := _compare_identifiers(a, b):
            return order
    return (len(left) > len(right)) - (len(left) < len(right))


def compare(left: str, right: str) -> int:
    """Negative, zero or positive as Go's `semver.Compare`: invalid versions are equal and below all valid ones."""
    a, b = parse(left), parse(right)
    if a is None or b is None:
        return (a is not None) - (b is not None)
    for x, y in zip(a[:3], b[:3], strict=True):
        if order := _compare_numbers(str(x), str(y)):
            return order
    return _compare_pre(a.pre, b.pre)


def newest_first(newest: Mapping[tuple[str, str], datetime]) -> tuple[tuple[str, str], ...]:
    """Sort (version, commit) groups: version descending, then newest attestation, then the texts descending.

    `newest` maps each group to the newest attestation in it.
    """

    def order(left: tuple[str, str], right: tuple[str, str]) -> int:
        if by_version := compare(right[0], left[0]):
            return by_version
        a, b = (newest[left], left), (newest[right], right)
        return (a < b) - (a > b)

    return tuple(sorted(newest, key=cmp_to_key(order)))


def kubernetes_minor(version: str) -> str:
    """`v1.35.5-eks-a3a0722` and `1.35+` -> `1.35`: how they are compared; anything else stays as it is."""
    match = _KUBERNETES.match(version.strip())
    return f"{match[1]}.{match[2]}" if match else version
