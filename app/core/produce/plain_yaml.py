"""Plain data as canonical YAML text: keys in byte order, quotes only where Go would re-type a text.

The bytes are laid out by `app.core.canonical`; here is only which style a value asks for.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Final

from app.core.canonical import Mapping as MappingNode
from app.core.canonical import Node, Scalar, emit_document
from app.core.canonical import Sequence as SequenceNode

_TYPED_WORDS: Final = frozenset(
    {
        *("~", "null", "Null", "NULL", "true", "True", "TRUE", "false", "False", "FALSE", "<<"),
        *(sign + word for sign in ("", "+", "-") for word in (".inf", ".Inf", ".INF")),
        *(".nan", ".NaN", ".NAN"),
        *("y", "Y", "yes", "Yes", "YES", "on", "On", "ON", "n", "N", "no", "No", "NO", "off", "Off", "OFF"),
    }
)
_TYPED: Final = re.compile(
    r"[-+]?(?:0[xX][0-9a-fA-F]+|0[bB][01]+|0[oO][0-7]+|(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?)"
)
_BASE_60: Final = re.compile(r"[-+]?[0-9][0-9_]*(?::[0-5]?[0-9])+(?:\.[0-9_]*)?")
_TIME: Final = re.compile(
    r"[0-9]{4}-(?:0?[1-9]|1[0-2])-(?:0?[1-9]|[12][0-9]|3[01])(?:[Tt ][0-9]{1,2}:[0-9]{1,2}:[0-9]{1,2}.*)?"
)


def plain_yaml(value: object) -> bytes:
    """Encode nested mappings, sequences, text, integers, booleans and None; raises `TypeError` for anything else."""
    return emit_document(_node(value)).encode()


def reads_as_text(text: str) -> bool:
    """Whether unquoted `text` is text for Go's resolver and for the older readers that its encoder minds."""
    return not (
        not text
        or text in _TYPED_WORDS
        or (text[0] != "_" and _TYPED.fullmatch(text.replace("_", "")))
        or _BASE_60.fullmatch(text)
        or _TIME.fullmatch(text)
    )


def _node(value: object) -> Node:
    if isinstance(value, Mapping):
        return MappingNode([(_node(str(key)), _node(item)) for key, item in value.items()])
    if isinstance(value, str):
        if "\n" in value:
            return Scalar(value, "|", "", "", 0)
        return Scalar(value, "" if reads_as_text(value) else '"', "", "", 0)
    if value is None or isinstance(value, bool):
        return Scalar("null" if value is None else str(value).lower(), "", "", "", 0)
    if isinstance(value, int):
        return Scalar(str(value), "", "", "", 0)
    if isinstance(value, Sequence):
        return SequenceNode([_node(item) for item in value], flow=False, tag="", anchor="", line=0)
    raise TypeError(f"expected plain data, got {type(value).__name__}")
