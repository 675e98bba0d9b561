"""Cursors: whatever one list hands out, it takes back."""

import httpx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.core.errors import InputError
from app.web.cursors import MAX_CURSOR_CHARS, decode_number, decode_text, encode
from app.web.queries import ListQuery
from tests.support.runs import version
from tests.support.webapp import FakeContainer

NAMES = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1, max_size=512)


@settings(deadline=None)
@given(NAMES)
def test_every_name_comes_back_from_its_cursor(name: str) -> None:
    given_out = encode("recipes", name)
    assert given_out is not None
    assert decode_text("recipes", ListQuery(cursor=given_out).cursor) == name


@pytest.mark.parametrize("letter", ["\x01", "é", "\U0001f4a9", '"', "\u2028"])
def test_the_longest_name_has_a_cursor_within_the_limit(letter: str) -> None:
    given_out = encode("recipes", letter * 512)
    assert given_out is not None
    assert len(given_out) <= MAX_CURSOR_CHARS
    assert decode_text("recipes", given_out) == letter * 512


@given(st.integers(0, 2**63 - 1))
def test_every_position_comes_back_from_its_cursor(position: int) -> None:
    assert decode_number("evidence", encode("evidence", position)) == position


def test_a_cursor_that_is_too_long_is_refused() -> None:
    with pytest.raises(InputError, match="expected a cursor that the list of recipes gave"):
        decode_text("recipes", "x" * 13)
    with pytest.raises(ValueError, match="at most"):
        ListQuery(cursor="x" * (MAX_CURSOR_CHARS + 1))


def test_a_list_of_long_names_can_be_paged_through(container: FakeContainer, client: httpx.Client) -> None:
    names = ["a0-" + "é" * 100, "a1-" + "\U0001f4a9" * 509, "a2-" + '"' * 509, "a3"]
    made = [version(recipe=name) for name in names]
    container.store.put_catalogue(made, replace=False, project=container.allowlist.project)
    seen: list[str] = []
    following: str | None = ""
    while following is not None:
        page = client.get("/recipes", params={"limit": 1, "cursor": following}).json()
        seen += [line["recipe"] for line in page["items"]]
        following = page["next"]
    assert seen == names
