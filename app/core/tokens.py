"""Bearer tokens as text (RFC 6750, 2.1)."""

import re

_TOKEN = re.compile(r"[!-+\-.-~]{1,4096}")
"""Visible ASCII without the comma, which parts two tokens in a setting."""


def is_bearer_token(text: str) -> bool:
    """Whether `text` can stand in an `Authorization` header as one token."""
    return _TOKEN.fullmatch(text) is not None
