"""The tree of the sandbox logs, held against the published roots of certificate transparency's reference tests."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.sandbox.sigstore.merkle import MerkleTree, leaf_hash, node_hash

LEAVES = [
    bytes.fromhex(text)
    for text in (
        "",
        "00",
        "10",
        "2021",
        "3031",
        "40414243",
        "5051525354555657",
        "606162636465666768696a6b6c6d6e6f",
    )
]
ROOTS = [
    "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
    "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125",
    "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77",
    "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
    "4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4",
    "76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef",
    "ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c",
    "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328",
]


def grown(count: int) -> MerkleTree:
    tree = MerkleTree()
    for leaf in range(count):
        tree.append(leaf.to_bytes(4, "big"))
    return tree


@pytest.mark.parametrize(("size", "root"), list(enumerate(ROOTS)))
def test_roots_are_those_of_the_reference_tree(size: int, root: str) -> None:
    tree = MerkleTree()
    for leaf in LEAVES:
        tree.append(leaf)

    assert tree.root(size).hex() == root


def test_proof_of_the_reference_tree() -> None:
    tree = MerkleTree()
    for leaf in LEAVES:
        tree.append(leaf)

    assert [sibling.hex() for sibling in tree.inclusion(5, 8)] == [
        "bc1a0643b12e4d2d7c77918f44e0f4f79a838b6cf9ec5b5c283e1f4d88599e6b",
        "ca854ea128ed050b41b35ffc1b87b8eb2bde461e9e3b5596ece6b9d5975a0ae0",
        "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
    ]


def climb(leaf: bytes, index: int, size: int, path: list[bytes]) -> bytes:
    """The verifier's side of RFC 9162, section 2.1.3.2."""
    node, last = leaf, size - 1
    for sibling in path:
        if index % 2 or index == last:
            node = node_hash(sibling, node)
            while not index % 2 and index:
                index, last = index // 2, last // 2
        else:
            node = node_hash(node, sibling)
        index, last = index // 2, last // 2
    return node


@settings(deadline=None, max_examples=200)
@given(data=st.data(), count=st.integers(1, 300))
def test_every_proof_leads_to_the_root(data: st.DataObject, count: int) -> None:
    tree = grown(count)
    size = data.draw(st.integers(1, count))
    index = data.draw(st.integers(0, size - 1))

    path = tree.inclusion(index, size)

    assert climb(leaf_hash(index.to_bytes(4, "big")), index, size, path) == tree.root(size)


@pytest.mark.parametrize(("index", "size"), [(5, 5), (-1, 5), (0, 6)])
def test_no_proof_outside_the_tree(index: int, size: int) -> None:
    with pytest.raises(ValueError, match="expected index < size <= 5"):
        grown(5).inclusion(index, size)
