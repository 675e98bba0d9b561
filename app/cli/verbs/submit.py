"""`submit`: send a bundle to the service and say what changed."""

import argparse
from typing import Any

from app.cli.exits import INTERNAL, INVALID, NO_VERDICT, OK, UNREACHABLE, exit_of
from app.cli.files import exists, is_file, read_file
from app.cli.output import say, say_error, write, write_json
from app.cli.tokens import first, token_in
from app.client import ApiClient, ApiUnreachable, Refusal, Submitted
from app.config import load_settings
from app.core.errors import InputError, ServiceError
from app.core.input_form import parse_missing
from app.core.pointer import MAX_POINTER_BYTES


def run(options: argparse.Namespace) -> int:
    """Exit 0 stored (or judged by a dry run), 2 refused, 5 no verdict, 6 unreachable; `--fail-on never` makes 2 a 0."""
    bundle, pointer = _named(options.input)
    settings = load_settings(uses=())
    token = token_in(options.token_file) if options.token_file is not None else first(settings.api_token)
    client = ApiClient(options.api or settings.api, options.timeout, token=token)
    try:
        with client as api:
            outcome = api.submit(bundle=bundle, pointer=pointer, dry_run=options.dry_run)
            changed = _changed(api, outcome, options) if isinstance(outcome, Submitted) else ""
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
    return _stored(outcome, changed, options)


def _named(text: str) -> tuple[str | None, bytes | None]:
    """(reference, None) or (None, a pointer file's text); raises `InputError` for what is neither."""
    if is_file(text):
        return None, read_file(text, max_bytes=MAX_POINTER_BYTES, what="a pointer")
    if exists(text):
        raise InputError(
            f"{text[:200]} is no file, and the service can not see it",
            hint="push the bundle to a registry, then submit its pointer file or registry/repository@sha256:<64 hex>",
        )
    parse_missing(text)
    return text, None


def _changed(api: ApiClient, outcome: Submitted, options: argparse.Namespace) -> str:
    """What the submission did to the recipe's state, for people.

    A repeat is answered as the first time was, so what holds now is asked for; that it can not be told is no failure
    of the submission.
    """
    state: Any = outcome.body["state"]
    if outcome.created or options.dry_run:
        return f"{state['before'] or 'unknown'} -> {state['after']}"
    if options.format == "json":
        return ""
    try:
        return f"the recipe is {api.recipe(str(outcome.body['recipe']))['state']} now"
    except ServiceError:
        return f"the recipe was {state['after']} then"


def _refused(refusal: Refusal, options: argparse.Namespace) -> int:
    if options.format == "json":
        write_json(refusal.body)
    say(f"refused at {refusal.step}: {refusal.code}: {refusal.cause.get('detail', refusal.message)}")
    if hint := refusal.cause.get("hint") or refusal.details.get("hint") or refusal.details.get("cure"):
        say(f"hint: {hint}")
    return OK if options.fail_on == "never" else INVALID


def _stored(outcome: Submitted, changed: str, options: argparse.Namespace) -> int:
    body: dict[str, Any] = dict(outcome.body)
    if options.format == "json":
        write_json(body)
    else:
        did = "judged, not stored" if options.dry_run else "stored" if outcome.created else "was already there"
        counts = "counts" if body["allowlisted"] else "is shown, its signer is not on the allowlist"
        write(f"{body['recipe']}: {did}; {body['class']}, {counts}; {changed}")
        for remark in body["remarks"]:
            write(f"  remark {remark['code']}: {remark['message']}")
    failed = body["exit"] == 1
    if failed:
        say("the run recorded phase failures; failures are evidence too")
    return INVALID if failed and options.fail_on == "phases" else OK
