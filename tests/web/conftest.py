"""A running application over fakes, one a test."""

from collections.abc import Iterator

import httpx
import pytest

from app.web.app import create_app
from tests.support.runs import PATTERN, allowlist_text, person
from tests.support.webapp import FakeContainer, Switchboard, make_container, serving

LISTED = person("dev-one")
OTHER = person("dev-two")


@pytest.fixture
def container() -> FakeContainer:
    """Two listed people and a listed workflow; nothing is stored yet."""
    made = make_container(catalogue_token="push-me,push-me-too")
    made.allowlist.put(allowlist_text(LISTED, OTHER, patterns=[PATTERN]))
    return made


@pytest.fixture(scope="session")
def switchboard() -> Iterator[tuple[Switchboard, str]]:
    """One server for all tests of this directory, and its base URL."""
    board = Switchboard()
    with serving(board) as base:
        yield board, base


@pytest.fixture
def client(container: FakeContainer, switchboard: tuple[Switchboard, str]) -> Iterator[httpx.Client]:
    """An HTTP client of the application over `container`, over a socket."""
    board, base = switchboard
    board.app = create_app(container)
    with httpx.Client(base_url=base, trust_env=False) as made:
        yield made
