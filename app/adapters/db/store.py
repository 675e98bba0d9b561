# ruff: noqa: D102 - the port carries the contract
"""`SqlEvidenceStore`: the port over one `Database`; each method is one transaction, the work is in its neighbours."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime

import sqlalchemy as sa

from app.adapters.db import acts, allowlists, attempts, catalogue, events, records, sources, weighings
from app.adapters.db.inputs import known_inputs, recipe_inputs
from app.adapters.db.keeping import Keeping, add_location
from app.adapters.db.projection import PartyOf
from app.adapters.db.rebuild import rebuild
from app.adapters.db.session import Database
from app.adapters.db.tables import recipe_state
from app.adapters.db.tables import records as record_rows
from app.core.bundle import Run
from app.core.catalogue import CatalogueVersion, check_push
from app.core.party import party_of
from app.core.refs import Digest
from app.core.verdict import RecipeInputs
from app.ports import (
    Acknowledged,
    Act,
    AllowlistVersion,
    Attempt,
    Classify,
    Event,
    Kept,
    KnownSource,
    Project,
    Received,
    RecipeSummary,
    Record,
    RecordFilter,
    Weighing,
)


def _no_failpoint(_name: str) -> None:
    """Crash tests put a `kill -9` here."""


class SqlEvidenceStore:
    """Implements `app.ports.EvidenceStore` on SQLite and PostgreSQL."""

    def __init__(
        self,
        database: Database,
        *,
        party: PartyOf = party_of,
        failpoint: Callable[[str], None] = _no_failpoint,
    ) -> None:
        self._database = database
        self._party_of = party
        self._failpoint = failpoint

    def keep(
        self,
        run: Run,
        received: Received,
        /,
        *,
        project: Project,
        classify: Classify,
        allowlist_sha256: str | None = None,
    ) -> Kept:
        keeping = Keeping(
            self._database,
            received,
            project=project,
            classify=classify,
            party_of=self._party_of,
            allowlist_sha256=allowlist_sha256,
            failpoint=self._failpoint,
        )
        return keeping.keep(run)

    def add_location(self, digest: Digest, received: Received, /) -> None:
        add_location(self._database, digest, received)

    def find_by_signature(self, digest: Digest, signature_sha256: str, /) -> Record | None:
        with self._database.read() as connection:
            return records.of_signature(connection, digest.hex, signature_sha256)

    def knows(self, digest: Digest, signature_sha256: str, /) -> bool:
        query = sa.select(record_rows.c.id).where(
            record_rows.c.digest == digest.hex, record_rows.c.signature_sha256 == signature_sha256
        )
        with self._database.read() as connection:
            return connection.scalar(query) is not None

    def holds(self, digest: Digest, source_id: str, /) -> bool:
        query = sa.select(record_rows.c.id).where(
            record_rows.c.digest == digest.hex, record_rows.c.source_id == source_id
        )
        with self._database.read() as connection:
            return connection.scalar(query) is not None

    def held_by(self, source_id: str, /, *, weightless_only: bool = False) -> int:
        query = sa.select(sa.func.count()).select_from(record_rows).where(record_rows.c.source_id == source_id)
        if weightless_only:
            query = query.where(record_rows.c.weightless != "")
        with self._database.read() as connection:
            return int(connection.scalar(query) or 0)

    def records_of(self, digest: Digest, /) -> tuple[Record, ...]:
        with self._database.read() as connection:
            return records.find(connection, record_rows.c.digest == digest.hex)

    def records(
        self, where: RecordFilter, /, *, after: int | None, limit: int
    ) -> tuple[tuple[Record, ...], int | None]:
        with self._database.read() as connection:
            return records.page(connection, where, after, limit)

    def runs_of(self, recipe: str, /, *, as_of: datetime | None = None, limit: int = 1000) -> tuple[Run, ...]:
        with self._database.read() as connection:
            return records.runs_of(connection, recipe, as_of, limit)

    def sources(self, *, after: str | None, limit: int) -> tuple[tuple[KnownSource, ...], str | None]:
        with self._database.read() as connection:
            return sources.page(connection, after, limit)

    def source(self, source: str, /) -> KnownSource | None:
        with self._database.read() as connection:
            return sources.one(connection, source)

    def inputs(self, recipe: str, /, *, as_of: datetime | None = None, strangers: bool = False) -> RecipeInputs | None:
        with self._database.read() as connection:
            return known_inputs(connection, recipe, as_of, strangers=strangers)

    def inputs_with(self, run: Run, /) -> RecipeInputs:
        with self._database.read() as connection:
            return recipe_inputs(connection, run.recipe, joined=run)

    def revision(self, recipe: str, /) -> int | None:
        with self._database.read() as connection:
            return connection.scalar(_revision, {"recipe": recipe})

    def state_revision(self) -> int:
        # A sum over recipes: a single counter would make concurrent ingests of different recipes wait for its row.
        with self._database.read() as connection:
            return int(connection.scalar(_revisions) or 0)

    def summaries(self) -> tuple[RecipeSummary, ...]:
        with self._database.read() as connection:
            found = [RecipeSummary(row.recipe, row.revision, row.summary) for row in connection.execute(_summaries)]
        return tuple(sorted(found, key=lambda line: line.recipe))

    def put_catalogue(
        self,
        versions: Sequence[CatalogueVersion],
        /,
        *,
        replace: bool,
        project: Project,
        allowlist_sha256: str | None = None,
    ) -> tuple[str, ...]:
        check_push(versions, replace_all=replace)
        return self._database.write(
            lambda connection: catalogue.put(
                self._database,
                connection,
                versions,
                replace_all=replace,
                project=project,
                allowlist_sha256=allowlist_sha256,
            ),
            patient=replace,
        )

    def activate_allowlist(self, version: AllowlistVersion, /, *, project: Project, classify: Classify) -> bool:
        return self._database.write(
            lambda connection: allowlists.activate(
                self._database, connection, version, project=project, classify=classify
            ),
            patient=True,
        )

    def reproject(
        self, mark: str, /, *, project: Project, weighing: Weighing, allowlist_sha256: str | None = None
    ) -> bool:
        return self._database.write(
            lambda connection: weighings.reproject(
                self._database,
                connection,
                mark,
                project=project,
                weighing=weighing,
                allowlist_sha256=allowlist_sha256,
            ),
            patient=True,
        )

    def weighings(self) -> tuple[Weighing, ...]:
        with self._database.read() as connection:
            return weighings.every(connection)

    def allowlist_in_force(self) -> str | None:
        with self._database.read() as connection:
            return allowlists.in_force(connection)

    def allowlists(self) -> tuple[AllowlistVersion, ...]:
        with self._database.read() as connection:
            return allowlists.all_versions(connection)

    def retract(
        self,
        digest: Digest,
        source_id: str,
        act: Act,
        /,
        *,
        retracted: bool,
        project: Project,
        allowlist_sha256: str | None = None,
    ) -> bool:
        return self._database.write(
            lambda connection: acts.retract(
                self._database,
                connection,
                digest,
                source_id,
                act,
                retracted=retracted,
                project=project,
                allowlist_sha256=allowlist_sha256,
            )
        )

    def set_gone(
        self, digest: Digest, at: datetime, /, *, gone: bool, project: Project, allowlist_sha256: str | None = None
    ) -> bool:
        return self._database.write(
            lambda connection: acts.set_gone(
                self._database,
                connection,
                digest,
                at,
                gone=gone,
                project=project,
                allowlist_sha256=allowlist_sha256,
            )
        )

    def record_attempt(self, attempt: Attempt, /) -> Attempt:
        return self._database.write(lambda connection: attempts.record(connection, attempt), relaxed=True)

    def prune_attempts(self, before: datetime, /) -> int:
        return self._database.write(lambda connection: attempts.prune(connection, before), relaxed=True)

    def attempts(
        self, *, after: int | None, limit: int, outcome: str | None = None, digest: str | None = None
    ) -> tuple[tuple[Attempt, ...], int | None]:
        with self._database.read() as connection:
            return attempts.page(connection, after, limit, outcome, digest)

    def attempt(self, attempt_id: int, /) -> Attempt | None:
        with self._database.read() as connection:
            return attempts.one(connection, attempt_id)

    def lease(self, digest: Digest, holder: str, /, *, now: datetime, seconds: float) -> bool:
        return self._database.write(
            lambda connection: attempts.lease(connection, digest, holder, now, seconds), relaxed=True
        )

    def release(self, digest: Digest, holder: str, /) -> None:
        self._database.write(lambda connection: attempts.release(connection, digest, holder), relaxed=True)

    def release_all(self) -> None:
        """Give back the leases of killed processes; only for who is alone in the database and its archive."""
        self._database.write(attempts.release_all, relaxed=True)

    def replay(self) -> Iterator[Event]:
        after = 0
        while found := self._page(after):
            yield from found
            after = found[-1].seq

    def acknowledged(self) -> Iterator[Acknowledged]:
        for event in self.replay():
            if event.kind != events.RECEIVED:
                continue
            data = event.data
            pointer = None if data["pointer"] is None else self.text(str(data["pointer"]))
            yield Acknowledged(
                digest=Digest(str(data["digest"])),
                source_id=str(data["source"]),
                signature_sha256=str(data["signature"]),
                received=Received(event.at, str(data["reference"]), bool(data["public"]), pointer),
            )

    def text(self, sha256: str, /) -> bytes:
        with self._database.read() as connection:
            return events.text(connection, sha256)

    def rebuild(
        self,
        runs: Iterable[tuple[Run, Received]],
        /,
        *,
        project: Project,
        classify: Classify,
        allow_missing: bool = False,
    ) -> int:
        return self._database.write(
            lambda connection: rebuild(
                self._database,
                connection,
                runs,
                project=project,
                classify=classify,
                party_of=self._party_of,
                allow_missing=allow_missing,
            ),
            patient=True,
            tries=1,  # `runs` can be read once
        )

    def ping(self) -> None:
        with self._database.read() as connection:
            connection.execute(sa.select(1))

    def _page(self, after: int) -> tuple[Event, ...]:
        with self._database.read() as connection:
            return events.page(connection, after)


_summaries = sa.select(recipe_state)
_revision = sa.select(recipe_state.c.revision).where(recipe_state.c.recipe == sa.bindparam("recipe"))
_revisions = sa.select(sa.func.sum(recipe_state.c.revision))
