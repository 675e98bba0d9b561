"""A layer file becomes a directory: gzip and tar as one stream, with every limit asked while it runs (trust 3)."""

import hashlib
import os
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path

from app.adapters.oci.codes import fetch_error
from app.adapters.oci.limits import ReaderLimits
from app.adapters.oci.tar import ByteStream, TarEntry, read_tar
from app.core.refs import Digest

_READ_BYTES = 64 << 10
_INFLATE_BYTES = 256 << 10
_GZIP = 31  # zlib's window code for exactly one gzip member with its checksum


def unpack_layer(
    layer: str,
    into: str,
    *,
    digest: Digest,
    size: int,
    tar_digest: Digest | None,
    limits: ReaderLimits,
    tick: Callable[[], object] = lambda: None,
) -> int:
    """Unpack the gzip'd tar at `layer` into the new directory `into`; returns the bytes of its files.

    The compressed file must have `size` bytes and hash to `digest`, the tar to `tar_digest` when one is
    annotated. `tick` is called as the work goes on and may raise to end it. Raises `FetchError`; what was written
    until then stays for the caller's clean-up.
    """
    try:
        Path(into).mkdir(0o700)
        with Path(layer).open("rb", buffering=0) as source:
            compressed = hashlib.sha256()
            plain = hashlib.sha256()

            def pieces() -> Iterator[bytes]:
                while piece := source.read(_READ_BYTES):
                    tick()
                    compressed.update(piece)
                    yield piece

            written = write_tree(read_tar(ByteStream(inflate(pieces(), plain, size, limits)), limits), into, limits)
    except OSError as err:
        raise fetch_error("STORAGE_UNAVAILABLE", f"the bundle can not be unpacked: {err.strerror}") from err
    if compressed.hexdigest() != digest.hex:
        raise fetch_error("DIGEST_MISMATCH", f"expected a layer of {digest}, got sha256:{compressed.hexdigest()}")
    if tar_digest is not None and plain.hexdigest() != tar_digest.hex:
        raise fetch_error("DIGEST_MISMATCH", f"expected a tar of {tar_digest}, got sha256:{plain.hexdigest()}")
    return written


def inflate(source: Iterator[bytes], plain: "hashlib._Hash", size: int, limits: ReaderLimits) -> Iterator[bytes]:
    """The content of exactly one gzip member, bounded in bytes and in ratio to the layer's `size`."""
    engine = zlib.decompressobj(_GZIP)
    most = min(limits.unpacked_bytes, max(limits.ratio_floor_bytes, size * limits.ratio))
    total = 0
    for piece in source:
        if engine.eof:
            raise fetch_error("LAYER_UNSAFE", "bytes follow the gzip member")
        pending, full = piece, False
        while pending or full:
            try:
                out = engine.decompress(pending, _INFLATE_BYTES)
            except zlib.error as err:
                raise fetch_error("LAYER_UNSAFE", "the layer is not sound gzip") from err
            if engine.unused_data:
                raise fetch_error("LAYER_UNSAFE", "bytes follow the gzip member")
            pending = engine.unconsumed_tail
            full = len(out) == _INFLATE_BYTES  # more may wait inside without any input
            total += len(out)
            if total > most:
                if total > limits.unpacked_bytes:
                    raise fetch_error("BODY_TOO_LARGE", f"unpacked bundle is over {limits.unpacked_bytes} bytes")
                raise fetch_error("BOMB", f"{size} compressed bytes unpack to more than {limits.ratio} times as many")
            plain.update(out)
            if out:
                yield out
    if not engine.eof:
        raise fetch_error("LAYER_UNSAFE", "the gzip stream is cut off")


def write_tree(entries: Iterator[TarEntry], into: str, limits: ReaderLimits) -> int:
    """Write files (0600) and directories (0700) below `into`, which nobody else can reach; returns file bytes."""
    total = 0
    for entry in entries:
        target = Path(into, *entry.path.split("/"))
        if entry.directory:
            target.mkdir(0o700, parents=True, exist_ok=True)
            continue
        target.parent.mkdir(0o700, parents=True, exist_ok=True)
        handle = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        with os.fdopen(handle, "wb") as out:
            for piece in entry.chunks():
                out.write(piece)
                total += len(piece)
                if total > limits.unpacked_bytes:
                    raise fetch_error("BODY_TOO_LARGE", f"unpacked bundle is over {limits.unpacked_bytes} bytes")
    return total
