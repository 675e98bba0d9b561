"""`catalogue push`: tell the service today's resolved recipes."""

import argparse
from pathlib import Path

from app.cli.exits import OK
from app.cli.files import read_file
from app.cli.output import progress, say, write, write_json
from app.cli.tokens import first, token_in
from app.client import ApiClient, JsonObject
from app.config import load_settings
from app.core.canonical import ParsedRecipe
from app.core.errors import ForbiddenError, InputError, NotFoundError, RecipeInvalid
from app.core.recipe import Recipe

_MAX_RECIPE_BYTES = 1 << 20


def push(options: argparse.Namespace) -> int:
    """Send every `*.yaml` below DIR in one request; nothing is sent when one of them is no resolved recipe."""
    settings = load_settings(uses=())
    token = token_in(options.token_file) if options.token_file is not None else first(settings.catalogue_token)
    if token is None:
        raise ForbiddenError(
            "no catalogue token is set", hint="set AICR_EVIDENCE_CATALOGUE_TOKEN, or give --token-file"
        )
    directory = Path(options.directory)
    if not directory.is_dir():
        raise NotFoundError(f"{options.directory} is no directory")
    files = sorted([*directory.rglob("*.yaml"), *directory.rglob("*.yml")])
    if not files:
        raise InputError(f"{options.directory} holds no *.yaml file", hint="write resolved recipes there first")
    recipes = [_recipe(path) for path in progress(files, "reading recipes")]
    shared = {"commit": options.commit, **({"ref": options.ref} if options.ref else {})}
    with ApiClient(options.api or settings.api, options.timeout, token=token) as api:
        body = api.put_catalogue(recipes, replace=options.replace, **shared)
    if options.format == "json":
        write_json(body)
        return OK
    changed, retired = _names(body, "changed"), _names(body, "retired")
    for name in changed:
        write(name)
    for name in retired:
        say(f"retired: {name} (no recipe of this push)")
    say(f"{len(recipes)} recipes sent, {len(changed)} changed, {len(retired)} retired")
    return OK


def _names(body: JsonObject, field: str) -> list[str]:
    """The recipes that the service names in a list of its answer."""
    found = body.get(field)
    return [str(name) for name in found] if isinstance(found, list) else []


def _recipe(path: Path) -> JsonObject:
    text = read_file(str(path), max_bytes=_MAX_RECIPE_BYTES, what="a resolved recipe")
    try:
        name = Recipe.decode(ParsedRecipe.parse(text)).name
    except RecipeInvalid as err:
        raise RecipeInvalid(f"{path.name}: {err.message}", hint=err.hint) from err
    if not name:
        raise RecipeInvalid(f"{path.name} gives no recipe name", hint="a resolved recipe has criteria")
    return {"name": name, "recipe": text.decode()}
