"""Pins: what a caller asks of the signer (evidence-format 8.2).

The identity pin searches, as upstream's does: whoever means the whole identity anchors it with `^` and `$`.
"""

from dataclasses import dataclass
from typing import Final

import re2

from app.core.bundle import Pins
from app.core.errors import InputError

MAX_REGEXP_CHARS: Final = 2048
MAX_REGEXP_BYTES: Final = 4 << 20  # memory of one compiled program


@dataclass(frozen=True, slots=True)
class CompiledPins:
    """Pins that are ready to match; `fault` says which one does not hold."""

    issuer: str | None
    identity_regexp: str | None
    _program: object | None = None

    def fault(self, issuer: str, identity: str) -> str | None:
        """What was pinned and what was found, or None when every pin holds; an unset pin accepts anything."""
        if self.issuer is not None and issuer != self.issuer:
            return f"expected issuer {self.issuer!r}, the certificate says {issuer!r}"
        if self._program is not None and self._program.search(identity) is None:  # type: ignore[attr-defined]
            return f"expected an identity that matches {self.identity_regexp!r}, the certificate says {identity!r}"
        return None


def compile_pins(pins: Pins) -> CompiledPins:
    """Compile the identity pin with RE2; raises `InputError` for an empty pin or a regexp that RE2 does not take."""
    if pins.issuer == "" or pins.identity_regexp == "":
        raise InputError("expected a pinned issuer or identity, got an empty one", hint="leave the option out")
    if pins.identity_regexp is None:
        return CompiledPins(pins.issuer, None)
    if len(pins.identity_regexp) > MAX_REGEXP_CHARS:
        raise InputError(
            f"identity regexp has {len(pins.identity_regexp)} characters, at most {MAX_REGEXP_CHARS} are taken"
        )
    options = re2.Options()
    options.max_mem = MAX_REGEXP_BYTES
    options.log_errors = False
    try:
        program = re2.compile(pins.identity_regexp, options=options)
    except (re2.error, UnicodeError) as err:
        reason = err.args[0] if err.args else "invalid"
        raise InputError(
            f"expected an RE2 regular expression, got {pins.identity_regexp[:120]!r}: "
            f"{reason.decode(errors='replace') if isinstance(reason, bytes) else reason}",
            hint="RE2 has no look-around and no back-references",
        ) from err
    return CompiledPins(pins.issuer, pins.identity_regexp, program)
