"""`settings`, `trust show`: what is in force."""

import argparse
import os
from dataclasses import asdict

from app.bootstrap.offline import roots
from app.cli.exits import INVALID, OK
from app.cli.output import say, table, write, write_block, write_json
from app.config import describe, load_settings, survey, unknown_variables


def run(options: argparse.Namespace) -> int:
    """Print every setting; bad ones are marked, and a variable that names no setting is pointed out."""
    lines = describe(*survey(), os.environ)
    if options.format == "json":
        write_json([asdict(line) for line in lines])
    else:
        write_block(
            table(
                ("SETTING", "VALUE", "SOURCE", "DEFAULT", "MEANING"),
                [(line.name, line.value, line.source, line.default, line.meaning) for line in lines],
            )
        )
    for name in unknown_variables(os.environ):
        say(f"warning: {name} is set and names no setting")
    bad = [line for line in lines if line.problem is not None]
    for line in bad:
        say(f"error: {line.name}: {line.problem}")
    return INVALID if bad else OK


def trust(options: argparse.Namespace) -> int:
    """Print the roots in force, the logs they name and until when they hold."""
    found = roots(load_settings(uses=()), options.trusted_root).describe()
    if options.format == "json":
        write_json(found)
        return OK
    for root in found:
        for key, value in root.items():
            if isinstance(value, list):
                for item in value:
                    write(f"  {key}: {item if isinstance(item, str) else _flat(item)}")
            elif value is not None:
                write(f"{key}: {value}" if key == "name" else f"  {key}: {value}")
    return OK


def _flat(value: object) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{key} {_flat(inner)}" for key, inner in value.items() if inner not in (None, "", []))
    return str(value)
