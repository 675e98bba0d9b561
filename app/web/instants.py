"""Times that callers write: RFC 3339 with `Z` or an offset, kept in UTC.

Read on its own, pydantic takes a bare number for seconds since 1970, and an offset can lead out of the years 1 to 9999
that Python and a database hold.
"""

import re
from datetime import UTC, datetime
from typing import Annotated

from pydantic import AfterValidator, AwareDatetime, BeforeValidator

_RFC_3339 = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt ][0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,9})?([Zz]|[+-][0-9]{2}:[0-9]{2})", re.ASCII
)


def _written(value: object) -> object:
    if isinstance(value, datetime):
        return value
    if not isinstance(value, str) or not _RFC_3339.fullmatch(value):
        raise ValueError("expected a date and time with Z or an offset, such as 2026-01-11T10:30:00Z")
    return value


def _in_utc(value: datetime) -> datetime:
    try:
        return value.astimezone(UTC)
    except OverflowError:
        raise ValueError("expected a time within the years 1 to 9999 in UTC") from None


Instant = Annotated[AwareDatetime, BeforeValidator(_written), AfterValidator(_in_utc)]
"""A moment in UTC."""
