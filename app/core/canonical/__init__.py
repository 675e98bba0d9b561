"""Recipe text -> canonical bytes -> subject digest, byte-exact with Go's yaml.v3 v3.0.1 (evidence-format 2).

Which digest evidence of a predicate type carries is decided here and nowhere else: v3 leaves `metadata.version`
out, every other type, unknown ones too, keeps it. What can not be digested safely is refused (`Refusal`).
Decoding a recipe is in `app.core.recipe`.
"""

import hashlib
from dataclasses import dataclass
from typing import Final, Self

from app.core.canonical.emit import emit_document
from app.core.canonical.encoder_form import parse_encoder_form
from app.core.canonical.nodes import Alias, Mapping, Node, Scalar, Sequence, key_text
from app.core.canonical.parse import MAX_DEPTH, MAX_NODES, MAX_RECIPE_BYTES, decode, parse_document
from app.core.canonical.refusals import Refusal, refuse

__all__ = [
    "MAX_DEPTH",
    "MAX_NODES",
    "MAX_RECIPE_BYTES",
    "PREDICATE_V3",
    "Alias",
    "Mapping",
    "Node",
    "ParsedRecipe",
    "Refusal",
    "Scalar",
    "Sequence",
    "canonicalize",
    "emit_document",
    "recipe_digests",
    "subject_digest",
]

PREDICATE_V3: Final = "https://aicr.run/recipe-evidence/v3"


@dataclass(frozen=True, slots=True)
class ParsedRecipe:
    """A recipe text parsed once, for both digests and for decoding.

    `root` is None for a stream without a document; `followed` says that a further document, which no digest
    covers, comes after the one that counts; `settled` is the text itself when it was proved to be its own legacy
    canonical text.
    """

    text: bytes
    root: Node | None
    followed: bool
    settled: str | None = None

    @classmethod
    def parse(cls, text: bytes) -> Self:
        """Parse the first document of `text`; raises `RecipeInvalid`."""
        decoded = decode(text)
        root = parse_encoder_form(decoded)
        if root is not None:
            return cls(text, root, followed=False, settled=decoded)
        return cls(text, *parse_document(decoded))

    def canonical(self, *, content_only: bool) -> bytes:
        """The legacy canonical text, or the content-only one; raises `RecipeInvalid`."""
        root = without_version(self.root) if content_only else self.root
        if self.settled is None:
            return emit_document(root).encode()
        if root is self.root:
            return self.settled.encode()
        return (_without_version_line(self.settled, self.root, root) or emit_document(root)).encode()

    def legacy_digest(self) -> str:
        """Bare hex digest for v1, v2 and unknown predicate types."""
        return hashlib.sha256(self.canonical(content_only=False)).hexdigest()

    def content_digest(self) -> str:
        """Bare hex digest for v3."""
        return hashlib.sha256(self.canonical(content_only=True)).hexdigest()

    def digest(self, predicate_type: str) -> str:
        """Bare hex digest by the algorithm of `predicate_type` (evidence-format 2.3)."""
        return self.content_digest() if predicate_type == PREDICATE_V3 else self.legacy_digest()


def without_version(root: Node | None) -> Node | None:
    """`root` without the pairs `version` of its top-level `metadata`, and without a `metadata` that this empties.

    Never changes `root`. Where it is not certain which pair is meant (an alias among the keys, a second
    `metadata`, a `metadata` that is an alias), the text is refused.
    """
    if not isinstance(root, Mapping):
        return root
    found = [index for index, (key, _) in enumerate(root.pairs) if key_text(key) == "metadata"]
    if not found:
        return root
    key, value = root.pairs[found[0]]
    if len(found) > 1 or isinstance(key, Alias):
        refuse(Refusal.AMBIGUOUS_METADATA, f"metadata at line {root.pairs[found[-1]][0].line} is repeated or an alias")
    if isinstance(value, Alias) and isinstance(value.target, Mapping):
        refuse(Refusal.AMBIGUOUS_METADATA, f"metadata at line {key.line} is an alias")
    if not isinstance(value, Mapping):
        return root
    if any(isinstance(name, Alias) and name.name == "version" for name, _ in value.pairs):
        refuse(Refusal.AMBIGUOUS_METADATA, f"metadata at line {key.line} has an alias *version for a key")
    kept = [pair for pair in value.pairs if key_text(pair[0]) != "version"]
    if len(kept) == len(value.pairs):
        return root
    pairs = list(root.pairs)
    if kept:
        pairs[found[0]] = (key, Mapping(kept, value.flow, value.tag, value.anchor, value.line))
    else:
        del pairs[found[0]]
    return Mapping(pairs, root.flow, root.tag, root.anchor, root.line)


def _without_version_line(settled: str, before: Node | None, after: Node | None) -> str | None:
    """Cut what `without_version` took out of a text in encoder form; None when that is not one line a key."""
    if not isinstance(before, Mapping) or not isinstance(after, Mapping) or not after.pairs:
        return None
    key, metadata = next(pair for pair in before.pairs if key_text(pair[0]) == "metadata")
    if not isinstance(metadata, Mapping):
        return None
    version, value = next(pair for pair in metadata.pairs if key_text(pair[0]) == "version")
    if not isinstance(value, Scalar) or value.style == "|":
        return None
    lines = settled.split("\n")
    del lines[version.line - 1]
    if len(metadata.pairs) == 1:
        del lines[key.line - 1]
    return "\n".join(lines)


def canonicalize(text: bytes, *, content_only: bool) -> bytes:
    """The canonical text of a recipe: legacy (2.1) or content-only (2.2); raises `RecipeInvalid`."""
    return ParsedRecipe.parse(text).canonical(content_only=content_only)


def subject_digest(text: bytes, *, predicate_type: str) -> str:
    """Bare hex digest of a recipe by the algorithm of `predicate_type`; raises `RecipeInvalid`."""
    return ParsedRecipe.parse(text).digest(predicate_type)


def recipe_digests(text: bytes) -> tuple[str, str]:
    """(legacy, content-only) bare hex digests from one parse; raises `RecipeInvalid`."""
    recipe = ParsedRecipe.parse(text)
    return recipe.legacy_digest(), recipe.content_digest()
