"""`sandbox` and `demo`: a private Sigstore and registry, and the main job over them."""

import argparse
import re
import shlex
import shutil
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from app.cli.exits import DIFFERENCES, OK
from app.cli.output import say, write, write_block
from app.cli.verbs.ask import overview
from app.core.errors import InputError, StoreError
from app.sandbox.demo.directory import claimed
from app.sandbox.demo.run import Demo, differences, running, speaking_ref, stale_lines
from app.sandbox.demo.samples import SAMPLES
from app.sandbox.identities import SAMPLE_SIGNERS
from app.sandbox.registry import SandboxRegistry
from app.sandbox.sigstore.server import SigstoreServer

_DIGEST = re.compile(r"(sha256:[0-9a-f]{12})[0-9a-f]{52}")


def run(options: argparse.Namespace) -> int:
    """Run Sigstore and registry until interrupted; print the settings that a service needs to use them."""
    _end_in_order()
    directory = Path(options.directory)
    with ExitStack() as stack:
        with _listening(options.registry_port):
            registry = SandboxRegistry(referrers_api=not options.no_referrers_api, port=options.registry_port)
        stack.enter_context(registry)
        with _listening(options.sigstore_port):
            sigstore = SigstoreServer(port=options.sigstore_port)
        stack.enter_context(sigstore)
        try:
            sigstore.write(directory)
        except OSError as err:
            raise InputError(f"{directory} can not be written: {err.strerror}") from err
        say("sandbox: trusted by nobody but who loads its root; Ctrl-C ends it. A service uses it with")
        for name, value in (
            ("SANDBOX", "true"),
            ("TRUSTED_ROOT", str(directory / "trusted_root.json")),
            ("TRUSTED_REGISTRIES", f"{registry.host}/aicr"),
            ("PRIVATE_REGISTRIES", registry.host),
            ("PLAIN_HTTP_REGISTRIES", registry.host),
        ):
            write(f"export AICR_EVIDENCE_{name}={value}")
        _until_interrupted(f"sample signers ({sigstore.url}/actions/NAME/token): {', '.join(SAMPLE_SIGNERS)}")
    return OK


@contextmanager
def _listening(port: int) -> Iterator[None]:
    """What binds a port within; raises `StoreError` when it is taken, as `serve` does."""
    try:
        yield
    except OSError as err:
        raise StoreError(
            f"can not listen on 127.0.0.1:{port}: {err.strerror}", hint="name a free port, or 0 for any"
        ) from err


def demo(options: argparse.Namespace) -> int:
    """The main job; with --once exit 0 only if every verdict is the expected one."""
    _end_in_order()
    unknown = set(options.leave_out) - {sample.name for sample in SAMPLES}
    if unknown:
        raise InputError(f"no sample is named {min(unknown)!r}", hint=", ".join(s.name for s in SAMPLES))
    with (
        claimed(Path(options.directory)) as directory,
        running(directory=directory, port=options.port, leave_out=options.leave_out, say=say) as shown,
    ):
        _print(shown, ending=options.once)
        wrong = differences(shown.outcome)
        for line in wrong:
            say(f"not as expected: {line}")
        if options.once:
            return DIFFERENCES if wrong else OK
        _until_interrupted("Ctrl-C ends it.")
    return OK


def _print(shown: Demo, *, ending: bool) -> None:
    outcome = shown.outcome
    write("")
    write_block(overview(outcome.lines))
    write("")
    for name, refusal in outcome.refused.items():
        write(f"refused   {name}: {refusal.step}: {refusal.code}: {_short(refusal.cause.get('detail', ''))}")
    for recipe, detail in outcome.details.items():
        for line in dict.fromkeys(stale_lines(detail)):
            write(f"stale     {recipe}: {line}")
        if ref := speaking_ref(detail):
            write(
                f"branch    {recipe}: {len(detail['sources'])} refs of one workflow are one signer; {ref} speaks for it"
            )
        for remark in detail["remarks"]:
            write(f"remark    {recipe}: {remark['code']}: {remark['message']}")
    if outcome.edited:
        write(
            f"allowlist {outcome.edited['recipe']}: {outcome.edited['state']} {outcome.edit_seconds:.2f} s after one "
            "signer was added to the file; nothing was fetched"
        )
    if outcome.answer:
        write(f"answer    {outcome.answer['sentence']}")
    write("")
    if ending:
        write(
            "look at   `make demo` does the same and stays up: pages, API, registry and `aicr evidence verify` to try"
        )
        return
    write(f"look at   {shown.url}/ui/recipes   the recipes as they stand now, as a page; {shown.url}/docs the API")
    command = _command()
    write(f"try       {command} why h100-gke-cos-training --api {shown.url}")
    write(
        f"          AICR_EVIDENCE_PRIVATE_REGISTRIES={shown.registry} {command} verify {shown.example} \\",
        f"            --trusted-root {shlex.quote(str(shown.directory / 'trusted_root.json'))} --registry-plain-http",
    )
    write(f"or        export AICR_EVIDENCE_API={shown.url}   and every other verb asks this service too")


def _command() -> str:
    """How this very installation is called from here: by name when PATH leads to it, else by its path."""
    own, found = Path(sys.executable).with_name("aicr"), shutil.which("aicr")
    if not own.is_file():
        return f"{shlex.quote(sys.executable)} -m app"
    if found is not None and own.samefile(found):
        return "aicr evidence"
    shown = own.relative_to(Path.cwd()) if own.is_relative_to(Path.cwd()) else own
    return f"{shlex.quote(str(shown))} evidence"


def _short(text: object) -> str:
    """Digests with their first twelve characters: enough to tell two apart on one line."""
    return _DIGEST.sub(r"\1…", str(text))


def _until_interrupted(ready: str) -> None:
    """Say that everything is up and wait; from the moment that it is said, Ctrl-C is the ordinary end."""
    try:
        sys.stdout.flush()  # what a service needs, or the table, may be read from a pipe while this runs
        say(ready)
        threading.Event().wait()
    except KeyboardInterrupt:
        say("ending")


def _end_in_order() -> None:
    """SIGTERM ends like Ctrl-C: what was started is stopped, not left behind."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
