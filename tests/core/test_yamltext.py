"""YAML from outside: text stays text, and everything with two meanings is refused."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.core.errors import DocumentInvalid
from app.core.yamltext import load_text

DOCUMENTS = [
    pytest.param("slug: 12345678901234567890123456789012\n", {"slug": "12345678901234567890123456789012"}, id="digits"),
    pytest.param("v: 1.0\n", {"v": "1.0"}, id="version"),
    pytest.param("v: 1e3\nh: 0x1F\no: 017\n", {"v": "1e3", "h": "0x1F", "o": "017"}, id="numbers"),
    pytest.param("b: yes\nt: true\n", {"b": "yes", "t": "true"}, id="booleans"),
    pytest.param("t: 2026-05-08T10:23:11Z\n", {"t": "2026-05-08T10:23:11Z"}, id="timestamp"),
    pytest.param("a: null\nb: ~\nc:\nd: Null\n", {"a": None, "b": None, "c": None, "d": None}, id="nulls"),
    pytest.param("a: ''\nb: \"\"\nc: 'null'\nd: \"~\"\n", {"a": "", "b": "", "c": "null", "d": "~"}, id="quoted"),
    pytest.param("a: [1, {b: [x]}]\n", {"a": ["1", {"b": ["x"]}]}, id="flow"),
    pytest.param("a: |\n  x\n  y\n", {"a": "x\ny\n"}, id="literal"),
    pytest.param("- a\n-\n- - b\n", ["a", None, ["b"]], id="sequence"),
    pytest.param("text\n", "text", id="scalar"),
    pytest.param("", None, id="nothing"),
    pytest.param("# only a comment\n", None, id="comment"),
    pytest.param("---\na: b\n...\n", {"a": "b"}, id="markers"),
    pytest.param("\ufeffa: b\n", {"a": "b"}, id="byte-order-mark"),
    pytest.param("{}\n", {}, id="empty-mapping"),
    pytest.param("'<<': a\n", {"<<": "a"}, id="quoted-merge-key-is-text"),
    pytest.param("~: a\n", {"~": "a"}, id="null-key-is-text"),
]


@pytest.mark.parametrize(("text", "value"), DOCUMENTS)
def test_scalars_stay_the_text_that_was_written(text: str, value: object) -> None:
    assert load_text(text.encode()) == value


REFUSED = [
    pytest.param(b"a: 1\nb: 2\na: 3\n", "key 'a' is repeated at line 3", id="duplicate"),
    pytest.param(b"x:\n  a: 1\n  'a': 3\n", "key 'a' is repeated at line 3", id="nested-duplicate"),
    pytest.param(b"a: &x 1\n", "anchor &x at line 1", id="anchor"),
    pytest.param(b"a: 1\nb: *x\n", "alias *x at line 2", id="alias"),
    pytest.param(b"a: 1\nb: &x\n  c: 1\n", "anchor &x at line 2", id="anchored-mapping"),
    pytest.param(b"a: !!str 1\n", "tag 'tag:yaml.org,2002:str' at line 1", id="tag"),
    pytest.param(b"a: ! x\n", "tag '!' at line 1", id="non-specific-tag"),
    pytest.param(b"!m {a: 1}\n", "tag '!m' at line 1", id="tagged-mapping"),
    pytest.param(b"a: !%ed%a0%80 x\n", "not valid YAML: the escapes of a tag are no UTF-8", id="tag-with-a-surrogate"),
    pytest.param(b"%TAG !e! !%c0%80\n---\na: 1\n", "the escapes of a tag are no UTF-8", id="overlong-tag-directive"),
    pytest.param(b"<<: {a: 1}\n", "merge key at line 1", id="merge"),
    pytest.param(b"[a]: 1\n", "expected a plain key at line 1", id="collection-key"),
    pytest.param(b"a: 1\n---\nb: 2\n", "second one at line 2", id="second-document"),
    pytest.param(b"a: 1\n...\n---\n", "second one at line 3", id="empty-second-document"),
    pytest.param(b"a: \xff\n", "expected UTF-8, but byte 3", id="not-utf8"),
    pytest.param("a: 1\n".encode("utf-16"), "expected UTF-8", id="utf-16"),
    pytest.param(b"a: [1\n", "not valid YAML: ", id="unclosed"),
    pytest.param(b"a: b: c\n", "not valid YAML: mapping values are not allowed in this context at line 1", id="colons"),
    pytest.param(b"a: \x01\n", "not valid YAML: control characters are not allowed", id="control"),
    pytest.param(b"[" * 65 + b"]" * 65, "at most 64 nested levels", id="deep-flow"),
    pytest.param(b"- " * 65 + b"a", "at most 64 nested levels", id="deep-block"),
    pytest.param(b"[" + b"a," * 200_000 + b"]", "at most 200000 scalars and collections", id="many"),
    pytest.param(
        b"%TAG !a! b\n" * 65 + b"---\na: b\n", "at most 64 tag directives", id="tag-directives-that-cost-their-square"
    ),
    pytest.param(b"a: " + b"x" * (1 << 20), "expected at most 1048576 bytes of YAML, got 1048579", id="large"),
]


@pytest.mark.parametrize(("data", "message"), REFUSED)
def test_what_has_two_meanings_is_refused_with_its_line(data: bytes, message: str) -> None:
    with pytest.raises(DocumentInvalid) as caught:
        load_text(data)
    assert message in caught.value.message


def test_sixty_four_levels_are_enough() -> None:
    value = load_text(b"[" * 64 + b"]" * 64)
    depth = 0
    while isinstance(value, list):
        depth += 1
        value = value[0] if value else None
    assert depth == 64


def test_limits_can_be_narrower() -> None:
    with pytest.raises(DocumentInvalid, match="at most 4 bytes"):
        load_text(b"a: b\n", max_bytes=4)
    with pytest.raises(DocumentInvalid, match="at most 1 nested"):
        load_text(b"a: [b]\n", max_depth=1)
    with pytest.raises(DocumentInvalid, match="at most 2 scalars and collections, got more at line 1"):
        load_text(b"a: b\n", max_nodes=2)
    assert load_text(b"a: b\n", max_nodes=3) == {"a": "b"}


@given(st.binary(max_size=200))
@settings(deadline=None)
def test_any_bytes_give_a_value_or_a_refusal(data: bytes) -> None:
    try:
        value = load_text(data)
    except DocumentInvalid:
        return
    assert value is None or isinstance(value, str | list | dict)


@given(st.text(alphabet="ab:-[]{}#&*!|>'\"%@,?\n \t<~", max_size=60))
@settings(deadline=None)
def test_any_yaml_like_text_gives_a_value_or_a_refusal(text: str) -> None:
    try:
        value = load_text(text.encode())
    except DocumentInvalid:
        return
    assert value is None or isinstance(value, str | list | dict)
