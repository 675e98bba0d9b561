"""URLs as people write and may see them: without passwords and tokens, also when the URL is malformed.

What can not be told apart for sure is left out: hiding a host name too much costs less than showing a secret.
"""

import re
from urllib.parse import unquote_plus, urlsplit

HIDDEN = "***"

_SECRET = re.compile(r"pass|pwd|secret|token|key|cred|auth|sig", re.IGNORECASE)
"""In a query parameter: `password`, `sslpassword`, `passfile`, `sslkey`, `access_token`, ..."""


def http_host(text: str) -> str | None:
    """The host of an http or https address; None for what is no such address."""
    try:
        parts = urlsplit(text)
        _ = parts.port  # raises for what is no port
    except ValueError:
        return None
    return parts.hostname if parts.scheme in {"http", "https"} else None


def masked_url(text: str) -> str:
    """`scheme://user:password@host/path?sslpassword=x` as `scheme://user:***@host/path?sslpassword=***`.

    A password may hold an unescaped `@`: the last one before the query ends it. Text without `://` and `@` stays,
    unless it gives a secret by name, as in `host=db password=x`, which people write for a URL.
    """
    scheme, marker, rest = text.partition("://")
    if not marker:
        scheme, rest = "", text
    body, question, query = rest.partition("?")
    if not marker and "=" in body and _SECRET.search(body):
        return HIDDEN
    if "@" in query:
        return f"{scheme}{marker}{HIDDEN}"  # a password with a question mark, or a secret with an `@`
    login, at, place = body.rpartition("@")
    user, colon, _ = login.partition(":")
    shown = f"{user}:{HIDDEN}@" if colon and "/" not in user else f"{HIDDEN}@" if at else ""
    return f"{scheme}{marker}{shown}{place}{question}{'&'.join(map(_masked_parameter, query.split('&')))}"


def _masked_parameter(text: str) -> str:
    name, equals, _ = text.partition("=")
    return f"{name}={HIDDEN}" if equals and _SECRET.search(unquote_plus(text)) else text
