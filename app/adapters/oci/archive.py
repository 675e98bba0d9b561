"""Bundles as they came, kept for ever: one OCI layout per bundle digest (service 6). Implements `BundleArchive`.

A layout appears by one rename and an index changes by one rename, so a crash leaves either state but no half of
one; whatever no record names is swept at start.
"""

import fcntl
import logging
import os
import re
import secrets
import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from app.adapters.oci.damage import ARCHIVE_DAMAGED, damage, damaged, guarded, storage
from app.adapters.oci.durable import TEMPORARY, Flusher, write_new, writing
from app.adapters.oci.layout import (
    BLOBS,
    CONTENT_NOTE,
    INDEX_FILE,
    LAYOUT_FILE,
    LAYOUT_MARK,
    Layout,
    layout_index,
    main_entry,
    signature_parts,
)
from app.adapters.oci.layout_tar import stream_layout
from app.adapters.oci.limits import MIB, ReaderLimits
from app.adapters.oci.manifest import EMPTY_DIGEST, MANIFEST_TYPE, Descriptor, parse_main
from app.adapters.oci.mending import copy_checked, has_bytes, is_marked, is_whole, missing, salvaged
from app.adapters.oci.pack import sha256
from app.adapters.oci.unpack import unpack_layer
from app.adapters.oci.workdir import prepare_root, private_directory
from app.core.bundle import RawSignature
from app.core.errors import ConflictError, FetchError, NotFoundError, StoreError
from app.core.refs import Digest
from app.ports import Artifact, Pulled

log = logging.getLogger(__name__)

_SAMPLE = 128  # bundles that are looked at before a sweep
_HEX = re.compile(r"[0-9a-f]{64}")
MAX_SIGNATURES = 4096
"""Signatures of one bundle, all submitters together."""


class OciArchive:
    """`<root>/<first two hex>/<hex>/` holds `oci-layout`, `index.json` and `blobs/sha256/`.

    `failpoint` is called with a name after each step that a crash may follow (`archive:blobs`, `archive:rename`,
    `archive:synced`, `archive:mended`, `archive:signature`, `archive:index`). A sweep leaves what is younger than
    `grace_seconds` alone, for roots that several processes write to.
    """

    def __init__(
        self,
        root: str,
        *,
        tmp: str,
        limits: ReaderLimits | None = None,
        failpoint: Callable[[str], None] = lambda _: None,
        grace_seconds: float = 0.0,
    ) -> None:
        self._root = Path(root)
        self._tmp = tmp
        # A digest gathers the signatures of many submitters, more than one pull may bring.
        self._limits = replace(limits or ReaderLimits(), referrers=MAX_SIGNATURES, signatures_bytes=256 * MIB)
        self._failpoint = failpoint
        self._grace = grace_seconds
        self._flusher = Flusher()
        with storage():
            self._root.mkdir(0o700, parents=True, exist_ok=True)
        prepare_root(tmp)

    # --- write ---------------------------------------------------------------------------------------

    def put(self, artifact: Artifact, signature: RawSignature, layer: str, /) -> None:
        """Keep the artifact with one signature, or add the signature to what is there; durable on return.

        What the disk lost of either since then is put back.
        """
        entry, blobs = signature_parts(artifact, signature)
        with storage(), self._locked(artifact.digest) as target:
            if target.is_dir():
                self._mend(target, artifact, layer)
                self._add_signature(target, artifact, entry, blobs)
                self._flusher.flush([target.parent])  # the process that made it may have died before it did
            else:
                self._create(target, artifact, entry, blobs, layer)

    def _create(
        self, target: Path, artifact: Artifact, entry: Descriptor, blobs: Mapping[Digest, bytes], layer: str
    ) -> None:
        fresh = self._temporary(target.parent)
        try:
            held = fresh / BLOBS
            held.mkdir(0o700, parents=True)
            everything = {artifact.digest: artifact.manifest, EMPTY_DIGEST: artifact.config, **blobs}
            for digest, data in everything.items():
                write_new(held / digest.hex, (data,))
            copy_checked(Path(layer), held / artifact.layer_digest.hex, artifact.layer_digest)
            write_new(fresh / LAYOUT_FILE, (LAYOUT_MARK,))
            write_new(fresh / INDEX_FILE, (layout_index(main_entry(artifact), (entry,)),))
            self._flusher.flush((fresh, *fresh.rglob("*")))
        except (OSError, StoreError):
            shutil.rmtree(fresh, ignore_errors=True)
            raise
        self._failpoint("archive:blobs")
        fresh.rename(target)
        self._failpoint("archive:rename")
        self._flusher.flush([target.parent])
        self._failpoint("archive:synced")

    def _mend(self, target: Path, artifact: Artifact, layer: str) -> None:
        """Put back whatever of the artifact itself is not what its digest says; nothing on a sound disk."""
        held = target / BLOBS
        held.mkdir(0o700, parents=True, exist_ok=True)
        parts = {artifact.digest: artifact.manifest, EMPTY_DIGEST: artifact.config}
        lost = missing(held, parts)
        if not is_marked(target):
            lost[target / LAYOUT_FILE] = writing(LAYOUT_MARK)
        packed = held / artifact.layer_digest.hex
        if not has_bytes(packed, artifact.layer_digest):
            lost[packed] = lambda fresh: copy_checked(Path(layer), fresh, artifact.layer_digest)
        if not lost:
            return
        log.warning("archived bundle %s was damaged and is put back", artifact.digest)
        self._flusher.replace(lost)
        self._failpoint("archive:mended")
        self._flusher.flush([held, held.parent, target])

    def _add_signature(
        self, target: Path, artifact: Artifact, entry: Descriptor, blobs: Mapping[Digest, bytes]
    ) -> None:
        layout = Layout(target, self._limits)
        known = self._listed_or_salvaged(layout, artifact)
        lost = missing(target / BLOBS, blobs)
        if entry not in known:
            known = tuple(held for held in known if held.digest != entry.digest)
            if len(known) >= MAX_SIGNATURES:
                raise ConflictError(f"bundle {artifact.digest} has {MAX_SIGNATURES} signatures, no more are kept")
            known = (*known, entry)
        if lost:
            self._flusher.replace(lost)
            self._flusher.flush([target / BLOBS])
        self._failpoint("archive:signature")
        index = layout_index(main_entry(artifact), known)
        if not has_bytes(target / INDEX_FILE, sha256(index)):
            self._flusher.replace({target / INDEX_FILE: writing(index)})
        self._flusher.flush([target])
        self._failpoint("archive:index")

    def _listed_or_salvaged(self, layout: Layout, artifact: Artifact) -> tuple[Descriptor, ...]:
        """The signatures of the index, or of the blobs when there is no index to read."""
        try:
            return self._listed(layout)
        except StoreError as err:
            if err.code != ARCHIVE_DAMAGED:
                raise
        log.warning("the index of archived bundle %s was lost and is made anew", artifact.digest)
        subject = Descriptor(MANIFEST_TYPE, artifact.digest, len(artifact.manifest))
        return salvaged(layout, subject, self._limits)

    # --- read ----------------------------------------------------------------------------------------

    def holds(self, digest: Digest, signature_sha256: str, /) -> bool:
        """Whether this bundle is archived with this signature (bare hex of the Sigstore bundle), to the last byte."""
        if not self._path(digest).is_dir():
            return False
        layout = self._layout(digest)
        try:
            with storage(), damage():
                named = [entry for entry in layout.entries() if _content(entry) == signature_sha256]
                return any(is_whole(layout, entry, self._limits) for entry in named)
        except StoreError as err:
            if err.code != ARCHIVE_DAMAGED:
                raise
            return False

    def signature(self, digest: Digest, signature_sha256: str, /) -> RawSignature:
        """The exact Sigstore bundle with its referrer manifest."""
        layout = self._layout(digest)
        for entry in self._listed(layout):
            if _content(entry) == signature_sha256:
                with damage():
                    main, _ = layout.main()
                    return layout.signature(entry, Descriptor(MANIFEST_TYPE, main.digest, main.size))
        raise NotFoundError(f"bundle {digest} has no archived signature sha256:{signature_sha256[:64]}")

    @contextmanager
    def open(self, digest: Digest, /) -> Iterator[Pulled]:
        """The archived artifact, checked and unpacked anew into a private directory."""
        layout = self._layout(digest)
        with damage():
            artifact = layout.artifact()
            main = parse_main(artifact.manifest, self._limits)
        layer = str(layout.blob_path(main.layer.digest))
        if not Path(layer).is_file():
            raise damaged(f"its layer {main.layer.digest} is missing")
        with private_directory(self._tmp) as private:
            directory = str(Path(private, "bundle"))
            with damage():
                unpack_layer(
                    layer,
                    directory,
                    digest=main.layer.digest,
                    size=main.layer.size,
                    tar_digest=main.tar_digest,
                    limits=self._limits,
                )
            yield Pulled(artifact, directory, layer)

    def export_tar(self, digest: Digest) -> Iterator[bytes]:
        """The layout as a tar stream, the same bytes each time.

        It holds as many signatures, oldest first, as a reader takes from one artifact. Raises `NotFoundError` and
        `StoreError` before the first chunk: nothing is sent of a bundle that is not whole.
        """
        layout = self._layout(digest)
        with damage():
            main, manifest = layout.main()
            blobs = {main.digest, EMPTY_DIGEST, parse_main(manifest, self._limits).layer.digest}
        entries = self._listed(layout)[: ReaderLimits().referrers]
        for entry in entries:
            blobs |= {entry.digest, Digest(_content(entry))}
        with storage():
            lost = [digest for digest in sorted(blobs) if not has_bytes(layout.blob_path(digest), digest)]
        if lost:
            raise damaged(f"blob {lost[0]} is missing or altered")
        return guarded(stream_layout(layout, blobs, layout_index(main, entries)))

    def digests(self) -> Iterator[Digest]:
        """Every archived bundle."""
        with storage():
            found = sorted(path.name for shard in self._shards() for path in shard.iterdir())
        yield from (Digest(name) for name in found if _HEX.fullmatch(name))

    # --- remove --------------------------------------------------------------------------------------

    def remove(self, digest: Digest) -> bool:
        """Forget a bundle's bytes, at once; whether there were any."""
        with storage(), self._locked(digest) as target:
            if not target.is_dir():
                return False
            self._discard(target)
            return True

    def sweep(self, known: Callable[[Digest, str], bool], /) -> int:
        """Remove temporary names, bundles and signatures that `known(digest, signature sha256)` denies.

        Crashes leave a few. Where most bundles are unknown, the database is another one or an older one, and the
        archive is what it could be made whole from: nothing is removed then.
        """
        gone = 0
        with storage():
            for shard in self._shards():
                for path in list(shard.iterdir()):
                    if path.name.startswith(TEMPORARY) and self._old(path):
                        self._drop_temporary(shard, path)
            digests = list(self.digests())
            if self._mostly_unknown(digests, known):
                return 0
            for digest in digests:
                with self._locked(digest) as target:
                    if target.is_dir() and self._old(target / INDEX_FILE):
                        gone += self._sweep_layout(target, digest, known)
        return gone

    def _mostly_unknown(self, digests: Sequence[Digest], known: Callable[[Digest, str], bool]) -> bool:
        """Whether most of a sample, which digests in their order are, has no record at all."""
        unknown = 0
        for digest in digests[:_SAMPLE]:
            try:
                held = self._listed(self._layout(digest))
            except (NotFoundError, StoreError):
                continue
            unknown += not any(known(digest, _content(entry)) for entry in held)
        if unknown <= _SAMPLE // 2:
            return False
        log.error(
            "nothing is swept: %d of %d archived bundles have no record; is this their database?", unknown, _SAMPLE
        )
        return True

    def _sweep_layout(self, target: Path, digest: Digest, known: Callable[[Digest, str], bool]) -> int:
        layout = Layout(target, self._limits)
        try:
            main, manifest = layout.main()
            held = self._listed(layout)
        except (FetchError, StoreError):
            return 0  # damaged: reported when it is opened, never removed unasked
        kept = tuple(entry for entry in held if known(digest, _content(entry)))
        if not kept:
            self._discard(target)
            return max(1, len(held))
        if len(kept) < len(held):
            self._flusher.replace({target / INDEX_FILE: writing(layout_index(main, kept))})
            self._flusher.flush([target])
        wanted = {main.digest.hex, EMPTY_DIGEST.hex, parse_main(manifest, self._limits).layer.digest.hex}
        wanted |= {name for entry in kept for name in (entry.digest.hex, _content(entry))}
        for path in (target / BLOBS).iterdir():
            if path.name not in wanted:
                path.unlink()
        for path in target.glob(f"{TEMPORARY}*"):
            path.unlink()
        return len(held) - len(kept)

    def _discard(self, target: Path) -> None:
        """Make a layout disappear by one rename, then free its space."""
        doomed = target.parent / f"{TEMPORARY}{secrets.token_hex(8)}"
        target.rename(doomed)
        self._flusher.flush([target.parent])
        shutil.rmtree(doomed, ignore_errors=True)

    def _drop_temporary(self, shard: Path, path: Path) -> None:
        with _exclusive(shard):
            shutil.rmtree(path, ignore_errors=True)

    def _old(self, path: Path) -> bool:
        try:
            return time.time() - path.stat().st_mtime >= self._grace
        except FileNotFoundError:
            return False

    # --- places --------------------------------------------------------------------------------------

    def _path(self, digest: Digest) -> Path:
        return self._root / digest.hex[:2] / digest.hex

    def _shards(self) -> list[Path]:
        return [path for path in self._root.iterdir() if path.is_dir()]

    def _layout(self, digest: Digest) -> Layout:
        path = self._path(digest)
        if not path.is_dir():
            raise NotFoundError(f"bundle {digest} is not in the archive")
        return Layout(path, self._limits)

    def _listed(self, layout: Layout) -> tuple[Descriptor, ...]:
        """The index entries of the signatures, oldest first."""
        with damage():
            return tuple(entry for entry in layout.entries() if _content(entry))

    def _temporary(self, shard: Path) -> Path:
        path = shard / f"{TEMPORARY}{secrets.token_hex(8)}"
        path.mkdir(0o700)
        return path

    @contextmanager
    def _locked(self, digest: Digest) -> Iterator[Path]:
        """The layout's place, with its shard to ourselves among all threads and processes."""
        target = self._path(digest)
        if not target.parent.is_dir():
            target.parent.mkdir(0o700, exist_ok=True)
            self._flusher.flush([self._root])
        with _exclusive(target.parent):
            yield target


@contextmanager
def _exclusive(shard: Path) -> Iterator[None]:
    handle = os.open(shard, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def _content(entry: Descriptor) -> str:
    """The Sigstore bundle's sha256 of an index entry, "" for the artifact's own."""
    return (entry.annotations or {}).get(CONTENT_NOTE, "")
