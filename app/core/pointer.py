"""Pointer files: reading with the ordered checks, writing, and where a pointer belongs (evidence-format 6).

Nothing here opens a file: reading, writing and moving are in `adapters.files`; the committed tree's rules in
`core.tree`. A pointer is only a locator and its signer only a claim: truth comes from the bundle.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from app.core.coordinate import profile_segment
from app.core.cross_check import SignerClaim
from app.core.errors import ConflictError, DocumentInvalid, InputError, PointerInvalid, ReferenceInvalid
from app.core.identity import source_slug
from app.core.refs import Digest, OciRef, is_pinned_target
from app.core.statement import RECIPE_EVIDENCE_TYPES, RECIPE_EVIDENCE_V2, RECIPE_EVIDENCE_V3
from app.core.yamltext import load_text

MAX_POINTER_BYTES = 1 << 20
MAX_POINTER_NODES = 10_000
"""A pointer has some twenty scalars and collections; a megabyte of them is a second of parsing."""
SCHEMA_VERSION = "1.0.0"
PRODUCED_POINTER = "pointer.yaml"
"""The name under which a producer leaves the pointer beside its bundle (evidence-format 5.1)."""
_MAX_INDEX = 1 << 63
_TIME = re.compile(
    r"(\d{4})-(\d{1,2})-(\d{1,2})"
    r"(?:(?:[Tt]|[ \t]+)(\d{1,2}):(\d{2}):(\d{2})(?:\.(\d{1,9}))?[ \t]*([Zz]|[+-]\d{1,2}(?::?\d{2})?)?)?",
    re.ASCII,
)


@dataclass(frozen=True, slots=True)
class Pointer:
    """A pointer that passed the checks of 6.2; `digest` is text, since its hex body is not checked here.

    `oci` and `digest` are empty before a push, `signer` is None while the signature is pending.
    """

    recipe: str
    predicate_type: str
    oci: str = ""
    digest: str = ""
    profile: str = ""
    signer: SignerClaim | None = None
    attested_at: datetime | None = None
    schema_version: str = SCHEMA_VERSION

    def to_json(self) -> dict[str, object]:
        """The report's `pointer`: keys as in 6.1, optional ones left out."""
        attestation: dict[str, object] = {
            "bundle": {"oci": self.oci, "digest": self.digest, "predicateType": self.predicate_type}
        }
        if self.signer is not None:
            signer: dict[str, object] = {"identity": self.signer.identity, "issuer": self.signer.issuer}
            if self.signer.rekor_log_index is not None:
                signer["rekorLogIndex"] = self.signer.rekor_log_index
            attestation["signer"] = signer
        if self.attested_at is not None:
            attestation["attestedAt"] = time_text(self.attested_at)
        out: dict[str, object] = {"schemaVersion": self.schema_version, "recipe": self.recipe}
        if self.profile:
            out["profile"] = self.profile
        out["attestations"] = [attestation]
        return out


def parse_pointer(data: bytes) -> Pointer:
    """Read a pointer file; raises `PointerInvalid` with the first check of 6.2 that fails.

    More than 1 MiB is refused before parsing, more than `MAX_POINTER_NODES` while it goes on. Duplicate keys, aliases,
    tags and a second document are refused, and scalars are text (trust 4); unknown keys are ignored.
    """
    if len(data) > MAX_POINTER_BYTES:
        raise PointerInvalid(f"pointer file has {len(data)} bytes, at most {MAX_POINTER_BYTES} are read")
    try:
        document = load_text(data, max_bytes=MAX_POINTER_BYTES, max_nodes=MAX_POINTER_NODES)
    except DocumentInvalid as err:
        raise PointerInvalid(f"pointer file is not valid YAML: {err.message.removeprefix('not valid YAML: ')}") from err
    return pointer_from_object(document)


def pointer_from_object(document: object) -> Pointer:
    """Check a pointer that came as an object, from YAML or JSON; raises `PointerInvalid`."""
    top = _mapping(document, "pointer file")
    version, recipe, profile = (_text(top, key) for key in ("schemaVersion", "recipe", "profile"))
    attestations = [_attestation(item) for item in _list(top.get("attestations"))]
    _check_head(version, recipe, profile)
    if not attestations:
        raise PointerInvalid("pointer.attestations must have at least one entry, got none")
    if len(attestations) > 1:
        raise PointerInvalid(f"pointer.attestations has multiple entries ({len(attestations)}), expected exactly one")
    pointer = replace(attestations[0], schema_version=version, recipe=recipe, profile=profile)
    _check_attestation(pointer)
    return pointer


def _check_head(version: str, recipe: str, profile: str) -> None:
    """Checks 2 to 5."""
    if not (version == "1.0" or version.startswith("1.0.")):
        raise PointerInvalid(f"unsupported pointer schemaVersion {version[:80]!r}, expected 1.0 or 1.0.x")
    if not recipe:
        raise PointerInvalid("pointer.recipe is required")
    if not profile:
        return
    try:
        segment = profile_segment(profile)
    except InputError as err:
        raise PointerInvalid(f"pointer.profile: {err.message}") from err
    if not recipe.endswith(f"-{segment}"):
        raise PointerInvalid(f"pointer.recipe {recipe[:200]!r} does not end with the profile path segment '-{segment}'")


def _check_attestation(pointer: Pointer) -> None:
    """Checks 8 to 12."""
    kind = pointer.predicate_type
    if kind not in RECIPE_EVIDENCE_TYPES:
        raise PointerInvalid(f"unsupported predicateType {kind[:200]!r} in the pointer")
    if kind != RECIPE_EVIDENCE_V3:
        if pointer.profile and kind != RECIPE_EVIDENCE_V2:
            raise PointerInvalid(f"profile-bearing recipes require predicateType v2 or v3, got {kind}")
        if kind == RECIPE_EVIDENCE_V2 and not pointer.profile:
            raise PointerInvalid(f"predicateType {kind} without a profile selection in the pointer")
    if pointer.oci and not is_pinned_target(pointer.digest):
        raise PointerInvalid(f"bundle.digest must be sha256:<hex> when OCI is set, got {pointer.digest[:80]!r}")
    if pointer.signer is not None and not (pointer.signer.identity and pointer.signer.issuer):
        raise PointerInvalid("pointer signer requires identity and issuer")


def _attestation(item: object) -> Pointer:
    entry = _mapping(item, "attestations entry")
    bundle = _mapping(entry.get("bundle"), "bundle")
    return Pointer(
        recipe="",
        predicate_type=_text(bundle, "predicateType"),
        oci=_text(bundle, "oci"),
        digest=_text(bundle, "digest"),
        signer=_signer(entry.get("signer")),
        attested_at=_time(_text(entry, "attestedAt")),
    )


def _signer(value: object) -> SignerClaim | None:
    """None for a missing or empty signer: the signature is pending."""
    signer = _mapping(value, "signer")
    if not signer:
        return None
    index = signer.get("rekorLogIndex")
    return SignerClaim(_text(signer, "identity"), _text(signer, "issuer"), None if index is None else _index(index))


def _index(value: object) -> int:
    if isinstance(value, str) and re.fullmatch(r"[0-9]{1,19}", value):
        value = int(value)
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < _MAX_INDEX:
        raise _malformed("rekorLogIndex", "a whole number")
    return value


def _mapping(value: object, what: str) -> Mapping[str, object]:
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise _malformed(what, "a mapping")
    return value


def _list(value: object) -> list[object]:
    if value is None:
        return []
    if not isinstance(value, list):
        raise _malformed("attestations", "a list")
    return value


def _text(mapping: Mapping[str, object], key: str) -> str:
    value = mapping.get(key)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise _malformed(key, "a text")
    return value


def _time(text: str) -> datetime | None:
    """A YAML timestamp (a missing zone is UTC), or None when there is none."""
    if not text:
        return None
    found = _TIME.fullmatch(text)
    if found is None:
        raise _malformed("attestedAt", "a timestamp")
    try:
        year, month, day, hour, minute, second, fraction, zone = found.groups()
        clock = f"{int(hour or 0):02}:{minute or '00'}:{second or '00'}.{(fraction or '')[:6]:0<6}"
        stamp = f"{year}-{int(month):02}-{int(day):02}T{clock}{_zone(zone)}"
        return datetime.fromisoformat(stamp).astimezone(UTC)
    except (ValueError, OverflowError) as err:
        raise _malformed("attestedAt", "a timestamp") from err


def _zone(text: str | None) -> str:
    if text is None or text in "zZ":
        return "+00:00"
    digits = text[1:].replace(":", "")
    hours, minutes = (digits[:-2], digits[-2:]) if len(digits) > 2 else (digits, "00")
    return f"{text[0]}{int(hours):02}:{minutes}"


def _malformed(what: str, expected: str) -> PointerInvalid:
    """A value of the wrong type, which upstream's decoder reports as invalid YAML (check 1)."""
    return PointerInvalid(f"pointer file is not valid YAML: expected {expected} as {what}")


# --- writing -----------------------------------------------------------------------------------------


_PLAIN = re.compile(r"[A-Za-z](?:[A-Za-z0-9._/@=+-]|:(?=[A-Za-z0-9/]))*")
_PLAIN_NUMBERISH = re.compile(r"[0-9]+\.[0-9]+\.[0-9]+|[0-9]+(?:\+[A-Za-z0-9-]+)?@[A-Za-z0-9.-]+")
_WORDS = frozenset({"true", "false", "null", "yes", "no", "on", "off", "y", "n"})


def dump_pointer(pointer: Pointer) -> bytes:
    """The file text: keys sorted, indent 2, list items indented 2, a plain timestamp (6.1, P13)."""
    lines = ["attestations:"]
    marker = "  - "
    if pointer.attested_at is not None:
        lines.append(f"{marker}attestedAt: {time_text(pointer.attested_at)}")
        marker = "    "
    lines += [
        f"{marker}bundle:",
        f"      digest: {yaml_scalar(pointer.digest)}",
        f"      oci: {yaml_scalar(pointer.oci)}",
        f"      predicateType: {yaml_scalar(pointer.predicate_type)}",
    ]
    if pointer.signer is not None:
        lines += [
            "    signer:",
            f"      identity: {yaml_scalar(pointer.signer.identity)}",
            f"      issuer: {yaml_scalar(pointer.signer.issuer)}",
        ]
        if pointer.signer.rekor_log_index is not None:
            lines.append(f"      rekorLogIndex: {pointer.signer.rekor_log_index}")
    if pointer.profile:
        lines.append(f"profile: {yaml_scalar(pointer.profile)}")
    lines += [f"recipe: {yaml_scalar(pointer.recipe)}", f"schemaVersion: {yaml_scalar(pointer.schema_version)}"]
    return ("\n".join(lines) + "\n").encode()


def yaml_scalar(text: str) -> str:
    """Plain where nothing can read it as another type, double-quoted with escapes otherwise."""
    plain = _PLAIN.fullmatch(text) and text.casefold() not in _WORDS
    if plain or _PLAIN_NUMBERISH.fullmatch(text):
        return text
    return f'"{"".join(map(_escape, text))}"'


def _escape(char: str) -> str:
    if char in '"\\':
        return f"\\{char}"
    code = ord(char)
    if 0x20 <= code < 0x7F or (code >= 0xA0 and char.isprintable() and code != 0xFEFF and code < 0x10000):
        return char
    return f"\\x{code:02X}" if code < 0x100 else f"\\u{code:04X}" if code < 0x10000 else f"\\U{code:08X}"


def time_text(at: datetime) -> str:
    """RFC 3339 in UTC with `Z`, without a fraction when it is zero."""
    return at.astimezone(UTC).replace(tzinfo=None).isoformat(timespec="auto") + "Z"


# --- where it points, where it belongs ----------------------------------------------------------------


def pull_reference(pointer: Pointer, bundle_ref: str | None = None, *, allow_unpinned_tag: bool = False) -> OciRef:
    """What to pull for a pointer (5.4); raises `PointerInvalid` or `ReferenceInvalid`.

    The pointer's digest pins, whatever target its reference names. `bundle_ref` is used when the pointer names no
    reference itself.
    """
    reference = pointer.oci or bundle_ref or ""
    if not reference:
        raise PointerInvalid("pointer names no bundle.oci and no reference was given", hint="give one with --bundle")
    if pointer.digest:
        name = reference.partition("@")[0]
        if name.rfind(":") > name.rfind("/"):
            name = name.rpartition(":")[0]
        return OciRef.parse(f"{name}@{pointer.digest}")
    ref = OciRef.parse(reference)
    require_pinned(ref, allow_unpinned_tag=allow_unpinned_tag)
    return ref


def require_pinned(ref: OciRef, *, allow_unpinned_tag: bool) -> None:
    """Refuse a tag, which can move after it was checked, unless the caller takes that (O10)."""
    if not ref.pinned and not allow_unpinned_tag:
        raise ReferenceInvalid(
            f"{ref} is a tag-only reference, expected a digest",
            hint="write registry/repository@sha256:<64 hex>, or pass --allow-unpinned-tag",
        )


def digest_file_name(digest: Digest) -> str:
    """The file name of a committed pointer: `sha256-<64 hex>.yaml` (6.3)."""
    return f"sha256-{digest.hex}.yaml"


def canonical_suffix(pointer: Pointer) -> str:
    """`<recipe>/<source>/<digest-file>.yaml`; fails closed for anything that could leave the tree (6.4)."""
    if pointer.signer is None:
        raise PointerInvalid("pointer is unsigned, so it has no place in the tree yet")
    if not pointer.digest:
        raise PointerInvalid("pointer has no bundle.digest, so it has no place in the tree yet")
    if not _is_path_segment(pointer.recipe):
        raise PointerInvalid(f"pointer.recipe {pointer.recipe[:200]!r} is not one local path segment")
    try:
        digest = Digest.parse(pointer.digest)
    except ReferenceInvalid as err:
        raise PointerInvalid(f"pointer bundle.digest: {err.message}") from err
    return f"{pointer.recipe}/{source_slug(pointer.signer.issuer, pointer.signer.identity)}/{digest_file_name(digest)}"


def _is_path_segment(text: str) -> bool:
    return text not in {"", ".", ".."} and not any(char in "/\\\0" for char in text)


def require_signable(pointer: Pointer) -> None:
    """Raises `ConflictError` for a signed pointer, `PointerInvalid` for one without a pushed bundle (6.2 end)."""
    if pointer.signer is not None:
        raise ConflictError("pointer is signed already; a second signature would replace its signer")
    if not (pointer.oci and pointer.digest):
        raise PointerInvalid("pointer needs bundle.oci and bundle.digest before it can be signed", hint="push first")
