"""Hostile artifacts: layers and manifests that a careless reader would act on."""

import io
import json
import tarfile
from collections.abc import Callable, Mapping

from app.adapters.oci.manifest import EMPTY_CONFIG, LAYER_TYPE, TAR_DIGEST, TITLE, UNPACK, Descriptor
from app.adapters.oci.pack import BundleArtifact, canonical_json, describe_bundle, gzip_member, pack_tar, sha256
from app.sandbox.registry.modes import Hostility

_PREDICATE = "https://aicr.run/recipe-evidence/v3"
_BOMB_BYTES = 64 << 20


def hostile_artifact(mode: Hostility, files: Mapping[str, bytes]) -> BundleArtifact:
    """`files` with one hostile twist in layer or manifest; a serving mode leaves them as they are."""
    honest = describe_bundle(files, predicate_type=_PREDICATE, version="v0.0.0")
    if mode in _TARS:
        return _with_layer(honest, gzip_member(_TARS[mode](files)))
    if mode is Hostility.SECOND_MEMBER:
        return _with_layer(honest, honest.layer + gzip_member(b"second"))
    if mode is Hostility.TRAILING_GARBAGE:
        return _with_layer(honest, honest.layer + b"garbage")
    if mode in _MANIFESTS:
        manifest = _MANIFESTS[mode](honest.manifest)
        return BundleArtifact(
            manifest, EMPTY_CONFIG, honest.layer, sha256(manifest), honest.layer_digest, honest.tar_digest
        )
    return honest


def _with_layer(honest: BundleArtifact, layer: bytes) -> BundleArtifact:
    document = json.loads(honest.manifest)
    annotations = {TITLE: ".", UNPACK: "true", TAR_DIGEST: str(honest.tar_digest)}
    document["layers"] = [Descriptor(LAYER_TYPE, sha256(layer), len(layer), annotations=annotations).to_json()]
    del document["layers"][0]["annotations"][TAR_DIGEST]
    manifest = canonical_json(document)
    return BundleArtifact(manifest, EMPTY_CONFIG, layer, sha256(manifest), sha256(layer), honest.tar_digest)


def _tar(files: Mapping[str, bytes], *extra: tuple[tarfile.TarInfo, bytes]) -> bytes:
    """The honest entries with more behind them."""
    out = io.BytesIO(pack_tar(files)[:-1024])
    out.seek(0, io.SEEK_END)
    with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for entry, content in extra:
            entry.size = len(content) if entry.isreg() else 0
            archive.addfile(entry, io.BytesIO(content))
    return out.getvalue()


def _entry(name: str, kind: bytes = tarfile.REGTYPE, **fields: object) -> tarfile.TarInfo:
    entry = tarfile.TarInfo(name)
    entry.type = kind
    for key, value in fields.items():
        setattr(entry, key, value)
    return entry


_TARS: Mapping[Hostility, Callable[[Mapping[str, bytes]], bytes]] = {
    Hostility.GZIP_BOMB: lambda files: _tar(files, (_entry("zeros.bin"), bytes(_BOMB_BYTES))),
    Hostility.TAR_BOMB: lambda files: _tar(files, *((_entry(f"many/{n:05}"), b"") for n in range(5000))),
    Hostility.TRAVERSAL: lambda files: _tar(files, (_entry("../escaped.txt"), b"out")),
    Hostility.ABSOLUTE: lambda files: _tar(files, (_entry("/escaped.txt"), b"out")),
    Hostility.PAX_PATH: lambda files: _tar(
        files, (_entry("harmless.txt", pax_headers={"path": "ctrf/../../escaped.txt"}), b"out")
    ),
    Hostility.SYMLINK: lambda files: _tar(
        files, (_entry("link", tarfile.SYMTYPE, linkname=".."), b""), (_entry("link/escaped.txt"), b"out")
    ),
    Hostility.HARDLINK: lambda files: _tar(files, (_entry("hard", tarfile.LNKTYPE, linkname="../../passwd"), b"")),
    Hostility.DEVICE: lambda files: _tar(files, (_entry("null", tarfile.CHRTYPE, devmajor=1, devminor=3), b"")),
    Hostility.DUPLICATE_ENTRY: lambda files: _tar(files, (_entry(next(iter(files))), b"second")),
    Hostility.CASE_TWINS: lambda files: _tar(files, (_entry("twin.txt"), b"1"), (_entry("TWIN.txt"), b"2")),
}


def _two_titles(manifest: bytes) -> bytes:
    document = json.loads(manifest)
    document["layers"] = document["layers"] * 2
    return canonical_json(document)


_MANIFESTS: Mapping[Hostility, Callable[[bytes], bytes]] = {
    Hostility.DUPLICATE_TITLES: _two_titles,
    Hostility.DUPLICATE_KEYS: lambda manifest: manifest[:-1] + b',"layers":[]}',
    Hostility.LOOKALIKE_KEYS: lambda manifest: manifest[:-1] + b',"Layers":[]}',
}
