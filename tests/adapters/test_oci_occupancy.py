"""Who writes to an archive, and what a sweep may take for an orphan."""

import subprocess
import sys
from pathlib import Path

import pytest

from app.adapters.oci import BundleArtifact, describe_bundle, occupied
from app.core.errors import StoreError
from tests.adapters.test_oci_archive import Bench
from tests.support.registries import PREDICATE_V3

HOLD = "import sys\nfrom app.adapters.oci import occupied\nwith occupied(sys.argv[1]) as o:\n    o.share()\n"
HOLD += "    print(o.alone, flush=True)\n    sys.stdin.read()\n"


def hold(root: Path) -> subprocess.Popen[str]:
    """Another process in the archive, until its stdin closes or it is killed."""
    return subprocess.Popen(
        [sys.executable, "-c", HOLD, str(root)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )


def test_the_first_process_is_alone_and_makes_the_directory(tmp_path: Path) -> None:
    with occupied(str(tmp_path / "deep" / "archive")) as occupancy:
        assert occupancy.alone
        assert (tmp_path / "deep" / "archive").is_dir()


def test_a_second_process_is_not_alone_and_a_killed_one_no_longer_counts(tmp_path: Path) -> None:
    with hold(tmp_path) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "True\n"
        with occupied(str(tmp_path)) as occupancy:
            assert not occupancy.alone
        other.kill()
        other.wait(30)
    with occupied(str(tmp_path)) as occupancy:
        assert occupancy.alone


def test_a_newcomer_waits_until_the_first_one_has_tidied_up(tmp_path: Path) -> None:
    with occupied(str(tmp_path)) as occupancy, hold(tmp_path) as other:
        with pytest.raises(subprocess.TimeoutExpired):
            other.wait(1.5)
        occupancy.share()
        assert other.stdout is not None
        assert other.stdout.readline() == "False\n"
        other.kill()


def test_a_place_that_is_no_directory_is_a_store_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="the archive can not be used"), occupied(str(tmp_path / "file")):
        raise AssertionError("it was entered")


def other_bundle(number: int) -> BundleArtifact:
    return describe_bundle({"recipe.yaml": f"{number}\n".encode()}, predicate_type=PREDICATE_V3, version="v1")


@pytest.mark.parametrize(("bundles", "removed"), [pytest.param(4, 4, id="a-few"), pytest.param(5, 0, id="most")])
def test_an_archive_that_is_mostly_unknown_is_left_alone(
    bundles: int, removed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An empty or older database does not cost the bytes from which it could be made whole."""
    monkeypatch.setattr("app.adapters.oci.archive._SAMPLE", 8)
    bench = Bench(tmp_path)
    for number in range(bundles):
        bench.put(bundle=other_bundle(number))

    assert bench.archive.sweep(lambda _digest, _signature: False) == removed
    assert len(list(bench.archive.digests())) == bundles - removed


def test_a_sweep_removes_half_written_indexes_of_known_bundles(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    bench.put()
    (bench.layout / ".tmp-left").write_bytes(b"x")

    bench.archive.sweep(lambda _digest, _signature: True)

    assert sorted(path.name for path in bench.layout.iterdir()) == ["blobs", "index.json", "oci-layout"]
