"""What a running service does again and again, without anybody asking."""

import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from app.bootstrap import container
from app.ports import Attempt
from app.sandbox.sigstore import PrivateSigstore
from tests.support.endtoend import service

NOW = datetime.now(UTC)  # noqa: TID251 - the service's own clock decides what is past its time


def _attempt(digest: str, at: datetime) -> Attempt:
    return Attempt(
        id=0,
        reference="ghcr.io/octocat/evidence",
        digest=digest,
        outcome="refused",
        step="materialize-bundle",
        code="REGISTRY_NOT_TRUSTED",
        cause={},
        first_at=at,
        last_at=at,
        count=1,
    )


def test_attempts_past_their_time_go_while_the_service_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(container, "_PRUNE_SECONDS", 0.05)
    root = tmp_path / "trusted_root.json"
    root.write_bytes(PrivateSigstore().trusted_root_json())

    with service(tmp_path, str(root), ["127.0.0.1:1"], (), attempts_retention_days=7) as running:
        store = running.container.store
        young = store.record_attempt(_attempt("sha256:" + "a" * 64, NOW - timedelta(days=6))).id
        old = store.record_attempt(_attempt("sha256:" + "b" * 64, NOW - timedelta(days=8))).id
        deadline = time.monotonic() + 20
        while store.attempt(old) is not None and time.monotonic() < deadline:
            time.sleep(0.02)

        assert store.attempt(old) is None
        assert store.attempt(young) is not None
