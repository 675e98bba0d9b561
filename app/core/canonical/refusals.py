"""Every reason for which a recipe text gets no digest; docs/digest.md lists the same names."""

from enum import Enum
from typing import NoReturn

from app.core.errors import RecipeInvalid


class Refusal(Enum):
    """Why a text is not digested; the value is the sentence that the error starts with.

    A needless refusal costs its author a rewrite; a digest that Go would not compute costs trust. So whatever
    Go's parser reads differently from libyaml, or not at all, is refused here.
    """

    EMPTY = "the recipe is empty"
    TOO_LARGE = "the recipe is too large"
    TOO_DEEP = "the recipe is nested too deeply"
    TOO_MANY_NODES = "the recipe has too many nodes"
    NOT_UTF8 = "the recipe is not UTF-8"
    BYTE_ORDER_MARK = "the recipe has a byte-order mark beyond its first character"
    NOT_YAML = "the recipe is not valid YAML"
    UNKNOWN_ANCHOR = "the recipe refers to an anchor that is not defined before it"
    ESCAPED_SLASH = "the recipe escapes a slash in double quotes"
    FLOW_QUESTION_MARK = "the recipe has an unquoted question mark inside a flow collection"
    FLOW_EMPTY_KEY = "the recipe has a bare pair without a key inside a flow sequence"
    FLOW_TAG = "the recipe has a tag that touches a flow indicator"
    FLOW_KEY = "the recipe has a key that is a flow collection and begins with a question mark"
    TAG_ESCAPE = "the recipe has a tag with an escape that stands for no character"
    DIRECTIVE = "the recipe has a directive that Go's parser does not take"
    UNSTABLE_ORDER = "the recipe repeats a key in a mapping of more than 12 pairs"
    AMBIGUOUS_METADATA = "the recipe's metadata.version can not be singled out"


def refuse(refusal: Refusal, detail: str, *, hint: str | None = None) -> NoReturn:
    """Raise `RecipeInvalid` with the refusal's name in `details["refusal"]`."""
    raise RecipeInvalid(f"{refusal.value}: {detail}", hint=hint, details={"refusal": refusal.name})
