"""The templates, how a text is written in them, and the static files that they load.

Everything in a predicate was written by a stranger: Jinja escapes all of it, and `finalize` makes control and bidi
characters visible.
"""

import hashlib
from datetime import UTC, datetime
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape

from app.core.party import visible
from app.services.report import NOT_PROVEN, VERIFIED

_HERE = Path(__file__).parent
STATIC = {
    "style.css": ((_HERE / "static" / "style.css").read_bytes(), "text/css; charset=utf-8"),
    "icon.svg": ((_HERE / "static" / "icon.svg").read_bytes(), "image/svg+xml"),
}
STYLE_VERSION = hashlib.sha256(STATIC["style.css"][0]).hexdigest()[:12]


def _finalize(value: object) -> object:
    """Every text that a template prints, with what would hide or reorder it spelled out."""
    return visible(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def _environment() -> Environment:
    made = Environment(
        loader=FileSystemLoader(_HERE / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_finalize,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters["iso"] = _iso
    made.filters["minute"] = _minute
    made.filters["block"] = _block
    made.filters["prose"] = _prose
    made.globals["style_version"] = STYLE_VERSION
    made.globals["verified"] = VERIFIED
    made.globals["not_proven"] = NOT_PROVEN
    return made


def _instant(value: datetime | str) -> datetime:
    at = datetime.fromisoformat(value) if isinstance(value, str) else value
    return at.astimezone(UTC)


def _iso(value: datetime | str) -> str:
    return _instant(value).isoformat().replace("+00:00", "Z")


def _minute(value: datetime | str) -> str:
    return _instant(value).strftime("%Y-%m-%d %H:%M UTC")


def _prose(text: str) -> Markup:
    """A sentence whose parts in backticks are names: those become code, everything is escaped."""
    parts = [visible(part) for part in text.split("`")]
    if len(parts) % 2 == 0:
        return escape(visible(text))
    marked = [Markup("<code>{}</code>").format(part) if index % 2 else escape(part) for index, part in enumerate(parts)]
    return Markup("").join(marked)


def _block(text: str) -> Markup:
    """Text of several lines: escaped, with its line feeds kept."""
    return Markup("\n").join(visible(line) for line in text.split("\n"))


_TEMPLATES = _environment()


def render(template: str, page: object) -> bytes:
    """One page; `page` is the dataclass of the template."""
    return _TEMPLATES.get_template(template).render(page=page).encode("utf-8", "replace")
