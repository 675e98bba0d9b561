"""Attacks on who counts and on the lists that say so; each is named after its kind."""

import hashlib

import pytest

from app.core.allowlist import Allowlist
from app.core.bundle import Pins
from app.core.errors import AllowlistInvalid, InputError, RegistryNotTrusted
from app.core.gate import TrustedRegistries
from app.core.identity import GITHUB_ACTIONS_ISSUER, GITHUB_OAUTH_ISSUER, source_slug
from app.core.pins import compile_pins
from app.core.refs import OciRef

WORKFLOW = "https://github.com/NVIDIA/aicr/.github/workflows/uat-aws.yaml"
PATTERN = r"^https://github\.com/NVIDIA/aicr/\.github/workflows/uat-aws\.yaml@refs/heads/.+$"


def pattern_list(pattern: str) -> Allowlist:
    text = f"schemaVersion: 1.0.0\nfirstParty:\n  - issuer: {GITHUB_ACTIONS_ISSUER}\n    identityPattern: '{pattern}'\n"
    return Allowlist.load(text.encode())


def person_list(identity: str) -> Allowlist:
    slug = source_slug(GITHUB_OAUTH_ISSUER, identity)
    text = f"schemaVersion: 1.0.0\ncommunity:\n  - issuer: {GITHUB_OAUTH_ISSUER}\n    source: '{slug}'\n"
    return Allowlist.load(text.encode())


def listed(allowlist: Allowlist, identity: str, issuer: str = GITHUB_ACTIONS_ISSUER) -> bool:
    return allowlist.classify(issuer, identity).allowlisted


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b"schemaVersion: 1.0.0\n", id="no section"),
        pytest.param(b"schemaVersion: 1.0.0\nfirstParty: []\ncommunity: []\npartner: []\n", id="empty sections"),
        pytest.param(b"schemaVersion: 1.0.0\ncommunity: ~\n", id="null section"),
    ],
)
def test_vacuous_pass_on_an_empty_allowlist(data: bytes) -> None:
    """A list without entries admits nobody, upstream's own workflow included."""
    empty = Allowlist.load(data)
    assert not listed(empty, f"{WORKFLOW}@refs/heads/main")
    assert not listed(empty, "", "")


def test_vacuous_pass_on_no_trusted_registry() -> None:
    with pytest.raises(RegistryNotTrusted):
        TrustedRegistries.parse("").require(OciRef.parse(f"ghcr.io/nvidia/x@sha256:{'a' * 64}"))
    with pytest.raises(RegistryNotTrusted):
        TrustedRegistries.parse(" , ,").require(OciRef.parse(f"ghcr.io/nvidia/x@sha256:{'a' * 64}"))


def test_vacuous_pass_on_an_empty_pin() -> None:
    """An option that was given without a value is no pin that everybody meets."""
    for pins in (Pins(issuer=""), Pins(identity_regexp="")):
        with pytest.raises(InputError):
            compile_pins(pins)


@pytest.mark.parametrize(
    "identity",
    [
        pytest.param(f"x{WORKFLOW}@refs/heads/main", id="text before"),
        pytest.param(f"https://evil.example/?u={WORKFLOW}@refs/heads/main", id="as a parameter"),
        pytest.param(f"{WORKFLOW}@refs/heads/main\n", id="line break after"),
        pytest.param(f"evil\n{WORKFLOW}@refs/heads/main", id="on the second line"),
        pytest.param(f"{WORKFLOW}@refs/heads/main\r", id="carriage return"),
        pytest.param(f"{WORKFLOW}@refs/heads/a\nb", id="line break inside"),
        pytest.param(f"{WORKFLOW}@refs/tags/v1@refs/heads/main", id="two refs"),
        pytest.param(f"{WORKFLOW.replace('.yaml', 'Xyaml')}@refs/heads/main", id="dot stands for anything"),
        pytest.param(f"{WORKFLOW.replace('NVIDIA', 'nvidia')}@refs/heads/main", id="case of the owner"),
        pytest.param(f"{WORKFLOW}@REFS/HEADS/MAIN", id="case of the ref"),
    ],
)
def test_regex_not_anchored(identity: str) -> None:
    """Patterns are matched from the first to the last character, whatever stands around."""
    allowlist = pattern_list(PATTERN)
    assert listed(allowlist, f"{WORKFLOW}@refs/heads/main")
    assert not listed(allowlist, identity)


@pytest.mark.parametrize(
    "pattern",
    [
        pytest.param(PATTERN.removeprefix("^"), id="no start"),
        pytest.param(PATTERN.removesuffix("$"), id="no end"),
        pytest.param(PATTERN.removesuffix("$") + r"\$", id="escaped end"),
        pytest.param("^.*$", id="anything"),
        pytest.param(r"^https://github\.com/.*@refs/heads/main$", id="any repository"),
        pytest.param(r"^https://github\.com/NVIDIA/aicr/w\.yaml@refs/heads/main|.*@.*$", id="alternation"),
        pytest.param(r"^(?i)https://github\.com/NVIDIA/aicr/w\.yaml@refs/heads/main$", id="inline flag"),
        pytest.param(r"^https://github\.com/NVIDIA/aicr/w\.yaml(@|.*)refs$", id="at in a group"),
    ],
)
def test_a_pattern_that_admits_more_than_it_shows(pattern: str) -> None:
    with pytest.raises(AllowlistInvalid):
        pattern_list(pattern)


@pytest.mark.parametrize(
    "identity",
    [
        pytest.param("Dev-Two@example.org", id="e-mail case"),
        pytest.param("dev-two@EXAMPLE.ORG", id="domain case"),
        pytest.param("dev-tw\u043e@example.org", id="homoglyph"),
        pytest.param("dev-two\u200b@example.org", id="zero-width"),
        pytest.param("\ufeffdev-two@example.org", id="byte-order mark"),
        pytest.param("dev-two@example.org\u202e", id="bidi"),
        pytest.param("dev\u2010two@example.org", id="other hyphen"),
        pytest.param("dev-two\uff20example.org", id="full-width at"),
        pytest.param("dev-two@example.org ", id="space after"),
        pytest.param("dev-two@example.org\n", id="newline"),
        pytest.param("dev-two@example.org\x00", id="nul"),
        pytest.param("de\u0301v-two@example.org", id="combining mark"),
    ],
)
def test_identity_by_homoglyph_zero_width_case_and_newline(identity: str) -> None:
    allowlist = person_list("dev-two@example.org")
    assert listed(allowlist, "dev-two@example.org", GITHUB_OAUTH_ISSUER)
    assert not listed(allowlist, identity, GITHUB_OAUTH_ISSUER)


def test_newline_moves_the_border_between_issuer_and_identity() -> None:
    """The slug is hashed over both with a line break between: nobody may bring his own."""
    with pytest.raises(InputError):
        source_slug("https://a", "b\nc")
    with pytest.raises(InputError):
        source_slug("https://a\nb", "c")
    allowlist = person_list("dev-two@example.org")
    assert not listed(allowlist, "dev-two@example.org", f"{GITHUB_OAUTH_ISSUER}\n")
    assert not listed(allowlist, "x\ndev-two@example.org", GITHUB_OAUTH_ISSUER)


def test_an_identity_with_a_control_character_is_never_listed_even_by_its_own_slug() -> None:
    text = f"schemaVersion: 1.0.0\ncommunity:\n  - issuer: {GITHUB_OAUTH_ISSUER}\n    source: '{{slug}}'\n"
    identity = "dev-two\t@example.org"
    slug = hashlib.sha256(f"{GITHUB_OAUTH_ISSUER}\n{identity}".encode()).hexdigest()[:32]
    assert not listed(Allowlist.load(text.format(slug=slug).encode()), identity, GITHUB_OAUTH_ISSUER)


@pytest.mark.parametrize(
    "regexp",
    [
        pytest.param("(a+)+$", id="nested quantifiers"),
        pytest.param("^(a|a)*$", id="overlapping alternatives"),
        pytest.param("(a|aa)+$", id="ambiguous alternatives"),
        pytest.param("(.*a){20}$", id="repeated wildcard"),
        pytest.param("^(([a-z])+.)+[A-Z]([a-z])+$", id="mail pattern"),
    ],
)
def test_redos_by_an_identity_pin(regexp: str) -> None:
    """An engine without backtracking answers in time that is linear in the identity."""
    compiled = compile_pins(Pins(identity_regexp=regexp))
    assert compiled.fault("x", "a" * 100_000 + "!") is not None


@pytest.mark.parametrize("ref", ["(a+)+", "(a|a)*", "(a|aa)+", "(.*a){20}"])
def test_redos_by_an_allowlist_pattern(ref: str) -> None:
    allowlist = pattern_list(rf"^https://github\.com/o/r/w\.yaml@refs/heads/{ref}$")
    assert not listed(allowlist, "https://github.com/o/r/w.yaml@refs/heads/" + "a" * 100_000 + "!")


def test_a_pattern_that_explodes_while_it_is_compiled() -> None:
    with pytest.raises(AllowlistInvalid) as caught:
        pattern_list(r"^https://github\.com/o/r/w\.yaml@refs/((a{1000}){1000}){1000}$")
    assert caught.value.rule == "J15"
    with pytest.raises(InputError):
        compile_pins(Pins(identity_regexp="((a{1000}){1000}){1000}"))


@pytest.mark.parametrize(
    "reference",
    [
        pytest.param("ghcr.io/nvidia-evil/x", id="longer segment"),
        pytest.param("ghcr.io.evil.example/nvidia/x", id="longer host"),
        pytest.param("evil.example/ghcr.io/nvidia/x", id="as a path"),
        pytest.param("ghcr.io/nvidiax/x", id="no separator"),
        pytest.param("ghcr.io:443.evil.example/nvidia/x", id="after the port"),
        pytest.param("ghcr.io/nvidia/../evil/x", id="parent directory"),
        pytest.param("ghcr.io/nvidia/./../evil", id="dots"),
        pytest.param("ghcr.io/nvidia%2f..%2fevil/x", id="encoded"),
        pytest.param("ghcr.i\u043e/nvidia/x", id="homoglyph"),
        pytest.param("ghcr.io:8443/nvidia/x", id="another port"),
        pytest.param("nvidia/x", id="docker hub"),
    ],
)
def test_a_registry_that_looks_trusted(reference: str) -> None:
    gate = TrustedRegistries.parse("ghcr.io/nvidia")
    assert gate.admits_text(f"ghcr.io/nvidia/x@sha256:{'a' * 64}")
    assert not gate.admits_text(f"{reference}@sha256:{'a' * 64}")
