"""The short way of reading a recipe: taken only for texts that are their own canonical text, with the same result."""

import json
from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.core.canonical import Mapping, Node, ParsedRecipe, Scalar, Sequence, emit_document
from app.core.canonical.encoder_form import parse_encoder_form
from app.core.canonical.parse import parse_document
from tests.support.go_form import Tree, documents, encoded

ROOT = Path(__file__).parents[2]
INSERTED = [
    *"a-:#'\"|>{}[] \n\t&*!?~1",
    "- ",
    ": ",
    "  ",
    "    ",
    "\n    x",
    "k:\n",
    "k: |\n",
    "|-",
    "---\n",
    "<<: ",
    " #",
    "{}",
]


@given(documents)
@settings(deadline=None)
def test_both_ways_of_reading_agree(tree: Tree) -> None:
    text = encoded(tree)
    short, long = ParsedRecipe.parse(text.encode()), ParsedRecipe.parse(b"# not encoder form\n" + text.encode())
    assert long.settled is None
    assert _plain(short.root) == _plain(long.root)
    for content_only in (False, True):
        assert short.canonical(content_only=content_only) == long.canonical(content_only=content_only)


@given(documents, st.randoms(use_true_random=False))
@settings(deadline=None, max_examples=200)
def test_a_text_that_is_taken_for_encoder_form_is_its_own_canonical_text(tree: Tree, random: Random) -> None:
    text = encoded(tree)
    for _ in range(random.randrange(1, 4)):
        at = random.randrange(len(text) + 1)
        text = text[:at] + random.choice(INSERTED) + text[at + random.choice([0, 0, 0, 1, 5]) :]
    if parse_encoder_form(text) is not None:
        assert emit_document(parse_document(text)[0]) == text
        assert _plain(parse_encoder_form(text)) == _plain(parse_document(text)[0])


def _plain(node: Node | None) -> object:
    """A tree without line numbers."""
    if isinstance(node, Scalar):
        return node.value, node.style, node.tag, node.anchor
    if isinstance(node, Sequence):
        return node.flow, [_plain(item) for item in node.items]
    if isinstance(node, Mapping):
        return node.flow, [(_plain(key), _plain(value)) for key, value in node.pairs]
    return node


VECTORS = [json.loads(line) for line in (ROOT / "tests/assets/canonical_vectors.jsonl").read_text().splitlines()]
REAL = [vector["out"] for vector in VECTORS if vector["id"] in {"Y14", "Y16", "Y17", "Y82"}]


@pytest.mark.parametrize("text", REAL)
def test_a_real_recipe_is_read_the_short_way(text: str) -> None:
    assert ParsedRecipe.parse(text.encode()).settled == text


NOT_THE_FORM = [
    pytest.param("b: 1\na: 2\n", id="order"),
    pytest.param("a: 1\na: 2\n", id="repeated-key"),
    pytest.param("a:\n  b: 1\n", id="two-columns"),
    pytest.param("a:\n- b\n", id="sequence-at-the-key"),
    pytest.param("a:\n      b: 1\n", id="six-columns"),
    pytest.param("a: 1\n    b: 2\n", id="child-of-a-scalar"),
    pytest.param("a: b\n    c\n", id="continued-plain"),
    pytest.param("a: 1", id="no-final-newline"),
    pytest.param("a: 1\n\n", id="blank-line"),
    pytest.param("a: 1 \n", id="trailing-space"),
    pytest.param("a: \n", id="space-without-a-value"),
    pytest.param("a: 1 # c\n", id="comment"),
    pytest.param("# c\na: 1\n", id="comment-line"),
    pytest.param("---\na: 1\n", id="marker"),
    pytest.param("a: 1\n...\n", id="end-marker"),
    pytest.param("a: |\n    x\n\n", id="literal-with-two-breaks"),
    pytest.param("a: |\n\n    x\n", id="literal-with-a-leading-break"),
    pytest.param("a: |\n     x\n", id="literal-with-a-leading-space"),
    pytest.param("a: |\n    x \n", id="literal-with-a-trailing-space"),
    pytest.param("a: |\n    \n    x\n", id="literal-with-a-blank-line-of-spaces"),
    pytest.param("a: |\nb: 1\n", id="literal-without-lines"),
    pytest.param("a: |\n   x\n", id="literal-at-another-column"),
    pytest.param("- a\n", id="sequence"),
    pytest.param("a\n", id="scalar"),
    pytest.param("a:\n    -\n", id="empty-item"),
    pytest.param("a: [b]\n", id="flow"),
    pytest.param("a: &x b\n", id="anchor"),
    pytest.param("a: *x\n", id="alias"),
    pytest.param("a: !t b\n", id="tag"),
    pytest.param("a: >\n    x\n", id="folded"),
    pytest.param('a: "\\x41"\n', id="escape"),
    pytest.param("a: \u00e9\n", id="beyond-ascii"),
    pytest.param("a: b\tc\n", id="tab"),
    pytest.param("a: 1\r\n", id="crlf"),
    pytest.param("a: ---\n", id="marker-as-text"),
    pytest.param("a:\n    " + "- " * 100 + "b\n", id="deep"),
    pytest.param("k" * 70 + ": 1\n", id="long-key"),
]


@pytest.mark.parametrize("text", NOT_THE_FORM)
def test_any_other_text_is_left_to_the_parser(text: str) -> None:
    assert parse_encoder_form(text) is None


CUT = [
    pytest.param("metadata:\n    name: n\n    version: v1\n", "metadata:\n    name: n\n", id="last"),
    pytest.param('a: 1\nmetadata:\n    version: "1"\nz: 2\n', "a: 1\nz: 2\n", id="alone"),
    pytest.param("metadata:\n    version: v1\n", "{}\n", id="nothing-else"),
    pytest.param("a: |\n    x\nmetadata:\n    version: v1\n", "a: |\n    x\n", id="after-a-literal"),
    pytest.param("metadata:\n    version:\n    z: 1\n", "metadata:\n    z: 1\n", id="no-value"),
    pytest.param("metadata:\n    version: |\n        v1\n    z: 1\n", "metadata:\n    z: 1\n", id="literal"),
    pytest.param("metadata:\n    version:\n        a: 1\n    z: 1\n", "metadata:\n    z: 1\n", id="mapping"),
    pytest.param("metadata:\n    version:\n        - 1\nz: 1\n", "z: 1\n", id="sequence"),
]


@pytest.mark.parametrize(("text", "canonical"), CUT)
def test_the_version_is_cut_out_of_a_text_in_encoder_form(text: str, canonical: str) -> None:
    recipe = ParsedRecipe.parse(text.encode())
    assert recipe.settled == text
    assert recipe.canonical(content_only=True).decode() == canonical
    assert recipe.canonical(content_only=False).decode() == text
