"""The service as one object: every adapter and service, wired from the settings, with one way to open and close."""

import logging
import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from app.adapters.db.migrate import require_head, upgrade
from app.adapters.db.serve_lock import exclusive
from app.adapters.db.session import Database
from app.adapters.db.store import SqlEvidenceStore
from app.adapters.files.watch import WatchedFile
from app.adapters.oci import (
    ByteBudget,
    OciArchive,
    OciRegistry,
    ReaderLimits,
    RegistryLogin,
    occupied,
    parse_logins,
)
from app.adapters.workers import WorkerJudge
from app.bootstrap.judging import BuildJudge
from app.config import Settings, about, variable
from app.core.allowlist import MAX_ALLOWLIST_BYTES
from app.core.errors import ConflictError, InputError, NotFoundError, ServiceError, StoreError
from app.core.gate import TrustedRegistries
from app.core.verdict import ConfirmBy, ConfirmRule
from app.ports import Clock
from app.services.allowlists import AllowlistService
from app.services.flights import Flights
from app.services.ingest import IngestLimits, IngestService
from app.services.ingest_types import IngestResult
from app.services.rebuild import RebuildService

log = logging.getLogger(__name__)

_PRELOAD = ("app.bootstrap.judge_parts",)
_SHARED_GRACE_SECONDS = 3600.0
"""A younger bundle may be on its way into the database in another process; no ingest takes that long."""
_LOOK_SECONDS = 0.5
_PRUNE_SECONDS = 3600.0
"""How often attempts past their time are forgotten: strangers write them, and a service runs for months."""
_MAX_CREDENTIALS_BYTES = 1 << 20

Failpoint = Callable[[str], None]


def no_failpoint(_name: str) -> None:
    """Nothing happens at a named step; crash tests pass something that kills the process instead."""


def utc_now() -> datetime:
    """The clock of the service."""
    return datetime.now(UTC)  # noqa: TID251 - the composition root is where time comes from


@dataclass(frozen=True, slots=True)
class Container:
    """What the front ends work with; `open_container` makes it and ends it."""

    settings: Settings
    store: SqlEvidenceStore
    archive: OciArchive
    judge: WorkerJudge
    ingest: IngestService
    rebuild: RebuildService
    allowlist: AllowlistService
    rule: ConfirmRule
    clock: Clock

    def ready(self) -> dict[str, str]:
        """The state of each part by name; `ok` when it answers, else what is wrong."""
        return {
            "database": _asked(self.store.ping),
            "archive": _asked(lambda: _directory(self.settings.archive)),
            "judge": self.judge.ready(),
            "allowlist": self.allowlist.problem or "ok",
        }


def build_judge(settings: Settings) -> BuildJudge:
    """The picklable recipe of a service's judge under these settings."""
    return replace(command_judge(settings), sandbox=settings.sandbox)


def command_judge(settings: Settings) -> BuildJudge:
    """The same for a command, which may use any root whatever the service is."""
    return BuildJudge(
        trusted_root=settings.trusted_root,
        max_signature_bytes=settings.max_signature_bytes,
        max_unpacked_bytes=settings.max_unpacked_bytes,
        max_files=settings.max_files,
        max_path_bytes=settings.max_path_bytes,
        max_depth=settings.max_depth,
    )


def confirm_rule(settings: Settings) -> ConfirmRule:
    """What is counted, and from how many on."""
    return ConfirmRule(ConfirmBy(settings.confirm_by), settings.confirm_threshold, settings.aged_after_days)


def reader_limits(settings: Settings) -> ReaderLimits:
    """The limits of trust 3."""
    return ReaderLimits(
        manifest_bytes=settings.max_manifest_bytes,
        blob_bytes=settings.max_blob_bytes,
        unpacked_bytes=settings.max_unpacked_bytes,
        ratio=settings.max_unpack_ratio,
        files=settings.max_files,
        path_bytes=settings.max_path_bytes,
        depth=settings.max_depth,
        referrers=settings.max_referrers,
        signature_bytes=settings.max_signature_bytes,
    )


def _pull_directory(settings: Settings) -> str:
    """Where bundles are unpacked: beside the archive, so on a disk that was chosen to hold them."""
    return f"{settings.archive.rstrip('/')}.pulls"


def registry(settings: Settings) -> OciRegistry:
    """The strict reader, with credentials for callers that may use them."""
    return OciRegistry(
        tmp=_pull_directory(settings),
        limits=reader_limits(settings),
        private_hosts=settings.private_registries,
        plain_http_hosts=settings.plain_http_registries,
        token_realms=settings.token_realms,
        credentials=credentials(settings),
        budget=ByteBudget(settings.max_inflight_bytes),
    )


@contextmanager
def open_container(
    settings: Settings, *, holder: str = "serve", migrate: bool = True, failpoint: Failpoint = no_failpoint
) -> Iterator[Container]:
    """The running service.

    On SQLite the database is locked for `holder` and migrated here; a server database must have been migrated.
    Raises `InputError`, `ConflictError` or `StoreError` with what to do when a part can not start.
    """
    gate = TrustedRegistries.parse(settings.trusted_registries)
    for prefix in gate.prefixes:
        if prefix.endswith("/"):
            named = variable("trusted_registries")
            log.warning("%s: %s ends with a slash and so admits nothing; leave the slash out", named, prefix)
    with ExitStack() as stack:
        stack.enter_context(exclusive(settings.database_url, holder))
        database = stack.enter_context(_database(settings, migrate=migrate))
        occupancy = stack.enter_context(occupied(settings.archive))
        if database.sqlite and not occupancy.alone:
            raise ConflictError(
                "the archive is in use by another service, which would take our bundles for orphans",
                code="ARCHIVE_IN_USE",
                hint=f"give every database an archive of its own: set {variable('archive')}",
            )
        store = SqlEvidenceStore(database, failpoint=failpoint)
        archive = OciArchive(
            settings.archive,
            tmp=_pull_directory(settings),
            limits=reader_limits(settings),
            failpoint=failpoint,
            grace_seconds=0.0 if occupancy.alone else _SHARED_GRACE_SECONDS,
        )
        judge = WorkerJudge(
            build_judge(settings),
            processes=settings.verify_processes,
            timeout_seconds=settings.judge_timeout_seconds,
            memory_bytes=settings.judge_memory_bytes,
            preload=_PRELOAD,
        )
        stack.callback(judge.close)
        with about("trusted_root", InputError):  # a bad one ends the start here; this process never loads one
            judge.start()
        rule = confirm_rule(settings)
        watched = WatchedFile(settings.allowlist, max_bytes=MAX_ALLOWLIST_BYTES)
        allowlist = AllowlistService(
            read=watched.read, store=store, rule=rule, clock=utc_now, file_rules=database.sqlite
        )
        allowlist.start()
        watched.start(allowlist.refresh)
        stack.callback(watched.stop)
        if not database.sqlite:  # there, other processes and `allowlist activate` change it too
            stack.enter_context(_repeated(allowlist.look, _LOOK_SECONDS))
        executor = stack.enter_context(
            ThreadPoolExecutor(settings.ingest_concurrency, thread_name_prefix="aicr-ingest")
        )
        flights: Flights[IngestResult] = Flights(executor)
        ingest = IngestService(
            gate=gate,
            source=registry(settings),
            judge=judge,
            archive=archive,
            store=store,
            verdicts=allowlist,
            clock=utc_now,
            limits=IngestLimits(
                settings.pull_timeout_seconds,
                answer_seconds=settings.deadline_seconds,
                unlisted_quota=settings.unlisted_quota,
            ),
            executor=executor,
            flights=flights,
            failpoint=failpoint,
        )
        rebuild = RebuildService(store=store, archive=archive, judge=judge, verdicts=allowlist)
        _tidy(store, archive, settings, alone=occupancy.alone)
        stack.enter_context(_repeated(lambda: _forget_attempts(store, settings), _PRUNE_SECONDS))
        occupancy.share()
        yield Container(settings, store, archive, judge, ingest, rebuild, allowlist, rule, utc_now)


@contextmanager
def _repeated(work: Callable[[], None], seconds: float) -> Iterator[None]:
    """Do something again and again on a thread of its own while the context lasts."""
    done = threading.Event()

    def repeat() -> None:
        while not done.wait(seconds):
            work()

    thread = threading.Thread(target=repeat, name="aicr-look", daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


@contextmanager
def _database(settings: Settings, *, migrate: bool) -> Iterator[Database]:
    database = Database(settings.database_url, pool_size=settings.ingest_concurrency + 8)
    try:
        if database.sqlite and migrate:
            upgrade(database, sandbox=settings.sandbox)
        else:
            require_head(database, sandbox=settings.sandbox)
        yield database
    finally:
        database.close()


def _tidy(store: SqlEvidenceStore, archive: OciArchive, settings: Settings, *, alone: bool) -> None:
    """What a killed predecessor left behind, and attempts past their time."""
    if alone:
        store.release_all()
    swept = archive.sweep(store.knows)
    if swept:
        log.info("removed %d unfinished or unknown entries from the archive", swept)
    _forget_attempts(store, settings)


def _forget_attempts(store: SqlEvidenceStore, settings: Settings) -> None:
    """Attempts past their time; a database that is away now is asked again later."""
    with suppress(StoreError):
        store.prune_attempts(utc_now() - timedelta(days=settings.attempts_retention_days))


def migrate_database(settings: Settings) -> str:
    """Bring the database to this release's schema; the revision. Raises `ConflictError` while it is in use."""
    with exclusive(settings.database_url, "migrate"):
        database = Database(settings.database_url)
        try:
            return upgrade(database, sandbox=settings.sandbox)
        finally:
            database.close()


def credentials(settings: Settings) -> dict[str, RegistryLogin]:
    """The logins of `REGISTRY_CREDENTIALS`; raises `InputError` for a file that is none."""
    path = settings.registry_credentials
    if not path:
        return {}
    try:
        return parse_logins(WatchedFile(path, max_bytes=_MAX_CREDENTIALS_BYTES).read().decode())
    except UnicodeDecodeError:
        what = "expected UTF-8"
    except (InputError, NotFoundError) as err:
        what = err.message
    raise InputError(
        f"{variable('registry_credentials')}: {what}", hint="a JSON file: host -> {user, password} or {token}"
    )


def _directory(path: str) -> None:
    if not (Path(path).is_dir() and os.access(path, os.W_OK)):
        raise StoreError("the archive directory is gone or can not be written")


def _asked(part: Callable[[], None]) -> str:
    try:
        part()
    except ServiceError as err:
        return err.message
    return "ok"
