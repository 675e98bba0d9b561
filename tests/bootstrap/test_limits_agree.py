"""What the tar reader lets through, the judge's directory reader takes: both have one set of limits."""

import hashlib
from pathlib import Path

import pytest

from app.adapters.oci.pack import gzip_member, pack_tar
from app.adapters.oci.unpack import unpack_layer
from app.bootstrap.container import build_judge, reader_limits
from app.bootstrap.judge_parts import reader
from app.config import Settings
from app.core.bundle import EntryKind
from app.core.errors import FetchError
from app.core.refs import Digest

SETTINGS = Settings(max_unpack_ratio=10_000)


def unpack(files: dict[str, bytes], directory: Path, settings: Settings = SETTINGS) -> str:
    layer = gzip_member(pack_tar(files))
    path, into = directory / "layer", directory / "out"
    path.write_bytes(layer)
    digest = Digest(hashlib.sha256(layer).hexdigest())
    limits = reader_limits(settings)
    unpack_layer(str(path), str(into), digest=digest, size=len(layer), tar_digest=None, limits=limits)
    return str(into)


def test_directories_take_no_place_of_the_4096_files(tmp_path: Path) -> None:
    files = {f"{n % 64:02}/{n % 7}/{n}": b"" for n in range(4096)}
    content = reader(build_judge(SETTINGS)).read(unpack(files, tmp_path))
    kinds = [entry.kind for entry in content.entries.values()]
    assert (kinds.count(EntryKind.FILE), kinds.count(EntryKind.DIRECTORY)) == (4096, 64 + 64 * 7)


@pytest.mark.parametrize(
    ("files", "what"),
    [
        pytest.param({f"{n}": b"" for n in range(4)}, "more than 3 files", id="files"),
        pytest.param({"a/b/c/d/file": b""}, "more than 3 directories", id="directories"),
    ],
)
def test_one_more_of_either_kind_is_refused_while_unpacking(tmp_path: Path, files: dict[str, bytes], what: str) -> None:
    with pytest.raises(FetchError, match=what) as caught:
        unpack(files, tmp_path, Settings(max_files=3))
    assert caught.value.code == "LAYER_UNSAFE"
