"""Step 4c: the recipe in the bundle is the one that predicate and pointer speak of (evidence-format 8.5).

The bytes are those that the inventory covers, never a second read. A recipe that gives no name is compared in
everything but its name; that it can not be evidence is rule E8.
"""

from dataclasses import dataclass

from app.core.documents import Predicate, Profile
from app.core.errors import RecipeInvalid
from app.core.pointer import Pointer
from app.core.policy import recipe_identity
from app.core.recipe import Recipe
from app.core.report import Fault
from app.core.rules import RULES


@dataclass(frozen=True, slots=True)
class Identity:
    """The decoded recipe, None when it does not decode, and the first check that fails."""

    recipe: Recipe | None = None
    fault: Fault | None = None


def check_identity(
    text: bytes | None, predicate: Predicate, predicate_type: str, *, pointer: Pointer | None = None
) -> Identity:
    """Compare name, digest and profile, in the order of 8.5; the first difference is the fault."""
    if text is None:
        return _fault("the recipe was not captured: manifest.json lists no recipe.yaml")
    try:
        recipe = Recipe.parse(text)
        digest = recipe.parsed.digest(predicate_type)
    except RecipeInvalid as err:
        return _fault(f"recipe.yaml can not be read: {err.message}")
    message = (
        _name(recipe, predicate)
        or _digest(digest, predicate)
        or _profile(recipe, predicate.profile)
        or (_pointer(recipe, pointer) if pointer is not None else "")
    )
    return _fault(message, recipe) if message else Identity(recipe)


def _name(recipe: Recipe, predicate: Predicate) -> str:
    if recipe.name and predicate.recipe.name != recipe.name:
        return (
            f"predicate.recipe.name {predicate.recipe.name[:200]!r} is not the name derived from the bundle recipe, "
            f"{recipe.name!r}"
        )
    return ""


def _digest(digest: str, predicate: Predicate) -> str:
    if predicate.recipe.digest != digest:
        return f"predicate.recipe.digest {predicate.recipe.digest[:80]!r} is not the canonical digest {digest}"
    return ""


def _profile(recipe: Recipe, block: Profile | None) -> str:
    profile = recipe.selected_profile
    if profile is None:
        return "the recipe is unprofiled, the predicate carries a profile block" if block else ""
    if block is None:
        return f"the recipe selects {recipe.selection!r}, the predicate carries no profile block"
    if block.selection != recipe.selection:
        return f"the profile block's selection {block.selection[:80]!r} is not the recipe's, {recipe.selection!r}"
    if block.advertiser != profile.advertiser:
        return f"the profile block's advertiser {block.advertiser[:80]!r} is not the recipe's, {profile.advertiser!r}"
    identity = recipe_identity(recipe)
    if block.policy_descriptor_identity != identity:
        return (
            "the evidence is historical-only: its policy-descriptor identity "
            f"{block.policy_descriptor_identity[:80]!r} is not the recipe's, {identity}"
        )
    return ""


def _pointer(recipe: Recipe, pointer: Pointer) -> str:
    if recipe.name and pointer.recipe != recipe.name:
        return (
            f"pointer.recipe {pointer.recipe[:200]!r} is not the name derived from the bundle recipe, {recipe.name!r}"
        )
    if pointer.profile != recipe.selection:
        return f"pointer.profile {pointer.profile[:80]!r} is not the recipe's selection, {recipe.selection!r}"
    return ""


def _fault(message: str, recipe: Recipe | None = None) -> Identity:
    return Identity(recipe, Fault(RULES["IDENTITY"].code, message))
