"""Identity patterns of the allowlist: J12-J15 of corroboration 1.2 and the gaps G1-G5 of 1.3, closed.

An accepted pattern has the form `^<literal>@<ref>$`. It is matched in two parts, the literal as text and the ref as
a whole by RE2 (no backtracking), so that nothing to the right of the `@` can loosen what stands to its left.
"""

from dataclasses import dataclass, field

import re2

from app.core.errors import AllowlistInvalid

_META = frozenset(".*+?()[]{}|^$")
_REPEATS = frozenset("*+?{")
_MAX_MEMORY_BYTES = 1 << 20  # RE2's budget for one compiled pattern


@dataclass(frozen=True, slots=True)
class IdentityPattern:
    """A checked pattern; `literal` is what stands left of the first `@` with escapes dropped (J18's prefix)."""

    text: str
    literal: str
    _ref: "re2._Regexp" = field(compare=False, repr=False)

    def ref_of(self, identity: str) -> str | None:
        """The part of `identity` after the pattern's `@`, or None when the pattern does not match it whole.

        The split is at the pattern's own `@`, so a branch called `x@refs/heads/main` is that branch, not `main`.
        """
        prefix = f"{self.literal}@"
        if not identity.startswith(prefix):
            return None
        ref = identity[len(prefix) :]
        try:
            return ref if self._ref.fullmatch(ref) else None
        except UnicodeError:  # a lone surrogate is in no certificate
            return None


def compile_pattern(text: str, entry: str) -> IdentityPattern:
    """Check one pattern; `entry` names it in errors.

    Steps: J12 anchors, J13 an `@`, J14 a literal left of it, J15 compiles; then G2 the final `$` is an anchor,
    G4 the left side is not empty, G3 no letter or digit escape on the left, G5 the `@` and the character after it
    are plain and no operator is bound to either, G1 no alternation at the top level.
    """
    if not (len(text) > 1 and text.startswith("^") and text.endswith("$")):
        raise AllowlistInvalid(f"{entry}: expected a pattern that starts with ^ and ends with $", rule="J12")
    body = text[1:-1]
    at = _first_unescaped(body, "@")
    if at is None:
        raise AllowlistInvalid(f"{entry}: expected an unescaped @ between ^ and $", rule="J13")
    left, right = body[:at], body[at + 1 :]
    wild = _first_unescaped(left, _META)
    if wild is not None:
        raise AllowlistInvalid(
            f"{entry}: the pattern is over-broad, found unescaped {left[wild]} left of the @",
            rule="J14",
            hint="escape every metacharacter left of the @; only the ref may be a pattern",
        )
    if "C" in _escaped(body):  # any byte: the C++ engine knows it, Go's refuses it
        raise AllowlistInvalid(f"{entry}: the pattern does not compile: \\C is not known", rule="J15")
    _compiled(text, entry)
    if _trailing_backslashes(body) % 2:
        raise AllowlistInvalid(f"{entry}: expected $ as the final anchor, found the literal \\$", rule="G2")
    if not left:
        raise AllowlistInvalid(f"{entry}: expected a literal left of the @, found nothing", rule="G4")
    if classes := [ch for ch in _escaped(left) if ch.isalnum()]:
        raise AllowlistInvalid(
            f"{entry}: expected only punctuation to be escaped left of the @, found \\{classes[0]}", rule="G3"
        )
    if not _starts_with_literal(right):
        raise AllowlistInvalid(
            f"{entry}: expected a plain @ followed by refs/ or another literal, found @{right[:8]}", rule="G5"
        )
    if _has_top_level_alternation(right):
        raise AllowlistInvalid(
            f"{entry}: expected no | outside parentheses right of the @",
            rule="G1",
            hint="write the alternatives in parentheses: @refs/(heads/main|tags/.+)$",
        )
    return IdentityPattern(text, _unescaped(left), _compiled(f"(?:{right})", entry))


def _compiled(expression: str, entry: str) -> "re2._Regexp":
    options = re2.Options()
    options.log_errors = False
    options.never_capture = True
    options.max_mem = _MAX_MEMORY_BYTES
    try:
        return re2.compile(expression, options)
    except (re2.error, UnicodeError) as err:
        raise AllowlistInvalid(f"{entry}: the pattern does not compile: {_reason(err)}", rule="J15") from err


def _reason(err: Exception) -> str:
    """RE2 gives bytes; only their first part is worth printing."""
    detail = err.args[0] if err.args else ""
    return detail.decode("utf-8", "replace")[:120] if isinstance(detail, bytes) else type(err).__name__


def _first_unescaped(text: str, wanted: str | frozenset[str]) -> int | None:
    """Position of the first wanted character that no backslash consumes."""
    position = 0
    while position < len(text):
        if text[position] == "\\":
            position += 2
            continue
        if text[position] in wanted:
            return position
        position += 1
    return None


def _unescaped(text: str) -> str:
    """The text with every backslash dropped that consumes the next character."""
    out: list[str] = []
    escaped = False
    for ch in text:
        if ch == "\\" and not escaped:
            escaped = True
            continue
        out.append(ch)
        escaped = False
    return "".join(out)


def _escaped(text: str) -> list[str]:
    """The characters that a backslash consumes, in order."""
    found: list[str] = []
    position = 0
    while position + 1 < len(text):
        if text[position] == "\\":
            found.append(text[position + 1])
            position += 1
        position += 1
    return found


def _starts_with_literal(text: str) -> bool:
    """Whether the first character stands for itself, and no operator makes it optional or repeats it."""
    escaped = text.startswith("\\")
    first, after = (text[1:2], text[2:3]) if escaped else (text[:1], text[1:2])
    special = first.isalnum() if escaped else first in _META
    return bool(first) and not special and after not in _REPEATS


def _trailing_backslashes(text: str) -> int:
    return len(text) - len(text.rstrip("\\"))


def _has_top_level_alternation(text: str) -> bool:
    """A `|` outside groups, classes and escapes; `text` compiles.

    Only a courtesy: whatever this misses is still matched as a whole behind the literal.
    """
    depth = 0
    in_class = False
    position = 0
    while position < len(text):
        ch = text[position]
        if ch == "\\":
            position += 2
            continue
        if in_class:
            in_class = ch != "]"
        elif ch == "[":
            in_class = True
            after = position + (2 if text[position + 1 : position + 2] == "^" else 1)
            if text[after : after + 1] == "]":  # a leading ] is a member of the class
                position = after
        elif ch in "()":
            depth += 1 if ch == "(" else -1
        elif ch == "|" and depth == 0:
            return True
        position += 1
    return False
