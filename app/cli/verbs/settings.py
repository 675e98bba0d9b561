"""`settings`, `trust show`: what is in force."""

import argparse
import os
from dataclasses import asdict

from app.cli.exits import OK
from app.cli.output import say, table, write, write_json
from app.config import describe, load_settings, unknown_variables


def run(options: argparse.Namespace) -> int:
    """Print every setting; a variable that names no setting is pointed out."""
    lines = describe(load_settings(), os.environ)
    if options.format == "json":
        write_json([asdict(line) for line in lines])
    else:
        write(
            table(
                ("SETTING", "VALUE", "SOURCE", "DEFAULT", "MEANING"),
                [(line.name, line.value, line.source, line.default, line.meaning) for line in lines],
            )
        )
    for name in unknown_variables(os.environ):
        say(f"warning: {name} is set and names no setting")
    return OK
