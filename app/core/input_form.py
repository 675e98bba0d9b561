"""Telling what a person named: a directory, a pointer, a reference or an archive (evidence-format 8.1).

Nothing is opened here; what stands at a path is asked of the caller.
"""

from collections.abc import Callable
from enum import StrEnum

from app.core.errors import InputError, ReferenceInvalid
from app.core.refs import OciRef


class PathKind(StrEnum):
    """What stands at a path, links followed."""

    MISSING = "missing"
    DIRECTORY = "directory"
    FILE = "file"


class InputForm(StrEnum):
    """The forms that `verify` takes; `archive` is a tar of an OCI layout and not of upstream (service 4)."""

    DIRECTORY = "dir"
    POINTER = "pointer"
    OCI = "oci"
    ARCHIVE = "archive"


_FORMS = "a bundle directory, a pointer file (.yaml), an archive (.tar) or registry/repository@sha256:<64 hex>"


def detect_input(text: str, *, kind_of_path: Callable[[str], PathKind]) -> InputForm:
    """The form of `text`, by the order of evidence-format 8.1; raises `InputError` when it has none."""
    if not text:
        raise InputError("expected an input, got an empty text", hint=f"name {_FORMS}")
    if text.startswith("oci://"):
        return InputForm.OCI
    if text.startswith(("http://", "https://")):
        raise InputError("expected a reference, got an http(s) address", hint=f"name {_FORMS}")
    match kind_of_path(text):
        case PathKind.DIRECTORY:
            return InputForm.DIRECTORY
        case PathKind.FILE if text.endswith((".yaml", ".yml")):
            return InputForm.POINTER
        case PathKind.FILE if text.endswith(".tar"):
            return InputForm.ARCHIVE
        case PathKind.FILE:
            raise InputError(f"expected a .yaml, .yml or .tar file, got {text[:200]!r}", hint=f"name {_FORMS}")
        case PathKind.MISSING:
            pass
    if _looks_like_reference(text):
        return InputForm.OCI
    raise InputError(f"{text[:200]!r} does not exist and is no reference", hint=f"name {_FORMS}")


def _looks_like_reference(text: str) -> bool:
    if " " in text or "\t" in text:
        return False
    host = text.partition("/")[0]
    return host not in {".", ".."} and ("." in host or ":" in host or host == "localhost")


def parse_missing(text: str) -> OciRef:
    """The reference that `text` is, since no file has that name; raises `ReferenceInvalid` that says both.

    A mistyped file name looks like a reference more often than not.
    """
    try:
        return OciRef.parse(text)
    except ReferenceInvalid as err:
        if text.startswith("oci://"):
            raise
        raise ReferenceInvalid(
            f"{text[:200]!r} does not exist here, and is no reference: {err.message}", hint=err.hint
        ) from err
