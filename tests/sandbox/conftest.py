"""One sandbox Sigstore a module, and a client of it."""

from collections.abc import Iterator

import httpx
import pytest

from app.sandbox.sigstore import SigstoreServer


@pytest.fixture(scope="module")
def server() -> Iterator[SigstoreServer]:
    with SigstoreServer() as running:
        yield running


@pytest.fixture
def client(server: SigstoreServer) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=server.url, trust_env=False) as opened:
        yield opened
