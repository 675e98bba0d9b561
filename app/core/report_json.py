"""A report read back from its JSON, as a service answers it (evidence-format 8.6).

`read_report(report.to_json()) == report` for every report; what is not the shape of one is refused, so that some
other document is never taken for a verdict.
"""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import TypeVar, cast

from app.core.errors import DocumentInvalid
from app.core.report import (
    CauseClass,
    Exit,
    FailureCause,
    Finding,
    InputKind,
    Report,
    ReportSigner,
    Step,
    StepName,
    StepStatus,
    SubRow,
)

T = TypeVar("T")
E = TypeVar("E", bound=StrEnum)
Json = Mapping[str, object]

_EXITS = (Exit.VALID, Exit.PHASE_FAILURES, Exit.INVALID, Exit.NO_VERDICT)


def read_report(body: Json) -> Report:
    """The report that `body` is; raises `DocumentInvalid` naming the key that is not as 8.6 has it."""
    cause = _optional(body, "failureCause", dict)
    signer = _optional(body, "signer", dict)
    ends = _required(body, "exit", int)
    if ends not in _EXITS or (cause is not None) != (ends in {Exit.INVALID, Exit.NO_VERDICT}):
        raise DocumentInvalid(f"report: expected an exit from 0 to 3 that fits its failureCause, got {ends}")
    return Report(
        input=_word(body, "input", InputKind),
        steps=tuple(_step(each) for each in _objects("steps", _required(body, "steps", list))),
        exit=ends,
        pending=_optional(body, "pending", bool) or False,
        pointer=_optional(body, "pointer", dict),
        predicate=_optional(body, "predicate", dict),
        signer=None if signer is None else _signer(signer),
        recipe_name=_optional(body, "recipeName", str),
        bundle_digest=_optional(body, "bundleDigest", str),
        failure_cause=None if cause is None else _cause(cause),
        findings=tuple(_finding(each) for each in _objects("findings", _optional(body, "findings", list))),
    )


def _step(body: Json) -> Step:
    rows = _objects("subRows", _optional(body, "subRows", list))
    return Step(
        _word(body, "name", StepName),
        _word(body, "status", StepStatus),
        _optional(body, "detail", str) or "",
        tuple(SubRow(_required(row, "key", str), _required(row, "value", str)) for row in rows),
    )


def _signer(body: Json) -> ReportSigner:
    index = _optional(body, "rekorLogIndex", int)
    return ReportSigner(_required(body, "identity", str), _required(body, "issuer", str), index)


def _cause(body: Json) -> FailureCause:
    return FailureCause(
        _word(body, "class", CauseClass),
        _required(body, "detail", str),
        _optional(body, "httpStatus", int),
        _optional(body, "hint", str),
    )


def _finding(body: Json) -> Finding:
    return Finding(*(_required(body, key, str) for key in ("rule", "code", "message")))


def _required(body: Json, key: str, kind: type[T]) -> T:
    found = body.get(key)
    if not isinstance(found, kind) or (isinstance(found, bool) and kind is not bool):
        raise DocumentInvalid(f"report: expected {key} as {kind.__name__}, got {type(found).__name__}")
    return found


def _optional(body: Json, key: str, kind: type[T]) -> T | None:
    return _required(body, key, kind) if key in body else None


def _word(body: Json, key: str, words: type[E]) -> E:
    found = _required(body, key, str)
    if found not in set(words):
        raise DocumentInvalid(f"report: expected {key} as one of {', '.join(words)}, got {found[:80]!r}")
    return words(found)


def _objects(key: str, found: Sequence[object] | None) -> Sequence[Json]:
    if any(not isinstance(each, dict) for each in found or ()):
        raise DocumentInvalid(f"report: expected {key} as a list of objects")
    return cast("Sequence[Json]", found or ())
