"""A layout as one tar file: written for `GET /archive`, read by an offline `verify` with a registry's limits."""

import os
import stat
import tarfile
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from app.adapters.oci.codes import fetch_error
from app.adapters.oci.layout import BLOBS, INDEX_FILE, LAYOUT_FILE, LAYOUT_MARK, Layout
from app.adapters.oci.limits import ReaderLimits
from app.adapters.oci.manifest import parse_main
from app.adapters.oci.tar import BLOCK, ByteStream, read_tar
from app.adapters.oci.unpack import unpack_layer, write_tree
from app.adapters.oci.workdir import prepare_root, private_directory
from app.core.refs import Digest
from app.ports import Pulled

_COPY_BYTES = 256 << 10
_ENTRY_BYTES = 20 << 10
"""Most that one entry takes besides its content: two headers, an extended name, padding."""


def stream_layout(layout: Layout, blobs: Collection[Digest], index: bytes) -> Iterator[bytes]:
    """The tar of `blobs` under `index`, sorted, without times: the same layout gives the same bytes."""
    paths = [layout.blob_path(digest) for digest in sorted(blobs)]

    yield _header("blobs", None)
    yield _header(BLOBS, None)
    for path in paths:
        size = path.stat().st_size
        yield _header(f"{BLOBS}/{path.name}", size)
        yield from _file_chunks(path, size)
    for name, data in ((INDEX_FILE, index), (LAYOUT_FILE, LAYOUT_MARK)):
        yield _header(name, len(data))
        yield data + bytes(-len(data) % BLOCK)
    yield bytes(2 * BLOCK)


def _file_chunks(path: Path, size: int) -> Iterator[bytes]:
    with path.open("rb") as source:
        while piece := source.read(_COPY_BYTES):
            yield piece
    yield bytes(-size % BLOCK)


def _header(name: str, size: int | None) -> bytes:
    entry = tarfile.TarInfo(name)
    if size is None:
        entry.type, entry.mode = tarfile.DIRTYPE, 0o755
    else:
        entry.size, entry.mode = size, 0o644
    return entry.tobuf(tarfile.USTAR_FORMAT)


@contextmanager
def read_layout_tar(
    path: str, tmp: str, limits: ReaderLimits | None = None, *, tick: Callable[[], object] = lambda: None
) -> Iterator[Pulled]:
    """An archive tar as if it had been pulled: artifact, signatures and unpacked bundle; raises `FetchError`.

    `tick` is called as the work goes on and may raise to end it.
    """
    limits = limits or ReaderLimits()
    most = limits.blob_bytes + limits.signatures_bytes + 2 * limits.manifest_bytes
    outer = replace(limits, unpacked_bytes=most, files=4 * limits.referrers + 16)
    prepare_root(tmp)
    with private_directory(tmp) as private:
        root = Path(private, "layout")
        try:
            root.mkdir(0o700)
            chunks = _regular_chunks(path, most + 2 * outer.files * _ENTRY_BYTES, tick)
            write_tree(read_tar(ByteStream(chunks), outer), str(root), outer)
        except OSError as err:
            raise fetch_error("STORAGE_UNAVAILABLE", f"the archive can not be read: {err.strerror}") from err
        layout = Layout(root, limits)
        artifact = layout.artifact()
        main = parse_main(artifact.manifest, limits)
        layer = layout.blob_path(main.layer.digest)
        if not layer.is_file() or layer.stat().st_size != main.layer.size:
            raise fetch_error("LAYOUT_INVALID", f"the layout does not hold the {main.layer.size} bytes of its layer")
        directory = str(Path(private, "bundle"))
        unpack_layer(
            str(layer),
            directory,
            digest=main.layer.digest,
            size=main.layer.size,
            tar_digest=main.tar_digest,
            limits=limits,
            tick=tick,
        )
        yield Pulled(artifact, directory, str(layer))


def _regular_chunks(path: str, most: int, tick: Callable[[], object]) -> Iterator[bytes]:
    """A file that was named, piece by piece; links are the caller's own and are followed, but not to a device.

    What it holds is counted as it is read, zeros after the end of the tar included.
    """
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)  # no waiting for a pipe's other end
    with os.fdopen(handle, "rb") as source:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise fetch_error("LAYOUT_INVALID", "expected a regular file, got something else")
        total = 0
        while piece := source.read(_COPY_BYTES):
            tick()
            total += len(piece)
            if total > most:
                raise fetch_error("BODY_TOO_LARGE", f"the archive has more than {most} bytes")
            yield piece
