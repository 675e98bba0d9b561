"""The signer allowlist, the trust root of corroboration: loading (J1-J18) and classification (corroboration 1).

Opening and reading the file (J1, J2) and its versions over time belong to adapters and the store. Patterns are
judged in `core.identity_pattern`; what a change would do, in `core.allowlist_diff`.
"""

import hashlib
import re
import unicodedata
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Self

from app.core.errors import AllowlistInvalid, DocumentInvalid
from app.core.identity import GITHUB_ACTIONS_ISSUER, SourceClass, canonical_source_id, source_slug
from app.core.identity_pattern import IdentityPattern, compile_pattern
from app.core.yamltext import load_text

MAX_ALLOWLIST_BYTES = 1 << 20
"""J3: one byte more is refused."""

SECTIONS: Mapping[str, SourceClass] = {
    "firstParty": SourceClass.FIRST_PARTY,
    "community": SourceClass.COMMUNITY,
    "partner": SourceClass.PARTNER,
}
"""Section key -> class, in the order in which entries are checked and matched."""

MAIN_REFS = ("refs/heads/main", "refs/heads/master")
MAIN_REF_PREFIXES = ("refs/heads/release/", "refs/tags/")
"""Refs whose runs speak for a workflow before any other branch's (trust 6)."""

_ENTRY_KEYS = ("label", "issuer", "source", "identityPattern")
_SLUG = re.compile(r"[0-9a-f]{32}")
_UNLISTABLE = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
_BUILT_IN_WORKFLOWS = tuple(
    f"https://github.com/NVIDIA/aicr/.github/workflows/uat-{cloud}.yaml" for cloud in ("aws", "gcp", "azure")
)


@dataclass(frozen=True, slots=True)
class AllowlistEntry:
    """One listed signer: exactly a slug (`source`) or, for first parties, a pattern over the identity."""

    source_class: SourceClass
    issuer: str
    label: str = ""
    source: str = ""
    pattern: IdentityPattern | None = None

    @property
    def name(self) -> str:
        """How errors and differences call the entry: its label, else its slug, else its pattern."""
        return _entry_name(self.label, self.source, self.pattern.text if self.pattern else "")

    @property
    def key(self) -> tuple[str, str]:
        """What stays the same while an entry is edited: issuer with slug, or issuer with the pattern's literal."""
        return (self.issuer, self.pattern.literal if self.pattern else self.source)


@dataclass(frozen=True, slots=True)
class Classification:
    """What a verified signer is: its class, whether it counts, and the entry that says so."""

    source_class: SourceClass
    allowlisted: bool
    entry: AllowlistEntry | None = None

    @property
    def label(self) -> str:
        """The entry's label, empty when there is none."""
        return self.entry.label if self.entry else ""


REPORTED = Classification(SourceClass.COMMUNITY, allowlisted=False)
"""A verified signer that nobody listed: shown, weight zero."""


@dataclass(frozen=True, slots=True)
class Allowlist:
    """A valid allowlist. `sha256` is of the file's bytes and names the version; an empty list matches nobody."""

    schema_version: str
    entries: tuple[AllowlistEntry, ...]
    sha256: str
    _slugs: Mapping[tuple[str, str], AllowlistEntry] = field(compare=False, repr=False, default_factory=dict)
    _patterns: Mapping[str, tuple[AllowlistEntry, ...]] = field(compare=False, repr=False, default_factory=dict)

    @classmethod
    def load(cls, data: bytes) -> Self:
        """Read and validate a file in the order of corroboration 1.2; raises `AllowlistInvalid` with the first rule.

        Stricter than upstream: one document only, no aliases, tags or duplicate keys (trust 4), and no pattern that
        falls into the gaps G1-G5 of corroboration 1.3.
        """
        if len(data) > MAX_ALLOWLIST_BYTES:
            raise AllowlistInvalid(
                f"expected at most {MAX_ALLOWLIST_BYTES} bytes, got {len(data)}",
                rule="J3",
            )
        sections, schema_version = _shape(data)
        if schema_version != "1.0" and not schema_version.startswith("1.0."):
            raise AllowlistInvalid(
                f"expected schemaVersion 1.0 or 1.0.*, got {schema_version!r}"
                if schema_version
                else "expected schemaVersion 1.0 or 1.0.*, found none",
                rule="J6",
                hint="start the file with `schemaVersion: 1.0.0`",
            )
        entries = tuple(
            _entry(fields, SECTIONS[section]) for section in SECTIONS for fields in sections.get(section, ())
        )
        _check_labels(entries)
        _check_overlaps(entries)
        return cls._of(schema_version, entries, hashlib.sha256(data).hexdigest())

    @classmethod
    def recall(cls, data: bytes) -> Self:
        """A list that was in force once, under the rules of its time: what today's rules refuse lists nobody.

        Versions are append-only, so a rule that got stricter must not keep a service from its own past.
        """
        sha256 = hashlib.sha256(data).hexdigest()
        try:
            sections, schema_version = _shape(data)
        except AllowlistInvalid:
            return cls._of("", (), sha256)
        entries = []
        for section in SECTIONS:
            for fields in sections.get(section, ()):
                with suppress(AllowlistInvalid):
                    entries.append(_entry(fields, SECTIONS[section]))
        return cls._of(schema_version, tuple(entries), sha256)

    @classmethod
    def empty(cls) -> Self:
        """The list that lists nobody: what is in force before any file was loaded."""
        return cls._of("1.0.0", (), "")

    @classmethod
    def _of(cls, schema_version: str, entries: tuple[AllowlistEntry, ...], sha256: str) -> Self:
        patterns: dict[str, list[AllowlistEntry]] = {}
        for entry in entries:
            if entry.pattern:
                patterns.setdefault(entry.issuer, []).append(entry)
        return cls(
            schema_version,
            entries,
            sha256,
            {(entry.issuer, entry.source): entry for entry in entries if entry.source},
            {issuer: tuple(found) for issuer, found in patterns.items()},
        )

    def classify(self, issuer: str, identity: str) -> Classification:
        """Class and entry of a verified signer (corroboration 1.5): a slug first, then the first pattern.

        Empty parts and parts with control or invisible characters are never listed, whatever an entry says (trust 4).
        """
        if not (_listable(issuer) and _listable(identity)):
            return REPORTED
        entry = self._slugs.get((issuer, source_slug(issuer, identity)))
        if entry is None:
            entry = self._admitting(issuer, identity)
        return Classification(entry.source_class, allowlisted=True, entry=entry) if entry else REPORTED

    def signer_key(self, issuer: str, identity: str) -> str:
        """Equal for identities that are one signer: those that one pattern entry admits (trust 6).

        They differ only right of the pattern's `@`, in their ref. A pattern groups an identity even when a slug
        entry lists it too, else one workflow could count twice by being listed twice.
        """
        if _listable(issuer) and _listable(identity):
            entry = self._admitting(issuer, identity)
            if entry is not None and entry.pattern is not None:
                return f"{issuer} {entry.pattern.literal}"
            return canonical_source_id(issuer, identity)
        return hashlib.sha256(f"{issuer}\n{identity}".encode("utf-8", "surrogatepass")).hexdigest()

    def speaks_first(self, issuer: str, identity: str) -> bool:
        """Whether the identity's ref is main, master, a release branch or a tag; True when no pattern admits it."""
        entry = self._admitting(issuer, identity) if _listable(issuer) and _listable(identity) else None
        ref = entry.pattern.ref_of(identity) if entry and entry.pattern else None
        return ref is None or ref in MAIN_REFS or ref.startswith(MAIN_REF_PREFIXES)

    def _admitting(self, issuer: str, identity: str) -> AllowlistEntry | None:
        for entry in self._patterns.get(issuer, ()):
            if entry.pattern and entry.pattern.ref_of(identity) is not None:
                return entry
        return None


def classify_without_list(issuer: str, identity: str) -> Classification:
    """The producer's built-in guess where no file is supplied (corroboration 1.6): three first-party workflows."""
    if issuer == GITHUB_ACTIONS_ISSUER and _listable(identity):
        workflow, _, ref = identity.partition("@")
        if workflow in _BUILT_IN_WORKFLOWS and ref.startswith("refs/heads/") and ref != "refs/heads/":
            return Classification(SourceClass.FIRST_PARTY, allowlisted=True)
    return REPORTED


def _listable(text: str) -> bool:
    if text.isascii():
        return bool(text) and text.isprintable()
    return not any(unicodedata.category(ch) in _UNLISTABLE for ch in text)


def _entry_name(label: str, source: str, pattern: str) -> str:
    if label:
        return label
    return f"source {source}" if source else f"pattern {pattern}"


def _shape(data: bytes) -> tuple[Mapping[str, list[Mapping[str, str]]], str]:
    """J4 and J5: the document as sections of entries of text, and its schemaVersion."""
    try:
        document = load_text(data, max_bytes=MAX_ALLOWLIST_BYTES)
    except DocumentInvalid as err:
        raise AllowlistInvalid(f"expected one YAML document: {err.message}", rule="J4") from err
    if document is None:
        return {}, ""
    if not isinstance(document, dict):
        raise AllowlistInvalid(f"expected a mapping at the top level, got {_kind(document)}", rule="J4")
    sections: dict[str, list[Mapping[str, str]]] = {}
    schema_version = ""
    for key, value in document.items():
        if key == "schemaVersion":
            schema_version = _scalar(value, "schemaVersion")
        elif key in SECTIONS:
            sections[key] = _section(value, key)
        else:
            raise AllowlistInvalid(
                f"unknown key {str(key)[:60]!r} at the top level, expected schemaVersion, {', '.join(SECTIONS)}",
                rule="J5",
            )
    return sections, schema_version


def _section(value: object, section: str) -> list[Mapping[str, str]]:
    if value is None:
        return []
    if not isinstance(value, list):
        raise AllowlistInvalid(f"{section}: expected a list of entries, got {_kind(value)}", rule="J4")
    return [_fields(item, f"{section}[{index}]") for index, item in enumerate(value)]


def _fields(item: object, place: str) -> Mapping[str, str]:
    if item is None:
        return {}
    if not isinstance(item, dict):
        raise AllowlistInvalid(f"{place}: expected a mapping, got {_kind(item)}", rule="J4")
    for key in item:
        if key not in _ENTRY_KEYS:
            raise AllowlistInvalid(
                f"{place}: unknown key {str(key)[:60]!r}, expected {', '.join(_ENTRY_KEYS)}",
                rule="J5",
                hint="list a person by `source`, the slug, so that no address is committed"
                if key == "identity"
                else None,
            )
    return {key: _scalar(value, f"{place}.{key}") for key, value in item.items()}


def _scalar(value: object, place: str) -> str:
    if value is None:
        return ""
    if not isinstance(value, str):
        raise AllowlistInvalid(f"{place}: expected text, got {_kind(value)}", rule="J4")
    return value


def _kind(value: object) -> str:
    if isinstance(value, dict | list):
        return "a mapping" if isinstance(value, dict) else "a list"
    return "text"


def _entry(fields: Mapping[str, str], source_class: SourceClass) -> AllowlistEntry:
    """J7-J15 of one entry, then the gaps of its pattern."""
    label, issuer = fields.get("label", ""), fields.get("issuer", "")
    source, pattern = fields.get("source", ""), fields.get("identityPattern", "")
    name = _entry_name(label, source, pattern)
    if not issuer:
        raise AllowlistInvalid(f"{name}: expected an issuer, found none", rule="J7")
    if bool(source) == bool(pattern):
        found = "both" if source else "neither"
        raise AllowlistInvalid(f"{name}: expected one of source and identityPattern, found {found}", rule="J8")
    if source_class is SourceClass.FIRST_PARTY and not pattern:
        raise AllowlistInvalid(f"{name}: expected identityPattern in a firstParty entry, found source", rule="J9")
    if source_class is not SourceClass.FIRST_PARTY and not source:
        raise AllowlistInvalid(
            f"{name}: expected source in a {source_class.value} entry, found identityPattern", rule="J10"
        )
    if source and not _SLUG.fullmatch(source):
        raise AllowlistInvalid(f"{name}: expected a source of 32 lower-case hex characters", rule="J11")
    return AllowlistEntry(source_class, issuer, label, source, compile_pattern(pattern, name) if pattern else None)


def _check_labels(entries: Iterable[AllowlistEntry]) -> None:
    seen: set[str] = set()
    for entry in entries:
        if entry.label and entry.label in seen:
            raise AllowlistInvalid(f"{entry.label}: expected labels to be unique, found it twice", rule="J16")
        seen.add(entry.label)


def _check_overlaps(entries: Iterable[AllowlistEntry]) -> None:
    """J17 over slugs of any issuer, J18 over (issuer, literal prefix), in entry order."""
    slugs: dict[str, str] = {}
    prefixes: dict[tuple[str, str], str] = {}
    for entry in entries:
        if entry.source:
            if entry.source in slugs:
                raise AllowlistInvalid(
                    f"{entry.name}: source {entry.source} is listed already by {slugs[entry.source]}", rule="J17"
                )
            slugs[entry.source] = entry.name
        elif entry.pattern:
            if entry.key in prefixes:
                raise AllowlistInvalid(
                    f"{entry.name}: the same issuer and workflow are listed already by {prefixes[entry.key]}",
                    rule="J18",
                    hint="write one pattern with alternatives in parentheses right of the @",
                )
            prefixes[entry.key] = entry.name


def on_any(lists: Iterable[Allowlist], issuer: str, identity: str) -> bool:
    """Whether one of `lists` has the signer."""
    return any(each.classify(issuer, identity).allowlisted for each in lists)
