"""Every projection computed anew from the signed bytes and the event table (service 6).

Each acknowledged bundle is taken from the archive and judged again, under today's rules and roots; nothing is fetched.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from app.core.bundle import Accepted, Run, Verdict
from app.core.errors import NotFoundError
from app.core.refs import Digest
from app.core.report import InputKind
from app.ports import Acknowledged, BundleArchive, EvidenceStore, Judge, JudgeJob, Received
from app.services.ingest import Verdicts


@dataclass(frozen=True, slots=True)
class Lost:
    """Acknowledged evidence that could not be made into a run again, and why."""

    digest: Digest
    source_id: str
    code: str
    reason: str


@dataclass(frozen=True, slots=True)
class Rebuilt:
    """What a rebuild did: records kept, and what was lost when that was allowed."""

    records: int
    lost: tuple[Lost, ...]


def _silent(_done: Acknowledged) -> None:
    """Nobody watches."""


@dataclass(frozen=True, slots=True)
class RebuildService:
    """Judges the archive again and hands the runs to the store, which replaces its projections in one transaction."""

    store: EvidenceStore
    archive: BundleArchive
    judge: Judge
    verdicts: Verdicts

    def rebuild(self, *, allow_missing: bool = False, watch: Callable[[Acknowledged], object] = _silent) -> Rebuilt:
        """Rebuild; `watch` is called after each bundle.

        Raises `StoreError` (code ARCHIVE_INCOMPLETE) when an acknowledged bundle is gone or is no evidence any longer,
        and changes nothing then, unless `allow_missing`.
        """
        lost: list[Lost] = []
        records = self.store.rebuild(
            self._runs(lost, watch),
            project=self.verdicts.project,
            classify=self.verdicts.classify,
            allow_missing=allow_missing,
        )
        return Rebuilt(records, tuple(lost))

    def _runs(self, lost: list[Lost], watch: Callable[[Acknowledged], object]) -> Iterator[tuple[Run, Received]]:
        for known in self.store.acknowledged():
            try:
                verdict = self._judge(known)
            except NotFoundError as err:
                lost.append(Lost(known.digest, known.source_id, err.code, err.message))
            else:
                if isinstance(verdict, Accepted):
                    yield verdict.run, known.received
                else:
                    lost.append(Lost(known.digest, known.source_id, verdict.code, verdict.cause.detail))
            watch(known)

    def _judge(self, known: Acknowledged) -> Verdict:
        signature = self.archive.signature(known.digest, known.signature_sha256)
        with self.archive.open(known.digest) as pulled:
            return self.judge.judge(
                JudgeJob(
                    directory=pulled.directory,
                    input=InputKind.OCI if known.received.pointer is None else InputKind.POINTER,
                    received_at=known.received.at,
                    digest=known.digest,
                    signatures=(signature,),
                    pointer=known.received.pointer,
                    public=known.received.public,
                )
            )
