"""`verify`: judge a bundle offline with the local roots, or let a service judge it."""

import argparse
from collections.abc import Mapping

from app.bootstrap.offline import verify_service, verify_signature
from app.cli.exits import INVALID, OK
from app.cli.files import exists, is_file, read_file, write_file
from app.cli.output import block, json_text, one_line, say, say_error, write_block, write_json
from app.cli.tokens import first, token_in
from app.client import ApiClient, ApiUnreachable
from app.config import JUDGING, load_settings
from app.core.bundle import Pins, SignatureRefused
from app.core.errors import DocumentInvalid, InputError
from app.core.input_form import parse_missing
from app.core.markdown import render_markdown
from app.core.pointer import MAX_POINTER_BYTES
from app.core.report_json import read_report
from app.core.rules import CODES
from app.core.verdict_steps import process_exit
from app.ports import Access
from app.services.verify import Examined, VerifyOptions

_JUDGED_HERE = {
    "signature_only": "--signature-only",
    "strict": "--strict",
    "trusted_root": "--trusted-root",
    "expected_issuer": "--expected-issuer",
    "expected_identity_regexp": "--expected-identity-regexp",
    "bundle": "--bundle",
    "registry_plain_http": "--registry-plain-http",
    "registry_insecure_tls": "--registry-insecure-tls",
    "allow_unpinned_tag": "--allow-unpinned-tag",
}
"""Options that change what is judged or how; a service is asked for none of it and shows identities masked."""


def run(options: argparse.Namespace) -> int:
    """The report on stdout or in a file; the cure of what failed on stderr."""
    if options.api is not None:
        return _asked(options)
    if options.token_file is not None:
        raise InputError(
            "--token-file is for the service of --api, which was not given",
            hint="registries are read with the logins of AICR_EVIDENCE_REGISTRY_CREDENTIALS",
        )
    pins = Pins(options.expected_issuer, options.expected_identity_regexp)
    if options.signature_only:
        return _signature_only(options, pins)
    named = {"trusted_root": ",".join(options.trusted_root)} if options.trusted_root else {}
    settings = load_settings({"pull_timeout_seconds": options.timeout, **named}, uses=JUDGING)
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
    lost = _deliver(options, report.to_json() if _json(options) else render_markdown(report))
    _explain(examined)
    return process_exit(report) or lost


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


def _deliver(options: argparse.Namespace, made: Mapping[str, object] | str) -> int:
    """Print what was made, or write it to the named file; the exit of a good verdict after that.

    It is not 0 when there is no such file to read afterwards; any other verdict is the exit by itself.
    """
    if options.output is None:
        if isinstance(made, str):
            write_block(made.rstrip("\n"))
        else:
            write_json(made)
        return OK
    text = block(made) if isinstance(made, str) else json_text(made)
    try:
        write_file(options.output, text.rstrip("\n") + "\n")
    except InputError as err:
        say_error(err)
        return INVALID
    return OK


def _signature_only(options: argparse.Namespace, pins: Pins) -> int:
    outcome = verify_signature(load_settings(uses=()), options.trusted_root, options.input, pins)
    if isinstance(outcome, SignatureRefused):
        refusal = {"verified": False, "rule": outcome.rule, "code": outcome.code, "message": outcome.message}
        _deliver_facts(options, refusal)
        say(f"refused: {outcome.rule} {outcome.code}: {outcome.message}")
        rule = CODES.get(outcome.code)
        if outcome.hint or rule is not None:
            say(f"hint: {outcome.hint or (rule.cure if rule else '')}")
        return INVALID
    lost = _deliver_facts(options, outcome.to_json())
    if outcome.signature.weightless:
        say(f"remark: {outcome.signature.weightless}: as evidence this signature would have no weight")
    return lost


def _deliver_facts(options: argparse.Namespace, facts: Mapping[str, object]) -> int:
    """As JSON, or a line for each."""
    lines = (one_line(f"{key + ':':15}{value}") for key, value in facts.items())
    return _deliver(options, facts if _json(options) else "\n".join(lines))


def _asked(options: argparse.Namespace) -> int:
    """Let the service of `--api` judge, once; the report for people is drawn here from what it answered.

    It needs a reference or a pointer, since a service can not see local directories. An option that it could not
    keep is refused and not dropped: whoever pins a signer asks for that signer (trust 2).
    """
    if kept := [flag for name, flag in _JUDGED_HERE.items() if getattr(options, name) not in (None, False, [])]:
        raise InputError(
            f"--api lets the service judge by its own settings and can not be given with {', '.join(kept)}",
            hint="leave --api out to judge it here with these options, or leave them out",
        )
    named = options.input
    pointer = None
    if named.endswith((".yaml", ".yml")) and is_file(named):
        pointer = read_file(named, max_bytes=MAX_POINTER_BYTES, what="a pointer")
    if pointer is None and exists(named):
        raise InputError(
            f"the service can not see the local {named}", hint="leave --api out to judge it here, or name its reference"
        )
    if pointer is None:
        parse_missing(named)
    token = options.token_file
    token = token_in(token) if token is not None else first(load_settings(uses=()).api_token)
    with ApiClient(options.api, options.timeout, token=token) as api:
        body = api.verify(bundle=None if pointer is not None else named, pointer=pointer)
    try:
        report = read_report(body)
    except DocumentInvalid as err:
        raise ApiUnreachable(
            f"the address answered with no report: {err.message}", hint="check --api: it may not be this service"
        ) from err
    lost = _deliver(options, body if _json(options) else render_markdown(report))
    return process_exit(report) or lost
