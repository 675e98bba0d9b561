"""JSON from outside: one meaning for every reader; JSON for bundles: Go's bytes."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.core.errors import DocumentInvalid
from app.core.jsontext import MAX_TOKENS, go_json, has_more_tokens, parse_json, parse_members, refuse_case_variants

LIMIT = 1 << 20

REFUSED = [
    pytest.param(b'{"a": 1, "a": 1}', "key 'a' is repeated", id="duplicate"),
    pytest.param(b'{"x": [{"a": 1, "\\u0061": 2}]}', "key 'a' is repeated", id="escaped-duplicate"),
    pytest.param(b"[NaN]", "finite number, got NaN", id="nan"),
    pytest.param(b"[-Infinity]", "finite number, got -Infinity", id="infinity"),
    pytest.param(b"[1e999]", "finite number, got 1e999", id="overflow"),
    pytest.param(b"[18446744073709551616]", "at most 64 bits", id="65-bits"),
    pytest.param(b"[-9223372036854775809]", "at most 64 bits", id="65-bits-negative"),
    pytest.param(b"[" + b"9" * 5000 + b"]", "at most 40 characters, got 5000", id="huge-integer"),
    pytest.param(b"[0." + b"9" * 5000 + b"]", "at most 40 characters, got 5002", id="huge-real"),
    pytest.param(b'["\\ud800"]', "half of a surrogate pair", id="lone-surrogate"),
    pytest.param(b'{"\\udc00": 1}', "half of a surrogate pair", id="lone-surrogate-key"),
    pytest.param(b'["\xff"]', "byte 2 starts no character", id="not-utf8"),
    pytest.param(b'["\xed\xa0\x80"]', "starts no character", id="encoded-surrogate"),
    pytest.param(b"\xef\xbb\xbf[]", "not valid JSON: ", id="byte-order-mark"),
    pytest.param(b"[1] [2]", "not valid JSON: Extra data at line 1, column 5", id="second-text"),
    pytest.param(b"", "not valid JSON: ", id="nothing"),
    pytest.param(b'["a\nb"]', "not valid JSON: Invalid control character", id="raw-newline"),
    pytest.param(b"[" * 65 + b"]" * 65, "at most 64 nested levels", id="deep"),
    pytest.param(b"[" * 500_000, "at most 64 nested levels", id="very-deep-unclosed"),
    pytest.param(b'{"a":' * 65 + b"1" + b"}" * 65, "at most 64 nested levels", id="deep-objects"),
    pytest.param(b'"' + b'\\"' * 400_000 + b"[" * 100, "not valid JSON: ", id="unterminated-string-of-escapes"),
    pytest.param(b" " * (LIMIT + 1), "expected at most 1048576 bytes of JSON, got 1048577", id="large"),
]


@pytest.mark.parametrize(("data", "message"), REFUSED)
def test_what_readers_could_take_differently_is_refused(data: bytes, message: str) -> None:
    with pytest.raises(DocumentInvalid) as caught:
        parse_json(data, max_bytes=LIMIT)
    assert message in caught.value.message


@pytest.mark.parametrize(
    ("data", "tokens"),
    [
        pytest.param(b"", 0, id="nothing"),
        pytest.param(b"1", 0, id="a-number"),
        pytest.param(b"[1, 2, 3]", 3, id="bracket-and-commas"),
        pytest.param(b'{"a": {}}', 4, id="strings-count"),
        pytest.param(b'["a,b:[{", "\\",[:"]', 4, id="what-stands-in-strings-does-not"),
        pytest.param(b'["' + b"," * 1000, 2, id="unterminated-string"),
        pytest.param('["\u00e9,", "\U0001f600:"]'.encode(), 4, id="not-ascii"),
    ],
)
def test_tokens_are_counted_outside_of_strings(data: bytes, tokens: int) -> None:
    assert not has_more_tokens(data, tokens)
    assert tokens == 0 or has_more_tokens(data, tokens - 1)


def test_a_text_of_too_many_tokens_is_refused_before_it_is_parsed() -> None:
    """A bracket that nothing closes would be another complaint."""
    with pytest.raises(DocumentInvalid) as caught:
        parse_json(b"[1,2,3", max_tokens=2, what="report")
    assert caught.value.message == "report: expected at most 2 JSON tokens, got more"
    assert parse_json(b"[1,2,3]", max_tokens=3) == [1, 2, 3]


def test_a_report_of_ten_mebibytes_of_output_has_few_tokens() -> None:
    line = "NCCL INFO Channel 00/0 : 0[0] -> 1[1], via P2P/CUMEM {ring: 0, step: 4}"
    report = go_json({"stdout": [line] * 120_000})
    assert 9 << 20 < len(report) <= 10 << 20
    assert not has_more_tokens(report, MAX_TOKENS)


ACCEPTED = [
    pytest.param(b'{"a": [1, 2.5, true, null, "x"]}', {"a": [1, 2.5, True, None, "x"]}, id="all-types"),
    pytest.param(b"[18446744073709551615, -9223372036854775808]", [2**64 - 1, -(2**63)], id="64-bits"),
    pytest.param(b'["\\ud83d\\ude00"]', ["\U0001f600"], id="surrogate-pair"),
    pytest.param(b'[{"a": 1}, {"a": 2}]', [{"a": 1}, {"a": 2}], id="same-key-in-two-objects"),
    pytest.param(b'["' + b"[" * 100 + b'"]', ["[" * 100], id="brackets-in-a-string"),
    pytest.param(b'["\\"' + b"[" * 100 + b'"]', ['"' + "[" * 100], id="brackets-after-an-escaped-quote"),
    pytest.param(b"[" + b"[]," * 100 + b"[]]", [[]] * 101, id="many-but-flat"),
    pytest.param(b'{"": 0}', {"": 0}, id="empty-key"),
]


@pytest.mark.parametrize(("data", "value"), ACCEPTED)
def test_plain_json_is_read_as_python_reads_it(data: bytes, value: object) -> None:
    assert parse_json(data, max_bytes=LIMIT) == value


def test_messages_name_the_document() -> None:
    with pytest.raises(DocumentInvalid, match=r"^manifest\.json: key 'a' is repeated"):
        parse_json(b'{"a": 1, "a": 2}', what="manifest.json")
    with pytest.raises(DocumentInvalid, match=r"^manifest\.json: expected at most 1 bytes"):
        parse_json(b"[]", max_bytes=1, what="manifest.json")


def test_a_float_that_no_double_holds_exactly_is_still_a_number() -> None:
    assert parse_json(b"[0.1, 1e3]") == [0.1, 1000.0]


CASE_VARIANTS = [
    pytest.param("Passed", id="upper"),
    pytest.param("PASSED", id="all-upper"),
    pytest.param("pa\u017f\u017fed", id="long-s"),
]


@pytest.mark.parametrize("key", CASE_VARIANTS)
def test_a_key_that_go_would_read_as_a_known_one_is_refused(key: str) -> None:
    with pytest.raises(DocumentInvalid, match="differs from 'passed' only by case"):
        refuse_case_variants({"failed": 0, key: 1}, ["passed", "failed"])


def test_unknown_keys_and_exact_keys_pass() -> None:
    refuse_case_variants({"passed": 0, "other": 1, "Another": 2}, ["passed", "failed"])


def test_go_json_escapes_html_and_line_separators() -> None:
    assert go_json({"a": '<&>\u2028\u2029\u00e9\U0001f600\t"\\/'}) == (
        b'{\n  "a": "\\u003c\\u0026\\u003e\\u2028\\u2029\xc3\xa9\xf0\x9f\x98\x80\\t\\"\\\\/"\n}\n'
    )


def test_go_json_prints_empty_collections_and_whole_numbers_short() -> None:
    assert go_json({"b": [], "a": {}, "n": 3.0, "t": (1, None, True), "r": 0.5}) == (
        b'{\n  "b": [],\n  "a": {},\n  "n": 3,\n  "t": [\n    1,\n    null,\n    true\n  ],\n  "r": 0.5\n}\n'
    )


@pytest.mark.parametrize("number", [1e300, 1e-9, float("nan"), float("inf")])
def test_go_json_refuses_floats_without_a_common_form(number: float) -> None:
    with pytest.raises(ValueError, match="float"):
        go_json([number])


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


@given(_JSON)
@settings(deadline=None)
def test_what_go_json_writes_is_read_back(value: object) -> None:
    assert parse_json(go_json(value), max_bytes=LIMIT) == value


@given(st.binary(max_size=120))
@settings(deadline=None)
def test_any_bytes_give_a_value_or_a_refusal(data: bytes) -> None:
    try:
        value = parse_json(data, max_bytes=LIMIT)
    except DocumentInvalid:
        return
    assert value == json.loads(data)


@pytest.mark.parametrize(
    ("data", "kept"),
    [
        pytest.param(
            b'{"a":1,"components":[{"x":1},{},{"components":[1,2]}],"b":{}}',
            {"components": [{}, {}, {"components": [1, 2]}]},
            id="lists keep their length",
        ),
        pytest.param(b"{}", {}, id="nothing"),
        pytest.param(b"[{},1]", [{}, 1], id="no object"),
        pytest.param(b'{"components":null}', {"components": None}, id="null"),
    ],
)
def test_of_a_large_document_only_the_named_members_are_kept(data: bytes, kept: object) -> None:
    assert parse_members(data, {"components"}, max_bytes=1 << 20) == kept


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b'{"a":1,"a":2}', id="repeated key"),
        pytest.param(b'{"x":{"a":"\\ud800"}}', id="half a surrogate pair"),
        pytest.param(b'["\\ud800"]', id="half a pair outside of objects"),
        pytest.param(b'{"a":NaN}', id="no number"),
        pytest.param(b"[" * 65 + b"]" * 65, id="too deep"),
        pytest.param(b'{"a":1', id="no JSON"),
        pytest.param(b"[" + b"1," * 400_000 + b"1]", id="too many tokens"),
        pytest.param(b'{"a":"' + b"x" * (1 << 20) + b'"}', id="too large"),
    ],
)
def test_what_is_given_up_was_checked(data: bytes) -> None:
    with pytest.raises(DocumentInvalid):
        parse_members(data, {"components"}, max_bytes=1 << 20, max_tokens=400_000)


def test_a_document_of_many_tokens_keeps_what_matters() -> None:
    """More than `parse_json` takes: twelve thousand components as an ordinary tool writes them."""
    component = b'{"type":"library","name":"x","licenses":[{"license":{"id":"MIT"}}],"properties":[' + b",".join(
        b'{"name":"a","value":"b"}' for _ in range(8)
    )
    data = b'{"components":[' + b",".join([component + b"]}"] * 12_000) + b"]}"
    assert has_more_tokens(data, MAX_TOKENS)
    found = parse_members(data, {"components"}, max_bytes=len(data))
    assert isinstance(found, dict)
    assert len(found["components"]) == 12_000
