"""Opaque cursors of keyset lists: what a page ended at, so that rows that come or go in between move nothing."""

import base64
import binascii
import json

from app.core.catalogue import MAX_NAME_CHARS
from app.core.errors import InputError
from app.web.addresses import is_text

MAX_LIMIT = 500
DEFAULT_LIMIT = 50

MAX_CURSOR_CHARS = (MAX_NAME_CHARS * 6 + 64) * 4 // 3
"""As long as a cursor can be: JSON takes up to six bytes a character of a name, Base64 a third more."""


def encode(kind: str, position: int | str | None) -> str | None:
    """The cursor of the next page, None on the last one."""
    if position is None:
        return None
    return base64.urlsafe_b64encode(json.dumps([kind, position], ensure_ascii=False).encode()).decode().rstrip("=")


def decode_number(kind: str, cursor: str | None) -> int | None:
    """The position of a list by number; raises `InputError` for a cursor that this list did not give out."""
    position = _decode(kind, cursor)
    if position is not None and (not isinstance(position, int) or not 0 <= position < 1 << 63):
        raise _foreign(kind)
    return position


def decode_text(kind: str, cursor: str | None) -> str | None:
    """The position of a list by name."""
    position = _decode(kind, cursor)
    if position is not None and not isinstance(position, str):
        raise _foreign(kind)
    return position


def _decode(kind: str, cursor: str | None) -> int | str | None:
    if cursor is None:
        return None
    try:
        value = json.loads(base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)))
    except (ValueError, binascii.Error, RecursionError) as err:
        raise _foreign(kind) from err
    if not isinstance(value, list) or len(value) != 2 or value[0] != kind:
        raise _foreign(kind)
    position = value[1]
    if isinstance(position, bool) or not isinstance(position, int | str) or not is_text(str(position)):
        raise _foreign(kind)
    return position


def _foreign(kind: str) -> InputError:
    return InputError(f"expected a cursor that the list of {kind} gave as `next`", hint="start again without a cursor")
