"""References and digests: vectors O1-O9 and the round trip."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.core.errors import ReferenceInvalid
from app.core.refs import Digest, OciRef, is_pinned_target

HEX = "a" * 64


@pytest.mark.parametrize(
    ("target", "pinned"),
    [
        pytest.param("sha256:abc123", True, id="O1"),
        pytest.param("v1", False, id="O2-tag"),
        pytest.param("latest", False, id="O2-latest"),
        pytest.param("", False, id="O2-empty"),
        pytest.param("sha512:abc", False, id="O2-sha512"),
    ],
)
def test_only_a_sha256_target_is_a_pin(target: str, *, pinned: bool) -> None:
    assert is_pinned_target(target) is pinned


@pytest.mark.parametrize(
    ("text", "registry", "repository", "target"),
    [
        pytest.param("ghcr.io/owner/aicr-evidence:v1", "ghcr.io", "owner/aicr-evidence", "v1", id="O3"),
        pytest.param(
            f"ghcr.io/owner/aicr-evidence:v1@sha256:{HEX}",
            "ghcr.io",
            "owner/aicr-evidence",
            f"sha256:{HEX}",
            id="O4-digest-wins",
        ),
        pytest.param(
            f"oci://ghcr.io/owner/aicr-evidence:v1@sha256:{HEX}",
            "ghcr.io",
            "owner/aicr-evidence",
            f"sha256:{HEX}",
            id="O4-prefix",
        ),
        pytest.param("localhost:5000/repo:latest", "localhost:5000", "repo", "latest", id="O7"),
        pytest.param("localhost/repo:t", "localhost", "repo", "t", id="localhost"),
        pytest.param("[::1]:5000/repo:t", "[::1]:5000", "repo", "t", id="ipv6"),
        pytest.param("alpine:3", "docker.io", "library/alpine", "3", id="docker-official"),
        pytest.param("owner/name:3", "docker.io", "owner/name", "3", id="docker-user"),
        pytest.param("docker.io/alpine:3", "docker.io", "library/alpine", "3", id="docker-named"),
        pytest.param("index.docker.io/owner/name:3", "docker.io", "owner/name", "3", id="docker-index"),
        pytest.param("Host/name:3", "Host", "name", "3", id="upper-case-is-a-host"),
    ],
)
def test_a_reference_is_read_as_docker_reads_it(text: str, registry: str, repository: str, target: str) -> None:
    ref = OciRef.parse(text)

    assert (ref.registry, ref.repository, ref.target) == (registry, repository, target)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("ghcr.io/owner/aicr-evidence", id="O5-no-target"),
        pytest.param("::not-a-ref", id="O6"),
        pytest.param("", id="empty"),
        pytest.param("ghcr.io/owner/name@sha512:" + "a" * 128, id="sha512"),
        pytest.param("ghcr.io/owner/name@sha256:" + "A" * 64, id="upper-case-hex"),
        pytest.param(f"ghcr.io/owner/name@sha256:{HEX}\n", id="newline"),
        pytest.param(f"ghcr.io/owner/name@@sha256:{HEX}", id="two-at-signs"),
        pytest.param("ghcr.io/Owner/name:t", id="upper-case-path"),
        pytest.param("ghcr.io/owner/../name:t", id="parent-segment"),
        pytest.param("ghcr.io//name:t", id="empty-segment"),
        pytest.param("ghcr.io/owner/name:-t", id="tag-starts-with-dash"),
        pytest.param("ghcr.io/owner/name:" + "t" * 129, id="long-tag"),
        pytest.param("user@ghcr.io/owner/name:t", id="user-part"),
        pytest.param("http://ghcr.io/owner/name:t", id="scheme"),
        pytest.param("ghcr.io/owner/na%6de:t", id="percent"),
        pytest.param("gh_cr.io/owner/name:t", id="underscore-host"),
        pytest.param("ghcr.io/" + "a" * 256 + ":t", id="long-repository"),
        pytest.param("ghcr.io/a:" + "t" * 2000, id="long-reference"),
        pytest.param("ghcr.io/\uff4fwner/name:t", id="full-width"),
        pytest.param("ghcr.io/owner/name:t\u0661", id="foreign-digit"),
    ],
)
def test_what_is_no_reference_is_refused(text: str) -> None:
    with pytest.raises(ReferenceInvalid):
        OciRef.parse(text)


def test_a_pointer_pulls_the_repository_at_the_recorded_digest() -> None:
    """O8 and O9: the pointer's own tag is ignored once a digest is recorded."""
    ref = OciRef.parse("ghcr.io/owner/aicr-evidence:v1")

    assert str(ref.at(Digest(HEX))) == f"ghcr.io/owner/aicr-evidence@sha256:{HEX}"
    assert str(ref) == "ghcr.io/owner/aicr-evidence:v1"
    assert (ref.pinned, ref.at(Digest(HEX)).pinned) == (False, True)


_LABEL = st.from_regex(r"[a-z0-9]([a-z0-9-]{0,8}[a-z0-9])?", fullmatch=True)
_HOSTS = st.builds(
    lambda labels, port: ".".join(labels) + port,
    st.lists(_LABEL, min_size=2, max_size=4),
    st.sampled_from(["", ":5000", ":443"]),
)
_PATHS = st.lists(st.from_regex(r"[a-z0-9]{1,6}([._-][a-z0-9]{1,6})?", fullmatch=True), min_size=1, max_size=4).map(
    "/".join
)
_TAGS = st.from_regex(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,20}", fullmatch=True)
_DIGESTS = st.from_regex(r"[0-9a-f]{64}", fullmatch=True).map(Digest)


@settings(deadline=None)
@given(_HOSTS, _PATHS, st.one_of(_TAGS, _DIGESTS))
def test_a_reference_reads_back_as_it_was_written(host: str, path: str, target: str | Digest) -> None:
    ref = OciRef(host, path, digest=target) if isinstance(target, Digest) else OciRef(host, path, target)

    again = OciRef.parse(str(ref))

    assert str(again) == str(OciRef.parse(f"oci://{ref}"))
    if host not in {"docker.io", "index.docker.io"}:
        assert again == ref


@settings(deadline=None)
@given(st.text(max_size=200))
def test_any_text_is_a_reference_that_round_trips_or_a_refusal(text: str) -> None:
    try:
        ref = OciRef.parse(text)
    except ReferenceInvalid:
        return
    assert OciRef.parse(str(ref)) == ref


@settings(deadline=None)
@given(_DIGESTS)
def test_a_digest_reads_back_as_it_was_written(digest: Digest) -> None:
    assert Digest.parse(str(digest)) == digest
