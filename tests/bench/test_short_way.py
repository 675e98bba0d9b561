"""Decoding skips its look at the keys for a text that was read the short way: that must change no outcome."""

from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from app.core.canonical import ParsedRecipe
from app.core.errors import RecipeInvalid
from app.core.recipe import Recipe
from tests.support.go_form import Tree, documents, encoded

INSERTED = ["a: 1\n", '"<<": x\n', "<<: x\n", '"": 1\n', "a: 1\na: 2\n", "criteria: {}\n", "x:\n    y: 1\n    y: 2\n"]


def outcome(text: bytes) -> object:
    """The decoded recipe, or that there is none."""
    try:
        recipe = Recipe.parse(text)
    except RecipeInvalid:
        return None
    return (recipe, recipe.parsed.legacy_digest(), recipe.parsed.content_digest())


@given(documents, st.randoms(use_true_random=False))
@settings(deadline=None, max_examples=200)
def test_decoding_says_the_same_whichever_way_a_text_was_read(tree: Tree, random: Random) -> None:
    lines = encoded(tree).splitlines(keepends=True)
    lines.insert(random.randrange(len(lines) + 1), random.choice(["", "", *INSERTED]))
    text = "".join(lines).encode()
    assert outcome(text) == outcome(b"# not encoder form\n" + text)


def test_a_repeated_key_is_never_read_the_short_way() -> None:
    text = b"a:\n    x: 1\n    x: 2\n"
    assert ParsedRecipe.parse(text).settled is None
    assert outcome(text) is None


def test_a_quoted_merge_key_is_text_on_both_ways() -> None:
    text = b'"<<": x\nkind: RecipeResult\n'
    assert ParsedRecipe.parse(text).settled is not None
    assert outcome(text) == outcome(b"# not encoder form\n" + text) is not None
