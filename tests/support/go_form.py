"""Documents as Go's yaml.v3 encoder writes them from typed data, made without the code that is tested.

A document is drawn as a tree and printed twice: in the encoder's form, and in a form that says the same otherwise
(other key order, comments, blank lines, other indentation). Only what the encoder can produce is drawn: plain text
that reads as text, double quotes where plain text would read as another type, single quotes where plain syntax is
impossible, literals for text of several lines, `{}` and `[]`.
"""

import random
from dataclasses import dataclass

from hypothesis import strategies as st

PLAIN = [
    "h100",
    "aicr.run/v1",
    "v25.10.1",
    "a b",
    "x:y",
    "https://x.example/y",
    "a#b",
    "-x",
    "é",
    "k8s",
    "a,b",
    "0.1.2",
]
NUMBERS = ["1", "-7", "1.5", "true", "false", "null", "1e+06", ".inf"]
AMBIGUOUS = ["580.1", "true", "null", "", "0x1F", "1_000", "2026-05-08", "yes", "1:20", "~", ".5"]
SINGLE = [
    ">= 1.32.4",
    "@x",
    "a: b",
    "a #b",
    "- x",
    "{a",
    "it's: x",
    "*",
    "!t",
    "%p",
    "`",
    "[x]",
    " lead",
    "trail ",
    "'",
]
ESCAPED = ["a\\tb", "\\U0001F600", "\\x01", "\\r", "q\\\\\\t"]
LITERAL = [["#!/bin/sh", "echo hi"], ["a", "", "  b"], ["x", "\ty"], ["é: {}", "- a", "# no comment"]]
KEYS = ["apiVersion", "kind", "metadata", "name", "a-b", "a.b", "ab", "Z", "z", "_", "é", "version", "x y"]
QUOTED_KEYS = [('"10"', "10"), ('"true"', "true"), ("'@k'", "@k"), ("'a: b'", "a: b"), ('"a\\tb"', "a\tb"), ('""', "")]


@dataclass(frozen=True)
class Scalar:
    """One scalar as the encoder prints it on one line."""

    text: str


@dataclass(frozen=True)
class Literal:
    """A literal block; `keep` is the chomping indicator."""

    lines: tuple[str, ...]
    clip: bool


@dataclass(frozen=True)
class Listing:
    """A sequence."""

    items: "tuple[Tree, ...]"


@dataclass(frozen=True)
class Table:
    """A mapping: (sort text, printed key, value), already in order."""

    rows: "tuple[tuple[str, str, Tree], ...]"


Tree = Scalar | Literal | Listing | Table

scalars = st.one_of(
    st.sampled_from(PLAIN + NUMBERS).map(Scalar),
    st.sampled_from(AMBIGUOUS).map(lambda text: Scalar(f'"{text}"')),
    st.sampled_from(SINGLE).map(lambda text: Scalar("'" + text.replace("'", "''") + "'")),
    st.sampled_from(ESCAPED).map(lambda text: Scalar(f'"{text}"')),
    st.builds(Literal, st.sampled_from(LITERAL).map(tuple), st.booleans()),
)
_keys = st.one_of(
    st.sampled_from(KEYS).map(lambda key: (key, key)), st.sampled_from(QUOTED_KEYS).map(lambda k: (k[1], k[0]))
)


def _table(rows: list[tuple[tuple[str, str], Tree]]) -> Table:
    unique = {key: (key, printed, value) for (key, printed), value in rows}
    return Table(tuple(unique[key] for key in sorted(unique, key=str.encode)))


trees = st.recursive(
    scalars,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4).map(lambda items: Listing(tuple(items))),
        st.lists(st.tuples(_keys, inner), max_size=5).map(_table),
    ),
    max_leaves=25,
)
documents = st.lists(st.tuples(_keys, trees), min_size=1, max_size=6).map(_table)


def encoded(tree: Tree) -> str:
    """The document in the encoder's form: indentation in multiples of four, keys sorted."""
    return "".join(line + "\n" for line in _block(tree, 0, step=None, shuffle=None))


def rewritten(tree: Tree, seed: int) -> str:
    """The same document otherwise: shuffled keys, two columns a level, comments and blank lines."""
    shuffle = random.Random(seed)  # noqa: S311 - a reproducible shuffle
    return "# head\n\n---\n" + "".join(line + "\n" for line in _block(tree, 0, step=2, shuffle=shuffle)) + "# foot\n"


def _block(tree: Tree, column: int, *, step: int | None, shuffle: random.Random | None) -> list[str]:
    """The lines of a non-empty collection whose entries stand at `column`."""
    pad = " " * column
    lines: list[str] = []
    if isinstance(tree, Table):
        rows = list(tree.rows)
        if shuffle is not None:
            shuffle.shuffle(rows)
        for _, key, value in rows:
            inner = column + step if step else 4 * ((column + 4) // 4)
            lines += _entry(f"{pad}{key}:", value, inner, compact=False, step=step, shuffle=shuffle)
    elif isinstance(tree, Listing):
        for value in tree.items:
            lines += _entry(f"{pad}-", value, column + 2, compact=True, step=step, shuffle=shuffle)
    return lines


def _entry(
    head: str, value: Tree, inner: int, *, compact: bool, step: int | None, shuffle: random.Random | None
) -> list[str]:
    noise: list[str] = []
    if shuffle is not None and shuffle.random() < 0.3:
        noise = ["", " " * (len(head) - len(head.lstrip())) + "# a: comment"]
    tail = " # tail" if shuffle is not None and shuffle.random() < 0.2 else ""
    if isinstance(value, Scalar):
        return [*noise, f"{head} {value.text}{tail}"]
    if isinstance(value, Literal):
        body = [" " * inner + line if line else "" for line in value.lines]
        return [*noise, f"{head} |{'' if value.clip else '-'}{tail}", *body]
    if not (value.items if isinstance(value, Listing) else value.rows):
        return [*noise, f"{head} {'[]' if isinstance(value, Listing) else '{}'}{tail}"]
    body = _block(value, inner, step=step, shuffle=shuffle)
    if compact and not tail:
        first = next(index for index, line in enumerate(body) if line.strip() and not line.lstrip().startswith("#"))
        if first == 0:
            return [*noise, f"{head} {body[0].lstrip()}", *body[1:]]
    return [*noise, head + tail, *body]
