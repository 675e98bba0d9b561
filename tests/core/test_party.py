"""Parties, masking and visible text: trust 5 and 6."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.core.identity import GithubClaims, SignerIdentity
from app.core.party import (
    is_address,
    is_personal_address,
    mask_address,
    mask_identity,
    mask_text,
    parties_of,
    party_of,
    visible,
)
from tests.support.runs import GHA, GHO, WORKFLOW, person, workflow

OCTOCAT = "1234567+octocat@users.noreply.github.com"


@pytest.mark.parametrize(
    ("signer", "party"),
    [
        pytest.param(
            workflow(claims=GithubClaims(source_owner="https://github.com/Acme", source_owner_id="77")),
            "github:acme",
            id="owner-of-the-certificate",
        ),
        pytest.param(workflow(), "github:nvidia", id="owner-in-the-identity"),
        pytest.param(
            workflow(claims=GithubClaims(source_repository="https://github.com/acme/aicr")),
            "github:acme",
            id="owner-of-the-source-repository",
        ),
        pytest.param(SignerIdentity(GHO, OCTOCAT), "github:octocat", id="noreply-with-number"),
        pytest.param(SignerIdentity(GHO, "Octocat@users.noreply.github.com"), "github:octocat", id="noreply"),
        pytest.param(SignerIdentity(GHO, "Dev@Example.org"), "dev@example.org", id="address"),
        pytest.param(
            SignerIdentity("https://oidc.example", "https://github.com/acme/x/y@main"),
            SignerIdentity("https://oidc.example", "https://github.com/acme/x/y@main").slug,
            id="another-issuer-says-nothing-about-github",
        ),
    ],
)
def test_party_is_the_account_else_the_address_else_the_slug(signer: SignerIdentity, party: str) -> None:
    assert party_of(signer) == party


def same(left: SignerIdentity, right: SignerIdentity, *others: SignerIdentity) -> bool:
    signers = {signer.canonical_id: signer for signer in (left, right, *others)}
    found = parties_of(signers)
    return found[left.canonical_id] == found[right.canonical_id]


def gha(owner: str, number: str = "", repository: str = "r") -> SignerIdentity:
    claims = GithubClaims(source_owner=f"https://github.com/{owner}", source_owner_id=number)
    return SignerIdentity(
        GHA, f"https://github.com/{owner}/{repository}/.github/workflows/w.yaml@refs/heads/main", claims
    )


def test_workflow_and_person_of_one_account_are_one_party() -> None:
    assert same(gha("octocat", "1234567"), SignerIdentity(GHO, OCTOCAT))


def test_number_wins_over_a_renamed_login() -> None:
    assert same(gha("old-name", "5"), gha("new-name", "5"))
    assert not same(gha("name", "5"), gha("name", "6", "other"))


def test_login_alone_is_the_account_that_shows_its_number() -> None:
    bare = SignerIdentity(GHO, "octocat@users.noreply.github.com")
    assert same(bare, gha("octocat", "9"))
    assert not same(bare, gha("octocat", "9"), gha("octocat", "10", "other"))


def test_letters_case_makes_no_second_party() -> None:
    assert same(SignerIdentity(GHO, "dev@example.org"), SignerIdentity("https://accounts.example", "DEV@example.org"))
    assert same(gha("Acme", repository="a"), gha("acme", repository="b"))


def test_two_people_are_two_parties() -> None:
    assert not same(person("ann"), person("bob"))


@pytest.mark.parametrize(
    ("address", "masked"),
    [
        ("octocat@example.org", "o…t@example.org"),
        ("abc@example.org", "a…c@example.org"),
        ("ab@example.org", "…@example.org"),
        ("a@example.org", "…@example.org"),
        (OCTOCAT, "1…t@users.noreply.github.com"),
        ('"a@b"@example.org', '"…"@example.org'),
    ],
)
def test_address_keeps_first_and_last_letter(address: str, masked: str) -> None:
    assert mask_address(address) == masked
    assert mask_identity(address) == masked


@pytest.mark.parametrize(
    ("identity", "shown"),
    [
        (f"{WORKFLOW}@refs/heads/main", f"{WORKFLOW}@refs/heads/main"),
        ("https://oidc.example/attest", "https://oidc.example/attest"),
        ("https://oidc.example/users/octocat@example.org", "https://oidc.example/users/o…t@example.org"),
        ("mailto:octocat@example.org", "mailto:o…t@example.org"),
    ],
)
def test_uris_stay_but_for_addresses_in_them(identity: str, shown: str) -> None:
    assert mask_identity(identity) == shown


def test_every_address_in_a_text_is_masked() -> None:
    text = "ask octocat@example.org, or <dev-one@example.org>; not uat.yaml@refs/heads/main"
    assert mask_text(text) == "ask o…t@example.org, or <d…e@example.org>; not uat.yaml@refs/heads/main"


def test_long_hostile_text_is_masked_in_linear_time() -> None:
    assert mask_text("x" * 500_000) == "x" * 500_000
    assert mask_text("a@" * 200_000) == "a@" * 200_000


def test_shapes_of_identities() -> None:
    assert is_address("dev@example.org")
    assert not is_address(f"{WORKFLOW}@refs/heads/main")
    assert not is_address("no-at")
    assert is_personal_address("dev@example.org")
    assert not is_personal_address(OCTOCAT)
    assert not is_personal_address(f"{WORKFLOW}@refs/heads/main")


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain", "plain"),
        ("größe ✓", "größe ✓"),
        ("a\x1b[31mb", "a\\x1b[31mb"),
        ("a\nb\tc", "a\\x0ab\\x09c"),
        ("a\u202eb", "a\\u202eb"),
        ("a\u200bb", "a\\u200bb"),
        ("a\u2028b", "a\\u2028b"),
        ("tag\U000e0041", "tag\\U000e0041"),
    ],
)
def test_control_and_bidi_characters_are_spelled_out(text: str, shown: str) -> None:
    assert visible(text) == shown


def test_kept_characters_stay() -> None:
    assert visible("a\nb\x07", keep="\n") == "a\nb\\x07"


@settings(deadline=None)
@given(st.text())
def test_visible_text_prints(text: str) -> None:
    assert not any(ord(ch) < 0x20 or 0x7F <= ord(ch) < 0xA0 or ch in "\u202a\u202e\u2066\u200b" for ch in visible(text))
