"""YAML from outside as nested text: every scalar stays the text that was written (trust 4).

For pointers and allowlists, where `12345678901234567890123456789012` is a slug and `1.0` a version. Recipes have
a parser of their own (`app.core.canonical`), since there tags and aliases are legal.
"""

from collections.abc import Callable
from typing import Any, Final

import yaml
from yaml._yaml import CParser

from app.core.errors import DocumentInvalid

MAX_TEXT_BYTES: Final = 1 << 20
MAX_DEPTH: Final = 64
MAX_NODES: Final = 200_000
"""Scalars and collections of one document; parsed, so many cost about a second."""

MAX_TAG_DIRECTIVES: Final = 64
"""libyaml compares each one with all before it: a megabyte of them is half a minute in one call."""

TextValue = dict[str, "TextValue"] | list["TextValue"] | str | None
"""A loaded value; None is `null`, `~` or nothing, unquoted."""

_NULLS: Final = frozenset({"", "~", "null", "Null", "NULL"})
_BOM: Final = b"\xef\xbb\xbf"


def has_many_tag_directives(text: str) -> bool:
    """Whether a text says `%TAG` more often than any document has reason to; asked before a parser sees it."""
    return text.count("%TAG") > MAX_TAG_DIRECTIVES


def load_text(
    data: bytes, *, max_bytes: int = MAX_TEXT_BYTES, max_depth: int = MAX_DEPTH, max_nodes: int = MAX_NODES
) -> TextValue:
    """Load exactly one document; an empty stream is None.

    Refused with `DocumentInvalid` and the line: more than `max_bytes`, more than `max_depth` nested collections, more
    than `max_nodes` scalars and collections, more than `MAX_TAG_DIRECTIVES`, duplicate keys, keys that are not
    scalars, anchors, aliases, tags, merge keys, a second document (upstream ignores it; trust 4 wins), and whatever is
    not UTF-8 or not YAML.
    """
    if len(data) > max_bytes:
        raise DocumentInvalid(f"expected at most {max_bytes} bytes of YAML, got {len(data)}")
    try:
        text = data.removeprefix(_BOM).decode()
    except UnicodeDecodeError as err:
        raise DocumentInvalid(f"expected UTF-8, but byte {err.start} starts no character") from err
    if has_many_tag_directives(text):
        raise DocumentInvalid(f"expected at most {MAX_TAG_DIRECTIVES} tag directives, got more; remove them")
    parser = CParser(text.encode())
    try:
        return _load(parser.get_event, max_depth, max_nodes)
    except yaml.YAMLError as err:
        raise DocumentInvalid(_complaint(err)) from err
    except UnicodeDecodeError as err:  # libyaml lets surrogates and overlong forms through, if a tag escapes them
        raise DocumentInvalid("not valid YAML: the escapes of a tag are no UTF-8; remove the tag") from err
    finally:
        parser.dispose()


def _load(next_event: Callable[[], Any], max_depth: int, max_nodes: int) -> TextValue:
    next_event()  # the stream's start
    if not isinstance(next_event(), yaml.DocumentStartEvent):
        return None
    root = _document(next_event, max_depth, max_nodes)
    next_event()  # the document's end
    after = next_event()
    if not isinstance(after, yaml.StreamEndEvent):
        raise DocumentInvalid(f"expected one YAML document, got a second one at line {_line(after)}")
    return root


def _document(next_event: Callable[[], Any], max_depth: int, max_nodes: int) -> TextValue:
    stack: list[dict[str, TextValue] | list[TextValue]] = []
    keys: list[str | None] = []  # beside each open collection: the key that waits for its value
    count = 0
    while True:
        event = next_event()
        value: TextValue
        opened: dict[str, TextValue] | list[TextValue] | None = None
        if isinstance(event, yaml.CollectionEndEvent):
            value = stack.pop()
            keys.pop()
            if not stack:
                return value
            continue
        _refuse_properties(event)
        count += 1
        if count > max_nodes:
            raise DocumentInvalid(
                f"expected at most {max_nodes} scalars and collections, got more at line {_line(event)}"
            )
        if isinstance(event, yaml.ScalarEvent):
            value = None if not event.style and event.value in _NULLS else event.value
        else:
            value = opened = {} if isinstance(event, yaml.MappingStartEvent) else []
        if stack:
            parent = stack[-1]
            if isinstance(parent, list):
                parent.append(value)
            elif (key := keys[-1]) is None:
                keys[-1] = _key(event, parent)
                continue
            else:
                parent[key] = value
                keys[-1] = None
        elif opened is None:
            return value
        if opened is not None:
            if len(stack) == max_depth:
                raise DocumentInvalid(f"expected at most {max_depth} nested levels, got more at line {_line(event)}")
            stack.append(opened)
            keys.append(None)


def _key(event: Any, parent: dict[str, TextValue]) -> str:  # noqa: ANN401
    if not isinstance(event, yaml.ScalarEvent):
        raise DocumentInvalid(f"expected a plain key at line {_line(event)}, got a collection")
    key: str = event.value
    if key == "<<" and not event.style:
        raise DocumentInvalid(f"merge key at line {_line(event)}; write the entries out")
    if key in parent:
        raise DocumentInvalid(f"key {key[:80]!r} is repeated at line {_line(event)}")
    return key


def _refuse_properties(event: Any) -> None:  # noqa: ANN401
    if isinstance(event, yaml.AliasEvent):
        raise DocumentInvalid(f"alias *{str(event.anchor)[:80]} at line {_line(event)}; write the value out")
    if event.anchor is not None:
        raise DocumentInvalid(f"anchor &{event.anchor[:80]} at line {_line(event)}; remove it")
    if event.tag is not None:
        raise DocumentInvalid(f"tag {event.tag[:80]!r} at line {_line(event)}; remove it")


def _complaint(err: yaml.YAMLError) -> str:
    mark = getattr(err, "problem_mark", None)
    problem = getattr(err, "problem", None) or getattr(err, "reason", None) or "malformed"
    where = f" at line {mark.line + 1}, column {mark.column + 1}" if mark else ""
    return f"not valid YAML: {problem}{where}"


def _line(event: Any) -> int:  # noqa: ANN401
    return int(event.start_mark.line) + 1
