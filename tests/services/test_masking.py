"""What people are shown of an identity, and of texts that quote one."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.core.allowlist import Allowlist
from app.services.masking import MASK, Masking, Shown
from tests.support.runs import GHO, allowlist_text, listing, person, workflow

WORKFLOW = "https://github.com/o/r/.github/workflows/w.yaml@refs/heads/main"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        pytest.param("dev-one@example.org", "d…e@example.org", id="alone"),
        pytest.param("signed by dev-one@example.org.", "signed by d…e@example.org.", id="in-a-sentence"),
        pytest.param("<dev-one@example.org>", "<d…e@example.org>", id="in-brackets"),
        pytest.param("ab@example.org, a@example.org", "…@example.org, …@example.org", id="short"),
        pytest.param("mailto:dev-one@example.org", "mailto:d…e@example.org", id="mailto"),
        pytest.param("address:dev-one@example.org", "address:d…e@example.org", id="party-key"),
        pytest.param("https://dev-one@example.org/x", "https://d…e@example.org/x", id="in-a-url"),
        pytest.param("?q=dev-one@example.org&x=1", "?q=d…e@example.org&x=1", id="in-a-query"),
        pytest.param("1234567+octocat@users.noreply.github.com", "1…t@users.noreply.github.com", id="noreply"),
        pytest.param("dév@exämple.org", "d…v@exämple.org", id="unicode"),
        pytest.param(WORKFLOW, WORKFLOW, id="workflow-ref"),
        pytest.param(
            f"registry.example.org/x@sha256:{'a' * 64}", f"registry.example.org/x@sha256:{'a' * 64}", id="oci"
        ),
        pytest.param("@mention and a @ b", "@mention and a @ b", id="no-address"),
        pytest.param("", "", id="empty"),
    ],
)
def test_addresses_in_texts_are_masked_and_nothing_else(text: str, shown: str) -> None:
    assert MASK.text(text) == shown


def test_masking_twice_is_masking_once() -> None:
    once = MASK.text("dev-one@example.org and ab@example.org")
    assert MASK.text(once) == once


@settings(deadline=None)
@given(
    st.from_regex(r"[a-z][a-z0-9._+-]{3,30}", fullmatch=True),
    st.text(alphabet=" ,;<>\"'()[]|\n\t", min_size=1, max_size=3),
)
def test_no_local_part_survives(local: str, around: str) -> None:
    masked = MASK.text(f"x{around}{local}@example.org{around}y")
    assert f"{local}@" not in masked
    assert "@example.org" in masked


@pytest.mark.timeout(60)
@pytest.mark.parametrize(
    ("text", "masked"),
    [
        pytest.param("a" * 2_000_000, 0, id="no-at"),
        pytest.param("a" * 1_000_000 + "@" + "b" * 1_000_000, 0, id="one-at"),
        pytest.param("a@" * 500_000, 0, id="only-at"),
        pytest.param("abc.b@c.de " * 100_000, 100_000, id="many"),
    ],
)
def test_a_hostile_length_ends(text: str, masked: int) -> None:
    """A quadratic reading of these would take hours."""
    assert MASK.text(text).count("…") == masked


def test_trees_are_masked_with_their_keys() -> None:
    tree = {"dev-one@example.org": ["x", {"deep": ("dev-one@example.org", 7, None, True)}]}
    assert MASK.tree(tree) == {"d…e@example.org": ["x", {"deep": ["d…e@example.org", 7, None, True]}]}
    assert MASK.mapping(None) is None


def test_a_label_stands_instead_of_an_address_and_beside_a_uri() -> None:
    me = person("dev-one")
    labelled = Masking(Allowlist.load(allowlist_text(me, labels={me.slug: "lab-one"}).encode()))
    assert labelled.signer(GHO, me.identity) == Shown("lab-one", "lab-one")
    assert labelled.party("dev-one@example.org", Shown("lab-one", "lab-one")) == "lab-one"
    assert labelled.replacements(GHO, me.identity).text(f"by {me.identity}") == "by lab-one"
    plain = Masking(listing(me))
    assert plain.signer(GHO, me.identity) == Shown("d…e@example.org", "")
    assert plain.signer(workflow().issuer, workflow().identity) == Shown(workflow().identity, "")
    assert plain.party("github:acme", Shown("x", "")) == "github:acme"
