"""The whole flow on one screen: gate, fetch, judge, archive, keep (service 1).

Reads are in `services.report`; what goes in and comes out, in `services.ingest_types`.
"""

import asyncio
import hashlib
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Executor
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from typing import Protocol

from app.core.bundle import Accepted, RawSignature, Rejected, Run
from app.core.errors import (
    Category,
    ConflictError,
    FetchError,
    InputError,
    JudgeCrashed,
    JudgeUnavailable,
    NotFoundError,
    QuotaExceeded,
    ReferenceInvalid,
    RegistryNotTrusted,
    ServiceError,
    StoreError,
)
from app.core.refs import Digest, OciRef
from app.core.report import InputKind, StepName
from app.core.verdict import RecipeInputs, RecipeVerdict
from app.ports import (
    Access,
    Artifact,
    Attempt,
    BundleArchive,
    BundleSource,
    Clock,
    EvidenceStore,
    Judge,
    JudgeJob,
    Kept,
    Listing,
    Pulled,
    PullOptions,
    Received,
)
from app.services.allowlists import by_list_in_force
from app.services.flights import Flights
from app.services.ingest_types import BODY_TOO_LARGE, IngestRequest, IngestResult, Judged, Refused, Stored
from app.services.pulling import PullTime
from app.services.refusing import refused, refused_by_registry, refused_by_store
from app.services.turns import Turns


class Gate(Protocol):
    """The trusted-registry gate (corroboration 4.4)."""

    def require(self, ref: OciRef, /) -> None:
        """Raises `RegistryNotTrusted` for a reference outside the list."""


class Verdicts(Protocol):
    """The allowlist, rule and clock in force, bound into the two pure functions that the store needs."""

    def sha256(self) -> str:
        """Which allowlist is in force here."""

    def follow(self) -> None:
        """Take over the list that another process put into force."""

    def project(self, inputs: RecipeInputs, /) -> RecipeVerdict:
        """Corroborate one recipe now."""

    def classify(self, run: Run, /) -> Listing:
        """What the lists say about a run's signer."""


@dataclass(frozen=True, slots=True)
class IngestLimits:
    """What bounds one ingest; times in seconds.

    A lease is prolonged while its holder works, so it can be short: after a crash nobody waits longer than that.
    After `answer_seconds` a caller is told that no verdict was reached, while the work goes on. `unlisted_quota` is how
    many records a source may hold that nobody listed; 0 is any number.
    """

    pull_timeout_seconds: float
    lease_seconds: float = 15.0
    answer_seconds: float | None = None
    unlisted_quota: int = 0


_QUOTA_RETRY_SECONDS = 3600
"""A full quota empties only when the signer is listed; asking more often than hourly helps nobody."""


def _no_failpoint(_name: str) -> None:
    """Crash tests put a `kill -9` here."""


@dataclass(frozen=True, slots=True)
class IngestService:
    """Takes a reference all the way to stored evidence, or records where it stopped and why."""

    gate: Gate
    source: BundleSource
    judge: Judge
    archive: BundleArchive
    store: EvidenceStore
    verdicts: Verdicts
    clock: Clock
    limits: IngestLimits
    executor: Executor
    flights: Flights[IngestResult]
    failpoint: Callable[[str], None] = _no_failpoint
    pause: Callable[[float], None] = time.sleep
    monotonic: Callable[[], float] = time.monotonic

    async def submit_async(self, request: IngestRequest) -> IngestResult:
        """`submit` on the bounded executor; a request that is already under way is joined and takes no slot.

        Waiting for a slot counts: past the deadline no verdict was reached, though one may be later.
        """
        try:
            async with asyncio.timeout(self.limits.answer_seconds):
                result, joined = await self.flights.run(request, lambda: self.submit(request))
        except TimeoutError as err:
            raise FetchError(
                f"no verdict within {self.limits.answer_seconds:g} seconds; the work goes on",
                category=Category.TIMEOUT,
                code="NO_VERDICT_IN_TIME",
                hint="try again in a moment; GET /attempts tells how it ended",
            ) from err
        if joined and isinstance(result, Stored) and result.created:
            return replace(result, created=False)
        return result

    def submit(self, request: IngestRequest) -> IngestResult:
        """Ingest, or only judge when the request says so.

        A refusal is returned and kept as an attempt. Raises what no verdict was reached about, also on record:
        `RegistryNotTrusted`, `FetchError` (retryable, or BODY_TOO_LARGE), `JudgeUnavailable`, `JudgeCrashed`,
        `StoreError`.
        """
        ref = request.reference
        if ref.digest is None:
            raise ReferenceInvalid(
                f"reference {str(ref)!r} names a tag, expected a digest",
                hint="write registry/repository@sha256:<64 hex>; a tag can move after it was checked",
            )
        try:
            result = self._submit(request, ref, ref.digest)
        except (RegistryNotTrusted, FetchError, JudgeUnavailable, JudgeCrashed) as err:
            if not request.verify_only:
                self._note_error(request, ref.digest, err)
            raise
        if isinstance(result, Refused) and not (request.dry_run or request.verify_only):
            attempt = self._note(
                request,
                ref.digest,
                outcome="refused",
                step=result.step.value,
                code=result.code,
                cause=result.cause.to_json(),
                recipe=result.report.recipe_name or "",
            )
            return replace(result, attempt_id=attempt.id)
        if isinstance(result, Stored):
            self._note(
                request,
                ref.digest,
                outcome="accepted",
                step="",
                code="STORED",
                cause={},
                source=result.record.run.source,
                recipe=result.record.run.recipe,
            )
            self.failpoint("answering")
        return result

    def _submit(self, request: IngestRequest, ref: OciRef, digest: Digest) -> IngestResult:
        self.gate.require(ref)
        at = self.clock()
        pulling = PullTime(self.limits.pull_timeout_seconds, clock=self.monotonic)
        keeping = not (request.dry_run or request.verify_only)
        try:
            artifact, options = self._resolve(ref, request.access, pulling)
            public = options.access is Access.ANONYMOUS
            received = Received(at=at, reference=str(ref), public=public, pointer=request.pointer)
            if keeping and (known := self._already_kept(artifact, request, received)):
                return known
            with ExitStack() as stack:
                if keeping:
                    waited = stack.enter_context(self._turns().turn(digest, pulling))
                    if waited and (known := self._already_kept(artifact, request, received)):
                        return known
                pulled = stack.enter_context(self._bundle(artifact, options, pulling, keeping=keeping))
                self.failpoint("fetched")
                verdict = self.judge.judge(
                    JudgeJob(
                        directory=pulled.directory,
                        input=InputKind.POINTER if request.pointer is not None else InputKind.OCI,
                        received_at=received.at,
                        digest=digest,
                        signatures=artifact.signatures,
                        pointer=request.pointer,
                        strict=not request.verify_only,
                        public=received.public,
                    )
                )
                if isinstance(verdict, Rejected):
                    return refused(verdict, digest)
                if not keeping:
                    return self._judged(verdict, request)
                self._require_room(verdict.run, request)
                return self._keep(verdict, artifact, pulled.layer, received)
        except FetchError as err:
            if err.retryable or err.code == BODY_TOO_LARGE:
                raise
            return refused_by_registry(err, request, digest)

    def _resolve(self, ref: OciRef, access: Access, pulling: PullTime) -> tuple[Artifact, PullOptions]:
        """The artifact and how it is pulled: with logins only where they may be used and nobody gets it without."""
        options = PullOptions(timeout_seconds=self.limits.pull_timeout_seconds)
        try:
            return self.source.resolve(ref, options), options
        except FetchError as err:
            if access is Access.ANONYMOUS or err.retryable:
                raise
        options = pulling.options(replace(options, access=access))
        return self.source.resolve(ref, options), options

    def _require_room(self, run: Run, request: IngestRequest) -> None:
        """Refuse a stranger's new record beyond his quota, before anything of it is archived (trust 6).

        A record without weight came through a workflow that anybody can call, so its name is no protection; the other
        records of a listed source are never counted. Bundles that arrive in one moment may pass together.
        """
        quota = self.limits.unlisted_quota
        listed = self.verdicts.classify(run).allowlisted
        if not quota or (listed and not run.weightless) or self.store.holds(run.digest, run.source_id):
            return
        held = self.store.held_by(run.source_id, weightless_only=listed)
        if held < quota:
            return
        err = QuotaExceeded(
            f"source {run.source} is not on the allowlist and holds {held} records, expected fewer than {quota}",
            retry_after_seconds=_QUOTA_RETRY_SECONDS,
            hint="ask for an allowlist entry; listed sources have no quota",
            details={"limit": quota, "held": held, "source": run.source},
        )
        self._note(
            request,
            run.digest,
            outcome="refused",
            step="",
            code=err.code,
            cause={"detail": err.message, "hint": err.hint or ""},
            source=run.source,
            recipe=run.recipe,
        )
        raise err

    def _keep(self, verdict: Accepted, artifact: Artifact, layer: str, received: Received) -> IngestResult:
        """Archive first, then one transaction, then the answer (service 6)."""
        if self._adds_bytes(verdict.run):
            self.archive.put(artifact, artifact.signatures[verdict.signature_index], layer)
        self.failpoint("archived")
        try:
            kept = self._commit(verdict.run, received)
        except (ConflictError, InputError) as err:
            return refused_by_store(err, verdict, artifact.digest)
        self.failpoint("committed")
        return Stored(created=kept.created, record=kept.record)

    def _adds_bytes(self, run: Run) -> bool:
        """Not for another signature of a source about the same digest: no record would name it."""
        return not self.store.holds(run.digest, run.source_id) or self.store.knows(run.digest, run.signature_sha256)

    def _commit(self, run: Run, received: Received) -> Kept:
        """One transaction under the allowlist in force.

        The record is received now, not when its fetch began: what was asked about the time between stays the answer.
        """
        return by_list_in_force(
            self.verdicts,
            lambda sha256: self.store.keep(
                run,
                replace(received, at=self.clock()),
                project=self.verdicts.project,
                classify=self.verdicts.classify,
                allowlist_sha256=sha256,
            ),
        )

    def _judged(self, verdict: Accepted, request: IngestRequest) -> Judged:
        listing = self.verdicts.classify(verdict.run)
        judged = Judged(verdict.run, listing.source_class, listing.allowlisted, verdict.report)
        if request.verify_only:
            return judged
        inputs = self.store.inputs(verdict.run.recipe)
        before = self.verdicts.project(inputs) if inputs else None
        return replace(judged, before=before, after=self.verdicts.project(self.store.inputs_with(verdict.run)))

    def _already_kept(self, artifact: Artifact, request: IngestRequest, received: Received) -> Stored | None:
        """The answer for exactly this artifact and its only signature, when no pointer claim is left to check.

        A record whose bytes the archive lost is taken in again instead, which brings them back.
        """
        if request.pointer is not None or len(artifact.signatures) != 1:
            return None
        signature = signature_sha256(artifact.signatures[0])
        record = self.store.find_by_signature(artifact.digest, signature)
        if record is None or not self.archive.holds(artifact.digest, signature):
            return None
        self.store.add_location(artifact.digest, received)
        return Stored(created=False, record=record)

    @contextmanager
    def _bundle(
        self, artifact: Artifact, options: PullOptions, pulling: PullTime, *, keeping: bool
    ) -> Iterator[Pulled]:
        """The unpacked bundle; a digest that the archive holds whole is not fetched a second time."""
        with ExitStack() as stack:
            held = None
            if keeping:
                with suppress(NotFoundError, StoreError):
                    held = stack.enter_context(self.archive.open(artifact.digest))
            yield held or stack.enter_context(self.source.pull(artifact, pulling.options(options)))

    def _turns(self) -> Turns:
        return Turns(self.store, self.clock, self.limits.lease_seconds, self.pause)

    def _note_error(self, request: IngestRequest, digest: Digest, err: ServiceError) -> None:
        verdict_reached = isinstance(err, RegistryNotTrusted | JudgeCrashed) or (
            isinstance(err, FetchError) and not err.retryable
        )
        self._note(
            request,
            digest,
            outcome="refused" if verdict_reached else "no-verdict",
            step=StepName.MATERIALIZE.value,
            code=err.code,
            cause={"detail": err.message, **({"hint": err.hint} if err.hint else {})},
        )

    def _note(
        self,
        request: IngestRequest,
        digest: Digest,
        *,
        outcome: str,
        step: str,
        code: str,
        cause: dict[str, object],
        source: str = "",
        recipe: str = "",
    ) -> Attempt:
        now = self.clock()
        return self.store.record_attempt(
            Attempt(
                id=0,
                reference=str(request.reference),
                digest=str(digest),
                outcome=outcome,
                step=step,
                code=code,
                cause=cause,
                first_at=now,
                last_at=now,
                count=1,
                source=source,
                recipe=recipe,
            )
        )


def signature_sha256(signature: RawSignature) -> str:
    """Bare hex sha256 of the exact Sigstore bundle: half of a record's key in the archive."""
    return hashlib.sha256(signature.bundle).hexdigest()
