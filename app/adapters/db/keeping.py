"""Keeping a run: one transaction from the first look to the recipe's new state (service 6)."""

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta

import sqlalchemy as sa
from sqlalchemy import Connection

from app.adapters.db import events
from app.adapters.db.allowlists import require_in_force
from app.adapters.db.codec import check_lengths, text_sha256
from app.adapters.db.inputs import recipe_inputs
from app.adapters.db.projection import (
    Arrival,
    PartyOf,
    add_records,
    refresh,
    restate,
    see_location,
    sharing_prints,
    summary_of,
    touch,
)
from app.adapters.db.records import ID_OF, of_source
from app.adapters.db.session import Database
from app.adapters.db.tables import locations, records
from app.core.bundle import Run
from app.core.errors import ConflictError, NotFoundError, StoreError
from app.core.refs import Digest
from app.core.summary import state_at_ingest
from app.ports import Classify, Kept, Project, Received, Record

_USED = sa.select(records.c.digest, records.c.signature_sha256).where(
    sa.or_(
        (records.c.log_id == sa.bindparam("log_id")) & (records.c.log_index == sa.bindparam("log_index")),
        records.c.signature_sha256 == sa.bindparam("signature_sha256"),
    )
)

LOCATION_FRESH = timedelta(hours=1)
"""A location that was seen this recently is not noted again: repeats of a `POST` write nothing."""


class Keeping:
    """One run on its way into the database; `run` is tried anew as a whole when it loses a race."""

    def __init__(
        self,
        database: Database,
        received: Received,
        *,
        project: Project,
        classify: Classify,
        party_of: PartyOf,
        allowlist_sha256: str | None,
        failpoint: Callable[[str], None],
    ) -> None:
        self._database = database
        self._received = received
        self._project = project
        self._classify = classify
        self._party_of = party_of
        self._allowlist_sha256 = allowlist_sha256
        self._failpoint = failpoint

    def keep(self, run: Run) -> Kept:
        """Durable once this returns; the port says the rest."""
        run = replace(run, received_at=self._received.at, public=self._received.public)  # what the event will say
        check_lengths(run, self._party_of(run.signer))
        if known := self._known(run):
            return known
        kept = self._database.write(lambda connection: self._keep(connection, run))
        self._failpoint("db:commit")
        return kept

    def _known(self, run: Run) -> Kept | None:
        """The answer for a repeat, found without a writer's lock; at most a location is written."""
        with self._database.read() as connection:
            if not _is_known(connection, run):
                return None
        add_location(self._database, run.digest, self._received)
        with self._database.read() as connection:
            return _as_before(connection, run)

    def _keep(self, connection: Connection, run: Run) -> Kept:
        # Prints before recipes, each in order: two transactions never wait for each other, and while the locks of its
        # prints are held nobody else can add a recipe to those that share them.
        self._database.lock(connection, [f"print:{kind}:{value}" for kind, value in run.prints])
        # A print without weight makes nobody a copy, however many recipes have it.
        weighs = not run.weightless and self._classify(run).known
        others = sharing_prints(connection, run) if weighs else frozenset()
        self._database.lock(connection, [f"recipe:{name}" for name in (run.recipe, *others)])
        if _is_known(connection, run):
            return _as_before(connection, run)
        self._require_unused(connection, run)
        require_in_force(connection, self._allowlist_sha256)
        before = summary_of(connection, run.recipe)
        seq = self._database.next_seq(connection)
        arrival = Arrival(seq, run, self._received.reference)
        add_records(connection, [arrival], classify=self._classify, party_of=self._party_of)
        if self._received.reference:
            see_location(
                connection, run.digest.hex, self._received.reference, self._received.at, public=self._received.public
            )
        inputs = recipe_inputs(connection, run.recipe)
        verdict = self._project(inputs)
        after = restate(connection, verdict)
        for other in sorted(others):
            refresh(connection, other, self._project)
        state = state_at_ingest(run, None if before is None else str(before.verdict["state"]), verdict, inputs)
        self._append(connection, seq, run, state)
        self._failpoint("db:row")
        return Kept(created=True, record=_record(connection, run), before=before, after=after)

    def _append(self, connection: Connection, seq: int, run: Run, state: dict[str, object]) -> None:
        pointer = self._received.pointer
        if pointer is not None:
            events.keep_texts(connection, [pointer])
        data = {
            "digest": run.digest.hex,
            "source": run.source_id,
            "signature": run.signature_sha256,
            "reference": self._received.reference,
            "public": self._received.public,
            "pointer": None if pointer is None else text_sha256(pointer),
            "state": state,
        }
        events.append(self._database, connection, events.RECEIVED, self._received.at, data, seq=seq)

    def _require_unused(self, connection: Connection, run: Run) -> None:
        named = {"log_id": run.log.log_id, "log_index": run.log.index, "signature_sha256": run.signature_sha256}
        used = connection.execute(_USED, named).first()
        if used is None:
            return
        other = str(Digest(used.digest))
        if used.signature_sha256 == run.signature_sha256:
            raise ConflictError(
                f"this Sigstore bundle already signs {other}, expected a signature of its own",
                code="SIGNATURE_REUSED",
                hint="sign every bundle; a signature can not be moved to another one",
                details={"digest": other},
            )
        raise ConflictError(
            f"log entry {run.log.index} of {run.log.log} already stands for {other}, expected an entry of its own",
            code="LOG_ENTRY_REUSED",
            hint="sign every bundle; a log entry can not be moved to another one",
            details={"digest": other},
        )


def add_location(database: Database, digest: Digest, received: Received) -> bool:
    """Note where a known digest was seen; False when that is on record and fresh."""
    if not received.reference:
        return False
    with database.read() as connection:
        known = connection.scalar(sa.select(records.c.id).where(records.c.digest == digest.hex).limit(1))
        if known is None:
            raise NotFoundError(f"no record of {digest}")
        if not _worth_noting(connection, digest, received):
            return False

    def note(connection: Connection) -> bool:
        database.lock(connection, [f"location:{digest.hex}"])
        if not _worth_noting(connection, digest, received):
            return False
        data = {"digest": digest.hex, "reference": received.reference, "public": received.public}
        events.append(database, connection, events.LOCATED, received.at, data)
        see_location(connection, digest.hex, received.reference, received.at, public=received.public)
        touch(connection, digest.hex)
        return True

    return database.write(note)


def _worth_noting(connection: Connection, digest: Digest, received: Received) -> bool:
    query = sa.select(locations).where(locations.c.digest == digest.hex, locations.c.reference == received.reference)
    row = connection.execute(query).one_or_none()
    if row is None or (received.public and row.public_since is None):
        return True
    last: datetime = row.last_seen
    return received.at - last >= LOCATION_FRESH


def _is_known(connection: Connection, run: Run) -> bool:
    return connection.scalar(ID_OF, {"digest": run.digest.hex, "source_id": run.source_id}) is not None


def _record(connection: Connection, run: Run) -> Record:
    found = of_source(connection, run.digest.hex, run.source_id)
    if found is None:
        raise StoreError(f"the record of {run.digest} is not there", hint="run: aicr evidence rebuild")
    return found


def _as_before(connection: Connection, run: Run) -> Kept:
    """The answer for evidence that is there already."""
    record = _record(connection, run)
    line = summary_of(connection, record.run.recipe)
    if line is None:
        raise StoreError(f"recipe {record.run.recipe!r} has records and no state", hint="run: aicr evidence rebuild")
    return Kept(created=False, record=record, before=line, after=line)
