"""`check-tree` and `index` over real directories (evidence-format 6.3, service 4)."""

from pathlib import Path

import pytest

from app.adapters.files import PointerFiles
from app.core.cross_check import SignerClaim
from app.core.errors import AllowlistInvalid, NotFoundError
from app.core.pointer import Pointer, dump_pointer
from app.services.tree import TreeService

OCTOCAT = SignerClaim("1234567+octocat@users.noreply.github.com", "https://github.com/login/oauth", 1)
SLUG = "6a07962adbca2d3f377d8c67f2584e71"
ALLOWLIST = f"""schemaVersion: 1.0.0
community:
  - label: octocat
    issuer: https://github.com/login/oauth
    source: {SLUG}
"""
DIGEST = "1f" * 32
PATH = f"h100-eks/{SLUG}/sha256-{DIGEST}.yaml"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A tree with an allowlist and one pointer."""
    pointer = Pointer(
        "h100-eks",
        "https://aicr.run/recipe-evidence/v3",
        oci="registry.example.org/evidence:v1",
        digest=f"sha256:{DIGEST}",
        signer=OCTOCAT,
    )
    path = tmp_path / PATH
    path.parent.mkdir(parents=True)
    path.write_bytes(dump_pointer(pointer))
    (tmp_path / "allowlist.yaml").write_text(ALLOWLIST)
    return tmp_path


def refusal(reference: str) -> str | None:
    return None if reference.startswith("ghcr.io/") else "not in TRUSTED_REGISTRIES"


SERVICE = TreeService(PointerFiles(), refusal)


def test_a_tree_is_checked_against_its_own_allowlist(root: Path) -> None:
    found = SERVICE.check(str(root))
    assert found.problems == ()
    assert [str(line) for line in found.warnings] == [
        f"{root}/{PATH}: ingest would refuse its registry: not in TRUSTED_REGISTRIES"
    ]


def test_another_allowlist_can_be_named(root: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    other = tmp_path_factory.mktemp("other") / "list.yaml"
    other.write_text("schemaVersion: 1.0.0\n")
    found = SERVICE.check(str(root), str(other))
    assert ["is not in the allowlist" in line.message for line in found.problems] == [True]


def test_t6_a_missing_or_malformed_allowlist_or_root_is_an_operational_error(root: Path) -> None:
    with pytest.raises(NotFoundError):
        SERVICE.check(str(root), str(root / "gone.yaml"))
    with pytest.raises(NotFoundError):
        SERVICE.check(str(root / "gone"), str(root / "allowlist.yaml"))
    with pytest.raises(NotFoundError, match=r"can not read .*/gone: "):  # and not its list, which is gone with it
        SERVICE.check(str(root / "gone"))
    (root / "allowlist.yaml").write_text("schemaVersion: 9\n")
    with pytest.raises(AllowlistInvalid):
        SERVICE.check(str(root))


def test_the_index_is_written_and_then_equal_until_the_tree_changes(root: Path) -> None:
    assert SERVICE.index_differs(str(root))
    written = SERVICE.write_index(str(root))
    assert (root / "pointers.yaml").read_bytes() == written.text
    assert not SERVICE.index_differs(str(root))
    assert SERVICE.check(str(root)).problems == ()
    (root / PATH).unlink()
    assert SERVICE.index_differs(str(root))


def test_a_pointer_that_breaks_the_contract_is_named_and_not_in_the_index(root: Path) -> None:
    (root / f"h100-eks/{SLUG}/broken.yaml").write_text("x")
    index = SERVICE.index(str(root))
    assert index.text.count(b"- recipe:") == 1
    assert [line.path for line in index.problems] == [f"{root}/h100-eks/{SLUG}/broken.yaml"]


def test_the_index_can_go_elsewhere(root: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    out = tmp_path_factory.mktemp("out") / "index.yaml"
    SERVICE.write_index(str(root), str(out))
    assert not SERVICE.index_differs(str(root), str(out))
    assert not (root / "pointers.yaml").exists()
