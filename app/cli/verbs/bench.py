"""`bench`: the figures of service 7 on this machine, each beside its bar."""

import argparse
import json
import sys
from pathlib import Path

from tqdm import tqdm

from app.bench.plan import Plan
from app.bench.run import chosen
from app.bench.run import run as run_bench
from app.bench.table import render
from app.cli.exits import OK
from app.cli.files import write_file
from app.cli.output import write_block, write_json
from app.core.errors import InputError


def run(options: argparse.Namespace) -> int:
    """Measure; a missed bar is a figure, not a failure, so the exit says only whether the bench ran."""
    names = chosen(options.only)
    output = None if options.output is None else _writable(options.output)
    with tqdm(total=len(names), desc="bench", leave=False, disable=not sys.stderr.isatty()) as bar:
        done = 0

        def begins(name: str) -> None:
            nonlocal done
            bar.update(min(done, 1))
            bar.set_postfix_str(name)
            done += 1

        report = run_bench(Plan(options.size, tick=bar.refresh), names, begins=begins)
        bar.update(1)
    if output is not None:
        write_file(output, json.dumps(report.to_json(), indent=2) + "\n")
    if options.format == "json":
        write_json(report.to_json())
    else:
        write_block(render(report).rstrip("\n"))
    return OK


def _writable(name: str) -> str:
    """The file, known to be writable before minutes are spent."""
    try:
        Path(name).touch()
    except OSError as err:
        raise InputError(f"{name} can not be written: {err.strerror}") from err
    return name
