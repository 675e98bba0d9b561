"""The Merkle tree of a transparency log (RFC 9162, section 2.1), kept by levels so that proofs cost O(log n)."""

import hashlib


def leaf_hash(entry: bytes) -> bytes:
    """The hash of one entry."""
    return hashlib.sha256(b"\x00" + entry).digest()


def node_hash(left: bytes, right: bytes) -> bytes:
    """The hash of two subtrees."""
    return hashlib.sha256(b"\x01" + left + right).digest()


class MerkleTree:
    """An append-only tree; `levels[k][i]` is the hash of the complete subtree of 2^k entries from i * 2^k on."""

    def __init__(self) -> None:
        self.levels: list[list[bytes]] = [[]]

    @property
    def size(self) -> int:
        """How many entries there are."""
        return len(self.levels[0])

    def append(self, entry: bytes) -> int:
        """Add an entry; its index."""
        self.levels[0].append(leaf_hash(entry))
        depth = 0
        while len(self.levels[depth]) % 2 == 0:
            if depth + 1 == len(self.levels):
                self.levels.append([])
            self.levels[depth + 1].append(node_hash(*self.levels[depth][-2:]))
            depth += 1
        return self.size - 1

    def root(self, size: int) -> bytes:
        """The root over the first `size` entries; the hash of nothing for an empty tree."""
        return self._range(0, size) if size else hashlib.sha256().digest()

    def inclusion(self, index: int, size: int) -> list[bytes]:
        """The sibling hashes from entry `index` up to the root over `size` entries."""
        if not 0 <= index < size <= self.size:
            raise ValueError(f"expected index < size <= {self.size}, found index {index}, size {size}")
        path: list[bytes] = []
        start = 0
        while size > 1:
            split = 1 << ((size - 1).bit_length() - 1)
            if index < split:
                path.append(self._range(start + split, size - split))
                size = split
            else:
                path.append(self._range(start, split))
                start, index, size = start + split, index - split, size - split
        return path[::-1]

    def _range(self, start: int, size: int) -> bytes:
        depth = size.bit_length() - 1
        if size == 1 << depth:
            return self.levels[depth][start >> depth]
        split = 1 << ((size - 1).bit_length() - 1)
        return node_hash(self._range(start, split), self._range(start + split, size - split))
