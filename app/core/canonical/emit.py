"""Node tree to canonical text: sorted, without comments, in the bytes of Go's yaml.v3 v3.0.1.

The rules are evidence-format 2.4. What decides the next byte is only whether the current line is fresh (nothing
on it yet) and what stands before a node (`_At`).
"""

from dataclasses import dataclass
from typing import Final

from app.core.canonical.nodes import Alias, Mapping, Node, Scalar, Sequence, key_text
from app.core.canonical.refusals import Refusal, refuse
from app.core.canonical.scalars import (
    BEST_INDENT,
    BREAKS,
    double_quoted,
    folded,
    has_break,
    is_clean,
    is_word,
    literal,
    select_style,
    single_quoted,
)

STABLE_SORT_PAIRS: Final = 12
"""Go sorts up to this many elements by insertion, which is stable; beyond it equal keys change places."""

MAX_SIMPLE_KEY_BYTES: Final = 128
_SURELY_SIMPLE: Final = MAX_SIMPLE_KEY_BYTES // 4
_CORE_TAGS: Final = "tag:yaml.org,2002:"
_MERGE_TAG: Final = _CORE_TAGS + "merge"
_TAG_CHARACTERS: Final = frozenset(
    b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_-;/?:@&=+$,.~*'()[]"
)


@dataclass(frozen=True, slots=True)
class _At:
    """What stands before a node on its line."""

    space: str  # what separates an inline node from it
    compact: bool = False  # a block collection starts on this line
    dash: bool = False  # its column is two more, not the next multiple of four


_ROOT: Final = _At("", compact=True)  # nothing at all
_KEY: Final = _At("")  # the indentation, before a simple key
_DASH: Final = _At(" ", compact=True, dash=True)
_MARK: Final = _At(" ", compact=True)  # `?`, or the `:` of an explicit key
_COLON: Final = _At(" ")  # the `:` of a simple key
_OPENED: Final = _At("")  # `[` or `{`
_FLOW: Final = _At(" ")  # `,`, `:` or `?` inside a flow collection


def sorted_pairs(mapping: Mapping) -> list[tuple[Node, Node]]:
    """The pairs by the UTF-8 order of their keys' texts, which is the order of code points.

    Raises `RecipeInvalid` where Go's order of equal keys is not defined.
    """
    pairs = sorted(mapping.pairs, key=_text_of_pair)
    if len(pairs) > STABLE_SORT_PAIRS:
        previous: str | None = None
        for key, _ in pairs:
            text = key_text(key)
            if text == previous:
                refuse(Refusal.UNSTABLE_ORDER, f"{text[:80]!r} at line {key.line}", hint="remove the repeated key")
            previous = text
    return pairs


def _text_of_pair(pair: tuple[Node, Node]) -> str:
    return key_text(pair[0])


def emit_document(root: Node | None) -> str:
    """The canonical text of a document; a stream without a document is `null`."""
    return "null\n" if root is None else _Writer().document(root)


class _Writer:
    """Writes one document.

    `indent` is everywhere the column of the collection that holds the node, -1 for the root.
    """

    def __init__(self) -> None:
        self._out: list[str] = []
        self._fresh = True  # nothing stands on the current line
        self._flow_level = 0

    def document(self, root: Node) -> str:
        """The root and one final line break."""
        self._node(root, _ROOT, -1)
        if not self._fresh:
            self._out.append("\n")
        return "".join(self._out)

    def _node(self, node: Node, at: _At, indent: int, *, simple_key: bool = False) -> None:
        if isinstance(node, Scalar):
            self._scalar(node, at, indent, simple_key=simple_key)
        elif isinstance(node, Alias):
            self._out.append(f"{at.space}*{node.name}")
            self._fresh = False
        else:
            self._collection(node, at, indent)

    def _scalar(self, node: Scalar, at: _At, indent: int, *, simple_key: bool) -> None:
        value = node.value
        style = select_style(value, node.style, in_flow=self._flow_level > 0, simple_key=simple_key)
        space = at.space
        self._fresh = False
        tag = _tag_of(node)
        if node.anchor or tag:
            space = self._properties(node.anchor, tag, space)
        if not style:
            self._out.append(space + value if value else "")
        elif style == '"':
            self._out.append(space + double_quoted(value))
        elif style == "'":
            self._out.append(space + single_quoted(value, _inner(indent, at, flow=True)))
        else:
            write = literal if style == "|" else folded
            self._out.append(space + write(value, _inner(indent, at, flow=True)))
            self._fresh = value[-1] in BREAKS

    def _properties(self, anchor: str, tag: str, space: str) -> str:
        """Write an anchor and a tag; returns the space that is due before what follows."""
        if anchor:
            self._out.append(f"{space}&{anchor}")
            space = " "
        if tag:
            self._out.append(space + _tag_text(tag))
            space = " "
        return space

    def _collection(self, node: Sequence | Mapping, at: _At, indent: int) -> None:
        space, compact = at.space, at.compact
        self._fresh = False
        if node.anchor or node.tag:
            space = self._properties(node.anchor, node.tag, space)
            compact = False
        content = node.items if isinstance(node, Sequence) else node.pairs
        if self._flow_level or node.flow or not content:
            self._flow_collection(node, space, _inner(indent, at, flow=True))
            return
        column = _inner(indent, at, flow=False)
        first = "\n" + " " * column
        if compact:
            first = "" if indent < 0 else " " * (column - indent - 1)
        if isinstance(node, Sequence):
            self._block_sequence(node, first, column)
        else:
            self._block_mapping(node, first, column)

    def _block_sequence(self, node: Sequence, first: str, column: int) -> None:
        out = self._out
        pad = " " * column
        lead, next_line = first, "\n" + pad
        for item in node.items:
            text = _inline(item)
            if text is not None:
                out.append(f"{lead}- {text}")
                self._fresh = False
                lead = next_line
                continue
            out.append(lead + "-")
            self._node(item, _DASH, column)
            lead = pad if self._fresh else next_line

    def _block_mapping(self, node: Mapping, first: str, column: int) -> None:
        out = self._out
        pad = " " * column
        lead, next_line = first, "\n" + pad
        for key, value in sorted_pairs(node):
            text = _inline(key)
            if text is not None and len(text) <= _SURELY_SIMPLE:
                head = f"{lead}{text}:"
            elif _is_simple_key(key):
                out.append(lead)
                self._node(key, _KEY, column, simple_key=True)
                head = ":"
            else:
                out.append(lead + "?")
                self._node(key, _MARK, column)
                out.append((pad if self._fresh else next_line) + ":")
                self._node(value, _MARK, column)
                lead = pad if self._fresh else next_line
                continue
            text = _inline(value)
            if text is not None:
                out.append(f"{head} {text}")
                self._fresh = False
                lead = next_line
                continue
            out.append(head)
            self._node(value, _COLON, column)
            lead = pad if self._fresh else next_line

    def _flow_collection(self, node: Sequence | Mapping, space: str, column: int) -> None:
        self._flow_level += 1
        at = _OPENED
        if isinstance(node, Sequence):
            self._out.append(space + "[")
            for item in node.items:
                if at is _FLOW:
                    self._out.append(",")
                self._node(item, at, column)
                at = _FLOW
            self._out.append("]")
        else:
            self._out.append(space + "{")
            for key, value in sorted_pairs(node):
                if at is _FLOW:
                    self._out.append(",")
                if _is_simple_key(key):
                    self._node(key, at, column, simple_key=True)
                    self._out.append(":")
                else:
                    self._out.append("?" if at is _OPENED else " ?")
                    self._node(key, _FLOW, column)
                    self._out.append(" :")
                self._node(value, _FLOW, column)
                at = _FLOW
            self._out.append("}")
        self._flow_level -= 1


def _inline(node: Node) -> str | None:
    """The text of a scalar that is written alike wherever it stands, else None.

    Only a short cut: `_Writer._node` writes the same.
    """
    if not isinstance(node, Scalar) or node.anchor or node.tag:
        return None
    if not node.style:
        return node.value if is_word(node.value) else None
    return f'"{node.value}"' if node.style == '"' and is_clean(node.value) else None


def _inner(indent: int, at: _At, *, flow: bool) -> int:
    """The column of what stands inside a node: beside a dash two more, else the next multiple of four."""
    if indent < 0:
        return BEST_INDENT if flow else 0
    if at.dash:
        return indent + 2
    return BEST_INDENT * ((indent + BEST_INDENT) // BEST_INDENT)


def _is_simple_key(key: Node) -> bool:
    """Whether a key fits before its `:` without a `?`."""
    if isinstance(key, Scalar):
        if has_break(key.value):
            return False
        length = len(key.value.encode()) + len(key.anchor) + _tag_length(_tag_of(key))
    elif isinstance(key, Alias):
        length = len(key.name)
    elif key.items if isinstance(key, Sequence) else key.pairs:
        return False
    else:
        length = len(key.anchor) + _tag_length(key.tag)
    return length <= MAX_SIMPLE_KEY_BYTES


def _tag_of(node: Scalar) -> str:
    """The tag that is written: the explicit one, or the one yaml.v3 gives a plain `<<`."""
    return node.tag or (_MERGE_TAG if node.value == "<<" and not node.style else "")


def _tag_parts(tag: str) -> tuple[str, str]:
    """Handle and suffix; a tag of no known prefix has no handle."""
    if tag.startswith("!!"):  # a verbatim `!<!!x>` is taken for the short form
        tag = _CORE_TAGS + tag[2:]
    if tag.startswith("!"):
        return "!", tag[1:]
    if tag.startswith(_CORE_TAGS):
        return "!!", tag[len(_CORE_TAGS) :]
    return "", tag


def _tag_length(tag: str) -> int:
    return sum(len(part.encode()) for part in _tag_parts(tag)) if tag else 0


def _tag_text(tag: str) -> str:
    handle, suffix = _tag_parts(tag)
    text = "".join(chr(octet) if octet in _TAG_CHARACTERS else f"%{octet:02X}" for octet in suffix.encode())
    return handle + text if handle else f"!<{text}>"
