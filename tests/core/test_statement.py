"""Statements are read strictly; type and profile block agree as in C1 to C9."""

import json
from typing import Any

import pytest
from google.protobuf import json_format
from hypothesis import given, settings
from hypothesis import strategies as st
from in_toto_attestation.v1.statement import Statement as ReferenceStatement
from in_toto_attestation.v1.statement_pb2 import Statement as StatementMessage

from app.core.bundle import Subject
from app.core.errors import DocumentInvalid
from app.core.statement import (
    JSON_NOT_STRICT,
    RECIPE_EVIDENCE_V1,
    RECIPE_EVIDENCE_V2,
    RECIPE_EVIDENCE_V3,
    check_coherence,
    read_statement,
    read_unsigned_statement,
)
from tests.support.signatures import ARTIFACT, STATEMENT, statement_json
from tests.support.statements import parse_statement

BLOCK = {"selection": "gpuStack=operator-managed", "policyDescriptorIdentity": "e3" * 32}


@pytest.mark.parametrize(
    ("predicate_type", "block", "message"),
    [
        pytest.param(RECIPE_EVIDENCE_V1, None, None, id="C1"),
        pytest.param(RECIPE_EVIDENCE_V2, BLOCK, None, id="C2"),
        pytest.param(RECIPE_EVIDENCE_V1, BLOCK, "cannot carry a profile block", id="C3"),
        pytest.param(RECIPE_EVIDENCE_V2, None, "requires the predicate profile block", id="C4"),
        pytest.param(
            RECIPE_EVIDENCE_V2, BLOCK | {"policyDescriptorIdentity": ""}, "policyDescriptorIdentity", id="C5 v2"
        ),
        pytest.param(
            RECIPE_EVIDENCE_V3, BLOCK | {"policyDescriptorIdentity": ""}, "policyDescriptorIdentity", id="C5 v3"
        ),
        pytest.param(RECIPE_EVIDENCE_V2, BLOCK | {"selection": ""}, "selection", id="C6 v2"),
        pytest.param(RECIPE_EVIDENCE_V3, BLOCK | {"selection": ""}, "selection", id="C6 v3"),
        pytest.param(RECIPE_EVIDENCE_V2, BLOCK | {"selection": "gpuStack"}, "malformed selection", id="C7 v2"),
        pytest.param(RECIPE_EVIDENCE_V3, BLOCK | {"selection": "gpuStack"}, "malformed selection", id="C7 v3"),
        pytest.param("https://aicr.run/recipe-evidence/v9", None, "unexpected predicateType", id="C8"),
        pytest.param(RECIPE_EVIDENCE_V3, None, None, id="C9 without block"),
        pytest.param(RECIPE_EVIDENCE_V3, BLOCK, None, id="C9 with block"),
        pytest.param("https://aicr.nvidia.com/recipe-evidence/v1", None, "unexpected predicateType", id="older host"),
        pytest.param("", None, "unexpected predicateType", id="no type"),
        pytest.param(RECIPE_EVIDENCE_V3, "gpuStack=x", "profile block that is an object", id="block that is text"),
        pytest.param(RECIPE_EVIDENCE_V3, {}, "selection and policyDescriptorIdentity", id="empty block"),
        pytest.param(RECIPE_EVIDENCE_V3, BLOCK | {"selection": "a=b\n"}, "malformed selection", id="line break"),
        pytest.param(RECIPE_EVIDENCE_V3, BLOCK | {"selection": "a=b=c"}, "malformed selection", id="two equals signs"),
        pytest.param(RECIPE_EVIDENCE_V3, BLOCK | {"selection": "a= b"}, "malformed selection", id="blank"),
        pytest.param(RECIPE_EVIDENCE_V3, BLOCK | {"selection": 7}, "selection and policy", id="number"),
    ],
)
def test_type_and_profile_block_agree(predicate_type: str, block: object, message: str | None) -> None:
    predicate = {} if block is None else {"profile": block}
    if message is None:
        check_coherence(predicate_type, predicate)
        return
    with pytest.raises(DocumentInvalid) as caught:
        check_coherence(predicate_type, predicate)
    assert message in caught.value.message


def test_both_fields_are_named_when_one_is_empty() -> None:
    for empty in ("selection", "policyDescriptorIdentity"):
        with pytest.raises(DocumentInvalid) as caught:
            check_coherence(RECIPE_EVIDENCE_V3, {"profile": BLOCK | {empty: ""}})
        assert "selection" in caught.value.message
        assert "policyDescriptorIdentity" in caught.value.message


def test_an_unexpected_type_is_named() -> None:
    with pytest.raises(DocumentInvalid, match=r"https://aicr\.run/recipe-evidence/v9"):
        check_coherence("https://aicr.run/recipe-evidence/v9", {})


def test_a_null_block_is_no_block() -> None:
    check_coherence(RECIPE_EVIDENCE_V1, {"profile": None})


def test_a_statement_is_read_with_its_exact_bytes() -> None:
    statement = parse_statement(STATEMENT)
    assert statement.payload == STATEMENT
    assert statement.type == "https://in-toto.io/Statement/v1"
    assert statement.predicate_type == RECIPE_EVIDENCE_V3
    assert statement.subjects == (Subject("registry.example.org/evidence:h100", ARTIFACT.hex),)
    assert statement.predicate["recipe"] == {"name": "h100-eks-ubuntu-training", "digest": "ab" * 32}


def test_the_older_statement_type_is_read() -> None:
    assert parse_statement(statement_json(_type="https://in-toto.io/Statement/v0.1")).subjects


def test_what_we_take_the_reference_implementation_takes() -> None:
    reference = ReferenceStatement.copy_from_pb(json_format.Parse(STATEMENT, StatementMessage()))
    reference.validate()
    ours = parse_statement(STATEMENT)
    assert (ours.type, ours.predicate_type) == (reference.pb.type, reference.pb.predicate_type)
    assert [(s.name, s.sha256) for s in ours.subjects] == [(s.name, s.digest["sha256"]) for s in reference.pb.subject]


@pytest.mark.parametrize(
    ("payload", "message"),
    [
        pytest.param(b"", "statement", id="empty"),
        pytest.param(b"[]", "JSON object", id="list"),
        pytest.param(b"\xff", "UTF-8", id="no UTF-8"),
        pytest.param(statement_json(_type="https://in-toto.io/Statement/v2"), "statement type", id="another type"),
        pytest.param(statement_json(_type=None), "_type", id="no type"),
        pytest.param(statement_json(predicateType=""), "predicateType", id="no predicate type"),
        pytest.param(statement_json(predicateType=7), "predicateType", id="predicate type that is a number"),
        pytest.param(statement_json(predicate=[]), "predicate", id="predicate that is a list"),
        pytest.param(statement_json(subject=None), "at least one subject", id="no subject"),
        pytest.param(statement_json(subject=[]), "at least one subject", id="no subjects"),
        pytest.param(statement_json(subject={}), "at least one subject", id="subject that is no list"),
        pytest.param(statement_json(subject=["x"]), "subject", id="subject that is text"),
        pytest.param(statement_json(subject=[{"name": "x"}]), "digest", id="subject without digest"),
        pytest.param(statement_json(subject=[{"digest": {"sha256": 7}}]), "sha256", id="digest that is a number"),
        pytest.param(statement_json(subject=[{"digest": {"sha1": "ab"}}]), "sha256 digest", id="no sha256"),
        pytest.param(statement_json(subject=[{"digest": {"sha256": ""}}]), "sha256 digest", id="empty sha256"),
        pytest.param(statement_json(subject=[{"digest": {"sha256": "g" * 64}}]), "64 hex", id="no hex"),
        pytest.param(statement_json(subject=[{"digest": {"sha256": "ab"}}]), "64 hex", id="short hex"),
    ],
)
def test_what_is_no_statement_is_refused(payload: bytes, message: str) -> None:
    with pytest.raises(DocumentInvalid) as caught:
        parse_statement(payload)
    assert message in caught.value.message


@pytest.mark.parametrize(
    "payload",
    [
        pytest.param(STATEMENT.replace(b'"_type"', b'"_type": "x", "_type"'), id="a key twice"),
        pytest.param(STATEMENT.replace(b'"predicateType"', b'"PredicateType"'), id="the type in another case"),
        pytest.param(STATEMENT.replace(b'"digest": {', b'"Digest": {"sha256": "00"}, "digest": {', 1), id="subject"),
        pytest.param(STATEMENT.replace(b'"recipe"', b'"RECIPE"'), id="the recipe in another case"),
        pytest.param(STATEMENT.replace(b'"name": "h100', b'"Name": "evil", "name": "h100'), id="a second name"),
        pytest.param(STATEMENT.replace(b'"phases": {}', b'"phases": {"Deployment": {}}'), id="a phase"),
        pytest.param(
            STATEMENT.replace(b'"phases": {}', b'"phases": {"deployment": {"Failed": 1}}'), id="counts in another case"
        ),
        pytest.param(
            STATEMENT.replace(b'"phases": {}', b'"criteriaMatch": {"perDimension": [{"Match": "matched"}]}'),
            id="in a list",
        ),
        pytest.param(STATEMENT.replace(b'"phases"', '"pha\u017fes"'.encode()), id="a letter that folds"),
        pytest.param(STATEMENT.replace(b"{}", b"NaN"), id="NaN"),
    ],
)
def test_what_two_readers_could_read_differently_is_refused(payload: bytes) -> None:
    with pytest.raises(DocumentInvalid) as caught:
        parse_statement(payload)
    assert caught.value.code == JSON_NOT_STRICT


def test_unknown_keys_of_any_case_are_kept() -> None:
    predicate = {"recipe": {"name": "x", "Channel": "stable"}, "Extra": {"Name": 1}, "phases": {}}
    assert parse_statement(statement_json(predicate=predicate)).predicate == predicate


def test_a_foreign_predicate_is_not_looked_into() -> None:
    payload = statement_json(predicateType="https://slsa.dev/provenance/v1", predicate={"Recipe": 1, "Phases": 2})
    assert read_statement(payload).predicate == {"Recipe": 1, "Phases": 2}


def test_a_statement_without_predicate_has_an_empty_one() -> None:
    assert read_statement(statement_json(predicate=None)).predicate == {}


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(1 << 53), 1 << 53) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=10,
)


@settings(deadline=None)
@given(
    document=st.dictionaries(
        st.sampled_from(["_type", "subject", "predicateType", "predicate", "Subject", "x"]), _JSON, max_size=6
    )
)
def test_any_json_is_read_or_refused(document: dict[str, Any]) -> None:
    payload = json.dumps(document).encode()
    try:
        statement = read_statement(payload)
    except DocumentInvalid:
        return
    assert statement.payload == payload
    assert statement.subjects


@settings(deadline=None)
@given(payload=st.binary(max_size=64))
def test_any_bytes_are_read_or_refused(payload: bytes) -> None:
    with pytest.raises(DocumentInvalid):
        parse_statement(payload)


@pytest.mark.parametrize(
    ("changes", "statement_type", "subjects"),
    [
        pytest.param({}, "https://in-toto.io/Statement/v1", 1, id="as-produced"),
        pytest.param({"subject": None}, "https://in-toto.io/Statement/v1", 0, id="no-subject"),
        pytest.param({"subject": [7]}, "https://in-toto.io/Statement/v1", 0, id="malformed-subject"),
        pytest.param({"_type": None}, "", 1, id="no-type"),
        pytest.param({"_type": ["evil"]}, "", 1, id="malformed-type"),
        pytest.param({"_type": "evil"}, "evil", 1, id="another-type"),
    ],
)
def test_the_unsigned_statement_is_asked_for_neither_subject_nor_type(
    changes: dict[str, object], statement_type: str, subjects: int
) -> None:
    statement = read_unsigned_statement(statement_json(**changes))
    assert (statement.type, len(statement.subjects)) == (statement_type, subjects)
    assert statement.predicate["schemaVersion"] == "1.0.0"


@pytest.mark.parametrize(
    ("payload", "message"),
    [
        pytest.param(b"[]", "expected a statement that is a JSON object, got something else", id="no-object"),
        pytest.param(
            statement_json(predicateType=None), "expected a statement with a predicateType, got none", id="none"
        ),
        pytest.param(
            statement_json(predicate={"rows": [[]] * 100_001}),
            "statement: expected at most 200000 JSON tokens, got more",
            id="too-many-tokens",
        ),
        pytest.param(
            statement_json(predicate={"Phases": {}}),
            "key 'Phases' differs from 'phases' only by case",
            id="another-case",
        ),
    ],
)
def test_what_the_unsigned_statement_is_refused_for(payload: bytes, message: str) -> None:
    with pytest.raises(DocumentInvalid) as caught:
        read_unsigned_statement(payload)
    assert caught.value.message == message
