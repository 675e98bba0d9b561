"""The node tree of a recipe: what Go's `yaml.Node` keeps of a document, without comments.

The classes are not frozen: a recipe has thousands of nodes, and a frozen dataclass takes three times as long
to make. Nothing changes a node once `app.core.canonical.parse` has returned it.
"""

from dataclasses import dataclass, field
from typing import Literal

Style = Literal["", "'", '"', "|", ">"]
"""Scalar styles as libyaml names them; the empty one is plain."""


@dataclass(slots=True, eq=False)
class Scalar:
    """One scalar; `tag` is the explicit tag in long form, empty when there is none."""

    value: str
    style: Style
    tag: str
    anchor: str
    line: int  # from 1


@dataclass(slots=True, eq=False)
class Sequence:
    """A sequence in the order of the text."""

    items: "list[Node]"
    flow: bool
    tag: str
    anchor: str
    line: int


@dataclass(slots=True, eq=False)
class Mapping:
    """A mapping in the order of the text; keys can repeat."""

    pairs: "list[tuple[Node, Node]]" = field(default_factory=list)
    flow: bool = False
    tag: str = ""
    anchor: str = ""
    line: int = 0


@dataclass(slots=True, eq=False)
class Alias:
    """A reference to `target`, which can be a collection that contains this very alias."""

    name: str
    target: "Scalar | Sequence | Mapping"
    line: int


Node = Scalar | Sequence | Mapping | Alias


def key_text(node: Node) -> str:
    """What a key sorts by: a scalar's decoded text, an alias's name, nothing for a collection."""
    if isinstance(node, Scalar):
        return node.value
    return node.name if isinstance(node, Alias) else ""
