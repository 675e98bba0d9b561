"""The canonicalizer: every vector, every document in Go encoder form, and nothing that Go would digest otherwise."""

import hashlib
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.core.canonical import (
    MAX_DEPTH,
    PREDICATE_V3,
    ParsedRecipe,
    Refusal,
    canonicalize,
    recipe_digests,
    subject_digest,
)
from app.core.errors import RecipeInvalid
from tests.support.go_form import Tree, documents, encoded, rewritten

ROOT = Path(__file__).parents[2]
VECTORS = [json.loads(line) for line in (ROOT / "tests/assets/canonical_vectors.jsonl").read_text().splitlines()]
V1 = "https://aicr.run/recipe-evidence/v1"


def test_all_ninety_four_vectors_are_here() -> None:
    assert [vector["id"] for vector in VECTORS] == [f"Y{number:02}" for number in range(1, 95)]


@pytest.mark.parametrize("vector", [pytest.param(v, id=v["id"]) for v in VECTORS if "error" not in v])
def test_a_vector_gives_its_text_and_digests(vector: dict[str, str]) -> None:
    text = vector["in"].encode()
    assert canonicalize(text, content_only=False).decode() == vector["out"]
    assert canonicalize(text, content_only=True).decode() == vector.get("v3_out", vector["out"])
    legacy, content_only = vector["sha256"], vector.get("v3_sha256", vector["sha256"])
    assert recipe_digests(text) == (legacy, content_only)
    assert subject_digest(text, predicate_type=PREDICATE_V3) == content_only


@pytest.mark.parametrize("vector", [pytest.param(v, id=v["id"]) for v in VECTORS if "error" in v])
def test_an_invalid_vector_is_refused(vector: dict[str, str]) -> None:
    with pytest.raises(RecipeInvalid):
        canonicalize(vector["in"].encode(), content_only=False)


@pytest.mark.parametrize(
    "predicate_type",
    [
        V1,
        "https://aicr.run/recipe-evidence/v2",
        "https://aicr.nvidia.com/recipe-evidence/v1",
        "https://aicr.run/recipe-evidence/v9",
        "https://aicr.run/recipe-evidence/V3",
        "",
    ],
)
def test_every_type_but_v3_keeps_the_version(predicate_type: str) -> None:
    text = b"metadata:\n  version: 1\nfoo: bar\n"
    assert subject_digest(text, predicate_type=predicate_type) == recipe_digests(text)[0]
    assert recipe_digests(text)[0] != recipe_digests(text)[1]


# What vectors do not reach; the expected bytes were computed with Go's yaml.v3 v3.0.1.
FURTHER = [
    pytest.param("---\n", "\n", id="document-without-content"),
    pytest.param("\n\n", "null\n", id="blank-lines"),
    pytest.param("|\n a\n", "|\n    a\n", id="root-literal"),
    pytest.param("'a'\n", "'a'\n", id="root-single-quoted"),
    pytest.param("&a [x]\n", "&a [x]\n", id="root-anchor-flow"),
    pytest.param("&a\nx: 1\n", "&a\nx: 1\n", id="root-anchor-block"),
    pytest.param("a: b\n\n  c\n", "a: |-\n    b\n    c\n", id="plain-with-blank-line-becomes-literal"),
    pytest.param("a: [b\n\n  c]\n", 'a: ["b\\nc"]\n', id="in-flow-it-is-quoted"),
    pytest.param("- |\n  a\n- |-\n  b\n-  c\n", "- |\n  a\n- |-\n  b\n- c\n", id="literal-items"),
    pytest.param("- >\n  a\n", "- >\n  a\n\n", id="folded-item"),
    pytest.param("a: [http://x/y, -x, 'b', ab]\n", "a: ['http://x/y', -x, 'b', ab]\n", id="colon-in-flow"),
    pytest.param("k: ---x\n", "k: '---x'\n", id="text-like-a-marker"),
    pytest.param("k: ...\n", "k: '...'\n", id="text-like-an-end-marker"),
    pytest.param("- <<\n- ! <<\n- '<<'\n", "- !!merge <<\n- !!merge <<\n- '<<'\n", id="merge-anywhere"),
    pytest.param("a: &x 1\n*x : 2\n", "a: &x 1\n*x: 2\n", id="alias-key"),
    pytest.param("a:\n  ? \n  : v\n", "a:\n    '': v\n", id="empty-key"),
    pytest.param("{? a : b, c}\n", "{a: b, c: ''}\n", id="explicit-flow-key"),
    pytest.param("{[a]: b}\n", "{? [a] : b}\n", id="collection-key-in-flow"),
    pytest.param("? a: 1\n: b: 2\n", "?   a: 1\n:   b: 2\n", id="block-mapping-key"),
    pytest.param("? - a\n: - b\n", "?   - a\n:   - b\n", id="block-sequence-key"),
    pytest.param("a: 'x\n\n\n  y'\n", "a: 'x\n\n\n    y'\n", id="single-quoted-breaks"),
    pytest.param('a: "\\ufeffx y"\n', 'a: "\\uFEFF\\x78\\x20\\x79"\n', id="leading-mark-escapes-everything"),
    pytest.param('"a\\rb": 1\n', '? "a\\rb"\n: 1\n', id="carriage-return-in-a-key"),
    pytest.param("a: x\u2028  y\n", "a: 'x\u2028    y'\n", id="line-separator"),
    pytest.param("a: !<tag:x,2000:y> b\n", "a: !<tag:x,2000:y> b\n", id="verbatim-tag"),
    pytest.param("%TAG !e! tag:e.org,2000:\n---\na: !e!x b\n", "a: !<tag:e.org,2000:x> b\n", id="tag-handle"),
    pytest.param("a: !x%21 b\n", "a: !x%21 b\n", id="escaped-tag"),
    pytest.param("a: >\n   x\n\n   \n   y\n", "a: >\n    x\n\n\n    y\n\n", id="folded-blank-lines"),
    pytest.param("a: |\n\n\n  x\n", "a: |4\n\n    x\n", id="literal-loses-a-leading-break"),
    pytest.param("[a, b]: 1\n{}: 2\n", "? [a, b]\n: 1\n{}: 2\n", id="collection-keys-sort-first"),
    pytest.param("a:\n- b:\n  - c:\n    - d\n", "a:\n    - b:\n        - c:\n            - d\n", id="columns"),
]


@pytest.mark.parametrize(("text", "canonical"), FURTHER)
def test_a_corner_of_the_emitter_gives_the_bytes_of_go(text: str, canonical: str) -> None:
    assert canonicalize(text.encode(), content_only=False).decode() == canonical


VERSIONS = [
    pytest.param("metadata: &m {version: 1}\n", "{}\n", id="anchored"),
    pytest.param("metadata: {version: 1, n: &x 2}\na: 1\n", "a: 1\nmetadata: {n: &x 2}\n", id="flow"),
    pytest.param("? metadata\n: version: 1\n", "{}\n", id="explicit-key"),
    pytest.param("[metadata]: {version: 1}\n", "? [metadata]\n: {version: 1}\n", id="collection-key"),
    pytest.param("metadata: {'version': 1, version: 2}\n", "{}\n", id="twice"),
    pytest.param("a: {metadata: {version: 1}}\n", "a: {metadata: {version: 1}}\n", id="deeper"),
    pytest.param("metadata: x\n", "metadata: x\n", id="scalar"),
    pytest.param("# none\n", "null\n", id="no-document"),
]


@pytest.mark.parametrize(("text", "canonical"), VERSIONS)
def test_content_only_drops_the_version_of_the_top_level_metadata(text: str, canonical: str) -> None:
    assert canonicalize(text.encode(), content_only=True).decode() == canonical


REFUSALS = [
    pytest.param(b"", Refusal.EMPTY, id="empty"),
    pytest.param(b"a: " + b"x" * (1 << 20), Refusal.TOO_LARGE, id="large"),
    pytest.param(b"[" * (MAX_DEPTH + 1) + b"]" * (MAX_DEPTH + 1), Refusal.TOO_DEEP, id="deep"),
    pytest.param(b"[" * 500_000, Refusal.NOT_YAML, id="very-deep-flow"),
    pytest.param(b"- " * 500_000, Refusal.TOO_DEEP, id="very-deep-block"),
    pytest.param(b"[" + b"a," * 500_000 + b"]", Refusal.TOO_MANY_NODES, id="many"),
    pytest.param(b"a\n---\n- " + b"[a],\n" * 5 + b"", Refusal.NOT_YAML, id="bad-second-document"),
    pytest.param(b"a\n---\n[" + b"a," * 500_000 + b"]", Refusal.TOO_MANY_NODES, id="many-in-second-document"),
    pytest.param(b"a: \xff\n", Refusal.NOT_UTF8, id="latin-1"),
    pytest.param("a: b\n".encode("utf-16"), Refusal.NOT_UTF8, id="utf-16"),
    pytest.param("a: b\n\ufeffc: d\n".encode(), Refusal.BYTE_ORDER_MARK, id="mark-on-a-line"),
    pytest.param("a: 'b\ufeff'\n".encode(), Refusal.BYTE_ORDER_MARK, id="mark-in-a-scalar"),
    pytest.param("\ufeff\ufeffa: b\n".encode(), Refusal.BYTE_ORDER_MARK, id="two-marks"),
    pytest.param(b"a: [\n", Refusal.NOT_YAML, id="unclosed"),
    pytest.param(b"a: 1\n b: 2\n", Refusal.NOT_YAML, id="indentation"),
    pytest.param(b"\ta: 1\n", Refusal.NOT_YAML, id="tab"),
    pytest.param(b"a: \x00\n", Refusal.NOT_YAML, id="nul"),
    pytest.param(b"{}\nfoo: bar\n", Refusal.NOT_YAML, id="text-after-the-document"),
    pytest.param(b"%YAML 1.1\n%YAML 1.1\n---\na\n", Refusal.NOT_YAML, id="two-version-directives"),
    pytest.param(b"a: *b\nb: &b 1\n", Refusal.UNKNOWN_ANCHOR, id="anchor-after-alias"),
    pytest.param(b'a: "x\\/y"\n', Refusal.ESCAPED_SLASH, id="slash"),
    pytest.param('é: "ü"\na: "\\\\\\/"\n'.encode(), Refusal.ESCAPED_SLASH, id="slash-after-backslash"),
    pytest.param(b'a\n---\n"\\/"\n', Refusal.ESCAPED_SLASH, id="slash-in-second-document"),
    pytest.param(b"a: [x?y]\n", Refusal.FLOW_QUESTION_MARK, id="flow-question"),
    pytest.param(b"a: {x: y?}\n", Refusal.FLOW_QUESTION_MARK, id="flow-question-at-the-end"),
    pytest.param(b"[a, ?]\n", Refusal.FLOW_EMPTY_KEY, id="flow-empty-key"),
    pytest.param(b"{a: !t, b: 1}\n", Refusal.FLOW_TAG, id="flow-tag"),
    pytest.param(b"[&a # !\n !x,y z]\n", Refusal.FLOW_TAG, id="flow-tag-after-a-comment"),
    pytest.param(b"{? a : b}: c\n", Refusal.FLOW_KEY, id="flow-key"),
    pytest.param(b"- [ ? a : b ]: c\n", Refusal.FLOW_KEY, id="flow-key-in-a-list"),
    pytest.param(b"k: [{? a}: b]\n", Refusal.FLOW_KEY, id="flow-key-of-a-bare-pair"),
    pytest.param(b"k: {x: 1, {? a}: b}\n", Refusal.FLOW_KEY, id="flow-key-in-flow"),
    pytest.param(b"? {? a} : b\n", Refusal.FLOW_KEY, id="flow-key-inside-a-key"),
    pytest.param(b"k: !<tag:yaml.org,2002:int%00x> 3\n", Refusal.TAG_ESCAPE, id="tag-with-nul"),
    pytest.param(b"k: &a # !\n  !x%00y\n  b: 1\n", Refusal.TAG_ESCAPE, id="tag-with-nul-after-a-comment"),
    pytest.param(b"%TAG !e! tag:e%00,1:\n---\nk: !e!x y\n", Refusal.TAG_ESCAPE, id="tag-directive-with-nul"),
    pytest.param(b"k: !%ed%a0%80 v\n", Refusal.TAG_ESCAPE, id="tag-with-a-surrogate"),
    pytest.param(b"k: v\n---\n!%c0%80 {}\n", Refusal.TAG_ESCAPE, id="overlong-tag-in-second-document"),
    pytest.param(b"%YAML 1.2\n---\na: b\n", Refusal.DIRECTIVE, id="yaml-1.2"),
    pytest.param(
        b"".join(b"%%TAG !%d! b\n" % number for number in range(65)) + b"---\na: b\n",
        Refusal.DIRECTIVE,
        id="tag-directives-that-cost-their-square",
    ),
    pytest.param("".join(f"k{n}: 1\n" for n in range(12)).encode() + b"k3: 2\n", Refusal.UNSTABLE_ORDER, id="order"),
]


@pytest.mark.parametrize(("text", "refusal"), REFUSALS)
def test_what_go_reads_otherwise_is_refused_by_name(text: bytes, refusal: Refusal) -> None:
    with pytest.raises(RecipeInvalid) as caught:
        canonicalize(text, content_only=False)
    assert caught.value.details == {"refusal": refusal.name}
    assert caught.value.message.startswith(refusal.value)


AMBIGUOUS = [
    pytest.param("metadata: {version: 1}\nmetadata: {version: 2}\n", id="two"),
    pytest.param("metadata: x\nmetadata: {version: 2}\n", id="scalar-and-mapping"),
    pytest.param("a: &m {version: 1}\nmetadata: *m\n", id="alias"),
    pytest.param("a: &metadata x\n*metadata : {version: 1}\n", id="alias-key"),
    pytest.param("a: &version x\nmetadata: {*version : 1}\n", id="alias-version"),
]


@pytest.mark.parametrize("text", AMBIGUOUS)
def test_an_ambiguous_metadata_has_only_a_legacy_digest(text: str) -> None:
    recipe = ParsedRecipe.parse(text.encode())
    assert len(recipe.legacy_digest()) == 64
    with pytest.raises(RecipeInvalid) as caught:
        recipe.content_digest()
    assert caught.value.details == {"refusal": "AMBIGUOUS_METADATA"}


NOT_REFUSED = [
    pytest.param('a: "\\\\/"\n', id="backslash-before-a-slash"),
    pytest.param("a: '\\/'\n", id="slash-in-single-quotes"),
    pytest.param("a: \\/\n", id="slash-in-plain-text"),
    pytest.param("a: x?y\n", id="question-mark-in-block"),
    pytest.param("a: ['x?y', \"?\"]\n", id="quoted-question-mark"),
    pytest.param("%YAML 1.1\n---\na: b\n", id="yaml-1.1"),
    pytest.param("[!t a, !!str b]\n", id="flow-tag-with-space"),
    pytest.param("? {? a}\n: b\n", id="flow-key-that-is-marked"),
    pytest.param("k: {? {? a} : b}\n", id="flow-key-that-is-marked-in-flow"),
    pytest.param("{b, ? a}: c\n", id="flow-key-with-a-later-question-mark"),
    pytest.param("k: {? a : b}\n", id="question-mark-in-a-flow-value"),
    pytest.param("k: !x%41 a%00b\nl: !y [c]\n", id="escaped-null-outside-of-a-tag"),
    pytest.param("[" * MAX_DEPTH + "]" * MAX_DEPTH + "\n", id="deepest"),
    pytest.param("".join(f"k{n}: 1\n" for n in range(11)) + "k3: 2\n", id="twelve-pairs"),
    pytest.param("a: 1\n---\nb: 2\n", id="second-document"),
]


@pytest.mark.parametrize("text", NOT_REFUSED)
def test_what_both_parsers_read_alike_is_digested(text: str) -> None:
    assert len(recipe_digests(text.encode())[0]) == 64


def test_a_recipe_knows_that_another_document_follows() -> None:
    assert ParsedRecipe.parse(b"a: 1\n---\nb: 2\n").followed
    assert not ParsedRecipe.parse(b"---\na: 1\n...\n").followed


def test_every_refusal_is_documented_and_nothing_else() -> None:
    text = (ROOT / "docs/digest.md").read_text()
    documented = {line.split("`")[1] for line in text.splitlines() if line.startswith("| `")}
    assert documented == set(Refusal.__members__)


def test_the_canonicalizer_starts_without_heavy_imports() -> None:
    heavy = "pydantic httpx fastapi sqlalchemy sigstore cryptography"
    code = f"import sys, app.core.canonical; print([m for m in {heavy.split()!r} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True, cwd=ROOT)
    assert done.stdout == "[]\n"


@given(documents)
@settings(deadline=None)
def test_a_document_in_encoder_form_is_its_own_canonical_text(tree: Tree) -> None:
    text = encoded(tree).encode()
    assert canonicalize(text, content_only=False) == text
    assert recipe_digests(text)[0] == hashlib.sha256(text).hexdigest()


@given(documents, st.integers(0, 1 << 30))
@settings(deadline=None)
def test_order_comments_and_indentation_change_nothing(tree: Tree, seed: int) -> None:
    assert canonicalize(rewritten(tree, seed).encode(), content_only=False).decode() == encoded(tree)


@given(documents)
@settings(deadline=None)
def test_content_only_changes_at_most_the_metadata(tree: Tree) -> None:
    text = encoded(tree).encode()
    short = canonicalize(text, content_only=True)
    assert canonicalize(short, content_only=True) == short
    assert (short == text) or b"version" in text


def _is_digested_or_refused(data: bytes) -> bool:
    try:
        return canonicalize(data, content_only=False).endswith(b"\n")
    except RecipeInvalid as refused:
        return refused.details["refusal"] in Refusal.__members__


@given(st.binary(max_size=200))
@settings(deadline=None)
def test_any_bytes_are_digested_or_refused(data: bytes) -> None:
    assert _is_digested_or_refused(data)


SOUP = [
    *"a'\"{}[]\t\u2028é",
    "b: ",
    "- ",
    "? ",
    ": ",
    "\n",
    "\n  ",
    "\n    ",
    "#c",
    "\\n",
    "|\n",
    ">\n",
    "&a ",
    "*a",
    "!t ",
    ", ",
    "<<",
    "\n---\n",
]


@given(st.lists(st.sampled_from(SOUP), max_size=25).map("".join))
@settings(deadline=None, max_examples=200)
def test_any_yaml_like_text_is_digested_or_refused(text: str) -> None:
    assert _is_digested_or_refused(text.encode())


def _nested(depth: int) -> bytes:
    return "".join("  " * level + "a:\n" for level in range(depth)).encode() + b"  " * depth + b"x\n"


def _from_a_deep_stack(depth: int, act: Callable[[], bytes]) -> bytes:
    return act() if depth == 0 else _from_a_deep_stack(depth - 1, act)


def test_the_deepest_recipe_needs_little_of_pythons_stack() -> None:
    text = _nested(MAX_DEPTH)
    assert _from_a_deep_stack(600, lambda: canonicalize(text, content_only=False)).count(b"a:") == MAX_DEPTH
