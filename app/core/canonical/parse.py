"""Recipe text to node tree, by libyaml's events; what Go's parser reads otherwise is refused.

The stack is our own and bounded, so no text can exhaust Python's.
"""

import re
from collections.abc import Callable
from typing import Any, Final

import yaml

from app.core.canonical.nodes import Alias, Mapping, Node, Scalar, Sequence
from app.core.canonical.refusals import Refusal, refuse
from app.core.yamltext import MAX_TAG_DIRECTIVES, has_many_tag_directives

try:
    from yaml._yaml import CParser
except ImportError as err:  # pragma: no cover - an installation fault, not a state of this program
    raise ImportError("app.core.canonical needs a PyYAML that was built with libyaml") from err

MAX_RECIPE_BYTES: Final = 1 << 20
MAX_DEPTH: Final = 64
MAX_NODES: Final = 200_000

_BOM: Final = b"\xef\xbb\xbf"
_TAG_RUN: Final = re.compile(
    r"(?:&[A-Za-z0-9_-]*+(?:[ \t\r\n\x85\u2028\u2029]++|\#[^\r\n\x85\u2028\u2029]*+)*+)?(![^ \t\r\n\x85\u2028\u2029]*+)"
)
"""A node's tag and all that touches it, from the node's start: an anchor and comments may come first."""

_QUESTION_FIRST: Final = re.compile(r"[\[{][ \t]*\?")
_ESCAPE: Final = re.compile(r"\\(.)", re.DOTALL)

NextEvent = Callable[[], Any]
"""Gives one event of PyYAML after another, then None; PyYAML's C parser has no types."""


def parse_document(text: str) -> tuple[Node | None, bool]:
    """The first document of `text` as a tree (None when the stream has none), and whether another one follows.

    Later documents must parse too, but are not kept. Raises `RecipeInvalid`.
    """
    if has_many_tag_directives(text):
        refuse(Refusal.DIRECTIVE, f"more than {MAX_TAG_DIRECTIVES} %TAG directives")
    parser = CParser(text.encode())
    try:
        return _Builder(text).build(parser.get_event)
    except yaml.YAMLError as err:
        refuse(Refusal.NOT_YAML, _where(err))
    except UnicodeDecodeError:
        # libyaml lets surrogates and overlong forms through, if they are escaped in a tag.
        refuse(Refusal.TAG_ESCAPE, "its escapes are no UTF-8")
    finally:
        parser.dispose()


def decode(data: bytes) -> str:
    """`data` as text without its byte-order mark; raises `RecipeInvalid` for size and encoding."""
    if not data:
        refuse(Refusal.EMPTY, "expected YAML, got zero bytes")
    if len(data) > MAX_RECIPE_BYTES:
        refuse(Refusal.TOO_LARGE, f"got {len(data)} bytes, at most {MAX_RECIPE_BYTES}")
    try:
        text = data.removeprefix(_BOM).decode()
    except UnicodeDecodeError as err:
        refuse(Refusal.NOT_UTF8, f"byte {err.start} starts no character")
    if "\ufeff" in text:
        # Go takes a mark for text or for nothing depending on where its buffer stands.
        line = text.count("\n", 0, text.index("\ufeff")) + 1
        refuse(Refusal.BYTE_ORDER_MARK, f"line {line}", hint="remove it, or write it as \\uFEFF in double quotes")
    return text


def _where(err: yaml.YAMLError) -> str:
    """What libyaml complains of, on one line."""
    mark = getattr(err, "problem_mark", None)
    problem = getattr(err, "problem", None) or getattr(err, "reason", None) or "malformed"
    return f"{problem} at line {mark.line + 1}, column {mark.column + 1}" if mark else str(problem)


class _Builder:
    """Builds the tree of one stream's first document."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._escapes_slash = "\\/" in text
        self._escapes_null = "%00" in text
        self._anchors: dict[str, Scalar | Sequence | Mapping] = {}
        self._bare_pair: Mapping | None = None  # the last `[key: value]` without braces

    def build(self, next_event: NextEvent) -> tuple[Node | None, bool]:
        """The first document's root; the rest of the stream is read to its end and dropped."""
        next_event()  # the stream's start
        event = next_event()
        if type(event) is not yaml.DocumentStartEvent:
            return None, False
        self._check_directives(event)
        root = self._document(next_event)
        count = 0
        followed = False
        while (event := next_event()) is not None:
            followed = followed or isinstance(event, yaml.DocumentStartEvent)
            if self._escapes_slash and isinstance(event, yaml.ScalarEvent):
                self._check_slash(event)  # Go's scanner reads ahead, into the next document
            count += 1
            if count > MAX_NODES:
                refuse(Refusal.TOO_MANY_NODES, f"more than {MAX_NODES} events after the first document")
        return root, followed

    def _check_directives(self, event: Any) -> None:  # noqa: ANN401
        if event.version is not None and event.version != (1, 1):
            refuse(Refusal.DIRECTIVE, f"%YAML {event.version[0]}.{event.version[1]}, expected 1.1 or none")
        if event.tags and self._escapes_null and "%00" in self._text[: event.end_mark.index]:
            refuse(Refusal.TAG_ESCAPE, "%TAG with %00")

    def _document(self, next_event: NextEvent) -> Node:
        stack: list[Sequence | Mapping] = []
        keys: list[Node | None] = []  # beside each open collection: the key that waits for its value
        parent: Sequence | Mapping | None = None
        scalar_event = yaml.ScalarEvent
        count = 0
        opened_at = -1  # where the last collection starts
        while True:
            event = next_event()
            kind = type(event)
            opened: Sequence | Mapping | None = None
            node: Node
            if kind is scalar_event:
                node = self._scalar(event)
                if parent is not None and parent.flow:
                    self._check_flow(event, node, parent)
            elif kind is yaml.MappingStartEvent or kind is yaml.SequenceStartEvent:
                node = opened = self._collection(event, Mapping if kind is yaml.MappingStartEvent else Sequence)
                if parent is not None and parent.flow:
                    self._check_flow(event, node, parent)
                if isinstance(parent, Mapping) and keys[-1] is None:
                    self._check_key(event, opened_at)
                opened_at = event.start_mark.index
            elif kind is yaml.AliasEvent:
                node = self._alias(event)
            else:  # the end of the innermost collection
                node = stack.pop()
                keys.pop()
                if not stack:
                    return node
                parent = stack[-1]
                continue
            count += 1
            if count > MAX_NODES:
                refuse(Refusal.TOO_MANY_NODES, f"more than {MAX_NODES}")
            if parent is None:
                if opened is None:
                    return node
            elif isinstance(parent, Sequence):
                parent.items.append(node)
            elif (key := keys[-1]) is None:
                keys[-1] = node
            else:
                parent.pairs.append((key, node))
                keys[-1] = None
            if opened is not None:
                if len(stack) == MAX_DEPTH:
                    refuse(Refusal.TOO_DEEP, f"more than {MAX_DEPTH} levels at line {opened.line}")
                stack.append(opened)
                keys.append(None)
                parent = opened

    def _collection(self, event: Any, kind: type[Sequence] | type[Mapping]) -> Sequence | Mapping:  # noqa: ANN401
        tag = "" if event.tag is None else self._tag(event)
        node = kind([], event.flow_style, tag, event.anchor or "", _line(event))
        if node.anchor:
            self._anchors[node.anchor] = node
        return node

    def _scalar(self, event: Any) -> Scalar:  # noqa: ANN401
        anchor, line = event.anchor, event.start_mark.line + 1
        node = Scalar(event.value, event.style, "" if event.tag is None else self._tag(event), anchor or "", line)
        if anchor:
            self._anchors[anchor] = node
        if self._escapes_slash:
            self._check_slash(event)
        return node

    def _check_slash(self, event: Any) -> None:  # noqa: ANN401
        """Refuse a YAML 1.2 escape that Go does not know (evidence-format 2.4)."""
        if event.style == '"':
            raw = self._text[event.start_mark.index : event.end_mark.index]
            if any(found.group(1) == "/" for found in _ESCAPE.finditer(raw)):
                refuse(Refusal.ESCAPED_SLASH, f"line {_line(event)}", hint="write the slash itself")

    def _tag(self, event: Any) -> str:  # noqa: ANN401
        """The tag that is kept of an event that has one: none for the non-specific `!`."""
        if self._escapes_null:
            found = _TAG_RUN.match(self._text, event.start_mark.index)
            if found is None or "%00" in found.group(1):
                # PyYAML ends the tag there, Go goes on.
                refuse(Refusal.TAG_ESCAPE, f"%00 at line {_line(event)}")
        return "" if event.tag == "!" else str(event.tag)

    def _check_key(self, event: Any, parent_at: int) -> None:  # noqa: ANN401
        """Refuse `{? a}: b`: Go has forgotten that this may be a key when it comes to the colon.

        In `? {? a}` it is told before. Then the mark is the last on the line, and not a key that the mapping of the
        same start (`parent_at`) begins with.
        """
        start = at = event.start_mark.index
        if not event.flow_style or not _QUESTION_FIRST.match(self._text, start):
            return
        while at and self._text[at - 1] in " \t":
            at -= 1
        if at == 0 or self._text[at - 1] != "?" or parent_at == start:
            refuse(
                Refusal.FLOW_KEY, f"line {_line(event)}", hint="put `? ` before the key, and its value on a new line"
            )

    def _check_flow(self, event: Any, node: Scalar | Sequence | Mapping, parent: Sequence | Mapping) -> None:  # noqa: ANN401
        """Refuse what the two scanners cut at different places inside a flow collection."""
        if isinstance(node, Scalar) and not node.style:
            if "?" in node.value:
                # Go ends a plain scalar at any question mark, libyaml only at one that stands alone.
                refuse(Refusal.FLOW_QUESTION_MARK, f"line {node.line}", hint="quote the scalar")
            if not node.value and parent is self._bare_pair and not self._bare_pair.pairs:
                refuse(Refusal.FLOW_EMPTY_KEY, f"line {node.line}", hint="write the pair in braces")
        elif isinstance(node, Mapping) and not event.tag and not event.anchor:
            self._bare_pair = None if self._text[event.start_mark.index] == "{" else node
        if event.tag is not None:
            # Go lets a tag hold commas and brackets, libyaml ends it there.
            found = _TAG_RUN.match(self._text, event.start_mark.index)
            if found is None or any(char in found.group(1) for char in ",[]{}"):
                refuse(Refusal.FLOW_TAG, f"line {node.line}", hint="put a space after the tag")

    def _alias(self, event: Any) -> Alias:  # noqa: ANN401
        line = _line(event)
        target = self._anchors.get(event.anchor)
        if target is None:
            refuse(Refusal.UNKNOWN_ANCHOR, f"line {line} refers to {event.anchor[:80]!r}")
        return Alias(event.anchor, target, line)


def _line(event: Any) -> int:  # noqa: ANN401
    return int(event.start_mark.line) + 1
