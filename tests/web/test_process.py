"""One of several server processes: it reads the settings that it uses, and those only."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from fastapi import FastAPI

from app.web import process
from tests.support.webapp import FakeContainer, make_container


@pytest.fixture(autouse=True)
def _no_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    made = make_container()

    @contextmanager
    def opened(_settings: object) -> Iterator[FakeContainer]:
        yield made

    monkeypatch.setattr(process, "open_container", opened)


def test_a_process_starts_whatever_address_the_first_one_was_told_to_leave(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AICR_EVIDENCE_HOST", "not a host")
    monkeypatch.setenv("AICR_EVIDENCE_PORT", "none")
    monkeypatch.setenv("AICR_EVIDENCE_API", "nowhere")
    assert isinstance(process.app(), FastAPI)


def test_a_process_ends_for_good_with_a_setting_that_can_not_work(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("AICR_EVIDENCE_RATE_LIMIT", "fast")
    with pytest.raises(SystemExit) as ended:
        process.app()
    assert ended.value.code == 3
    assert (
        "a server process can not start: settings can not be read: AICR_EVIDENCE_RATE_LIMIT: expected " in caplog.text
    )
