"""The short way: a text that Go's encoder wrote, recognized line by line and proved to be its own canonical text.

Every real `recipe.yaml` is of this form, and reading it so costs a third of libyaml's way. Nothing is guessed: one
line outside of the narrow grammar below, one column or key out of place, and the answer is None, upon which
`app.core.canonical.parse` reads the text. The grammar holds only what both parsers read alike and the emitter
writes back unchanged; tests compare the two ways.
"""

import re
from typing import Final

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
_UNREADABLE: Final = re.compile(r"[^\n\x20-\x7e]")


def parse_encoder_form(text: str) -> Mapping | None:
    """The tree of `text` if it is a block mapping in encoder form, and so its own legacy canonical text; else None."""
    if not text.isascii() or text.count("\n") > MAX_LINES or not text.endswith("\n") or _UNREADABLE.search(text):
        return None
    return _Reader(text).read()


class _Reader:
    """Reads the lines of one text; each open collection has its column and, if it is a mapping, its last key."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._open: list[Mapping | Sequence] = [Mapping([], flow=False, tag="", anchor="", line=1)]
        self._columns = [0]
        self._last_keys: list[str | None] = [None]
        self._waiting: Scalar | None = None  # a key whose value is on the next lines, or nothing

    def read(self) -> Mapping | None:
        """All lines, or None at the first that is not of the form."""
        text, match, size = self._text, _LINE.match, len(self._text)
        opened, columns, last_keys = self._open, self._columns, self._last_keys
        root, position, line = opened[0], 0, 0
        while position < size:
            line += 1
            found = match(text, position)
            if found is None:
                return None
            position = found.end()
            indent, dashes, key, quoted_key, plain, double, single, empty, literal = found.groups()
            column = len(indent)
            if self._waiting is not None:
                self._settle(column, line, is_item=bool(dashes))
            while columns[-1] > column:
                opened.pop()
                columns.pop()
                last_keys.pop()
            if columns[-1] != column or isinstance(opened[-1], Sequence) is not bool(dashes):
                return None
            if dashes:
                column = self._nest(len(dashes) // 2 - 1, column, line, table=key is not None or quoted_key is not None)
            if len(opened) > MAX_DEPTH:
                return None
            holder = opened[-1]
            key_node: Scalar | None = None
            if isinstance(holder, Mapping):
                if key is not None:
                    key_node = Scalar(key, "", "", "", line)
                elif quoted_key is not None:
                    key_node = Scalar(quoted_key, '"', "", "", line)
                else:
                    return None
                if (last := last_keys[-1]) is not None and last >= key_node.value:
                    return None
                last_keys[-1] = key_node.value
            if plain is not None:
                value: Node = Scalar(plain, "", "", "", line)
            elif double is not None or single is not None or empty is not None:
                value = _inline(double, single, empty, line)
            elif literal is not None:
                lines, position = self._literal(_next_column(column) if key_node else column + 2, position)
                value = Scalar("\n".join(lines) + ("\n" if literal == "|" else ""), "|", "", "", line)
                if not lines:
                    return None
                line += len(lines)
            elif key_node is not None and text[position - 2] == ":":
                self._waiting = key_node
                continue
            else:
                return None
            if isinstance(holder, Sequence):
                holder.items.append(value)
            elif key_node is not None:
                holder.pairs.append((key_node, value))
        if self._waiting is not None:
            self._settle(0, line, is_item=False)
        return root if isinstance(root, Mapping) else None

    def _settle(self, column: int, line: int, *, is_item: bool) -> None:
        """Give the waiting key its value: a collection that starts at `column`, or nothing."""
        holder, key = self._open[-1], self._waiting
        self._waiting = None
        if not isinstance(holder, Mapping) or key is None:
            return
        child: Node
        if column == _next_column(self._columns[-1]):
            child = (Sequence if is_item else Mapping)([], flow=False, tag="", anchor="", line=line)
            holder.pairs.append((key, child))
            self._push(child, column)
        else:
            holder.pairs.append((key, Scalar("", "", "", "", line)))

    def _nest(self, sequences: int, column: int, line: int, *, table: bool) -> int:
        """Open what starts beside a dash: sequences, then a mapping if a key follows; the innermost column."""
        for kind in (*(Sequence,) * sequences, *((Mapping,) if table else ())):
            node = kind([], flow=False, tag="", anchor="", line=line)
            holder = self._open[-1]
            if isinstance(holder, Sequence):
                holder.items.append(node)
            column += 2
            self._push(node, column)
        return column

    def _push(self, node: Mapping | Sequence, column: int) -> None:
        self._open.append(node)
        self._columns.append(column)
        self._last_keys.append(None)

    def _literal(self, column: int, position: int) -> tuple[list[str], int]:
        """The lines of a literal and where it ends; none when its header or its blanks would be written otherwise."""
        text, size, pad = self._text, len(self._text), " " * column
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


def _inline(double: str | None, single: str | None, empty: str | None, line: int) -> Node:
    if double is not None:
        return Scalar(double, '"', "", "", line)
    if single is not None:
        return Scalar(single.replace("''", "'"), "'", "", "", line)
    return (Mapping if empty == "{}" else Sequence)([], flow=True, tag="", anchor="", line=line)


def _next_column(column: int) -> int:
    return BEST_INDENT * ((column + BEST_INDENT) // BEST_INDENT)
