"""Source slugs: the key under which a signer is listed, stored and filed (evidence-format 7.1)."""

import pytest

from app.core.errors import InputError
from app.core.identity import GITHUB_ACTIONS_ISSUER, GITHUB_OAUTH_ISSUER, canonical_source_id, source_slug

WORKFLOWS = "https://github.com/NVIDIA/aicr/.github/workflows"
FORK = "https://github.com/octocat/aicr/.github/workflows/evidence-publish.yaml@refs/heads/evidence/demo"


@pytest.mark.parametrize(
    ("issuer", "identity", "slug"),
    [
        pytest.param(
            GITHUB_ACTIONS_ISSUER,
            f"{WORKFLOWS}/uat-aws.yaml@refs/heads/main",
            "a2f01812594e54d1a14278576fda2ed0",
            id="S1",
        ),
        pytest.param("ab", "c", "0acdf9a2665198da784232d827b01ae3", id="S3"),
        pytest.param("a", "bc", "b4c620724d95022be9765d6f660a36f9", id="S4"),
        pytest.param(
            GITHUB_OAUTH_ISSUER,
            "1234567+octocat@users.noreply.github.com",
            "6a07962adbca2d3f377d8c67f2584e71",
            id="S5",
        ),
        pytest.param(GITHUB_OAUTH_ISSUER, "octocat@example.com", "10310792c26f9801eb3cc8c2b2107d0b", id="S6"),
        pytest.param(GITHUB_OAUTH_ISSUER, "alice@example.com", "9dca98e006e5f5a883b6be3377e00d9c", id="S7"),
        pytest.param(GITHUB_OAUTH_ISSUER, "bob@example.com", "2a13a820e1e7356742c22939fc69dede", id="S8"),
        pytest.param(GITHUB_ACTIONS_ISSUER, FORK, "f82b1dfb9774b96de0dd47219ab2b1dc", id="S9"),
    ],
)
def test_a_slug_is_the_head_of_the_hash(issuer: str, identity: str, slug: str) -> None:
    assert source_slug(issuer, identity) == slug
    assert canonical_source_id(issuer, identity).startswith(slug)


def test_the_whole_hash_is_the_canonical_id() -> None:
    """S1, all 64 characters."""
    found = canonical_source_id(GITHUB_ACTIONS_ISSUER, f"{WORKFLOWS}/uat-aws.yaml@refs/heads/main")
    assert found == "a2f01812594e54d1a14278576fda2ed0a71b32b8b2287862271baf100c561b16"


@pytest.mark.parametrize(
    ("issuer", "identity"),
    [
        pytest.param("", "octocat@example.com", id="S2-no-issuer"),
        pytest.param(GITHUB_OAUTH_ISSUER, "", id="S2-no-identity"),
        pytest.param("", "", id="S2-nothing"),
        pytest.param("a\nb", "c", id="line-feed-in-issuer"),
        pytest.param("a", "b\rc", id="carriage-return-in-identity"),
    ],
)
def test_half_a_signer_has_no_slug(issuer: str, identity: str) -> None:
    with pytest.raises(InputError) as caught:
        source_slug(issuer, identity)
    assert caught.value.code == "INVALID_REQUEST"
