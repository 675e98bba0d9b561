"""What commands need that run without the service: verify, trees, trust roots, allowlist files."""

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from app.adapters.db.migrate import require_head
from app.adapters.db.serve_lock import exclusive
from app.adapters.db.session import Database, parse_url
from app.adapters.db.store import SqlEvidenceStore
from app.adapters.files import PointerFiles
from app.adapters.files.watch import FileTooLarge, WatchedFile
from app.adapters.oci import OciRegistry
from app.adapters.oci.layout_tar import read_layout_tar
from app.adapters.oci.limits import Deadline
from app.adapters.sigstore.roots import TrustRoots
from app.adapters.sigstore.verifier import SignatureLimits, SignatureOnly, SigstoreVerifier
from app.bootstrap.container import command_judge, confirm_rule, credentials, reader_limits, utc_now
from app.bootstrap.judge_parts import with_roots
from app.config import Settings, about
from app.core.allowlist import MAX_ALLOWLIST_BYTES, Allowlist
from app.core.allowlist_diff import Reach, VerdictDiff, diff_verdicts, reach_of
from app.core.bundle import Pins, SignatureRefused
from app.core.corroborate import corroborate
from app.core.errors import NotFoundError, ReferenceInvalid, RegistryNotTrusted, ServiceError
from app.core.gate import TrustedRegistries
from app.core.refs import OciRef
from app.ports import AllowlistVersion
from app.services.allowlists import AllowlistService
from app.services.tree import TreeService
from app.services.verify import VerifyService


def roots(settings: Settings, named: Sequence[str]) -> TrustRoots:
    """The roots that a person named, else those of the setting."""
    if named:
        return TrustRoots.from_files(named)
    with about("trusted_root"):
        return TrustRoots.from_setting(settings.trusted_root)


@contextmanager
def verify_service(settings: Settings, trusted_roots: Sequence[str]) -> Iterator[VerifyService]:
    """Judging in this process, over the local files and the network that the person named; needs no database."""
    judge = with_roots(command_judge(settings), roots(settings, trusted_roots))
    limits = reader_limits(settings)
    with tempfile.TemporaryDirectory(prefix="aicr-verify-") as private:
        yield VerifyService(
            files=PointerFiles(),
            source=OciRegistry(
                tmp=f"{private}/pulls",
                limits=limits,
                private_hosts=settings.private_registries,
                plain_http_hosts=settings.plain_http_registries,
                token_realms=settings.token_realms,
                credentials=credentials(settings),
            ),
            open_archive=lambda path: read_layout_tar(
                path, f"{private}/layouts", limits, tick=Deadline(settings.pull_timeout_seconds).remaining
            ),
            judge=judge,
            clock=utc_now,
        )


def verify_signature(
    settings: Settings, trusted_roots: Sequence[str], path: str, pins: Pins
) -> SignatureOnly | SignatureRefused:
    """A raw Sigstore bundle against the roots; raises `NotFoundError` or `InputError` when it can not be read."""
    # One byte more than the limit, so that the rule about the size speaks and not the reader.
    data = WatchedFile(path, max_bytes=settings.max_signature_bytes + 1).read()
    verifier = SigstoreVerifier(roots(settings, trusted_roots), SignatureLimits(settings.max_signature_bytes))
    return verifier.verify_signature_only(data, pins=pins)


def tree_service(settings: Settings) -> TreeService:
    """Checks and indexes a committed tree; warns about registries that an ingest would refuse."""
    gate = TrustedRegistries.parse(settings.trusted_registries)

    def refusal(reference: str) -> str | None:
        try:
            gate.require(OciRef.parse(reference))
        except (RegistryNotTrusted, ReferenceInvalid) as err:
            return err.message
        return None

    return TreeService(PointerFiles(), refusal)


def load_allowlist(path: str) -> Allowlist:
    """One allowlist file; whatever error it raises names the broken rule of corroboration 1.2 in its details."""
    return Allowlist.load(_allowlist_text(path))


def _allowlist_text(path: str) -> bytes:
    """The bytes of an allowlist file; raises `NotFoundError` (J1), `StoreError` or `InputError` (J2, J3)."""
    try:
        return WatchedFile(path, max_bytes=MAX_ALLOWLIST_BYTES).read()
    except ServiceError as err:
        match err:
            case NotFoundError():
                err.details["rule"] = "J1"
            case FileTooLarge():
                err.details["rule"] = "J3"
            case _:
                err.details["rule"] = "J2"
        raise


@dataclass(frozen=True, slots=True)
class Effects:
    """What a change of the list does to stored recipes, and what a signer that is new could do to each afterwards."""

    changes: tuple[VerdictDiff, ...]
    reach: tuple[Reach, ...]


def effects(settings: Settings, old: Allowlist, new: Allowlist) -> Effects | None:
    """What replacing `old` by `new` does to each stored recipe, without changing anything; None without a database."""
    url = parse_url(settings.database_url)
    if url.get_backend_name() == "sqlite" and not Path(str(url.database)).exists():
        return None
    database = Database(settings.database_url)
    try:
        require_head(database, sandbox=settings.sandbox)
        store = SqlEvidenceStore(database)
        rule, now = confirm_rule(settings), utc_now()
        found, reach = [], []
        for summary in store.summaries():
            inputs = store.inputs(summary.recipe, strangers=True)  # the new list may know some
            if inputs is None:
                continue
            before, after = (corroborate(inputs, allowlist=each, rule=rule, now=now) for each in (old, new))
            difference = diff_verdicts(before, after)
            if not difference.empty:
                found.append(difference)
            reach.append(reach_of(after))
        return Effects(tuple(found), tuple(reach))
    finally:
        database.close()


def activate_allowlist(settings: Settings, path: str) -> AllowlistVersion:
    """Put a file into force; on SQLite only while no service runs (it watches its own file).

    Raises what `load_allowlist` raises for a file that is none.
    """
    text = _allowlist_text(path)
    Allowlist.load(text)
    with exclusive(settings.database_url, "allowlist activate"):
        database = Database(settings.database_url)
        try:
            require_head(database, sandbox=settings.sandbox)
            store = SqlEvidenceStore(database)
            service = AllowlistService(
                read=lambda: text,
                store=store,
                rule=confirm_rule(settings),
                clock=utc_now,
                file_rules=True,
            )
            service.start()
            return store.allowlists()[-1]
        finally:
            database.close()
