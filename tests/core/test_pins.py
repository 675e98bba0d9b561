"""Pins are exact for the issuer and an RE2 search for the identity."""

import pytest

from app.core.bundle import Pins
from app.core.errors import InputError
from app.core.pins import compile_pins

ISSUER = "https://github.com/login/oauth"


@pytest.mark.parametrize(
    ("pins", "issuer", "identity", "holds"),
    [
        pytest.param(Pins(), "any", "any", True, id="no pin"),
        pytest.param(Pins(issuer=ISSUER), ISSUER, "any", True, id="issuer"),
        pytest.param(Pins(issuer=ISSUER), ISSUER + "/", "any", False, id="issuer with more"),
        pytest.param(Pins(issuer=ISSUER), ISSUER.upper(), "any", False, id="issuer in another case"),
        pytest.param(Pins(identity_regexp="dev@example.org"), "x", "dev@example.org", True, id="regexp"),
        pytest.param(Pins(identity_regexp="dev@example"), "x", "evil-dev@example.attacker", True, id="searches"),
        pytest.param(Pins(identity_regexp="^dev@example[.]org$"), "x", "evil-dev@example.org", False, id="anchored"),
        pytest.param(
            Pins(identity_regexp="^dev@example[.]org$"), "x", "dev@example.org\n", False, id="no final newline"
        ),
        pytest.param(Pins(identity_regexp="^a$"), "x", "b\na\nc", False, id="lines are no anchors"),
        pytest.param(Pins(issuer=ISSUER, identity_regexp="^a$"), "x", "a", False, id="both are asked"),
    ],
)
def test_a_pin_holds_or_not(pins: Pins, issuer: str, identity: str, holds: bool) -> None:  # noqa: FBT001
    fault = compile_pins(pins).fault(issuer, identity)
    assert (fault is None) is holds
    if fault is not None:
        assert "the certificate says" in fault


@pytest.mark.parametrize(
    "pins",
    [
        pytest.param(Pins(identity_regexp="(?=a)"), id="look-ahead"),
        pytest.param(Pins(identity_regexp="(a)\\1"), id="back-reference"),
        pytest.param(Pins(identity_regexp="["), id="unbalanced"),
        pytest.param(Pins(identity_regexp="\ud800"), id="half a surrogate pair"),
        pytest.param(Pins(identity_regexp="a" * 2049), id="too long"),
        pytest.param(Pins(identity_regexp="((a{1000}){1000}){1000}"), id="too large"),
        pytest.param(Pins(identity_regexp=""), id="empty regexp"),
        pytest.param(Pins(issuer=""), id="empty issuer"),
    ],
)
def test_a_pin_that_means_nothing_is_an_input_error(pins: Pins) -> None:
    with pytest.raises(InputError) as caught:
        compile_pins(pins)
    assert caught.value.code == "INVALID_REQUEST"


def test_a_regexp_that_backtracks_elsewhere_is_linear_here() -> None:
    pins = compile_pins(Pins(identity_regexp="^(a+)+$"))
    assert pins.fault("x", "a" * 5_000 + "!") is not None
