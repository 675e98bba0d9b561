"""`digest`: the subject digest of a resolved recipe. Imports nothing heavy: it runs in scripts, often."""

import argparse
import sys
from pathlib import Path

from app.cli.exits import OK
from app.core.canonical import subject_digest
from app.core.errors import NotFoundError, RecipeInvalid

MAX_RECIPE_BYTES = 1 << 20


def run(options: argparse.Namespace) -> int:
    """Print the bare hex digest of the file's canonical form."""
    text = _read(options.recipe)
    sys.stdout.write(
        subject_digest(text, predicate_type=f"https://aicr.run/recipe-evidence/{options.predicate_type}") + "\n"
    )
    return OK


def _read(name: str) -> bytes:
    try:
        if name == "-":
            data = sys.stdin.buffer.read(MAX_RECIPE_BYTES + 1)
        else:
            with Path(name).open("rb") as file:
                data = file.read(MAX_RECIPE_BYTES + 1)
    except OSError as err:
        raise NotFoundError(f"{name} can not be read: {err.strerror}") from err
    if len(data) > MAX_RECIPE_BYTES:
        raise RecipeInvalid(f"{name} is larger than {MAX_RECIPE_BYTES} bytes; a resolved recipe is at most that large")
    return data
