"""Decoding a resolved recipe as far as a verifier needs it (evidence-format 1.7, 1.8, 1.10).

A recipe is a stranger's text: aliases are resolved within a budget, and whatever Go's typed decoder would read
differently from this one is refused. The whole strict schema of the profile track is not published
(evidence-format 12.6), so unknown fields are errors only in the blocks that are: `criteria` and
`metadata.selectedProfile`. Digests are in `app.core.canonical`, the policy descriptor in `app.core.policy`.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final, NoReturn, Self, TypeVar

from app.core.canonical import MAX_NODES, Alias, Node, ParsedRecipe, Scalar, Sequence
from app.core.canonical import Mapping as MappingNode
from app.core.coordinate import Criteria, profile_segment, recipe_slug
from app.core.errors import RecipeInvalid

KIND: Final = "RecipeResult"
DEFAULT_VERSIONS: Final = ("", "aicr.run/v1")
PROFILE_VERSION: Final = "aicr.run/v1beta2"
EXTERNAL: Final = "external"
"""The one advertiser that can be named."""

_IDENTIFIER: Final = re.compile(r"[A-Za-z0-9._-]+")
_DECIMAL: Final = re.compile(r"-?(?:0|[1-9][0-9]{0,8})")
_NULLS: Final = frozenset({"", "~", "null", "Null", "NULL"})
_FALSE: Final = frozenset({"false", "False", "FALSE"})
_CORE: Final = "tag:yaml.org,2002:"
_CRITERIA: Final = frozenset({"service", "accelerator", "os", "intent", "platform", "nodes"})
_SELECTED_PROFILE: Final = frozenset({"name", "value", "advertiser", "ownedPaths"})

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class SelectedProfile:
    """`metadata.selectedProfile`; `owned_paths` by component, each list as written."""

    name: str
    value: str
    advertiser: str = ""
    owned_paths: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def selection(self) -> str:
        """The exact `name=value`, case preserved."""
        return f"{self.name}={self.value}"


@dataclass(frozen=True, slots=True)
class Component:
    """One of `componentRefs`; enabled unless `overrides.enabled` is the boolean false."""

    name: str
    enabled: bool = True


@dataclass(frozen=True, slots=True)
class Recipe:
    """A decoded recipe beside the tree it came from.

    `name` is empty when it can not be derived; `constraints` are (name, value) as written.
    """

    parsed: ParsedRecipe = field(repr=False, compare=False)
    name: str
    api_version: str
    kind: str
    criteria: Criteria | None
    selected_profile: SelectedProfile | None
    components: tuple[Component, ...]
    constraints: tuple[tuple[str, str], ...]

    @classmethod
    def parse(cls, text: bytes) -> Self:
        """Parse and decode a recipe text; raises `RecipeInvalid`."""
        return cls.decode(ParsedRecipe.parse(text))

    @classmethod
    def decode(cls, parsed: ParsedRecipe) -> Self:
        """Decode a recipe that was parsed already; raises `RecipeInvalid`."""
        root = parsed.root
        if not isinstance(root, MappingNode):
            raise RecipeInvalid("recipe.yaml: expected a mapping at the top level")
        if parsed.settled is None:  # the short way takes no other key than text, and each once
            _check_keys(root)
        document = _Decoder()
        top = document.fields(root, "recipe.yaml")
        api_version = document.text(top.get("apiVersion"), "apiVersion")
        kind = document.text(top.get("kind"), "kind")
        metadata = document.optional(top.get("metadata"), "metadata")
        profile = document.selected_profile(metadata.get("selectedProfile"))
        _check_track(api_version, kind, parsed, profile, accounting=document.has_accounting(top.get("configuration")))
        criteria = document.criteria(top.get("criteria"), strict=api_version == PROFILE_VERSION)
        return cls(
            parsed=parsed,
            name=recipe_name(criteria, profile),
            api_version=api_version,
            kind=kind,
            criteria=criteria,
            selected_profile=profile,
            components=document.each(top.get("componentRefs"), "componentRefs", document.component),
            constraints=document.each(top.get("constraints"), "constraints", document.constraint),
        )

    @property
    def text(self) -> str:
        """The exact text."""
        return self.parsed.text.decode()

    @property
    def selection(self) -> str:
        """The profile selection `name=value`, empty when unprofiled."""
        return self.selected_profile.selection if self.selected_profile else ""

    @property
    def profile_segment(self) -> str:
        """The profile's path segment, empty when unprofiled."""
        return profile_segment(self.selection) if self.selected_profile else ""

    def constraint(self, name: str) -> str:
        """The value of the first constraint of that name, else empty."""
        return next((value for found, value in self.constraints if found == name), "")


def parse_selection(text: str) -> tuple[str, str] | None:
    """Read a selection by the grammar of 1.7; None for the empty text, which selects nothing.

    Raises `RecipeInvalid`; its message says `name=value` when the form is wrong.
    """
    if not text:
        return None
    if text != text.strip() or text.count("=") != 1:
        raise RecipeInvalid(f"expected a profile selection name=value, got {text[:80]!r}")
    name, _, value = text.partition("=")
    for part in (name, value):
        if not _IDENTIFIER.fullmatch(part):
            raise RecipeInvalid(f"expected only [A-Za-z0-9._-] on both sides of a selection, got {part[:80]!r}")
    return name, value


def segment_of(profile: SelectedProfile | None) -> str:
    """The path segment of a selected profile, empty for none; raises `RecipeInvalid` for a malformed one."""
    return profile_segment(profile.selection) if profile else ""


def recipe_name(criteria: Criteria | None, profile: SelectedProfile | None = None) -> str:
    """The recipe's name (1.8), empty when it can not be derived."""
    if criteria is None:
        return ""
    try:
        return recipe_slug(criteria, segment_of(profile))
    except RecipeInvalid:
        return ""


def require_resolved(parsed: ParsedRecipe) -> None:
    """Refuse an overlay, and any other mapping that says it is no resolved recipe (2.5); raises `RecipeInvalid`.

    Every `kind` and `apiVersion` of the top level is read as Go reads it, through aliases too. A text that says
    nothing about itself passes: digests are defined for more texts than recipes (11.12).
    """
    document = _Decoder()
    for key, value in parsed.root.pairs if isinstance(parsed.root, MappingNode) else ():
        name = key.target if isinstance(key, Alias) else key
        match name:
            case Scalar(value="kind"):
                _check_kind(document.text(value, "kind"))
            case Scalar(value="apiVersion"):
                _check_version(document.text(value, "apiVersion"))
            case Scalar(value="<<", style=""):
                _refuse_merge(key)


def _check_kind(kind: str) -> None:
    if kind == "RecipeMetadata":
        raise RecipeInvalid(
            "expected a resolved recipe (kind RecipeResult), got an overlay (kind RecipeMetadata)",
            hint="resolve it first: aicr recipe",
        )
    if kind not in {"", KIND}:
        raise RecipeInvalid(f"kind: expected {KIND}, got {kind[:80]!r}")


def _check_version(api_version: str) -> None:
    if api_version not in {*DEFAULT_VERSIONS, PROFILE_VERSION}:
        raise RecipeInvalid(f"apiVersion: expected aicr.run/v1 or {PROFILE_VERSION}, got {api_version[:80]!r}")


def _refuse_merge(key: Node) -> NoReturn:
    raise RecipeInvalid(f"merge key at line {key.line}", hint="write the entries out")


def _check_track(
    api_version: str, kind: str, parsed: ParsedRecipe, profile: SelectedProfile | None, *, accounting: bool
) -> None:
    """What version, kind and profile demand of one another (1.10)."""
    _check_kind(kind)
    if api_version in DEFAULT_VERSIONS:
        if profile is not None:
            raise RecipeInvalid(
                f"metadata.selectedProfile: expected none with apiVersion {api_version!r}, only with {PROFILE_VERSION}"
            )
        return
    _check_version(api_version)
    if not kind:
        raise RecipeInvalid(f"kind: expected {KIND} with apiVersion {PROFILE_VERSION}, got none")
    if profile is None and not accounting:
        raise RecipeInvalid(
            f"apiVersion {PROFILE_VERSION} expects metadata.selectedProfile or configuration.slurm.accounting"
        )
    if parsed.followed:
        raise RecipeInvalid(f"expected one YAML document with apiVersion {PROFILE_VERSION}, got more")


def _check_keys(root: Node) -> None:
    """Every key is text, and no mapping repeats one; Go's decoder refuses both where it decodes.

    Merge keys are refused too: no producer writes them, and what they merge would be read nowhere else.
    """
    pending: list[Node] = [root]
    while pending:
        node = pending.pop()
        if isinstance(node, Sequence):
            pending.extend(node.items)
        elif isinstance(node, MappingNode):
            seen: set[str] = set()
            for key, value in node.pairs:
                if not isinstance(key, Scalar):
                    raise RecipeInvalid(f"expected text for a key at line {key.line}")
                if key.value == "<<" and not key.style:
                    _refuse_merge(key)
                if key.value in seen:
                    raise RecipeInvalid(f"key {key.value[:80]!r} is repeated at line {key.line}")
                seen.add(key.value)
                if not isinstance(value, Scalar):
                    pending.append(value)


class _Decoder:
    """Reads typed fields out of a tree; visits at most `MAX_NODES` nodes, however often aliases repeat them."""

    def __init__(self) -> None:
        self._visits = 0

    def fields(self, node: Node | None, where: str) -> Mapping[str, Node]:
        """The fields of a mapping by name."""
        node = self._resolve(node)
        if not isinstance(node, MappingNode):
            _wrong(where, "a mapping", node)
        self._visit(len(node.pairs))
        return {key.value: value for key, value in node.pairs if isinstance(key, Scalar)}

    def optional(self, node: Node | None, where: str) -> Mapping[str, Node]:
        """Like `fields`, with nothing for an absent or null mapping."""
        return {} if self._absent(node) else self.fields(node, where)

    def each(self, node: Node | None, where: str, read: Callable[[Node, str], T]) -> tuple[T, ...]:
        """The items of a list, none for an absent or null one."""
        if self._absent(node):
            return ()
        node = self._resolve(node)
        if not isinstance(node, Sequence):
            _wrong(where, "a list", node)
        self._visit(len(node.items))
        return tuple(read(item, f"{where}[{index}]") for index, item in enumerate(node.items))

    def text(self, node: Node | None, where: str) -> str:
        """A text field: the scalar as written, empty for an absent or null one."""
        if self._absent(node):
            return ""
        node = self._resolve(node)
        if not isinstance(node, Scalar) or node.tag not in {"", _CORE + "str"}:
            _wrong(where, "text", node)
        return node.value

    def number(self, node: Node | None, where: str) -> int:
        """A decimal integer, 0 for an absent or null one."""
        if self._absent(node):
            return 0
        node = self._resolve(node)
        if not isinstance(node, Scalar) or node.style or node.tag or not _DECIMAL.fullmatch(node.value):
            _wrong(where, "an integer", node)
        return int(node.value)

    def criteria(self, node: Node | None, *, strict: bool) -> Criteria | None:
        """`criteria`; None when absent, which leaves the recipe without a name."""
        if self._absent(node):
            return None
        found = self.fields(node, "criteria")
        if strict:
            _known(found, _CRITERIA, "criteria")
        texts = {name: self.text(found.get(name), f"criteria.{name}") for name in _CRITERIA - {"nodes"}}
        return Criteria(**texts, nodes=self.number(found.get("nodes"), "criteria.nodes"))

    def selected_profile(self, node: Node | None) -> SelectedProfile | None:
        """`metadata.selectedProfile`, complete and well-formed."""
        if self._absent(node):
            return None
        where = "metadata.selectedProfile"
        found = self.fields(node, where)
        _known(found, _SELECTED_PROFILE, where)
        name, value, advertiser = (
            self.text(found.get(key), f"{where}.{key}") for key in ("name", "value", "advertiser")
        )
        for key, part in (("name", name), ("value", value)):
            if not _IDENTIFIER.fullmatch(part):
                raise RecipeInvalid(f"{where}.{key}: expected one or more of [A-Za-z0-9._-], got {part[:80]!r}")
        if advertiser not in {"", EXTERNAL}:
            raise RecipeInvalid(f"{where}.advertiser: expected {EXTERNAL} or none, got {advertiser[:80]!r}")
        if self._absent(found.get("ownedPaths")):
            raise RecipeInvalid(f"{where}.ownedPaths is required")
        owned: dict[str, tuple[str, ...]] = {}
        for component, paths in self.fields(found["ownedPaths"], f"{where}.ownedPaths").items():
            place = f"{where}.ownedPaths.{component[:80]}"
            owned[component] = self.each(paths, place, self.text)
            if len(set(owned[component])) != len(owned[component]):
                raise RecipeInvalid(f"{place}: expected each path once")
        return SelectedProfile(name, value, advertiser, owned)

    def component(self, node: Node, where: str) -> Component:
        """One of `componentRefs`."""
        found = self.fields(node, where)
        overrides = self.optional(found.get("overrides"), f"{where}.overrides")
        return Component(self.text(found.get("name"), f"{where}.name"), not self._is_false(overrides.get("enabled")))

    def constraint(self, node: Node, where: str) -> tuple[str, str]:
        """One of `constraints`."""
        found = self.fields(node, where)
        return self.text(found.get("name"), f"{where}.name"), self.text(found.get("value"), f"{where}.value")

    def has_accounting(self, node: Node | None) -> bool:
        """Whether `configuration.slurm.accounting` is there."""
        slurm = self.optional(node, "configuration").get("slurm")
        accounting = self.optional(slurm, "configuration.slurm").get("accounting")
        return not self._absent(accounting)

    def _resolve(self, node: Node | None) -> Node | None:
        self._visit(1)
        return node.target if isinstance(node, Alias) else node

    def _absent(self, node: Node | None) -> bool:
        if node is None:
            return True
        node = self._resolve(node)
        return isinstance(node, Scalar) and (
            node.tag == _CORE + "null" or (not node.style and not node.tag and node.value in _NULLS)
        )

    def _is_false(self, node: Node | None) -> bool:
        if node is None:
            return False
        node = self._resolve(node)
        if not isinstance(node, Scalar) or node.value not in _FALSE:
            return False
        return node.tag == _CORE + "bool" or (not node.tag and not node.style)

    def _visit(self, count: int) -> None:
        self._visits += count
        if self._visits > MAX_NODES:
            raise RecipeInvalid(f"recipe.yaml: aliases repeat more than {MAX_NODES} nodes")


def _known(found: Mapping[str, Node], known: frozenset[str], where: str) -> None:
    for key, value in found.items():
        if key not in known:
            raise RecipeInvalid(f"{where}: unknown field {key[:80]!r} at line {value.line}")


def _wrong(where: str, expected: str, node: Node | None) -> NoReturn:
    got = {Scalar: "a scalar", Sequence: "a list", MappingNode: "a mapping"}.get(type(node), "nothing")
    line = f" at line {node.line}" if node else ""
    raise RecipeInvalid(f"{where}: expected {expected}, got {got}{line}")
