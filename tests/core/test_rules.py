"""The rule table is complete, its codes are unique and stable, and its page is the generated one."""

import re
from pathlib import Path

import pytest

from app.core.report import StepName
from app.core.rules import CODES, RULES, RuleKind
from tools.generate_docs import VERIFICATION, verification_page

CODES_THAT_ARE_RELIED_ON = {
    "S1": "S1_BUNDLE_TOO_LARGE",
    "S2": "S2_JSON_NOT_STRICT",
    "S3": "S3_MEDIA_TYPE",
    "S4": "S4_PAYLOAD_TYPE",
    "S5": "S5_BASE64_NOT_CANONICAL",
    "S6": "S6_NOT_EXACTLY_ONE",
    "S7": "S7_ENTRY_KIND",
    "S8": "S8_CHECKPOINT_MISMATCH",
    "S9": "S9_LOG_INDEX_UNBOUND",
    "S10": "S10_LOG_UNKNOWN",
    "S11": "S11_OUTSIDE_ROOT_WINDOW",
    "S12": "S12_TIMESTAMP_INVALID",
    "S13": "S13_LEAF_NOT_KEYLESS",
    "S14": "S14_IDENTITY_NOT_PLAIN",
    "S15": "S15_ISSUER_AMBIGUOUS",
    "S16": "S16_SUBJECT_MISMATCH",
    "S17": "S17_POINTER_SIGNER_MISMATCH",
    "S18": "S18_CALLER_NOT_SIGNER",
    "E1": "E1_MANIFEST_NOT_EXACT",
    "E2": "E2_BOM_MISMATCH",
    "E3": "E3_PHASE_COUNTS_MISMATCH",
    "E4": "E4_DUPLICATE_TEST",
    "E5": "E5_POINTER_MISMATCH",
    "E6": "E6_ATTESTED_IN_FUTURE",
    "E7": "E7_SIGNATURE_AMBIGUOUS",
    "E8": "E8_RECIPE_NOT_COMPARABLE",
    "E9": "E9_STATEMENT_INCOMPLETE",
    "E10": "E10_TIMES_OUT_OF_ORDER",
    "MATERIALIZE": "BUNDLE_NOT_READABLE",
    "UNSIGNED": "SIGNATURE_MISSING",
    "STATEMENT": "STATEMENT_MALFORMED",
    "COHERENCE": "PREDICATE_INCOHERENT",
    "SIGSTORE": "SIGNATURE_VERIFICATION_FAILED",
    "ROOT": "ROOT_NOT_FOR_ISSUER",
    "PIN": "PIN_MISMATCH",
    "PREDICATE": "PREDICATE_MALFORMED",
    "INVENTORY": "MANIFEST_INVENTORY",
    "PHASES": "PHASE_DIGEST_MISMATCH",
    "IDENTITY": "RECIPE_IDENTITY_MISMATCH",
}


def test_every_rule_has_the_code_that_others_rely_on() -> None:
    assert {rule.id: rule.code for rule in RULES.values()} == CODES_THAT_ARE_RELIED_ON


@pytest.mark.parametrize("rule", RULES.values(), ids=lambda rule: rule.id)
def test_a_rule_explains_itself_in_one_line(rule: object) -> None:
    assert rule in RULES.values()
    for text in (rule.title, rule.cure):  # type: ignore[attr-defined]
        assert text
        assert "\n" not in text
        assert len(text) <= 140
        assert not text.endswith(".")


def test_codes_are_unique_and_upper_snake() -> None:
    spoken = [code for rule in RULES.values() for code in (rule.code, *rule.subcodes)]
    assert len(spoken) == len(set(spoken)) == len(CODES)
    assert all(re.fullmatch(r"[A-Z][A-Z0-9]*(_[A-Z0-9]+)*", code) for code in spoken)


def test_numbered_rules_speak_with_their_number() -> None:
    for rule in RULES.values():
        if rule.kind is not RuleKind.UPSTREAM:
            assert all(code.startswith(f"{rule.id}_") for code in (rule.code, *rule.subcodes))


def test_signature_rules_fail_step_2_and_findings_step_4() -> None:
    steps = {kind: {rule.step for rule in RULES.values() if rule.kind is kind} for kind in RuleKind}
    assert steps[RuleKind.SIGNATURE] == {StepName.SIGNATURE}
    assert steps[RuleKind.FINDING] == {StepName.MANIFEST}
    assert [rule.id for rule in RULES.values() if rule.kind is RuleKind.SIGNATURE] == [f"S{n}" for n in range(1, 19)]
    assert [rule.id for rule in RULES.values() if rule.kind is RuleKind.FINDING] == [f"E{n}" for n in range(1, 11)]


def test_the_page_is_the_generated_one() -> None:
    assert Path(VERIFICATION).read_text(encoding="utf-8") == verification_page()


def test_the_page_has_a_row_for_every_rule() -> None:
    page = verification_page()
    for rule in RULES.values():
        assert f"`{rule.code}`" in page
        assert rule.title in page
        assert rule.cure in page
