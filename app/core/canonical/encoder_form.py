"""The short way: a text that Go's encoder wrote, recognized line by line and proved to be its own canonical text.

Every real `recipe.yaml` is of this form, and reading it so costs a third of libyaml's way. Nothing is guessed: one
line outside of the narrow grammar below, one column or key out of place, and the answer is None, upon which
`app.core.canonical.parse` reads the text. The grammar holds only what both parsers read alike and the emitter
writes back unchanged; tests compare the two ways.
"""

import re
from collections.abc import Callable
from typing import Any, Final

from app.core.canonical.nodes import Mapping, Node, Scalar, Sequence
from app.core.canonical.scalars import BEST_INDENT

MAX_LINES: Final = 50_000
MAX_DEPTH: Final = 48

_LINE: Final = re.compile(
    r"""
    (?P<indent>\ *+)
    (?P<dashes>(?:-\ ){0,64}+)
    (?:
        (?:
            (?P<key>[A-Za-z0-9_/][A-Za-z0-9_./-]{0,63}+)
          | "(?P<quoted_key>[\ !\#-\[\]-~]{0,63})"
        )
        :(?:\ |(?=\n))
    )?
    (?:
        # Plain: starts with no indicator, and holds no `: ` and no ` #`.
        (?P<plain>
            (?:[A-Za-z0-9_/+]|-{1,2}[A-Za-z0-9_/])
            [!-9;-~]*+(?:(?::(?=[!-~])|\ (?=[!"$-~]))[!-9;-~]*+)*+
        )
      | "(?P<double>[\ !\#-\[\]-~]*)"
      | '(?P<single>(?:[\ -&(-~]|'')*)'
      | (?P<empty>\{\}|\[\])
      | (?P<literal>\|-?)
    )?
    \n
    """,
    re.VERBOSE,
)

_Open = tuple[Callable[[Any], None], int, bool, str | None]


def parse_encoder_form(text: str) -> Mapping | None:
    """The tree of `text` if it is a block mapping in encoder form, and so its own legacy canonical text; else None."""
    if not text.isascii() or text.count("\n") > MAX_LINES or not text.endswith("\n"):
        return None
    # What is left of ASCII are line feeds, tabs and other controls, and those that are printable.
    return _read(text) if text.replace("\n", "").isprintable() else None


def _read(text: str) -> Mapping | None:  # noqa: PLR0915 - one loop over local variables, for speed
    """All lines, or None at the first that is not of the form.

    The innermost open collection is in four variables, those around it are on the stack: how to append to it, its
    column, whether it is a sequence, and the last key if it is a mapping.
    """
    root = Mapping([], flow=False, tag="", anchor="", line=1)
    stack: list[_Open] = []
    append: Callable[[Any], None] = root.pairs.append
    column, sequence = 0, False
    last: str | None = None
    waiting: Scalar | None = None  # a key whose value is on the next lines, or nothing
    position, line, size, match = 0, 0, len(text), _LINE.match
    while position < size:
        line += 1
        found = match(text, position)
        if found is None:
            return None
        position = found.end()
        indent, dashes, key, quoted_key, plain, double, single, empty, literal = found.groups()
        at = len(indent)
        if waiting is not None:
            if at == _next_column(column):
                child, adds = _opened(line, sequence=bool(dashes))
                append((waiting, child))
                stack.append((append, column, sequence, last))
                append, column, sequence, last = adds, at, bool(dashes), None
            else:
                append((waiting, Scalar("", "", "", "", line)))
            waiting = None
        while column > at:
            append, column, sequence, last = stack.pop()
        if column != at or sequence is not bool(dashes):
            return None
        if dashes:
            # What starts beside a dash: more sequences, then a mapping if a key follows.
            kinds = [True] * (len(dashes) // 2 - 1)
            if key is not None or quoted_key is not None:
                kinds.append(False)
            for nested in kinds:
                child, adds = _opened(line, sequence=nested)
                append(child)
                stack.append((append, column, sequence, last))
                append, column, sequence, last = adds, column + 2, nested, None
        if len(stack) >= MAX_DEPTH:
            return None
        key_node: Scalar | None = None
        if not sequence:
            if key is not None:
                key_node = Scalar(key, "", "", "", line)
            elif quoted_key is not None:
                key_node, key = Scalar(quoted_key, '"', "", "", line), quoted_key
            else:
                return None
            if last is not None and last >= key:
                return None
            last = key
        value: Node
        if plain is not None:
            value = Scalar(plain, "", "", "", line)
        elif double is not None:
            value = Scalar(double, '"', "", "", line)
        elif single is not None:
            value = Scalar(single.replace("''", "'"), "'", "", "", line)
        elif empty is not None:
            value = (Mapping if empty == "{}" else Sequence)([], flow=True, tag="", anchor="", line=line)
        elif literal is not None:
            lines, position = _literal(text, column + 2 if sequence else _next_column(column), position)
            if not lines:
                return None
            value = Scalar("\n".join(lines) + ("\n" if literal == "|" else ""), "|", "", "", line)
            line += len(lines)
        elif key_node is not None and text[position - 2] == ":":
            waiting = key_node
            continue
        else:
            return None
        append(value if key_node is None else (key_node, value))
    if waiting is not None:
        append((waiting, Scalar("", "", "", "", line)))
    return root


def _opened(line: int, *, sequence: bool) -> tuple[Mapping | Sequence, Callable[[Any], None]]:
    """An empty block collection and how to append to it."""
    if sequence:
        items = Sequence([], flow=False, tag="", anchor="", line=line)
        return items, items.items.append
    table = Mapping([], flow=False, tag="", anchor="", line=line)
    return table, table.pairs.append


def _literal(text: str, column: int, position: int) -> tuple[list[str], int]:
    """The lines of a literal and where it ends; none when its header or its blanks would be written otherwise."""
    size, pad = len(text), " " * column
    lines: list[str] = []
    while position < size:
        end = text.index("\n", position)
        if end == position:
            lines.append("")
        elif text.startswith(pad, position) and text[end - 1] != " ":
            lines.append(text[position + column : end])
        else:
            break
        position = end + 1
    if not lines or not lines[0] or lines[0][0] == " " or not lines[-1]:
        return [], position
    return lines, position


def _next_column(column: int) -> int:
    return BEST_INDENT * ((column + BEST_INDENT) // BEST_INDENT)
