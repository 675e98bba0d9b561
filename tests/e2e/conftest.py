"""One private Sigstore for every flow: making its keys is what takes time."""

from collections.abc import Iterator

import pytest

from tests.support.endtoend import Signing, signing


@pytest.fixture(scope="session")
def sigstore(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Signing]:
    with signing(tmp_path_factory.mktemp("sigstore")) as running:
        yield running
