"""The list in force: replaced when its file changes, kept when the new file is broken (service 2, 5)."""

import hashlib
from datetime import UTC, datetime, timedelta

import pytest

from app.core.errors import AllowlistInvalid, NotFoundError, StoreError
from app.core.verdict import ConfirmRule
from app.ports import AllowlistVersion, Classify, Project
from app.services.allowlists import AllowlistService
from tests.support.memory_store import MemoryStore
from tests.support.stores import RULES

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
EMPTY = b"schemaVersion: 1.0.0\n"
ONE = (
    b"schemaVersion: 1.0.0\ncommunity:\n"
    b"  - issuer: https://github.com/login/oauth\n    source: b0e01b470866f200af3b5cb4bcc303aa\n"
)
DEV_ONE = ("https://github.com/login/oauth", "dev-one@example.org")


class File:
    """An allowlist file; None is a missing one."""

    def __init__(self, text: bytes | None) -> None:
        self.text = text

    def read(self) -> bytes:
        if self.text is None:
            raise NotFoundError("no such file")
        return self.text


class Failing(MemoryStore):
    """A store that does not answer while it is down."""

    down = False

    def activate_allowlist(self, version: AllowlistVersion, /, *, project: Project, classify: Classify) -> bool:
        if self.down:
            raise StoreError("the store did not answer")
        return super().activate_allowlist(version, project=project, classify=classify)


def service(file: File, store: MemoryStore, *, file_rules: bool = True) -> AllowlistService:
    return AllowlistService(read=file.read, store=store, rule=ConfirmRule(), clock=lambda: NOW, file_rules=file_rules)


def listed(lists: AllowlistService) -> bool:
    return lists.current().allowlist.classify(*DEV_ONE).allowlisted


def test_a_changed_file_comes_into_force_and_the_one_before_is_remembered() -> None:
    file, store = File(ONE), MemoryStore()
    lists = service(file, store)
    lists.start()
    assert listed(lists)
    file.text = EMPTY
    lists.refresh()
    assert not listed(lists)
    assert [each.classify(*DEV_ONE).allowlisted for each in lists.current().earlier] == [True]
    assert [version.text for version in store.allowlists()] == [ONE, EMPTY]


@pytest.mark.parametrize("broken", [pytest.param(b"nonsense: 1\n", id="invalid"), pytest.param(None, id="missing")])
def test_a_broken_file_keeps_the_last_good_list_and_says_why(broken: bytes | None) -> None:
    file, store = File(ONE), MemoryStore()
    lists = service(file, store)
    lists.start()
    file.text = broken
    lists.refresh()
    assert listed(lists)
    assert lists.problem
    file.text = ONE
    lists.refresh()
    assert lists.problem is None


def test_a_broken_file_at_start_falls_back_to_the_stored_list() -> None:
    store = MemoryStore()
    service(File(ONE), store).start()
    lists = service(File(b"nonsense: 1\n"), store)
    lists.start()
    assert listed(lists)
    assert lists.problem


def test_a_broken_file_at_the_very_first_start_is_an_error() -> None:
    with pytest.raises(AllowlistInvalid) as caught:
        service(File(b"nonsense: 1\n"), MemoryStore()).start()
    assert caught.value.rule == "J5"


DIFFERS = "the file differs from the list in force; `aicr evidence allowlist activate FILE` puts one into force"


def test_on_a_server_database_a_start_keeps_the_stored_list_and_an_edit_replaces_it() -> None:
    file, store = File(ONE), MemoryStore()
    lists = service(file, store, file_rules=False)
    lists.start()
    assert (listed(lists), lists.problem) == (True, None)
    forgotten = File(EMPTY)
    again = service(forgotten, store, file_rules=False)
    again.start()
    again.refresh()  # touched, and no other than before
    assert (listed(again), again.problem) == (True, DIFFERS)
    forgotten.text = b"nonsense: 1\n"
    again.refresh()
    assert "nonsense" in (again.problem or "")
    forgotten.text = EMPTY
    again.refresh()
    assert (listed(again), again.problem) == (False, None)
    file.text = ONE
    lists.look()
    assert (listed(lists), lists.problem) == (False, DIFFERS)


def test_a_stored_list_that_todays_rules_refuse_stops_no_start() -> None:
    store, old = MemoryStore(), ONE + b"  - issuer: not a url\n    source: x\n"
    version = AllowlistVersion(hashlib.sha256(old).hexdigest(), NOW, old)
    store.activate_allowlist(version, project=RULES.project, classify=RULES.classify)
    lists = service(File(EMPTY), store, file_rules=False)
    lists.start()
    assert (listed(lists), lists.problem) == (True, DIFFERS)
    lists.activate(EMPTY)
    assert not listed(lists)


def test_an_edit_that_the_store_could_not_take_is_taken_when_it_answers() -> None:
    file, store = File(ONE), Failing()
    lists = service(file, store, file_rules=False)
    lists.start()
    file.text, store.down = EMPTY, True
    with pytest.raises(StoreError):
        lists.refresh()
    store.down = False
    lists.refresh()
    assert (listed(lists), lists.problem) == (False, None)


def test_what_is_activated_on_a_server_database_decides_whether_the_file_differs() -> None:
    store = MemoryStore()
    same, other = (service(File(text), store, file_rules=False) for text in (EMPTY, ONE))
    for each in (same, other):
        each.start()
    assert [each.problem for each in (same, other)] == [None, DIFFERS]
    service(File(EMPTY), store, file_rules=False).start()
    other.activate(ONE)
    same.look()
    assert [each.problem for each in (same, other)] == [DIFFERS, None]
    assert [listed(each) for each in (same, other)] == [True, True]


def test_a_list_of_another_process_is_followed() -> None:
    store = MemoryStore()
    mine = service(File(ONE), store)
    mine.start()
    service(File(EMPTY), store).start()
    mine.follow()
    assert not listed(mine)
    assert [each.classify(*DEV_ONE).allowlisted for each in mine.current().earlier] == [True]


def test_a_list_that_comes_back_is_current_and_no_longer_earlier() -> None:
    file, store = File(ONE), MemoryStore()
    lists = service(file, store)
    lists.start()
    for text in (EMPTY, ONE):
        file.text = text
        lists.refresh()
    assert listed(lists)
    assert [each.classify(*DEV_ONE).allowlisted for each in lists.current().earlier] == [False]


def test_readers_see_a_new_list_once_everything_is_classified_by_it() -> None:
    seen: list[tuple[bool, bool]] = []
    file = File(EMPTY)

    class Watching(MemoryStore):
        def activate_allowlist(self, version: AllowlistVersion, /, *, project: Project, classify: Classify) -> bool:
            if lists_ready:
                seen.append((listed(lists), lists.sha256() == version.sha256))
            return super().activate_allowlist(version, project=project, classify=classify)

    lists_ready = False
    lists = service(file, Watching())
    lists.start()
    lists_ready = True
    file.text = ONE
    lists.refresh()
    assert seen == [(False, True)]
    assert listed(lists)


def test_a_list_of_another_process_is_taken_over_at_the_next_look() -> None:
    store = MemoryStore()
    here, there = (service(File(EMPTY), store, file_rules=False) for _ in range(2))
    here.start()
    there.start()
    other = service(File(ONE), store)
    other.start()
    assert [listed(each) for each in (here, there)] == [False, False]
    here.look()
    assert [listed(each) for each in (here, there)] == [True, False]
    assert [each.classify(*DEV_ONE).allowlisted for each in here.current().earlier] == [False]


def test_settings_are_kept_whenever_a_start_brings_other_ones() -> None:
    store = MemoryStore()
    for threshold, days in ((2, 0), (2, 1), (3, 2), (2, 3)):
        now = NOW + timedelta(days=days)
        lists = AllowlistService(
            read=File(ONE).read,
            store=store,
            rule=ConfirmRule(threshold=threshold),
            clock=lambda now=now: now,  # type: ignore[misc]
            file_rules=True,
        )
        lists.start()
    assert [(one.rule.threshold, (one.since - NOW).days) for one in store.weighings()] == [(2, 0), (3, 2), (2, 3)]
