"""`verify`: judge a bundle offline with the local roots, or let a service judge it."""

import argparse
import json
from pathlib import Path

from app.bootstrap.offline import verify_service, verify_signature
from app.cli.exits import CANCELED, INVALID, NO_VERDICT, OK
from app.cli.files import exists, is_file, read_file
from app.cli.output import printable, say, write, write_json
from app.client import ApiClient, JsonObject
from app.config import load_settings
from app.core.bundle import Pins, SignatureRefused
from app.core.errors import InputError, StoreError
from app.core.markdown import render_markdown
from app.core.pointer import MAX_POINTER_BYTES
from app.core.rules import CODES
from app.core.verdict_steps import process_exit
from app.ports import Access
from app.services.verify import Examined, VerifyOptions


def run(options: argparse.Namespace) -> int:
    """The report on stdout or in a file; the cure of what failed on stderr."""
    pins = Pins(options.expected_issuer, options.expected_identity_regexp)
    if options.signature_only:
        return _signature_only(options, pins)
    if options.api:
        return _asked(options)
    settings = load_settings({"pull_timeout_seconds": options.timeout})
    with verify_service(settings, options.trusted_root) as service:
        examined = service.examine(
            options.input,
            VerifyOptions(
                bundle=options.bundle,
                pins=pins,
                plain_http=options.registry_plain_http,
                insecure_tls=options.registry_insecure_tls,
                allow_unpinned_tag=options.allow_unpinned_tag,
                strict=options.strict,
                timeout_seconds=options.timeout,
                access=Access.CREDENTIALED,
            ),
        )
    report = examined.report
    text = json.dumps(report.to_json(), indent=2, ensure_ascii=False) if _json(options) else render_markdown(report)
    _deliver(options, text)
    _explain(examined)
    return process_exit(report)


def _explain(examined: Examined) -> None:
    """What failed, by which rule, and what to do about it; findings that fail nothing too."""
    report = examined.report
    for finding in report.findings:
        say(f"finding: {finding.rule} {finding.code}: {finding.message}")
        if finding.code in CODES and finding.code != examined.code:
            say(f"cure: {CODES[finding.code].cure}")
    if report.failure_cause is None:
        return
    say(f"code: {examined.code}")
    if examined.code in CODES:
        say(f"cure: {CODES[examined.code].cure}")
    if hint := report.failure_cause.hint or examined.hint:
        say(f"hint: {hint}")


def _json(options: argparse.Namespace) -> bool:
    return bool(options.format == "json")


def _deliver(options: argparse.Namespace, text: str) -> None:
    text = text.rstrip("\n")
    if options.output is None:
        write(text)
        return
    try:
        Path(options.output).write_text(printable(text) + "\n", encoding="utf-8")
    except OSError as err:
        raise StoreError(f"can not write {options.output}: {err.strerror}") from err


def _signature_only(options: argparse.Namespace, pins: Pins) -> int:
    outcome = verify_signature(load_settings(), options.trusted_root, options.input, pins)
    if isinstance(outcome, SignatureRefused):
        if _json(options):
            write_json({"verified": False, "rule": outcome.rule, "code": outcome.code, "message": outcome.message})
        say(f"refused: {outcome.rule} {outcome.code}: {outcome.message}")
        rule = CODES.get(outcome.code)
        if outcome.hint or rule is not None:
            say(f"hint: {outcome.hint or (rule.cure if rule else '')}")
        return INVALID
    facts = outcome.to_json()
    if _json(options):
        _deliver(options, json.dumps(facts, indent=2, ensure_ascii=False))
    else:
        _deliver(options, "\n".join(f"{key + ':':15}{value}" for key, value in facts.items()))
    if outcome.signature.weightless:
        say(f"remark: {outcome.signature.weightless}: as evidence this signature would have no weight")
    return OK


def _asked(options: argparse.Namespace) -> int:
    """Let the service of `--api` judge; it needs a reference or a pointer, since it can not see local directories."""
    settings = load_settings()
    named = options.input
    pointer = None
    if named.endswith((".yaml", ".yml")) and is_file(named):
        pointer = read_file(named, max_bytes=MAX_POINTER_BYTES, what="a pointer")
    if pointer is None and exists(named):
        raise InputError(
            f"the service can not see the local {named}", hint="leave --api out to judge it here, or name its reference"
        )
    with ApiClient(options.api or settings.api, options.timeout) as api:
        bundle = None if pointer is not None else named
        if _json(options):
            report = api.verify(bundle=bundle, pointer=pointer)
            _deliver(options, json.dumps(report, indent=2, ensure_ascii=False))
            return _exit_of(report)
        _deliver(options, api.verify_markdown(bundle=bundle, pointer=pointer))
        return _exit_of(api.verify(bundle=bundle, pointer=pointer))


def _exit_of(report: JsonObject) -> int:
    match report.get("exit"):
        case 0:
            return OK
        case 3:
            cause = report.get("failureCause")
            canceled = isinstance(cause, dict) and cause.get("class") == "canceled"
            return CANCELED if canceled else NO_VERDICT
        case _:
            return INVALID
