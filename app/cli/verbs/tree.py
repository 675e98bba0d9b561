"""`check-tree` and `index`: a committed pointer tree."""

import argparse

from app.bootstrap.offline import tree_service
from app.cli.exits import DIFFERENCES, OK
from app.cli.files import exists
from app.cli.output import say, write, write_block, write_json
from app.config import Settings, load_settings, variable
from app.core.errors import InputError, NotFoundError


def check(options: argparse.Namespace) -> int:
    """One line for each violation on stdout, warnings on stderr; exit 1 when there is a violation."""
    settings = load_settings(uses=())
    root = options.directory or _setting(settings)
    allowlist = _allowlist(options, root, settings)
    found = tree_service(settings).check(root, allowlist, allow_pending=options.allow_pending)
    if options.format == "json":
        write_json(
            {
                "problems": [{"path": line.path, "message": line.message} for line in found.problems],
                "warnings": [{"path": line.path, "message": line.message} for line in found.warnings],
                "pointers": len(found.pointers),
            }
        )
    else:
        for line in found.problems:
            write(str(line))
    for line in found.warnings:
        say(f"warning: {line}")
    say(f"{len(found.pointers)} pointers keep the contract, {len(found.problems)} violations")
    return DIFFERENCES if found.problems else OK


def index(options: argparse.Namespace) -> int:
    """Print or write the index, or compare it with the written one."""
    if options.format == "json" and options.out and not options.check:
        raise InputError("--format json is for an index that is printed", hint="leave --out out, or --format")
    settings = load_settings(uses=())
    root = options.directory or _setting(settings)
    allowlist = _allowlist(options, root, settings)
    service = tree_service(settings)
    if options.check:
        if service.index_differs(root, options.out, allowlist):
            say("the written index is not the one that the tree gives; `aicr evidence index DIR --out FILE` writes it")
            return DIFFERENCES
        return OK
    made = service.write_index(root, options.out, allowlist) if options.out else service.index(root, allowlist)
    for line in made.problems:
        say(f"left out: {line}")
    if options.format == "json":
        write_json(made.document)
    elif not options.out:
        # What strangers wrote is in double quotes there, where the escapes of output are YAML's own.
        write_block(made.text.decode().rstrip("\n"))
    return OK


def _setting(settings: Settings) -> str:
    """The tree that the setting names; raises `NotFoundError` when it names none."""
    if not exists(settings.pointers):
        raise NotFoundError(
            f"{variable('pointers')}: expected a directory, found none at {settings.pointers!r}",
            hint="name the tree as DIR, or set the variable to it",
        )
    return settings.pointers


def _allowlist(options: argparse.Namespace, root: str, settings: Settings) -> str | None:
    """The named file; None for the one at the root; the service's own when the root has none."""
    if options.allowlist:
        return str(options.allowlist)
    return None if exists(f"{root}/allowlist.yaml") else settings.allowlist
