"""One running service for all attacks: each attack uses a recipe of its own."""

from collections.abc import Iterator

import pytest

from tests.support.arena import Arena, arena


@pytest.fixture(scope="session")
def attacked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Arena]:
    with arena(tmp_path_factory.mktemp("arena"), max_body_bytes=1 << 20) as running:
        yield running
