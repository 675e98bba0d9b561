"""Files of strangers: one file of a bundle, or the whole artifact, streamed as attachments that can not run.

The bundle is unpacked into a private directory that is gone before the first byte is sent: an open file outlives its
name, and a caller who goes away leaves nothing behind.
"""

import os
import stat
from collections.abc import Iterator
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from app.core.errors import NotFoundError
from app.core.refs import Digest
from app.web.caching import IMMUTABLE
from app.web.context import Context
from app.web.middleware import STRICT_CSP

CHUNK_BYTES = 1 << 16


def file_response(request: Request, here: Context, digest: Digest, path: str) -> Response:
    """One file; raises `NotFoundError` for whatever is no regular file below the bundle's root."""
    here.records.require(digest)
    with here.container.archive.open(digest) as pulled:
        descriptor = _open_below(pulled.directory, path)
    size = os.fstat(descriptor).st_size
    return _attachment(request, _Chunks(descriptor), path.rpartition("/")[2], "application/octet-stream", size)


def archive_response(request: Request, here: Context, digest: Digest) -> Response:
    """The OCI layout of a digest as a tar."""
    here.records.require(digest)
    chunks = here.container.archive.export_tar(digest)
    return _attachment(request, chunks, f"{digest.hex}.tar", "application/x-tar", None)


def _attachment(request: Request, chunks: Iterator[bytes], name: str, media_type: str, size: int | None) -> Response:
    headers = {
        "Cache-Control": IMMUTABLE,
        "Content-Disposition": f"attachment; filename*=UTF-8''{quote(name, safe='')}",
        "Content-Security-Policy": STRICT_CSP,
    }
    if size is not None:
        headers["Content-Length"] = str(size)
    body = iter(()) if getattr(request.state, "head", False) else chunks
    return StreamingResponse(body, media_type=media_type, headers=headers)


def _open_below(root: str, path: str) -> int:
    """Open `path` segment by segment without following a link; the root is a directory that we made."""
    unknown = NotFoundError(f"no file {path[:200]!r} in the bundle")
    segments = path.split("/")
    if not path or "\0" in path or any(segment in ("", ".", "..") for segment in segments):
        raise unknown
    current = os.open(root, os.O_RDONLY | os.O_DIRECTORY)
    try:
        for index, segment in enumerate(segments):
            last = index == len(segments) - 1
            flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | (0 if last else os.O_DIRECTORY)
            following = os.open(segment, flags, dir_fd=current)
            os.close(current)
            current = following
        if not stat.S_ISREG(os.fstat(current).st_mode):
            raise unknown
    except (OSError, ValueError) as err:
        os.close(current)
        raise unknown from err
    except NotFoundError:
        os.close(current)
        raise
    return current


class _Chunks:
    """The bytes of an open file; closes it at the end, or when nobody wants the rest."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def __iter__(self) -> "_Chunks":
        return self

    def __next__(self) -> bytes:
        chunk = os.read(self._descriptor, CHUNK_BYTES) if self._descriptor >= 0 else b""
        if not chunk:
            self.close()
            raise StopIteration
        return chunk

    def close(self) -> None:
        """Give the descriptor back, once."""
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)

    def __del__(self) -> None:
        self.close()
