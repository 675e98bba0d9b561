"""How Go's yaml.v3 v3.0.1 writes one scalar: which style survives, and its bytes (evidence-format 2.4).

All column numbers are counted from 0. Nothing here folds a line: the width is unlimited.
"""

import re
from dataclasses import dataclass
from typing import Final

BEST_INDENT: Final = 4

BREAKS: Final = "\n\r\x85\u2028\u2029"
"""What yaml.v3 takes for a line break; CR, NEL and the separators reach a value only through escapes."""

_SPECIAL: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\ufeff\ufffe\uffff\U00010000-\U0010ffff]")
"""Not printable for yaml.v3: controls, CR, NEL, the byte-order mark, everything above U+FFFF."""

_BREAK: Final = re.compile(f"[{BREAKS}]")
_RUNS: Final = re.compile(f"[{BREAKS}]+|[^{BREAKS}]+")
_TEXT_RUN: Final = re.compile(f"[^{BREAKS}]+")
_SPACE_BREAK: Final = re.compile(f" [{BREAKS}]")
_BREAK_SPACE: Final = re.compile(f"[{BREAKS}] ")
_HASH_AFTER_BLANK: Final = re.compile(f"[ \t\0{BREAKS}]#")
_COLON_BEFORE_BLANK: Final = re.compile(r":(?:[ \t]|\Z)")
_ALWAYS_PLAIN: Final = re.compile(r"[A-Za-z0-9_/+](?:[A-Za-z0-9_./+=@~-]| (?=[A-Za-z0-9_./+=@~-]))*")
"""Plain scalars that need no look at their context."""

_ESCAPED: Final = re.compile(
    r"[\x00-\x1f\"\\\x7f-\x9f\u2028\u2029\ud800-\udfff\ufeff\ufffe\uffff\U00010000-\U0010ffff]"
)
"""What is not printed as it is in double quotes."""

_SHORT_ESCAPES: Final = {
    "\0": "\\0",
    "\a": "\\a",
    "\b": "\\b",
    "\t": "\\t",
    "\n": "\\n",
    "\v": "\\v",
    "\f": "\\f",
    "\r": "\\r",
    "\x1b": "\\e",
    '"': '\\"',
    "\\": "\\\\",
    "\x85": "\\N",
    "\xa0": "\\_",
    "\u2028": "\\L",
    "\u2029": "\\P",
}


@dataclass(frozen=True, slots=True)
class Allowed:
    """Which styles can hold a value."""

    plain_in_block: bool
    plain_in_flow: bool
    single_quoted: bool
    block: bool


def allowed(value: str) -> Allowed:
    """What yaml.v3's analysis of `value` permits."""
    if not value:
        return Allowed(plain_in_block=True, plain_in_flow=False, single_quoted=True, block=False)
    special = _SPECIAL.search(value) is not None
    breaks = _BREAK.search(value) is not None
    space_break = breaks and _SPACE_BREAK.search(value) is not None
    break_space = breaks and _BREAK_SPACE.search(value) is not None
    tab = "\t" in value
    first, last = value[0], value[-1]
    no_plain = special or breaks or tab or first == " " or last == " "
    block_indicator = flow_indicator = False
    if not no_plain:
        block_indicator, flow_indicator = _indicators(value)
    return Allowed(
        plain_in_block=not no_plain and not block_indicator,
        plain_in_flow=not no_plain and not flow_indicator,
        single_quoted=not (special or tab or space_break or break_space),
        block=not (special or space_break or last == " "),
    )


def is_word(value: str) -> bool:
    """Whether plain `value` stays plain in every context."""
    return _ALWAYS_PLAIN.fullmatch(value) is not None


def is_clean(value: str) -> bool:
    """Whether double quotes hold `value` without any escape."""
    return _ESCAPED.search(value) is None


def has_break(value: str) -> bool:
    """Whether `value` has a line break, in the sense of `BREAKS`."""
    return _BREAK.search(value) is not None


def _indicators(value: str) -> tuple[bool, bool]:
    """Whether an indicator rules out plain style in (block, flow) context."""
    first = value[0]
    both = (
        value.startswith(("---", "..."))
        or first in "#,[]{}&*!|>'\"%@`"
        or (first in "-?:" and (len(value) == 1 or value[1] in " \t"))
        or _COLON_BEFORE_BLANK.search(value) is not None
        or _HASH_AFTER_BLANK.search(value) is not None
    )
    return both, both or first in "?:" or any(char in value for char in ",?[]{}:")


def select_style(value: str, style: str, *, in_flow: bool, simple_key: bool) -> str:
    """The style in which yaml.v3 writes `value` that was read in `style`.

    Plain text with a line feed (a blank line inside a multi-line plain scalar) becomes literal, as the encoder does.
    """
    if not style:
        if is_word(value):
            return ""
        if "\n" in value:
            style = "|"
    may = allowed(value)
    if not style:
        plain = may.plain_in_flow if in_flow else may.plain_in_block
        if not plain or (not value and (in_flow or simple_key)):
            style = "'"
    if style == "'" and not may.single_quoted:
        style = '"'
    if style in {"|", ">"} and (in_flow or simple_key or not may.block):
        style = '"'
    return style


def double_quoted(value: str) -> str:
    """`value` in double quotes; a value that starts with U+FEFF has every character escaped, as in yaml.v3."""
    if value.startswith("\ufeff"):
        return f'"{"".join(map(_escape, value))}"'
    return f'"{_ESCAPED.sub(lambda found: _escape(found.group()), value)}"'


def _escape(char: str) -> str:
    short = _SHORT_ESCAPES.get(char)
    if short:
        return short
    code = ord(char)
    if code <= 0xFF:
        return f"\\x{code:02X}"
    return f"\\u{code:04X}" if code <= 0xFFFF else f"\\U{code:08X}"


def single_quoted(value: str, indent: int) -> str:
    """`value` in single quotes; each run of breaks that starts with LF is written with one more."""
    if not _BREAK.search(value):
        return f"'{value.replace(chr(39), chr(39) * 2)}'"
    out = ["'"]
    after_break = False
    for run in _RUNS.findall(value):
        if run[0] in BREAKS:
            out.append("\n" + run if run[0] == "\n" else run)
            after_break = True
        else:
            out.append((" " * indent if after_break else "") + run.replace("'", "''"))
    out.append("'")
    return "".join(out)


def block_header(value: str) -> str:
    """Indentation and chomping indicators of a block scalar; `value` is not empty."""
    hint = str(BEST_INDENT) if value[0] == " " or value[0] in BREAKS else ""
    if value[-1] not in BREAKS:
        return hint + "-"
    if len(value) == 1 or value[-2] in BREAKS:
        return hint + "+"
    return hint


def literal(value: str, indent: int) -> str:
    """A literal scalar with its header; a leading break ends the header's line and is lost for a reader."""
    pad = " " * indent
    body = _TEXT_RUN.sub(lambda run: pad + run.group(), value)
    return f"|{block_header(value)}{'' if value[0] in BREAKS else chr(10)}{body}"


def folded(value: str, indent: int) -> str:
    """A folded scalar with its header.

    A run of breaks after a line that starts with no blank is written with one LF more, unless the first text of
    the whole value starts with a blank: yaml.v3 looks at the value's start where libyaml looks at the next line.
    """
    pad = " " * indent
    out = [f">{block_header(value)}", "" if value[0] in BREAKS else "\n"]
    first_text = value.lstrip(BREAKS)
    add = bool(first_text) and first_text[0] not in " \t"
    after_text = starts_blank = False
    for run in _RUNS.findall(value):
        if run[0] in BREAKS:
            if add and after_text and not starts_blank and run[0] == "\n":
                out.append("\n")
            out.append(run)
            after_text = False
        else:
            out.append(pad + run)
            starts_blank = run[0] in " \t"
            after_text = True
    return "".join(out)
