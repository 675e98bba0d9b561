"""Judge what a person names: a directory, a pointer file, an OCI reference or an archive tar (evidence-format 8).

Needs no database and, for a directory or a tar, no network. No registry gate: the person named it; address and
credential rules hold in the reader. The steps are in `services.judge`; exits of the process in `core.verdict_steps`.
"""

import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field

from app.core.bundle import Pins, Rejected
from app.core.errors import Cancelled, FetchError, InputError, NotFoundError
from app.core.input_form import InputForm, detect_input, parse_missing
from app.core.pins import compile_pins
from app.core.pointer import Pointer, parse_pointer, pull_reference, require_pinned
from app.core.refs import OciRef
from app.core.report import InputKind, Report
from app.core.verdict_steps import unreadable
from app.ports import Access, BundleSource, Clock, Judge, JudgeJob, OpenArchive, PointerTree, Pulled, PullOptions
from app.services.pulling import PullTime


@dataclass(frozen=True, slots=True)
class VerifyOptions:
    """The options of `verify` (evidence-format 8.2); the registry flags hold for the input's own host only."""

    bundle: str | None = None
    pins: Pins = field(default_factory=Pins)
    plain_http: bool = False
    insecure_tls: bool = False
    allow_unpinned_tag: bool = False
    private_host: bool = False
    strict: bool = False
    timeout_seconds: float = 120.0
    access: Access = Access.ANONYMOUS


@dataclass(frozen=True, slots=True)
class _Named:
    """What the input says about the job, before anything is fetched."""

    kind: InputKind
    pointer: bytes | None = None
    pointer_name: str = ""
    parsed: Pointer | None = None


@dataclass(frozen=True, slots=True)
class Examined:
    """A report, and what made it invalid or undecided: the code of the rule that spoke, and what to do; "" when valid.

    The report itself has a hint only where evidence-format 8.4 gives one.
    """

    report: Report
    code: str = ""
    hint: str = ""


@dataclass(frozen=True, slots=True)
class VerifyService:
    """Gathers what a person named and has it judged."""

    files: PointerTree
    source: BundleSource
    open_archive: OpenArchive
    judge: Judge
    clock: Clock
    monotonic: Callable[[], float] = time.monotonic

    def verify(self, text: str, options: VerifyOptions) -> Report:
        """`examine`, for who only asks for the report."""
        return self.examine(text, options).report

    def examine(self, text: str, options: VerifyOptions) -> Examined:
        """The report on `text`, whatever the verdict, with the rule that spoke.

        What is wrong before step 1 is raised and gives no report: an input of no known form, a pointer that can not
        be read or breaks its rules, a pin that is no regular expression (`InputError`, `NotFoundError`, `FetchError`).
        """
        compile_pins(options.pins)
        form = detect_input(text, kind_of_path=self.files.kind_of)
        match form:
            case InputForm.DIRECTORY:
                return self._judge(_Named(InputKind.DIRECTORY), options, directory=text)
            case InputForm.ARCHIVE:
                return self._fetched(_Named(InputKind.OCI), options, lambda: self.open_archive(text))
            case InputForm.POINTER:
                data = self.files.read_pointer(text)
                pointer = parse_pointer(data)
                named = _Named(InputKind.POINTER, data, text.rpartition("/")[2], pointer)
                return self._fetched(named, options, lambda: self._pull(self._pointed(pointer, options), options))
            case InputForm.OCI:
                return self._fetched(
                    _Named(InputKind.OCI), options, lambda: self._pull(_parsed(text, options), options)
                )

    def _fetched(
        self, named: _Named, options: VerifyOptions, fetch: Callable[[], AbstractContextManager[Pulled]]
    ) -> Examined:
        """Judge what `fetch` brings; a failure to bring it is a report that ends with step 1."""
        pointer = named.parsed.to_json() if named.parsed else None
        try:
            with fetch() as pulled:
                return self._judge(named, options, directory=pulled.directory, pulled=pulled)
        except (InputError, NotFoundError, FetchError, Cancelled) as err:
            return Examined(unreadable(named.kind, err, pointer=pointer), err.code, err.hint or "")
        except KeyboardInterrupt:
            aborted = Cancelled("the run was aborted")
            return Examined(unreadable(named.kind, aborted, pointer=pointer), aborted.code)

    def _pointed(self, pointer: Pointer, options: VerifyOptions) -> OciRef:
        return pull_reference(pointer, options.bundle, allow_unpinned_tag=options.allow_unpinned_tag)

    def _pull(self, ref: OciRef, options: VerifyOptions) -> AbstractContextManager[Pulled]:
        pull = PullOptions(
            timeout_seconds=options.timeout_seconds,
            access=options.access,
            plain_http=options.plain_http,
            insecure_tls=options.insecure_tls,
            private_host=options.private_host,
        )
        pulling = PullTime(options.timeout_seconds, clock=self.monotonic)
        artifact = self.source.resolve(ref, pull)
        return self.source.pull(artifact, pulling.options(pull))

    def _judge(
        self, named: _Named, options: VerifyOptions, *, directory: str, pulled: Pulled | None = None
    ) -> Examined:
        job = JudgeJob(
            directory=directory,
            input=named.kind,
            received_at=self.clock(),
            digest=pulled.artifact.digest if pulled else None,
            signatures=pulled.artifact.signatures if pulled else (),
            pointer=named.pointer,
            pointer_name=named.pointer_name,
            pins=options.pins,
            strict=options.strict,
        )
        verdict = self.judge.judge(job)
        # A rejection as evidence is not always a failed report: an unsigned directory is valid and pending.
        match verdict:
            case Rejected(code=code, report=report) if report.failure_cause is not None:
                return Examined(report, code)
            case _:
                return Examined(verdict.report)


def _parsed(text: str, options: VerifyOptions) -> OciRef:
    ref = parse_missing(text)
    require_pinned(ref, allow_unpinned_tag=options.allow_unpinned_tag)
    return ref
