"""From what a caller names to the reference that is fetched: a pointer's text or a reference of his own.

Pointers are checked in `app.core.pointer`; whether the registry is trusted is decided by the ingest. A host has one
spelling from here on, or an anonymous caller could note each of `GHCR.io` and `ghcr.io.` as a location of its own.
"""

from dataclasses import replace

from app.core.errors import PointerInvalid, ReferenceInvalid
from app.core.gate import one_spelling
from app.core.pointer import parse_pointer, pull_reference
from app.core.refs import OciRef


def pinned_reference(text: str) -> OciRef:
    """A reference with a digest; raises `ReferenceInvalid` for a tag alone, since a tag can move."""
    ref = OciRef.parse(text)
    if not ref.pinned:
        raise ReferenceInvalid(
            f"expected a reference with a digest, got the tag {ref.tag!r}",
            hint="write registry/repository@sha256:<64 hex>; a tag can move after it was checked",
        )
    return _one_spelling(ref)


def reference_of_pointer(text: bytes) -> OciRef:
    """Where a pointer says its bundle is; raises `PointerInvalid` for one that was not pushed.

    `bundle.digest` pins: a tag or digest inside `bundle.oci` is ignored (evidence-format 5.4).
    """
    pointer = parse_pointer(text)
    if not pointer.oci:
        raise PointerInvalid("pointer has no bundle.oci, expected a reference", hint="push the bundle, then submit")
    try:
        return _one_spelling(pull_reference(pointer))
    except ReferenceInvalid as err:
        raise PointerInvalid(f"pointer bundle: {err.message}", hint=err.hint) from err


def _one_spelling(ref: OciRef) -> OciRef:
    """The same place; a port 443 stays, since it may be one without TLS."""
    return replace(ref, registry=one_spelling(ref.registry))
