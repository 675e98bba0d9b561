"""`ETag` and 304: a validator that changes when, and only when, the content does (service 3).

The tag is a hash of the body. So that a 304 costs one cheap query and no rendering, the tag of an answer is remembered
under everything that the answer depends on, until the moment when an age in it next changes. Bodies are not kept.
"""

import hashlib
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from datetime import datetime

from starlette.requests import Request
from starlette.responses import Response

MAX_TAGS = 8192
"""Remembered tags, about 200 bytes each; the least recently used one goes first."""

IMMUTABLE = "public, max-age=31536000, immutable"
"""For bytes that are named by their digest."""


@dataclass(frozen=True, slots=True)
class Rendered:
    """A body with its media type; `valid_until` is when it changes by itself, None for never."""

    body: bytes
    media_type: str = "application/json"
    valid_until: datetime | None = None
    cacheable: bool = True


class TagCache:
    """Key of an answer -> (tag, until when it holds); safe between threads."""

    def __init__(self, max_tags: int = MAX_TAGS) -> None:
        self._tags: OrderedDict[Hashable, tuple[str, datetime | None]] = OrderedDict()
        self._max = max_tags
        self._lock = threading.Lock()

    def get(self, key: Hashable, now: datetime) -> str | None:
        """The tag under `key` while it holds."""
        with self._lock:
            found = self._tags.get(key)
            if found is None:
                return None
            tag, until = found
            if until is not None and now >= until:
                del self._tags[key]
                return None
            self._tags.move_to_end(key)
            return tag

    def put(self, key: Hashable, tag: str, until: datetime | None) -> None:
        """Remember a tag."""
        with self._lock:
            self._tags[key] = (tag, until)
            self._tags.move_to_end(key)
            while len(self._tags) > self._max:
                self._tags.popitem(last=False)


def conditional(request: Request, key: Hashable, render: Callable[[], Rendered]) -> Response:
    """Answer 304 from the remembered tag alone, else render.

    `key` is taken before rendering: what changes in between only makes the remembered tag older than its content could
    be, and the next request, whose key differs, renders again.
    """
    cache: TagCache = request.app.state.tags
    now: datetime = request.app.state.clock()
    asked = _asked(request)
    known = cache.get(key, now) if asked else None
    if known is not None and (known in asked or "*" in asked):
        return _not_modified(known)
    rendered = render()
    tag = etag_of(rendered.body, rendered.media_type)
    if rendered.cacheable:
        cache.put(key, tag, rendered.valid_until)
    return _answer(rendered, tag, asked)


def tagged(request: Request, body: bytes) -> Response:
    """The same for JSON that is rendered anyway, since nothing cheaper says whether it changed."""
    rendered = Rendered(body)
    return _answer(rendered, etag_of(body, rendered.media_type), _asked(request))


def _answer(rendered: Rendered, tag: str, asked: frozenset[str]) -> Response:
    if tag in asked or "*" in asked:
        return _not_modified(tag)
    headers = {"ETag": tag, "Cache-Control": "no-cache", "Vary": "Accept"}
    return Response(rendered.body, media_type=rendered.media_type, headers=headers)


def etag_of(body: bytes, media_type: str) -> str:
    """A strong validator of one representation."""
    return '"' + hashlib.sha256(media_type.encode() + b"\0" + body).hexdigest()[:32] + '"'


def _not_modified(tag: str) -> Response:
    return Response(status_code=304, headers={"ETag": tag, "Cache-Control": "no-cache", "Vary": "Accept"})


def _asked(request: Request) -> frozenset[str]:
    """The tags of `If-None-Match`, compared weakly (RFC 9110 13.1.2)."""
    text = ",".join(request.headers.getlist("if-none-match"))[:8192]
    return frozenset(part.strip().removeprefix("W/") for part in text.split(",") if part.strip())
