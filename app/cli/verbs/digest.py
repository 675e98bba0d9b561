"""`digest`: the subject digest of a resolved recipe. Imports nothing heavy: it runs in scripts, often."""

import argparse
import sys

from app.cli.exits import OK
from app.cli.files import read_file
from app.cli.output import say, write
from app.core.canonical import Mapping, ParsedRecipe
from app.core.errors import InputError, RecipeInvalid
from app.core.recipe import require_resolved

MAX_RECIPE_BYTES = 1 << 20


def run(options: argparse.Namespace) -> int:
    """Print the bare hex digest of the file's canonical form; an overlay is refused, since it has none."""
    recipe = ParsedRecipe.parse(_read(options.recipe))
    require_resolved(recipe)
    if not isinstance(recipe.root, Mapping):
        say("warning: this is no mapping, so no evidence can carry its digest; a resolved recipe is one")
    write(recipe.digest(f"https://aicr.run/recipe-evidence/{options.predicate_type}"))
    return OK


def _read(name: str) -> bytes:
    if name != "-":
        return read_file(name, max_bytes=MAX_RECIPE_BYTES, what="a resolved recipe")
    try:
        data = sys.stdin.buffer.read(MAX_RECIPE_BYTES + 1)
    except OSError as err:
        raise InputError(f"expected a resolved recipe on stdin, which can not be read: {err.strerror}") from err
    if len(data) > MAX_RECIPE_BYTES:
        raise RecipeInvalid(f"stdin has more than {MAX_RECIPE_BYTES} bytes; a resolved recipe is at most that large")
    return data
