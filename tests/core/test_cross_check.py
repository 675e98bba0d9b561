"""Rule S17 against the vectors X1 to X9, and log index 0, which is a real index."""

import pytest

from app.core.cross_check import SignerClaim, SignerFacts, cross_check
from app.core.errors import Category
from app.core.rules import CODES
from tests.support.signatures import accepted, minted

A, B = "1234567+octocat@users.noreply.github.com", "dev-two@example.org"
ISSUER, OTHER = "https://github.com/login/oauth", "https://login.other.example"
SIGNED = SignerFacts(A, ISSUER, 42)


@pytest.mark.parametrize(
    ("claim", "signature", "code", "text"),
    [
        pytest.param(None, None, None, "", id="S17-X1 nothing, nothing"),
        pytest.param(None, SIGNED, None, "", id="S17-X1 nothing, a signer"),
        pytest.param(SignerClaim(A, ISSUER), None, "S17_NO_SIGNATURE", "no signature", id="S17-X2"),
        pytest.param(SignerClaim(B, ISSUER), SIGNED, "S17_IDENTITY_MISMATCH", "identity mismatch", id="S17-X3"),
        pytest.param(SignerClaim(A, OTHER), SIGNED, "S17_ISSUER_MISMATCH", "issuer mismatch", id="S17-X4"),
        pytest.param(SignerClaim(A, ""), SIGNED, None, "", id="S17-X5"),
        pytest.param(SignerClaim(A, ISSUER, 42), SIGNED, None, "", id="S17-X6"),
        pytest.param(
            SignerClaim(A, ISSUER, 42),
            SignerFacts(A, ISSUER, 99),
            "S17_LOG_INDEX_MISMATCH",
            "Rekor log index mismatch",
            id="S17-X7",
        ),
        pytest.param(
            SignerClaim(A, ISSUER, 42), SignerFacts(A, ISSUER, None), "S17_NO_LOG_ENTRY", "no Rekor entry", id="S17-X8"
        ),
        pytest.param(SignerClaim(A, ISSUER), SIGNED, None, "", id="S17-X9"),
        pytest.param(SignerClaim(A, ISSUER, 0), SignerFacts(A, ISSUER, 0), None, "", id="S17-index 0 equals 0"),
        pytest.param(
            SignerClaim(A, ISSUER, 0),
            SIGNED,
            "S17_LOG_INDEX_MISMATCH",
            "Rekor log index mismatch",
            id="S17-index 0 is claimed",
        ),
        pytest.param(
            SignerClaim(A, ISSUER, 7),
            SignerFacts(A, ISSUER, 0),
            "S17_LOG_INDEX_MISMATCH",
            "Rekor log index mismatch",
            id="S17-index 0 is signed",
        ),
        pytest.param(
            SignerClaim(A.upper(), ISSUER), SIGNED, "S17_IDENTITY_MISMATCH", "identity mismatch", id="S17-another case"
        ),
        pytest.param(
            SignerClaim(B, OTHER, 1),
            SIGNED,
            "S17_IDENTITY_MISMATCH",
            "identity mismatch",
            id="S17-identity speaks first",
        ),
        pytest.param(
            SignerClaim(A, OTHER, 1), SIGNED, "S17_ISSUER_MISMATCH", "issuer mismatch", id="S17-issuer before index"
        ),
    ],
)
def test_a_pointer_is_compared_with_the_signature(
    claim: SignerClaim | None, signature: SignerFacts | None, code: str | None, text: str
) -> None:
    fault = cross_check(claim, signature)
    if code is None:
        assert fault is None
    else:
        assert fault is not None
        assert fault.code == code
        assert text in fault.message
        assert fault.category is Category.UNAUTHORIZED
        assert CODES[fault.code].id == "S17"


def test_a_verified_signature_is_compared_by_its_own_entry() -> None:
    signature = accepted(minted())
    assert cross_check(SignerClaim(A, ISSUER, signature.log.index), signature) is None
    fault = cross_check(SignerClaim(A, ISSUER, signature.log.index + 1), signature)
    assert fault is not None
    assert fault.message == (
        f"Rekor log index mismatch: the pointer claims {signature.log.index + 1}, the entry has {signature.log.index}"
    )
