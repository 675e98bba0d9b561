"""`submit`: send a bundle to the service and say what changed."""

import argparse
from typing import Any

from app.cli.exits import INTERNAL, INVALID, NO_VERDICT, OK, UNREACHABLE, exit_of
from app.cli.files import is_file, read_file
from app.cli.output import say, say_error, write, write_json
from app.client import ApiClient, ApiUnreachable, Refusal, Submitted
from app.config import load_settings
from app.core.errors import ServiceError
from app.core.pointer import MAX_POINTER_BYTES


def run(options: argparse.Namespace) -> int:
    """Exit 0 stored (or judged by a dry run), 2 refused, 5 no verdict, 6 unreachable; `--fail-on never` makes 2 a 0."""
    bundle, pointer = _named(options.input)
    settings = load_settings()
    try:
        with ApiClient(options.api or settings.api, options.timeout) as api:
            outcome = api.submit(bundle=bundle, pointer=pointer, dry_run=options.dry_run)
    except ApiUnreachable as err:
        say_error(err)
        return UNREACHABLE
    except ServiceError as err:
        say_error(err)
        if err.retryable or exit_of(err) == INTERNAL:
            return NO_VERDICT
        return OK if options.fail_on == "never" and exit_of(err) == INVALID else exit_of(err)
    if isinstance(outcome, Refusal):
        return _refused(outcome, options)
    return _stored(outcome, options)


def _named(text: str) -> tuple[str | None, bytes | None]:
    """(reference, None) or (None, a pointer file's text)."""
    if not is_file(text):
        return text, None
    return None, read_file(text, max_bytes=MAX_POINTER_BYTES, what="a pointer")


def _refused(refusal: Refusal, options: argparse.Namespace) -> int:
    if options.format == "json":
        write_json(
            {
                "code": "EVIDENCE_REFUSED",
                "step": refusal.step,
                "rule": refusal.code,
                "cause": refusal.cause,
                "message": refusal.message,
                "details": refusal.details,
            }
        )
    say(f"refused at {refusal.step}: {refusal.code}: {refusal.cause.get('detail', refusal.message)}")
    if hint := refusal.cause.get("hint") or refusal.details.get("hint") or refusal.details.get("cure"):
        say(f"hint: {hint}")
    return OK if options.fail_on == "never" else INVALID


def _stored(outcome: Submitted, options: argparse.Namespace) -> int:
    body: dict[str, Any] = dict(outcome.body)
    if options.format == "json":
        write_json(body)
    else:
        state = body["state"]
        did = "judged, not stored" if options.dry_run else "stored" if outcome.created else "was already there"
        counts = "counts" if body["allowlisted"] else "is shown, its signer is not on the allowlist"
        write(f"{body['recipe']}: {did}; {body['class']}, {counts}; {state['before'] or 'unknown'} -> {state['after']}")
        for remark in body["remarks"]:
            write(f"  remark {remark['code']}: {remark['message']}")
    failed = body["exit"] == 1
    if failed:
        say("the run recorded phase failures; failures are evidence too")
    return INVALID if failed and options.fail_on == "phases" else OK
