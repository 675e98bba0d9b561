"""The allowlist in force: loaded, replaced when its file changes, kept when the new file is broken.

A change re-classifies everything at once, without any fetch (service 5). What a list says is in `core.allowlist`.
Where the file rules (SQLite, one process), each change of it comes into force. On a server database several processes
could each have another file, so there only the first list is taken from it; later ones come by `activate` alone, for
all processes together, and a file that says otherwise is a problem that is shown.
"""

import hashlib
import logging
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol, TypeVar

from app.core.allowlist import Allowlist, on_any
from app.core.bundle import Run
from app.core.corroborate import corroborate
from app.core.errors import AllowlistInvalid, ConflictError, ServiceError
from app.core.rules import RULE_SET_VERSION
from app.core.summary import LINE_FORM
from app.core.verdict import ConfirmRule, RecipeInputs, RecipeVerdict
from app.ports import AllowlistVersion, Clock, EvidenceStore, Listing, Weighing

log = logging.getLogger(__name__)

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class InForce:
    """A list with the sha256 of its text and the time it came into force, and the lists that were in force before.

    `earlier` lets a signer that was removed leave a trace; it changes no state and no count.
    """

    allowlist: Allowlist
    sha256: str
    since: datetime
    earlier: tuple[Allowlist, ...] = ()


class WritesByList(Protocol):
    """The list in force, as far as a write needs it that computes verdicts."""

    def sha256(self) -> str:
        """Which list is in force here."""

    def follow(self) -> None:
        """Take over the list that another process put into force."""


def by_list_in_force(lists: WritesByList, write: Callable[[str], T]) -> T:
    """`write` with the sha256 of the list in force, again when another process put one into force meanwhile."""
    for _ in range(2):
        try:
            return write(lists.sha256())
        except ConflictError as err:
            if err.code != "ALLOWLIST_CHANGED":
                raise
            lists.follow()
    return write(lists.sha256())


class AllowlistService:
    """Holds the list in force and binds it into the functions that the store calls inside its transactions."""

    def __init__(
        self, *, read: Callable[[], bytes], store: EvidenceStore, rule: ConfirmRule, clock: Clock, file_rules: bool
    ) -> None:
        self._read = read
        self._store = store
        self._rule = rule
        self._clock = clock
        self._file_rules = file_rules
        self._changing = threading.Lock()
        self._in_force: InForce | None = None  # what the store's projections are made with
        self._shown: InForce | None = None  # what readers see: a new list once everything is classified by it
        self._seen: str | None = None  # the sha256 of the file as this process last saw it, broken or not
        self._file: str | None = None  # the sha256 of the file when it was last read whole
        self._broken: str | None = None  # what is wrong with it since

    @property
    def problem(self) -> str | None:
        """Why the file's list is not the one in force; None when it is."""
        if self._broken is not None or self._file in {None, self.sha256()}:
            return self._broken
        return "the file differs from the list in force; `aicr evidence allowlist activate FILE` puts one into force"

    def start(self) -> None:
        """Put the file's list into force; where several processes may run the stored one stays, if there is one.

        A broken file keeps the last list that was in force. Raises the file's error when there is none.
        """
        known = self._store.allowlists()
        if known:
            self._in_force = self._shown = _in_force(known)
        try:
            self._take(self._read())
        except ServiceError as err:
            if self._in_force is None:
                raise
            self._keep_last_good(err)
        self._reproject()

    def _reproject(self) -> None:
        """Make the maintained states anew when other rules or settings made them than the ones in force now."""
        rule = self._rule
        made_by = f"rules {RULE_SET_VERSION}, lines {LINE_FORM}"
        mark = f"{made_by}, {rule.by.value}, {rule.threshold}, {rule.aged_after_days}"
        weighing = Weighing(rule, self._clock())

        def reproject(sha256: str) -> bool:
            return self._store.reproject(mark, project=self.project, weighing=weighing, allowlist_sha256=sha256)

        if by_list_in_force(self, reproject):
            log.info("every recipe was weighed by the rules in force (%s)", mark)

    def refresh(self) -> None:
        """Read the file again, and put it into force when it rules or was edited; a broken one is only noted.

        Raises the error when it may go away by itself (a store that does not answer), so that the caller tries again.
        """
        try:
            self._take(self._read())
        except ServiceError as err:
            self._keep_last_good(err)
            if err.retryable:
                raise

    def look(self) -> None:
        """Take over a list that another process put into force since; a store that does not answer is asked again."""
        try:
            if self._store.allowlist_in_force() not in {None, self.sha256()}:
                self.follow()
        except ServiceError as err:
            log.warning("the allowlist in force could not be asked for: %s", err.message)

    def current(self) -> InForce:
        """The list that counts now, for readers."""
        return _loaded(self._shown)

    def sha256(self) -> str:
        """Which list is in force here, for who writes."""
        return _loaded(self._in_force).sha256

    def follow(self) -> None:
        """Take over the list that another process put into force; what it says was projected by that process."""
        with self._changing:
            self._in_force = self._shown = _in_force(self._store.allowlists())

    def project(self, inputs: RecipeInputs, /) -> RecipeVerdict:
        """Corroborate one recipe with the list in force, now."""
        lists = _loaded(self._in_force)
        return corroborate(inputs, allowlist=lists.allowlist, rule=self._rule, now=self._clock(), earlier=lists.earlier)

    def classify(self, run: Run, /) -> Listing:
        """What the lists say about a run's signer."""
        lists, signer = _loaded(self._in_force), run.signer
        found = lists.allowlist.classify(signer.issuer, signer.identity)
        known = found.allowlisted or on_any(lists.earlier, signer.issuer, signer.identity)
        return Listing(found.source_class.value, found.allowlisted, known)

    def activate(self, text: bytes) -> None:
        """Put a list into force, here and in every process of the database; raises `AllowlistInvalid`."""
        allowlist = Allowlist.load(text)
        version = AllowlistVersion(hashlib.sha256(text).hexdigest(), self._clock(), text)
        with self._changing:
            previous = self._in_force
            if previous is None or previous.sha256 != version.sha256:
                # In force before the transaction that re-classifies: whoever projects meanwhile already uses it, and
                # whoever projected before is overwritten by that transaction.
                earlier = (*previous.earlier, previous.allowlist) if previous else ()
                self._in_force = InForce(allowlist, version.sha256, version.since, _distinct(earlier, version.sha256))
                try:
                    self._store.activate_allowlist(version, project=self.project, classify=self.classify)
                except BaseException:
                    self._in_force = previous
                    raise
                self._shown = self._in_force
                log.info("allowlist %s is in force", version.sha256[:12])

    def _take(self, text: bytes) -> None:
        """What the file says now: into force where it rules or when it was edited since, else only looked at.

        Where several processes share a database none of their files rules at a start, since one that was forgotten
        would take back what somebody put into force; an edit is somebody's will.
        """
        found = hashlib.sha256(text).hexdigest()
        try:
            if self._file_rules or self._in_force is None or self._seen not in {None, found}:
                self.activate(text)
            else:
                Allowlist.load(text)
        except ServiceError as err:
            if not err.retryable:
                self._seen = found
            raise
        self._seen = self._file = found
        self._broken = None
        if self.problem is not None:
            log.warning("allowlist: %s", self.problem)

    def _keep_last_good(self, err: ServiceError) -> None:
        self._broken = err.message
        log.warning("the allowlist file is not in force, the last good one stays: %s", err.message)


def _loaded(lists: InForce | None) -> InForce:
    if lists is None:
        raise ServiceError("no allowlist was loaded yet")
    return lists


def _in_force(versions: Sequence[AllowlistVersion]) -> InForce:
    *before, last = versions
    earlier = tuple(Allowlist.recall(version.text) for version in before)
    try:
        current = Allowlist.load(last.text)
    except AllowlistInvalid as err:
        log.warning("the list in force is counted without what today's rules refuse: %s", err.message)
        current = Allowlist.recall(last.text)
    return InForce(current, last.sha256, last.since, _distinct(earlier, last.sha256))


def _distinct(lists: Sequence[Allowlist], current: str) -> tuple[Allowlist, ...]:
    """Each list once, without the current one."""
    return tuple({each.sha256: each for each in lists if each.sha256 != current}.values())
